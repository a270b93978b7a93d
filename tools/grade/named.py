"""Whose a submission is: by its folder's or its file's name, as Canvas and Moodle write it."""

import csv
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

# lastfirst_USER_SUBMISSION_work.ipynb, late ones with a mark; Full Name_NUMBER_assignsubmission_...
CANVAS = re.compile(r"(?P<name>[^_]+)(?P<late>_LATE)?_(?P<number>\d+)_\d+_.+")
MOODLE = re.compile(r"(?P<name>.+?)_(?P<number>\d+)_assignsubmission_\w+?(?:_.*)?")
GROUP = re.compile(r"[^-]*[\s\d][^-]*-")  # before the name, where Moodle's assignment is of teams
COLUMNS = {  # of a roster: as somebody writes them, as Canvas and as Moodle export them
    "login": ("login", "sis login id", "username"),
    "name": ("name", "student", "full name"),
    "number": ("id",),
}


@dataclass(frozen=True)
class Person:
    """Somebody in a course: a login, a name, and the number that Canvas knows them by.

    Of whom only a download tells, label is what to call them.
    """

    login: str = ""
    name: str = ""
    number: str = ""
    label: str = ""


def plain(text: str) -> str:
    """Return a text with each letter as one character, however it was written."""
    return unicodedata.normalize("NFC", text).strip()


def person_of(name: str, is_file: bool) -> Person:
    """Return whom the name of a folder stands for, or of a file, which may be STUDENT__REST."""
    name = plain(name)
    if found := MOODLE.fullmatch(name):  # its number is of no use elsewhere
        return Person(name=found["name"], label=f"{found['name']}_{found['number']}")
    if found := CANVAS.fullmatch(name):
        label = f"{found['name']}_{found['number']}"
        return Person(name=found["name"], number=found["number"], label=label)
    login = name.partition("__")[0] if is_file else name
    return Person(login.rpartition(".")[0] or login if is_file and login == name else login)


def is_late(name: str) -> bool:
    """Say whether the name of a download says that it was handed in late: Canvas's names do."""
    found = CANVAS.fullmatch(plain(name))
    return bool(found and found["late"])


class Roster:
    """The logins of a course, found by login, by Canvas's number, or by name."""

    def __init__(self, people: list[Person] = ()):
        self.people = list(people)

    @classmethod
    def read(cls, path: Path) -> "Roster":
        """Read a table with the columns login, name and id; Canvas's own export will do.

        Raises:
            ValueError: no column holds logins.
        """
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [
                {plain(name or "").lower(): plain(value or "") for name, value in row.items()}
                for row in csv.DictReader(file)
                if None not in row
            ]
        people = [
            Person(**{what: _first(row, names) for what, names in COLUMNS.items()}) for row in rows
        ]
        people = [each for each in people if each.login]
        if not people:
            raise ValueError(f"{path} has no column {' or '.join(COLUMNS['login'])} with logins")
        return cls(people)

    def student(self, person: Person) -> tuple[str, Person]:
        """Return the name to grade somebody under, and all that is known of them."""
        found = self._found(person)
        if found:
            return found.login, found
        return person.login or person.label, person

    def _found(self, person: Person) -> Person | None:
        alone = GROUP.match(person.name)
        wanted = _letters(person.name)
        member = _letters(person.name[alone.end() :]) if alone else ""
        for fits in (
            lambda each: person.login and each.login.lower() == person.login.lower(),
            lambda each: person.number and each.number == person.number,
            lambda each: wanted and wanted in _orders(each.name),
            lambda each: member and member in _orders(each.name),
        ):
            found = [each for each in self.people if fits(each)]
            if len(found) == 1:
                return found[0]
        return None


def _first(row: dict[str, str], names: tuple[str, ...]) -> str:
    return next((row[name] for name in names if row.get(name)), "")


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))


def _orders(name: str) -> set[str]:
    """A name's letters with the last name last, and first: Canvas writes "Doe, Jane"."""
    last, comma, first = name.partition(",")
    words = [first, last] if comma else name.rsplit(maxsplit=1)
    return {_letters("".join(words)), _letters("".join(reversed(words)))}
