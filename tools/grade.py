"""Grade submitted notebooks: which exercises are right, and what is wrong with the others.

Usage: python tools/grade.py FOLDER --json out.json [--csv out.csv]

FOLDER holds a folder for each student with notebooks in it, at any depth, or notebooks named
STUDENT__NOTEBOOK.ipynb, or both. There is one result for each student and exercise: of the
exercises that any submission names, or of all where none is named.

Nothing that a notebook stores or prints is believed. Its cells, solutions aside, run in order in a
process that knows no answer. Whatever they hand to `check` is judged in this one: it sends inputs,
and what comes back is read as plain data and never unpickled. The last answer to an exercise
counts. The sentence is the one that the learner sees.

Each notebook is shut in by bubblewrap (Linux; Debian and Ubuntu: apt install bubblewrap): it sees
the system's programs, this Python and the course without its answers, and nothing else of this
machine: no home, no other submission, no result. It can write to one empty folder in memory and
reach no network. At a limit it is ended with all that it started. What takes too long costs its
own exercise: the notebook runs again without it. Results are written when everything has ended.

With --image, podman or docker does the same where bubblewrap does not (untested; the image has
Python and requirements.txt). Where neither can, the grader says so and stops; with --trusted it
goes on and limits time and memory, and submissions can do whatever you can do.

That an answer is the student's own work, rather than a copied solution, no grader can tell: the
course holds the right class, so do notebooks that import it. A class that looks whether it is
being graded sees that it is.
"""

import argparse
import contextlib
import csv
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from handed_in import Submission, submissions
from sandbox import Isolation, Lost, Sandbox, find_isolation, stage

from helpers.checks import check

COURSE = Path(__file__).parents[1] / "notebooks"
START = 120  # seconds after which a process that is not ready counts as lost
ANSWER = 5.0  # seconds for the answer to one exercise, as where it was written
HARD = 3  # times as long as it is told, a process is waited for
RUNS = 6  # of one notebook, each without one more thing that brought it down


@dataclass(frozen=True)
class Limits:
    """What a notebook may use: seconds, seconds of one cell, bytes of memory."""

    seconds: float = 60.0
    cell: float = 10.0
    memory: int = 2_000_000_000

    @property
    def answer(self) -> float:
        """Seconds for the answer to one exercise."""
        return min(ANSWER, self.cell)


@dataclass(frozen=True)
class Said:
    """What is said of one exercise: what `check` says, or why nothing can be said."""

    kind: str
    message: str
    passed: bool = False
    mistake: str | None = None


@dataclass(frozen=True)
class Result:
    """The verdict on one student's answer to one exercise."""

    student: str
    exercise: str
    passed: bool
    kind: str
    mistake: str | None
    message: str
    notebook: str


@dataclass
class Run:
    """What has become of a notebook so far: answers, cells that raised or were stopped, the end."""

    said: dict[str, Said] = field(default_factory=dict)
    stopped: dict[str, Said] = field(default_factory=dict)
    cells: dict[int, Said] = field(default_factory=dict)
    omitted: list[int] = field(default_factory=list)
    cell: int | None = None
    exercise: str | None = None
    until: float = 0.0
    ended: str = ""


# Asking


class StandIn:
    """Stands for an answer that is elsewhere: `check` asks it, and it asks the sandbox."""

    def __init__(self, sandbox: Sandbox, limits: Limits):
        self.sandbox, self.limits = sandbox, limits
        self.failed: Exception | None = None

    def ask(self, question: dict) -> dict:
        """Return what the answer replies; it may be forged.

        Raises:
            TimeoutError: the answer has had its seconds.
            Lost: the process is gone.
        """
        if self.failed:
            raise self.failed
        seconds = min(HARD * self.limits.answer, self.limits.seconds)
        try:
            self.sandbox.tell({"question": question}, seconds)
            fact = self.sandbox.hear(seconds)
        except Lost as lost:
            self.failed = lost
            raise
        if "late" in fact:
            message = f"no end after {self.limits.answer:g} seconds of running."
            self.failed = TimeoutError(message)
            raise self.failed
        reply = fact.get("reply")
        return reply if isinstance(reply, dict) else {}


def judge(identifier: str, sandbox: Sandbox, limits: Limits) -> Said:
    """Let `check` judge the answer that waits in the sandbox; raise Lost if that is lost by it."""
    asked = StandIn(sandbox, limits)
    try:
        outcome = check(identifier, asked, record=False)
        said = Said(outcome.kind, outcome.message, outcome.passed, outcome.mistake)
    except Exception as error:  # forged data may be odd in any way
        said = Said("type", f"this cannot be looked at ({type(error).__name__}).")
    if isinstance(asked.failed, TimeoutError):
        said = Said("error", str(asked.failed))
    elif asked.failed:
        raise asked.failed
    sandbox.tell({"next": True}, limits.cell)
    return said


def run_once(done: Run, cells: tuple[str, ...], exercises: list[str], box: Sandbox, limits: Limits):
    """Run the cells that are left and judge what they answer.

    Raises:
        Lost: while done.exercise was asked, or else while done.cell ran, or between.
    """
    done.cell = done.exercise = None
    began = time.monotonic()
    box.hear(START)
    done.until += time.monotonic() - began  # to start is no work of the notebook's
    box.until = done.until
    job = {"cells": cells, "omitted": done.omitted, "skipped": [*done.stopped]}
    job["seconds"] = {"cell": limits.cell, "answer": limits.answer}
    box.tell(job | {"memory": limits.memory}, START)
    while "end" not in (fact := box.hear(HARD * limits.cell)):
        if isinstance(exercise := fact.get("exercise"), str):
            if exercise in exercises and exercise not in done.stopped:
                done.exercise = exercise
                done.said[exercise] = judge(exercise, box, limits)
                done.exercise = None
            else:
                box.tell({"next": True}, limits.cell)
        elif isinstance(number := fact.get("cell"), int):
            done.cell = number
            if "late" in fact:
                message = f"no end of the cell of this exercise after {limits.cell:g} seconds."
                done.cells[number] = Said("stopped", message)
            elif "error" in fact:
                text = str(fact["error"])[:300]
                done.cells[number] = Said("error", f"the cell of this exercise raises {text}.")


def run(submitted: Submission, exercises: list[str], start: Callable, limits: Limits) -> Run:
    """Run a notebook; again without the cell or the answer that brought its process down.

    Args:
        submitted: the notebook.
        exercises: the identifiers that count.
        start: returns a new sandbox.
        limits: for all runs together.
    """
    done = Run(until=time.monotonic() + limits.seconds)
    for _ in range(RUNS):
        try:
            with start() as box:
                run_once(done, submitted.cells, exercises, box, limits)
            return done
        except Lost as lost:
            reason = str(lost)
        if done.exercise:
            message = f"while this answer ran, the notebook {reason}."
            done.stopped[done.exercise] = Said("stopped", message)
        elif done.cell is not None and done.cell not in done.omitted:
            message = f"while the cell of this exercise ran, the notebook {reason}."
            done.cells[done.cell] = Said("stopped", message)
            done.omitted.append(done.cell)
        else:
            break
        if time.monotonic() > done.until:
            break
    done.ended = reason
    return done


def outcomes(
    isolation: Isolation, course: Path, limits: Limits, exercises: list[str], submitted: Submission
) -> dict[str, Said]:
    """Return what is said of each exercise in one notebook."""
    if submitted.broken:
        return dict.fromkeys(exercises, Said("broken", f"{submitted.broken}."))
    if not set(exercises) & set(submitted.exercises):
        done = Run()
    else:
        start = partial(Sandbox, isolation, course, limits.memory)
        try:
            done = run(submitted, exercises, start, limits)
        except OSError as error:  # no process is left, or no memory
            done = Run(ended=f"could not be run ({type(error).__name__})")
    return {name: what_is_said(submitted, done, name) for name in exercises}


def what_is_said(submitted: Submission, done: Run, identifier: str) -> Said:
    """Say of one exercise what its learner would be told, or why nothing is."""
    for known in done.stopped, done.said:
        if identifier in known:
            return known[identifier]
    cell = submitted.exercises.get(identifier)
    if cell is None:
        return Said("missing", f'no cell says `check("{identifier}", ...)`.')
    if cell in done.cells:
        return done.cells[cell]
    if done.ended:
        return Said("stopped", f"the notebook {done.ended}, before this exercise.")
    return Said("missing", f'`check("{identifier}", ...)` is not reached.')


# All of them


def course_exercises() -> list[str]:
    """Return the identifiers of all exercises, in the order of the course."""
    sources = (path.read_text("utf-8") for path in sorted(COURSE.glob("*.ipynb")))
    cells = (cell for source in sources for cell in json.loads(source)["cells"])
    code = tuple("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    return [name for name in Submission("", "", code).exercises if known(name)]


def known(identifier: str) -> bool:
    """Say whether there is such an exercise."""
    return check(identifier, ..., record=False).kind != "unknown"


def grade(
    every: list[Submission],
    exercises: list[str],
    isolation: Isolation,
    processes: int,
    limits: Limits,
) -> list[Result]:
    """Return the results, in order of students and exercises, once all submissions have ended."""
    with tempfile.TemporaryDirectory(prefix="grading") as folder:
        course = Path(folder)
        stage(course)
        one = partial(outcomes, isolation, course, limits, exercises)
        with workers(min(processes, len(every))) as spread:
            judged = []
            for submitted, said in zip(every, spread(one, every), strict=True):
                judged.append((submitted, said))
                show_progress(len(judged), len(every))
    return list(results(judged, exercises))


@contextlib.contextmanager
def workers(processes: int) -> Iterator[Callable]:
    """Lend a map that is spread over so many processes, each of which judges alone."""
    if processes == 1:
        yield map
        return
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, spawn, torch.set_num_threads, (1,)) as pool:
        yield pool.map


def results(
    judged: Iterable[tuple[Submission, dict[str, Said]]], exercises: list[str]
) -> Iterator[Result]:
    """Yield one result for each student and exercise, from the student's last notebook with it."""
    students: dict[str, list] = {}
    for submitted, said in judged:
        students.setdefault(submitted.student, []).append((submitted.notebook, said))
    ranks = {"missing": 0, "broken": 1}
    for student, notebooks in sorted(students.items()):
        for identifier in exercises:
            _, _, notebook, best = max(
                (ranks.get(said[identifier].kind, 2), number, notebook, said[identifier])
                for number, (notebook, said) in enumerate(notebooks)
            )
            said = best.passed, best.kind, best.mistake, best.message
            yield Result(student, identifier, *said, notebook)


# The command


def read_options(arguments: list[str] | None) -> argparse.Namespace:
    """Return what the command line says, or leave where that cannot be."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="what was handed in")
    parser.add_argument("--json", type=Path, required=True, help="where to write the results")
    parser.add_argument("--csv", type=Path, help="where to write them as a table")
    parser.add_argument("--exercises", nargs="+", metavar="ID", help="(all that are named)")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="at a time")
    parser.add_argument("--seconds", type=float, default=60.0, help="for one notebook (60)")
    parser.add_argument("--cell-seconds", type=float, default=10.0, help="for one cell (10)")
    parser.add_argument("--memory", type=int, default=2000, help="MB for one notebook (2000)")
    parser.add_argument("--image", default="", help="for podman or docker, where bwrap is not")
    parser.add_argument("--trusted", action="store_true", help="go on where nothing isolates")
    options = parser.parse_args(arguments)
    if not options.folder.is_dir():
        parser.error(f"{options.folder} is not a folder")
    for out in filter(None, (options.json, options.csv)):
        if not out.absolute().parent.is_dir():
            parser.error(f"{out.parent} is not a folder")
    for name in options.exercises or ():
        if not known(name):
            parser.error(f"{name} is not an exercise")
    options.every = list(submissions(options.folder))
    if not options.every:
        parser.error(f"{options.folder} holds no submissions")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Grade a folder; return 0 once it is done, whatever the grades, 2 if nothing isolates."""
    options = read_options(arguments)
    outs = [path for path in (options.json, options.csv) if path]
    hidden = (options.folder, *(path.absolute().parent for path in outs), COURSE)
    isolation, why = find_isolation(options.image, tuple(str(each.resolve()) for each in hidden))
    if why:
        print(f"{why}: only time and memory are limited, nothing is isolated.", file=sys.stderr)
        if not options.trusted:
            print("Go on with --trusted, if you trust every submission.", file=sys.stderr)
            return 2
    torch.set_num_threads(1)
    named = options.exercises or {name for each in options.every for name in each.exercises}
    every = course_exercises()
    exercises = [name for name in every if name in named] or every
    limits = Limits(options.seconds, options.cell_seconds, options.memory * 1_000_000)
    found = grade(options.every, exercises, isolation, max(1, options.processes), limits)
    write_json(options.json, exercises, found)
    if options.csv:
        write_csv(options.csv, found)
    right = sum(result.passed for result in found)
    students = len({each.student for each in options.every})
    print(f"{students} students, {len(found)} results, {right} of them right: {options.json}")
    return 0


def show_progress(done: int, total: int) -> None:
    """Draw how far the grading is, over the line drawn before; in a log, only the last."""
    if done < total and not sys.stderr.isatty():
        return
    bar = "#" * (30 * done // total)
    print(f"\r[{bar:.<30}] {done} of {total}", end="\n" * (done == total), file=sys.stderr)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Any]:
    """Lend a file that takes the place of another once it is whole."""
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    try:
        with part.open("x", encoding="utf-8", errors="backslashreplace", newline="") as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_json(path: Path, exercises: list[str], found: list[Result]) -> None:
    """Write all results."""
    content = {"exercises": exercises, "results": [asdict(each) for each in found]}
    with replacing(path) as file:
        file.write(json.dumps(content, indent=1) + "\n")


def write_csv(path: Path, found: list[Result]) -> None:
    """Write a row for each result; no text begins as a formula of a spreadsheet does."""
    with replacing(path) as file:
        table = csv.DictWriter(file, [*asdict(found[0])])
        table.writeheader()
        for result in found:
            row = asdict(result)
            table.writerow({name: harmless(value) for name, value in row.items()})


def harmless(value: Any) -> Any:
    """Put an apostrophe before a text that a spreadsheet would compute."""
    formula = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{value}" if formula else value


if __name__ == "__main__":
    sys.exit(main())
