"""Read what students hand in: a folder for each with notebooks, or STUDENT__NOTEBOOK.ipynb."""

import json
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LARGEST_FILE = 50_000_000  # bytes
IDENTIFIER = re.compile(r"""["'](\w+\.\d+)["']""")


@dataclass(frozen=True)
class Submission:
    """A notebook that a student handed in: its code cells, or why it cannot be read."""

    student: str
    notebook: str
    cells: tuple[str, ...] = ()
    broken: str = ""

    @property
    def exercises(self) -> dict[str, int]:
        """What may be exercises in the source, each with the number of the last cell with it."""
        return {
            name: number
            for number, cell in enumerate(self.cells)
            for name in IDENTIFIER.findall(cell)
        }


class Broken(Exception):
    """A file cannot be read as a notebook."""


def submissions(folder: Path) -> Iterator[Submission]:
    """Yield every notebook handed in, students and notebooks in order of their names.

    A student's folder without a notebook yields one that is broken. Links are not followed.
    """
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith((".", "__")):
            continue
        if entry.is_dir() and not entry.is_symlink():
            paths = sorted(notebooks_in(entry))
            yield from (submission(entry.name, folder, path) for path in paths)
            if not paths:
                yield Submission(entry.name, "", broken="no notebook is handed in")
        elif entry.suffix == ".ipynb":
            yield submission(entry.stem.partition("__")[0], folder, entry)
        elif entry.is_symlink():
            yield Submission(entry.name, entry.name, broken="is a link")


def notebooks_in(folder: Path) -> Iterator[Path]:
    """Yield the notebooks at any depth, automatic copies aside."""
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "__"))]
        yield from (Path(place, name) for name in files if name.endswith(".ipynb"))


def submission(student: str, folder: Path, path: Path) -> Submission:
    """Read a notebook, whatever state it is in."""
    name = path.relative_to(folder).as_posix()
    try:
        return Submission(student, name, tuple(read_cells(path)))
    except Broken as error:
        return Submission(student, name, broken=f"{path.name} {error}")


def read_cells(path: Path) -> Iterator[str]:
    """Yield the source of each code cell that is no solution; raise Broken if it cannot be."""
    try:
        content = json.loads(read_file(path))
    except (ValueError, RecursionError):
        raise Broken("is not JSON: it may be cut off") from None
    cells = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(cells, list):
        raise Broken("is not a notebook of format 4: it has no list of cells")
    for number, cell in enumerate(cells):
        try:
            source, tags = cell["source"], cell.get("metadata", {}).get("tags", [])
            if cell["cell_type"] == "code" and "solution" not in tags:
                yield "".join(source)
        except (AttributeError, KeyError, TypeError):
            raise Broken(f"is not a notebook: cell {number} has no source") from None


def read_file(path: Path) -> bytes:
    """Return the content of a plain file of bearable size; raise Broken otherwise."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(handle, "rb") as file:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise Broken("is not a plain file")
            if status.st_size > LARGEST_FILE:
                raise Broken(f"is larger than {LARGEST_FILE // 1_000_000} MB")
            return file.read(LARGEST_FILE)
    except OSError as error:
        link = "is a link" if path.is_symlink() else f"cannot be opened: {error.strerror}"
        raise Broken(link) from None
