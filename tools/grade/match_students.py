"""Match submissions to students, by the names that Canvas and Moodle give folders and files."""

import csv
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

# lastfirst_USER_SUBMISSION_work.ipynb, late ones with a mark; Full Name_NUMBER_assignsubmission_...
CANVAS = re.compile(r"(?P<name>[^_]+)(?P<late>_LATE)?_(?P<number>\d+)_\d+_.+")
MOODLE = re.compile(r"(?P<name>.+?)_(?P<number>\d+)_assignsubmission_\w+?(?:_.*)?")
GROUP = re.compile(r"[^-]*[\s\d][^-]*-")  # before the name, where Moodle's assignment is of teams
# A roster's columns: as somebody writes them, as Canvas exports a gradebook and New Analytics'
# reports, and as Moodle exports its participants and an assignment's grading worksheet.
COLUMNS = {
    "login": ("login", "sis login id", "username", "email address", "email"),
    "name": ("name", "student", "student name", "full name"),
    "number": ("id", "student id"),
    "participant": ("identifier",),
}


@dataclass(frozen=True)
class Person:
    """Hold what is known of one person in a course."""

    login: str = ""  # what they are graded under
    name: str = ""  # first name first, or last name first with a comma
    number: str = ""  # that Canvas knows them by
    label: str = ""  # what to call them of whom only a download tells
    participant: str = ""  # the number that Moodle gives them in one assignment
    late: str = ""  # how late they handed in, in the words of Canvas or Moodle


def plain(text: str) -> str:
    """Return a text in which each letter is a single character (Unicode NFC)."""
    return unicodedata.normalize("NFC", text).strip()


def person_of(name: str, is_file: bool) -> Person:
    """Return the person that a folder or a file STUDENT__REST is named after."""
    name = plain(name)
    if found := MOODLE.fullmatch(name):
        label = f"{found['name']}_{found['number']}"
        return Person(name=found["name"], participant=found["number"], label=label)
    if found := CANVAS.fullmatch(name):
        label, late = f"{found['name']}_{found['number']}", "late" * bool(found["late"])
        return Person(name=found["name"], number=found["number"], label=label, late=late)
    login = name.partition("__")[0] if is_file else name
    return Person(login.rpartition(".")[0] or login if is_file and login == name else login)


def people_of(path: Path) -> Iterator[Person]:
    """Yield those that a table names; comma, semicolon or tab stands between its columns."""
    lines = path.read_text("utf-8-sig").splitlines(keepends=True)
    separator = max(",;\t", key=(lines or [""])[0].count)
    for row in csv.DictReader(lines, delimiter=separator):
        if None in row:  # more cells than columns
            continue
        told = {plain(name).lower(): plain(value or "") for name, value in row.items()}
        known = {
            what: next((told[name] for name in names if told.get(name)), "")
            for what, names in COLUMNS.items()
        }
        two = told.get("first name", ""), told.get("last name", "") or told.get("surname", "")
        known["name"] = known["name"] or " ".join(two).strip()
        known["participant"] = known["participant"].rpartition(" ")[2]  # "Participant 2214"
        yield Person(**known, late=how_late(told))


def how_late(row: dict[str, str]) -> str:
    """Return how late a row of Moodle's worksheet or Canvas's report says a submission is."""
    if row.get("submitted date"):
        return f"late, on {row['submitted date']}"
    parts = row.get("status", "").split(" - ")
    return next((part for part in parts if part.endswith(" late")), "")


class Roster:
    """Find the logins of a course by login, by Canvas's or Moodle's number, or by name."""

    def __init__(self, people: list[Person] = ()):
        self.people = list(people)

    @classmethod
    def read(cls, path: Path, *more: Path) -> "Roster":
        """Read a roster, and more about the same people from further tables."""
        people = {person.login: person for person in people_of(path) if person.login}
        if not people:
            raise ValueError(f"{path} has no column {', '.join(COLUMNS['login'])} with logins")
        roster = cls(list(people.values()))
        for table in more:
            for told in people_of(table):
                if known := roster.found(told):
                    if known.late and told.late:
                        raise ValueError(
                            f"{table} has {known.name} twice: keep one assignment's rows"
                        )
                    kept = {what: text for what, text in asdict(known).items() if text}
                    place = roster.people.index(known)
                    roster.people[place] = Person(**asdict(told) | kept)
        return roster

    def student(self, person: Person) -> tuple[str, Person]:
        """Return the login of a person, and everything known of them."""
        if found := self.found(person):
            on_time = person.number and not person.late  # says Canvas; Moodle's names do not tell
            return found.login, replace(found, late="" if on_time else found.late or person.late)
        return person.login or person.label, person

    def found(self, person: Person) -> Person | None:
        """Return the matching person of the roster, or None if nobody or more than one matches.

        A participant's number is of one assignment: if there is a name as well, it has to match.
        """
        alone = GROUP.match(person.name)
        wanted = _letters(person.name)
        member = _letters(person.name[alone.end() :]) if alone else ""
        for fits in (
            lambda known: person.login and known.login.lower() == person.login.lower(),
            lambda known: person.number and known.number == person.number,
            lambda known: (
                person.participant
                and known.participant == person.participant
                and (not known.name or wanted in _orders(known.name))
            ),
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
    """A name's letters with the last name last, and first: Canvas writes "Doe, Jane"."""
    last, comma, first = name.partition(",")
    words = [first, last] if comma else name.rsplit(maxsplit=1)
    return {_letters("".join(words)), _letters("".join(reversed(words)))}
