"""Choose for each student and exercise the notebook that counts, and compute the points."""

import functools
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from operator import itemgetter

from course import COURSE
from handed_in import Submission, called

from eleven_steps.checks import check
from eleven_steps.checks.verdict import MARKS, Verdict

POINTS = {"your_class": 11, "by_hand": 2}  # points by group of exercises; 1 for every other group
BY_STEPS = "your_class"  # the group in which each right step of a class is a point
# How much a notebook counts, by the kind of its verdict. Every other kind is an answer.
RANKS = {"missing": 0, "broken": 1, "unfinished": 2, "other_numbers": 2}
COPY = re.compile(r"\((\d+)\)\.ipynb$")


@dataclass(frozen=True)
class Result:
    """Hold the verdict on one student's answer to one exercise."""

    student: str
    exercise: str
    passed: bool
    kind: str
    mistake: str | None
    message: str
    notebook: str
    points: int
    possible: int
    late: str  # "late" if Canvas marks it so, else ""
    step: int | None  # the first wrong step of a class, if it is known


@functools.cache
def course_exercises() -> dict[str, str]:
    """Return all exercises, in the order of the course, each with the name of its notebook."""
    found: dict[str, str] = {}
    for path in COURSE.values():
        cells = json.loads(path.read_text("utf-8"))["cells"]
        code = tuple("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
        for name in Submission("", "", code).exercises:
            if name not in found and check(name, ..., record=False).kind != "unknown":
                found[name] = path.stem
    return found


def possible(identifier: str) -> int:
    return POINTS.get(identifier.partition(".")[0], 1)


def points(identifier: str, said: Verdict) -> int:
    """Return the points of an answer; an unfinished class gets one for each right step."""
    most = possible(identifier)
    return most if said.passed else min(said.reached, most) * identifier.startswith(BY_STEPS)


def results(
    judged: Iterable[tuple[Submission, dict[str, Verdict]]], exercises: list[str]
) -> Iterator[Result]:
    """Yield one result for each student and exercise, from the newest notebook with an answer."""
    students: dict[str, list] = {}
    for submitted, said in judged:
        students.setdefault(submitted.student, []).append((submitted, said))
    for student, notebooks in sorted(students.items()):
        for name in exercises:
            ranked = (rank(submitted, said[name], name) for submitted, said in notebooks)
            _, said, taken = max(ranked, key=itemgetter(0))
            verdict = said.passed, said.kind, said.mistake, said.message, taken.notebook
            late = taken.person.late * (said.kind != "missing")
            step = None if said.kind in MARKS else said.step  # that is wrong, not reached
            yield Result(student, name, *verdict, points(name, said), possible(name), late, step)


def rank(submitted: Submission, said: Verdict, name: str) -> tuple[tuple, Verdict, Submission]:
    """Return how much a notebook counts for an exercise, the verdict, and the notebook.

    If a broken file is named after a different notebook, it counts as missing here.
    """
    if submitted.broken and called(submitted.notebook) not in ("", course_exercises().get(name)):
        said = Verdict("missing", "no notebook with this exercise is handed in.")
        submitted = replace(submitted, notebook="")
    copy = COPY.search(submitted.notebook)
    newer = submitted.changed, int(copy[1]) if copy else 0, submitted.notebook
    return (RANKS.get(said.kind, len(RANKS)), *newer), said, submitted
