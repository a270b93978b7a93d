"""Remember which exercises are done, in one small file on this computer that anyone may delete.

The environment variable ELEVEN_STEPS_PROGRESS names the file. Without it, it is
my_notebooks/progress.json next to the course's notebooks, if this user may write there; else
.eleven_steps/progress.json in the home folder. No notebook and no network is involved.
"""

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from eleven_steps.checks.exercises import QUIZZES, TASKS
from eleven_steps.checks.paper import SHEET
from eleven_steps.checks.sentences import wording
from eleven_steps.helpers.trace import STEPS
from eleven_steps.pictures import Picture
from eleven_steps.pictures.progress import draw_progress

VARIABLE = "ELEVEN_STEPS_PROGRESS"
COURSE = "eleven steps to multi-head attention"
# The first exercise of each step, and those of 00_why_attention, 12 and 13.
EVENING = ("why.1", *(f"{step}.1" for step in STEPS), "the_order.1", "your_class.1")


class Unusable(Exception):
    """The progress file cannot be read."""


def file() -> Path:
    """Return the path of the progress file: in the course if it can be written, else at home."""
    if named := os.environ.get(VARIABLE):
        return Path(os.path.expanduser(named))
    course = Path(__file__).resolve().parents[2]
    mine = course / "my_notebooks"
    if (course / "notebooks").is_dir() and os.access(mine if mine.exists() else course, os.W_OK):
        return mine / "progress.json"
    home = os.path.expanduser("~")  # "~" itself where nobody knows a home: then in this folder
    return Path("" if home == "~" else home, ".eleven_steps", "progress.json")


def record(identifier: str) -> str:
    """Remember that an exercise is done; nothing that was done before is forgotten.

    A file that is broken, or is not this course's, is renamed and a new one begun.

    Returns:
        What the learner should know about it, or "".
    """
    path, note = file(), ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(path.parent):
            try:
                done = read(path)
            except Unusable as error:
                names = (f"{path.stem}-set-aside-{number}{path.suffix}" for number in count(1))
                aside = next(each for name in names if not (each := path.with_name(name)).exists())
                path.rename(aside)
                done, note = [], wording("begun_anew", path=path, why=error, aside=aside.name)
            if identifier not in done:
                write(path, [*done, identifier])
    except OSError as error:
        return wording("not_written_down", path=path, why=error.strerror)
    return note


def picture() -> Picture:
    """Draw which exercises are done: a column for a step, a row for the sheet."""
    path, note = file(), ""
    try:
        done = read(path)
    except (OSError, Unusable) as error:
        done, note = [], wording("not_readable", name=path.name, why=error)
    groups: dict[str, list[str]] = {}
    for identifier in (*TASKS, *QUIZZES):
        groups.setdefault(identifier.partition(".")[0], []).append(identifier)
    return draw_progress(done, groups | {"by hand": list(SHEET)}, EVENING, note)


def steps_done() -> set[str]:
    """Return the names of the steps whose exercise of the evening is done; none where unknown."""
    try:
        done = read(file())
    except (OSError, Unusable):
        return set()
    return {step for step in STEPS if f"{step}.1" in done}


def read(path: Path) -> list[str]:
    """Return the identifiers of what is done; raise Unusable for a broken or foreign file."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return []
    except (ValueError, RecursionError):
        raise Unusable(wording("not_json")) from None
    done = content.get("done") if isinstance(content, dict) else None
    if not isinstance(done, list) or content.get("course") != COURSE:
        raise Unusable(wording("not_this_course"))
    if not all(isinstance(identifier, str) for identifier in done):
        raise Unusable(wording("not_exercises"))
    return done


def write(path: Path, done: list[str]) -> None:
    """Replace the file at path in one go, so that a reader never meets half of it."""
    handle, name = tempfile.mkstemp(prefix=path.name, dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as new:
            new.write(json.dumps({"course": COURSE, "done": done}, indent=1) + "\n")
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other notebooks waiting while one reads and writes, where the system can."""
    with contextlib.ExitStack() as stack:
        # Some folders of a network have no locks, nor has a browser's Python.
        with contextlib.suppress(ImportError, OSError, AttributeError):
            import fcntl

            handle = os.open(folder, os.O_RDONLY)
            stack.callback(os.close, handle)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
