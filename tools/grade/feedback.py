"""Write a page of feedback for each student: their answers, the messages of `check`, and points.

A page is one file that loads nothing. It never has a solution, because it only quotes cells that
hand an answer to `check`, and the course's solutions do not count as such.
"""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from urllib.parse import quote

from course import COURSE
from handed_in import IDENTIFIER, Submission
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from results import Result, course_exercises

from eleven_steps.checks.asking.failures import visible

LONGEST = 10_000  # characters of an answer; the class of notebook 13 has 1500
NOT_COUNTED = "record=False"  # an argument of check in the solutions and in nbgrader's tests
TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def pages(
    every: Iterable[Submission], found: Iterable[Result], site: str
) -> Iterator[tuple[str, str]]:
    """Yield for each student the name of a file and its content.

    found: students together, exercises in the order of the course. site: the address of its pages.
    """
    page = TEMPLATES.get_template("feedback.html.j2")
    submitted = {(submission.student, submission.notebook): submission for submission in every}
    names = {submission.student: submission.person.name for submission in every}
    for student, results in groupby(found, lambda result: result.student):
        results = list(results)
        by_notebook = {
            name: [
                (result, answer(submitted.get((student, result.notebook)), result), step(result))
                for result in some
            ]
            for name, some in groupby(results, lambda result: course_exercises()[result.exercise])
        }
        missing = {
            name: sum(result.possible for result, *_ in some)
            for name, some in by_notebook.items()
            if all(result.kind == "missing" for result, *_ in some)
        }
        content = page.render(
            name=visible(names[student] or student),
            notebooks={name: some for name, some in by_notebook.items() if name not in missing},
            missing=missing,
            points=sum(result.points for result in results),
            possible=sum(result.possible for result in results),
            site=site and site.rstrip("/") + "/",
        )
        # The name is quoted, so that no two students share a file and none is out of the folder.
        file = quote(student, safe=" @+,")
        yield f"{file if len(file) < 200 else sha256(file.encode()).hexdigest()}.html", content


def answer(submitted: Submission | None, result: Result) -> str:
    """Return the source of the last cell that answers an exercise, or ""."""
    cells = reversed(submitted.cells if submitted else ())
    for cell in cells:
        if result.exercise in IDENTIFIER.findall(cell) and NOT_COUNTED not in cell:
            return visible(cell.strip("\n")[:LONGEST]) + "\n..." * (len(cell) > LONGEST)
    return ""


def step(result: Result) -> str:
    """Return the notebook of the first wrong step of a class, or ""."""
    return next((name for name in COURSE if name.startswith(f"{result.step or 99:02}_")), "")
