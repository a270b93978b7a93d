"""Grade submitted notebooks: say which exercises are right, and find the mistakes in the others.

Usage: python tools/grade/grade.py FOLDER --json out.json [--csv out.csv]

FOLDER is a folder or a zip file. It holds a folder of notebooks for each student, or files named
STUDENT__NOTEBOOK.ipynb, or the downloads of Canvas or Moodle as they are. Zip files in it are
opened. With --roster LOGINS.csv (columns login, name and id, or an export of Canvas or Moodle) the
results name students by their logins, and everybody on the roster gets results.

There is one result for each student and exercise. The exercises are those that --exercises names,
or else those of each notebook that at least half of the students worked in. If several notebooks of
a student have an exercise, the newest with an answer counts, and the result names it. With
--own-numbers NAME exercises are judged by the numbers that `make assignment` gave each student in
the assignment of that name. --feedback FOLDER writes a page for each student with answers, messages
and points, as a single file that can be mailed; with --site it links to the course's pages.

The grader believes nothing that a notebook stores or prints. Its cells, except solutions, run in
order in a sandbox (bubblewrap, on Linux; apt install bubblewrap on Debian and Ubuntu). The sandbox
has the system's programs, this Python and the course without its answers. It can write to one empty
folder in memory and has no network. A second process judges each answer: it sends inputs, and reads
the results as plain data. If a function or a class is wrong, the cells run once more in a sandbox
that has the whole course, to find the line. This can change a message, but no verdict and no
points. A notebook that exceeds a limit is ended with all processes that it started. An answer that
takes too long costs its own exercise only, because the notebook runs again without it. Results are
written at the end.

If bubblewrap does not work, the grader reports it and stops. With --trusted it goes on, but limits
time and memory only, so that submissions can do everything that you can do. No grader can know
whether an answer is the student's own work, and a class can find out that it is being graded.
"""

import argparse
import contextlib
import csv
import json
import os
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))  # course.py is in the folder above
from course import NOTEBOOKS
from feedback import pages
from grade_one import Grader, Limits
from handed_in import Submission, submissions
from judging import Judge
from match_students import Person, Roster
from own_numbers import own
from results import Result, course_exercises, results
from sandbox import Isolation, copy_course, find_isolation
from tqdm import tqdm

from eleven_steps.checks.asking.failures import visible


def grade(
    every: list[Submission],
    exercises: list[str],
    isolation: Isolation,
    processes: int,
    limits: Limits,
) -> list[Result]:
    """Grade all submissions; return the results in order of students and exercises."""
    with tempfile.TemporaryDirectory(prefix="grading") as folder:
        courses = Path(folder, "bare"), Path(folder, "whole")
        for course, whole in zip(courses, (False, True), strict=True):
            course.mkdir()
            copy_course(course, whole)
        one = Grader(isolation, *courses, limits, exercises).verdicts
        with workers(min(processes, len(every)), limits.memory) as spread:
            bar = tqdm(spread(one, every), "graded", len(every), disable=None)  # no bar in a log
            judged = list(zip(every, bar, strict=True))
    return list(results(judged, exercises))


@contextlib.contextmanager
def workers(number: int, memory: int) -> Iterator[Callable]:
    """Provide a function like map that works in several threads, each with a judging process."""
    mine, judges = threading.local(), []

    def begin() -> None:
        mine.judge = Judge(memory)
        judges.append(mine.judge)

    with ThreadPoolExecutor(number, initializer=begin) as pool:
        try:
            yield lambda function, every: pool.map(lambda one: function(mine.judge, one), every)
        finally:
            for judge in judges:
                judge.close()


# The command


def read_options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="what was handed in")
    parser.add_argument("--json", type=Path, required=True, help="where to write the results")
    parser.add_argument("--csv", type=Path, help="where to write them as a table")
    parser.add_argument("--feedback", type=Path, help="a folder for a page for each student")
    parser.add_argument("--site", metavar="ADDRESS", default="", help="which these pages link")
    parser.add_argument("--roster", type=Path, help="a table of who takes part")
    parser.add_argument("--own-numbers", metavar="NAME", help="as make assignment gave them out")
    parser.add_argument("--exercises", nargs="+", metavar="NAME", help="notebooks, or exercises")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="at a time")
    parser.add_argument("--seconds", type=float, default=60.0, help="for one notebook (60)")
    parser.add_argument("--cell-seconds", type=float, default=10.0, help="for one cell (10)")
    parser.add_argument("--memory", type=int, default=2000, help="MB for one notebook (2000)")
    parser.add_argument("--trusted", action="store_true", help="go on where nothing isolates")
    options = parser.parse_args(arguments)
    if not options.folder.is_dir() and not zipfile.is_zipfile(options.folder):
        parser.error(f"{options.folder} is neither a folder nor a zip file")
    for out in filter(None, (options.json, options.csv, options.feedback)):
        if not out.absolute().parent.is_dir():
            parser.error(f"{out.parent} is not a folder")
    for name in options.exercises or ():
        if name not in {*course_exercises()} | {*course_exercises().values()}:
            parser.error(f"{name} is neither an exercise nor a notebook that has any")
    try:
        roster = Roster.read(options.roster) if options.roster else Roster()
    except (OSError, ValueError) as error:
        parser.error(str(error))
    options.every, unread = submissions(options.folder, roster)
    if not options.every:
        parser.error(f"{options.folder} holds no submissions")
    if options.own_numbers:
        every = course_exercises()
        options.every = [
            replace(submitted, own=own(options.own_numbers, submitted.student, every))
            for submitted in options.every
        ]
    for name in unread:
        unknown = f"not read, because it is not a notebook and names no student: {visible(name)}"
        print(unknown, file=sys.stderr)
    logins = {person.login for person in roster.people}
    students = {submitted.student for submitted in options.every}
    for name in sorted(students - logins if logins else ()):
        print(f"not on the roster: {visible(name)}", file=sys.stderr)
    return options


def main(arguments: list[str] | None = None) -> int:
    """Grade a folder; return 0 when all is graded, or 2 if there is no isolation."""
    options = read_options(arguments)
    outs = [path for path in (options.json, options.csv) if path]
    hidden = (options.folder, *(path.absolute().parent for path in outs), NOTEBOOKS)
    isolation, why = find_isolation(tuple(str(path.resolve()) for path in hidden))
    if why:
        print(f"{why}: only time and memory are limited, nothing is isolated.", file=sys.stderr)
        if not options.trusted:
            print("Go on with --trusted, if you trust every submission.", file=sys.stderr)
            return 2
    asked = options.exercises or notebooks_asked(options.every)
    exercises = [name for name, of in course_exercises().items() if {name, of} & {*asked}]
    limits = Limits(options.seconds, options.cell_seconds, options.memory * 1_000_000)
    found = grade(options.every, exercises, isolation, max(1, options.processes), limits)
    people = {submitted.student: submitted.person for submitted in options.every}
    write_json(options.json, exercises, people, found)
    if options.csv:
        write_csv(options.csv, found)
    if options.feedback:
        options.feedback.mkdir(exist_ok=True)
        for name, page in pages(options.every, found, options.site):
            with replacing(options.feedback / name) as file:
                file.write(page)
    right = sum(result.passed for result in found)
    students = len({submitted.student for submitted in options.every})
    print(f"{students} students, {len(found)} results, {right} of them right: {options.json}")
    return 0


def notebooks_asked(every: list[Submission]) -> list[str]:
    """Return the notebooks that at least half of the students handed in; print those left out.

    A notebook that only a few hand in was not assigned, so it must not raise everybody's total.
    """
    handed_in: dict[str, set[str]] = {}
    for submitted in every:
        for name in {*submitted.exercises} & {*course_exercises()}:
            handed_in.setdefault(course_exercises()[name], set()).add(submitted.student)
    students = len(set().union(*handed_in.values()))
    for name, some in sorted(handed_in.items()):
        if 2 * len(some) < students:
            said = f"{name}: handed in by {len(some)} of {students}, so it does not count"
            print(f"{said} (--exercises says what does)", file=sys.stderr)
    asked = [name for name, some in handed_in.items() if 2 * len(some) >= students]
    return asked or [*course_exercises().values()]


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Any]:
    """Provide a file that replaces another once it is complete."""
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    try:
        with part.open("x", encoding="utf-8", errors="backslashreplace", newline="") as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_json(
    path: Path, exercises: list[str], people: dict[str, Person], found: list[Result]
) -> None:
    content = {
        "exercises": {name: course_exercises().get(name, "") for name in exercises},
        "students": {student: asdict(person) for student, person in people.items()},
        "results": [asdict(result) for result in found],
    }
    with replacing(path) as file:
        file.write(json.dumps(content, indent=1) + "\n")


def write_csv(path: Path, found: list[Result]) -> None:
    """Write a row for each result, with no text that a spreadsheet would compute."""
    with replacing(path) as file:
        table = csv.DictWriter(file, [*asdict(found[0])])
        table.writeheader()
        for result in found:
            row = asdict(result)
            table.writerow({name: harmless(value) for name, value in row.items()})


def harmless(value: Any) -> Any:
    """Escape control characters; put an apostrophe before what a spreadsheet would compute."""
    if not isinstance(value, str):
        return value
    formula = value.startswith(("=", "+", "-", "@", "\t", "\r"))
    return "'" * formula + visible(value)


if __name__ == "__main__":
    sys.exit(main())
