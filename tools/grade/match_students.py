"""Match submissions to students, by the names that Canvas and Moodle give folders and files."""

import csv
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

# lastfirst_USER_SUBMISSION_work.ipynb, late ones with a mark; Full Name_NUMBER_assignsubmission_...
CANVAS = re.compile(r"(?P<name>[^_]+)(?P<late>_LATE)?_(?P<number>\d+)_\d+_.+")
MOODLE = re.compile(r"(?P<name>.+?)_(?P<number>\d+)_assignsubmission_\w+?(?:_.*)?")
GROUP = re.compile(r"[^-]*[\s\d][^-]*-")  # before the name, where Moodle's assignment is of teams
# The names of a roster's columns, in lower case: as somebody writes them, as Canvas exports a
# gradebook and a class roster, and as Moodle exports its participants.
COLUMNS = {
    "login": ("login", "sis login id", "username", "email address", "email"),
    "name": ("name", "student", "student name", "full name"),
    "number": ("id", "student id"),
}


@dataclass(frozen=True)
class Person:
    """Hold what is known of one person in a course."""

    login: str = ""  # what they are graded under
    name: str = ""  # first name first, or last name first with a comma
    number: str = ""  # that Canvas knows them by
    label: str = ""  # what to call a person who is known from a download only
    late: str = ""  # "late" if Canvas marks what they handed in


def plain(text: str) -> str:
    """Return a text in which each letter is a single character (Unicode NFC)."""
    return unicodedata.normalize("NFC", text).strip()


def person_of(name: str, is_file: bool) -> Person:
    """Return the person that a folder or a file STUDENT__REST is named after."""
    name = plain(name)
    if found := MOODLE.fullmatch(name):
        label = f"{found['name']}_{found['number']}"
        return Person(name=found["name"], label=label)
    if found := CANVAS.fullmatch(name):
        label, late = f"{found['name']}_{found['number']}", "late" * bool(found["late"])
        return Person(name=found["name"], number=found["number"], label=label, late=late)
    login = name.partition("__")[0] if is_file else name
    return Person(login.rpartition(".")[0] or login if is_file and login == name else login)


def people_of(path: Path) -> Iterator[Person]:
    """Yield the people in a table, whose columns a comma, semicolon or tab separates."""
    lines = path.read_text("utf-8-sig").splitlines(keepends=True)
    separator = max(",;\t", key=(lines or [""])[0].count)
    for row in csv.DictReader(lines, delimiter=separator):
        if None in row:  # more cells than columns
            continue
        cells = {plain(name).lower(): plain(value or "") for name, value in row.items()}
        known = {
            what: next((cells[name] for name in names if cells.get(name)), "")
            for what, names in COLUMNS.items()
        }
        two = cells.get("first name", ""), cells.get("last name", "") or cells.get("surname", "")
        known["name"] = known["name"] or " ".join(two).strip()
        yield Person(**known)


class Roster:
    """Find the logins of a course by login, by Canvas's number, or by name."""

    def __init__(self, people: list[Person] = ()):
        self.people = list(people)

    @classmethod
    def read(cls, path: Path) -> "Roster":
        """Read a table of the people who take the course."""
        people = {person.login: person for person in people_of(path) if person.login}
        if not people:
            raise ValueError(f"{path} has no column {', '.join(COLUMNS['login'])} with logins")
        return cls(list(people.values()))

    def student(self, person: Person) -> tuple[str, Person]:
        """Return the login of a person, and everything known of them."""
        if found := self.found(person):
            return found.login, replace(found, late=person.late)
        return person.login or person.label, person

    def found(self, person: Person) -> Person | None:
        """Return the matching person of the roster, or None if nobody or more than one matches."""
        alone = GROUP.match(person.name)
        wanted = _letters(person.name)
        member = _letters(person.name[alone.end() :]) if alone else ""
        for fits in (
            lambda known: person.login and known.login.lower() == person.login.lower(),
            lambda known: person.number and known.number == person.number,
            lambda known: wanted and wanted in _orders(known.name),
            lambda known: member and member in _orders(known.name),
        ):
            found = [known for known in self.people if fits(known)]
            if len(found) == 1:
                return found[0]
        return None


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))


def _orders(name: str) -> set[str]:
    """Return a name's letters with the last name last, and first: Canvas writes "Doe, Jane"."""
    last, comma, first = name.partition(",")
    words = [first, last] if comma else name.rsplit(maxsplit=1)
    return {_letters("".join(words)), _letters("".join(reversed(words)))}
