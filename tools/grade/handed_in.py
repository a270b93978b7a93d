"""Read submissions: a folder for each student, or files named by student, also in zip files."""

import io
import json
import os
import re
import stat
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath

from course import COURSE
from match_students import Person, Roster, person_of

LARGEST_FILE = 30_000_000  # most bytes read of an unpacked file
LARGEST_CODE = 10_000_000  # characters in the code cells of a notebook
MOST_FILES = 1000  # in a zip file
DEEPEST = 20  # folders in folders
ZIPPED = 2  # zip files in zip files
IDENTIFIER = re.compile(r"""["'](\w+\.\d+)(?:\.\d+)?["']""")  # a third part is a seed
# Files that systems leave behind, next to those that somebody made.
LEFT = {"__MACOSX", ".ipynb_checkpoints", ".DS_Store", "Thumbs.db", "desktop.ini"}


@dataclass(frozen=True)
class Submission:
    """Hold a notebook that a student handed in: its code cells, or why it cannot be read.

    If the student handed in none, the notebook's name is "".
    """

    student: str
    notebook: str
    cells: tuple[str, ...] = ()
    broken: str = ""
    changed: int = 0  # time of the last change, in seconds of time.time
    person: Person = field(default_factory=Person)
    own: Mapping[str, str] = field(default_factory=dict)  # exercises with the student's own numbers

    @property
    def exercises(self) -> dict[str, int]:
        """Return possible exercises of the source, each with the number of its last cell."""
        return {
            name: number
            for number, cell in enumerate(self.cells)
            for name in IDENTIFIER.findall(cell)
        }


@dataclass(frozen=True)
class File:
    """Hold a file that was handed in, in a folder or in a zip file."""

    name: str  # with its folders
    changed: int
    read: Callable[[], bytes]


class Broken(Exception):
    """Report a file that cannot be read as a notebook."""


def submissions(folder: Path, roster: Roster | None = None) -> tuple[list[Submission], list[str]]:
    """Read every notebook handed in, students and notebooks in order of their names.

    Args:
        folder: or a zip file, with a folder or files of each student. Links are not followed.
        roster: who takes the course; each gets a submission.

    Returns:
        The submissions, and the names of files that are not notebooks and name no student.
    """
    roster, unread = roster or Roster(), []
    found: dict[str, list[Submission]] = {}
    for person in roster.people:
        found[person.login] = [Submission(person.login, "", person=person)]
    for name, files, alone in top_level_entries(folder):
        person, notebooks = (
            person_of(name, alone),
            [file for file in files if is_notebook(file.name)],
        )
        says_whom = "__" in name or name.endswith(".zip") or person_of(name, True).name
        if name in LEFT or alone and not notebooks and not says_whom:
            unread.append(name)
            continue
        # 05_scores.py is reported, unless 05_scores.ipynb is there too.
        known = {"", *(called(file.name) for file in notebooks)}
        notebooks += [file for file in files if called(file.name) not in known]
        student, person = roster.student(person)
        mine = found.setdefault(student, [])
        mine += [submission(student, person, file) for file in notebooks]
        if not mine:
            mine.append(Submission(student, "", person=person))
    return [submitted for _, mine in sorted(found.items()) for submitted in mine], unread


def top_level_entries(folder: Path) -> Iterator[tuple[str, list[File], bool]]:
    """Yield the top-level entries of a folder: name, files, and whether it is a single file."""
    if folder.is_dir():
        for path in sorted(folder.iterdir()):
            yield path.name, list(files_of(path, path.name)), not path.is_dir()
        return
    every: dict[str, list[File]] = {}
    with zipfile.ZipFile(folder) as archive:
        for file in packed(archive, "", 0):
            every.setdefault(PurePosixPath(file.name).parts[0], []).append(file)
        for name, files in sorted(every.items()):
            yield name, files, files[0].name == name or name.endswith(".zip")


def files_of(path: Path, name: str) -> Iterator[File]:
    """Yield a file, or all files of a folder or zip file, except those that systems leave."""
    if path.is_dir() and not path.is_symlink():
        names = sorted(below.name for below in path.iterdir())
        for below in names:
            if name.count("/") < DEEPEST and not is_left(below, names):
                yield from files_of(path / below, f"{name}/{below}")
        return
    file = File(name, int(path.lstat().st_mtime), lambda: read_file(path))
    yield from opened(file, 0) if name.endswith(".zip") else [file]


def opened(file: File, depth: int) -> Iterator[File]:
    """Yield the files in a zip file, or the zip file as an unreadable notebook if it is broken."""
    try:
        yield from packed(zipfile.ZipFile(io.BytesIO(file.read())), file.name, depth)
    except (Broken, ValueError, OSError, RuntimeError, zipfile.BadZipFile):
        yield File(f"{file.name}/.ipynb", file.changed, lambda: b"")


def packed(archive: zipfile.ZipFile, place: str, depth: int) -> Iterator[File]:
    """Yield the files of an open zip file, with its path at the start of their names."""
    entries = [entry for entry in archive.infolist() if not entry.is_dir()][:MOST_FILES]
    names = {PurePosixPath(entry.filename).name for entry in entries}
    for entry in entries:
        if any(is_left(part, names) for part in PurePosixPath(entry.filename).parts):
            continue
        changed = int(time.mktime((*entry.date_time, 0, 0, -1)))
        name = str(PurePosixPath(place, entry.filename))
        file = File(name, changed, partial(read_packed, archive, entry))
        zipped = name.endswith(".zip") and depth < ZIPPED
        yield from opened(file, depth + 1) if zipped else [file]


def read_packed(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    try:
        with archive.open(entry) as file:
            return within_size_limit(file.read(LARGEST_FILE + 1))
    except (OSError, RuntimeError, ValueError, NotImplementedError, zipfile.BadZipFile):
        raise Broken("cannot be taken out of its zip file") from None


def is_left(name: str, names: Iterable[str]) -> bool:
    """Say whether a system left a file behind, such as "._work.ipynb" next to "work.ipynb"."""
    return name in LEFT or name.startswith("._") and name[2:] in names


def is_notebook(name: str) -> bool:
    return name.lower().endswith(".ipynb")


def called(name: str) -> str:
    """Return the notebook of the course that a file is named after, or ""."""
    file = PurePosixPath(name).name
    return max((notebook for notebook in COURSE if notebook in file), key=len, default="")


def submission(student: str, person: Person, file: File) -> Submission:
    try:
        if not is_notebook(file.name):
            raise Broken("is not a notebook, and only notebooks are read")
        cells, broken = tuple(read_cells(file.read())), ""
    except Broken as error:
        cells, broken = (), f"{PurePosixPath(file.name).name} {error}"
    return Submission(student, file.name, cells, broken, file.changed, person)


def read_cells(content: bytes) -> Iterator[str]:
    """Yield the source of each code cell except solutions; raise Broken if that fails."""
    try:
        content = json.loads(content)
    except (ValueError, RecursionError):
        raise Broken("is not JSON: it may be cut off") from None
    cells = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(cells, list):
        raise Broken("is not a notebook of format 4: it has no list of cells")
    left = LARGEST_CODE
    for number, cell in enumerate(cells):
        source = cell.get("source") if isinstance(cell, dict) else None
        lines = [source] if isinstance(source, str) else source
        if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
            raise Broken(f"is not a notebook: cell {number} has no source")
        if cell.get("cell_type") == "code" and "solution" not in tags_of(cell):
            yield (code := "".join(lines))
            left -= len(code)
            if left < 0:
                raise Broken(f"has more than {LARGEST_CODE // 1_000_000} MB of code")


def tags_of(cell: dict) -> list:
    """Return the tags of a cell, or none if they are malformed."""
    metadata = cell.get("metadata")
    tags = metadata.get("tags") if isinstance(metadata, dict) else None
    return tags if isinstance(tags, list) else []


def read_file(path: Path) -> bytes:
    """Return the content of a plain file within the size limit; raise Broken otherwise."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise Broken("is not a plain file")
            return within_size_limit(file.read(LARGEST_FILE + 1))
    except OSError as error:
        link = "is a link" if path.is_symlink() else f"cannot be opened: {error.strerror}"
        raise Broken(link) from None


def within_size_limit(content: bytes) -> bytes:
    if len(content) > LARGEST_FILE:
        raise Broken(f"is larger than {LARGEST_FILE // 1_000_000} MB")
    return content
