"""Grade submitted notebooks: which exercises are right, and what is wrong with the others.

Usage: python tools/grade.py FOLDER --json out.json [--csv out.csv]

FOLDER holds a folder for each student with notebooks in it, at any depth, or notebooks named
STUDENT__NOTEBOOK.ipynb, or both.

Nothing that a notebook stores or prints is believed. Its cells, solutions aside, run in order in a
process of their own. What they hand to `check` is put aside: numbers are compared here; functions
and classes are given inputs and weights that are drawn for this run, and here it is compared what
they return. The last answer to an exercise counts. What comes back from the notebook's process is
read as plain data and never unpickled. The sentence is the one that the learner sees.

Of a class, `check_attention` tells what is wrong, in the notebook's process, which a class could
make it lie in. So a class passes only if, besides, its outputs, gradients and dropout under drawn
weights are right as compared here; that its mask follows it to other devices is taken on trust.

What keeps submissions apart from the grader and from each other: processes with limits on time,
memory and the size of files; a scratch folder, deleted afterwards, as home and working folder; and
Python refuses them to write elsewhere, to start processes and to open connections. All the same
they run as you: machine code could undo the refusals, and files that you can read, they can read.
For submissions from strangers use a container without a network. That an answer is the student's
own work, rather than a copied solution, no grader can tell. Linux; on macOS memory has no limit.
"""

import argparse
import csv
import json
import os
import queue
import random
import re
import secrets
import select
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from grade_child import ANSWERS, DESK, JOB, LARGEST_FILE, forward_and_back
from plain_data import decode, encode, encode_argument

from helpers.attention import MultiHeadAttention
from helpers.checks import DROPOUT, judge_dropout
from helpers.checks.exercises import SECONDS, Outcome, judge, judge_function
from helpers.checks.growing import layers
from helpers.checks.guard import Failure, attempt, kept_state
from helpers.checks.looks import close, training_looks
from helpers.checks.mistakes import MISTAKES
from helpers.checks.scenes import PLACES, Scene, Sizes, fresh, play
from helpers.checks.tasks import TASKS, Grow, Task, Write

CHILD = Path(__file__).with_name("grade_child.py")
PATIENCE = 120  # seconds beyond a notebook's own after which its starter counts as lost
IDENTIFIER = re.compile(r"""["'](\w+\.\d+)["']""")


@dataclass(frozen=True)
class Submission:
    """A notebook that a student handed in: its code cells, or why it cannot be read."""

    student: str
    notebook: str
    cells: tuple[str, ...] = ()
    broken: str = ""

    @cached_property
    def exercises(self) -> dict[str, int]:
        """The exercises that the source names, each with the number of the last cell that does."""
        found = (
            (name, n) for n, cell in enumerate(self.cells) for name in IDENTIFIER.findall(cell)
        )
        return {name: number for name, number in found if name in TASKS}


@dataclass
class Run:
    """What a notebook's process wrote down, and how it ended; none of it is to be trusted."""

    answers: dict[str, dict] = field(default_factory=dict)
    errors: dict[int, str] = field(default_factory=dict)
    fatal: dict[str, str] = field(default_factory=dict)
    ended: str = ""


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


# What is handed in


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


# What the answers are asked


def draw_places(seed: int) -> tuple[Sizes, ...]:
    """Return the places that learners know, and more that they do not."""
    draw = random.Random(seed)

    def sizes() -> Sizes:
        num_heads, head_dim = draw.sample(range(2, 6), 2)
        b, num_tokens, d_in = draw.sample(range(2, 10), 3)
        d_out = num_heads * head_dim
        return fresh(b, num_tokens, d_in, d_out, num_heads, seed=draw.getrandbits(32))

    return *PLACES, replace(PLACES[1], seed=draw.getrandbits(32)), sizes(), sizes()


def question(task: Task, places: Iterable[Sizes]) -> Any:
    """Return what an answer is to be given, as plain data; nothing where it is a number."""
    if isinstance(task, Write):
        return [list(map(encode_argument, task.gets(play(place)))) for place in places]
    if isinstance(task, Grow):
        return [list(map(encode, scene_of_class(play(place)))) for place in places]
    return None


def scene_of_class(scene: Scene) -> tuple:
    """Return the arguments of forward_and_back that follow the class."""
    weights = {name: weight.detach() for name, weight in layers(scene.module).items()}
    sizes = scene.sizes
    x = scene["shape"]["x"]
    return sizes.constructor, sizes.qkv_bias, [*weights], [*weights.values()], x


# Running


class Starter:
    """A process that has imported what notebooks need and forks one for each."""

    def __init__(self, home: str):
        self.home = home
        self.process: subprocess.Popen | None = None

    def run(self, folder: Path, seconds: float, memory: int) -> str:
        """Run the notebook in folder; return why it was stopped, or nothing."""
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, str(CHILD)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=os.environ | {"IPYTHONDIR": self.home, "MPLBACKEND": "agg"},
            )
        job = {"folder": str(folder), "seconds": seconds, "memory": memory}
        try:
            self.process.stdin.write(json.dumps(job).encode() + b"\n")
            self.process.stdin.flush()
            answers, _, _ = select.select([self.process.stdout], [], [], seconds + PATIENCE)
            return json.loads(self.process.stdout.readline() if answers else b"")
        except (OSError, ValueError):
            self.stop()
            return "ended the process that had started it"

    def stop(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


@contextmanager
def scratch(place: str | None = None) -> Iterator[Path]:
    """Lend a folder and clear it away, however deep it has become."""
    folder = Path(tempfile.mkdtemp(prefix="grading", dir=place))
    try:
        yield folder
    finally:
        subprocess.run(["rm", "-rf", folder], stderr=subprocess.DEVNULL, check=False)


def run(submitted: Submission, questions: dict, starter: Starter, limits: dict) -> Run:
    """Run a notebook; once more without each answer that brings its process down."""
    questions = {name: questions[name] for name in submitted.exercises if name in questions}
    fatal = {}
    while True:
        with scratch(starter.home) as folder:
            job = {"cells": submitted.cells, "questions": questions}
            (folder / DESK).mkdir()
            (folder / JOB).write_text(json.dumps(job), encoding="utf-8")
            ended = starter.run(folder, **limits)
            done, begun = read_run(folder / ANSWERS, ended)
        done.fatal = fatal
        if not done.ended or begun not in questions:
            return done
        fatal[begun] = done.ended
        del questions[begun]


def read_run(path: Path, ended: str) -> tuple[Run, str | None]:
    """Return what a notebook's process wrote down, and the answer that it did not survive."""
    done, begun, finished = Run(), None, False
    try:
        lines = read_file(path).splitlines()
    except Broken:
        lines = []
    for line in lines:
        fact = attempt(json.loads, line)
        if not isinstance(fact, dict):
            continue
        if isinstance(fact.get("begun"), str):
            begun = fact["begun"]
        elif isinstance(fact.get("exercise"), str):
            done.answers[fact["exercise"]], begun = fact, None
        elif isinstance(fact.get("cell"), int):
            done.errors[fact["cell"]] = str(fact.get("error"))[:300]
        finished = finished or "end" in fact
    done.ended = ended or ("" if finished else "ended its process")
    return done, begun


def run_all(every: list[Submission], questions: dict, processes: int, limits: dict) -> Iterator:
    """Yield the run of each submission, in order; as many at a time as there are processes."""
    with scratch() as home:
        starters = [Starter(str(home)) for _ in range(min(processes, len(every)))]
        idle: queue.SimpleQueue[Starter] = queue.SimpleQueue()
        for starter in starters:
            idle.put(starter)

        def run_one(submitted: Submission) -> Run:
            if submitted.broken:
                return Run()
            starter = idle.get()
            try:
                return run(submitted, questions, starter, limits)
            except Exception as error:  # a full disk for one
                return Run(ended=f"could not be run ({type(error).__name__})")
            finally:
                idle.put(starter)

        try:
            with ThreadPoolExecutor(len(starters)) as pool:
                yield from pool.map(run_one, every)
        finally:
            for starter in starters:
                starter.stop()


# Judging


def outcome_of(submitted: Submission, done: Run, identifier: str, places: tuple) -> Outcome:
    """Say of one exercise in one notebook what its learner would be told, or why nothing is."""

    def outcome(kind: str, message: str) -> Outcome:
        return Outcome(identifier, kind, message)

    if submitted.broken:
        return outcome("broken", f"{submitted.broken}.")
    if identifier in done.fatal:
        return outcome("stopped", f"while this answer ran, the notebook {done.fatal[identifier]}.")
    if identifier in done.answers:
        with kept_state():
            judged = attempt(judge_answer, TASKS[identifier], done.answers[identifier], places)
        if isinstance(judged, Failure):
            return outcome("type", f"this cannot be looked at: {judged.text}.")
        return judged
    cell = submitted.exercises.get(identifier)
    if cell is None:
        return outcome("missing", f'no cell says `check("{identifier}", ...)`.')
    if cell in done.errors:
        return outcome("error", f"the cell of this exercise raises {done.errors[cell]}.")
    if done.ended:
        return outcome("stopped", f"the notebook {done.ended}, before this exercise.")
    return outcome("missing", f'`check("{identifier}", ...)` is not reached.')


def judge_answer(task: Task, facts: dict, places: tuple[Sizes, ...]) -> Outcome:
    """Compare what an answer came to with what is right; raise whatever odd data make it raise."""
    if "late" in facts:
        message = f"no end after {SECONDS:g} seconds of running."
        return Outcome(task.identifier, "error", message)
    if isinstance(task, Grow) and "class" in facts:
        return judge_class(task, facts["class"], places)
    if isinstance(task, Write) and "returned" in facts:
        returned = [decode(each) for each in facts["returned"]]
        told = judge_function(task, replay(returned), PLACES)  # this is what the learner sees
        return judge_function(task, replay(returned), places) if told.passed else told
    answer = decode(facts["value"])
    if isinstance(answer, Failure):
        raise RuntimeError(answer.text)
    return judge(task, answer)


def replay(returned: list) -> Callable[..., Any]:
    """Return a function that returns what another one has returned, one after the other."""
    values = iter(returned)
    return lambda *arguments: next(values)


def judge_class(task: Grow, facts: dict, places: tuple[Sizes, ...]) -> Outcome:
    """Take a class's word for what is wrong with it, and nobody's that nothing is."""
    kind, message, mistake = facts["outcome"]
    if kind == "right":
        passed, message, mistake = facts["verdict"]
        kind = "right" if passed is True else "mistake" if mistake else "value"
    if kind == "right" and not right_class(facts, places):
        kind, mistake = "value", None
        message = "what this class computes for other weights and inputs is not what is expected."
    mistake = mistake if mistake in MISTAKES else None
    return Outcome(task.identifier, str(kind)[:20], str(message)[:2000], mistake)


def right_class(facts: dict, places: tuple[Sizes, ...]) -> bool:
    """Say whether outputs, gradients and dropout of a class are those of the right one."""
    for place, plain in zip(places, facts["looks"], strict=True):
        right = forward_and_back(MultiHeadAttention, *scene_of_class(play(place)))
        came = decode(plain)
        if isinstance(came, Failure) or not all(map(alike, came, right)) or len(came) < len(right):
            return False
    looks, right = decode(facts["dropout"]), training_looks(MultiHeadAttention, DROPOUT)
    whole = [each.shape for each in looks] == [each.shape for each in right]
    return whole and alike(looks[0], right[0]) and not judge_dropout(tuple(looks), right)


def alike(came: Any, right: torch.Tensor) -> bool:
    """Say whether what came is a tensor with the right numbers."""
    return isinstance(came, torch.Tensor) and close(came.float(), right, 1e-3)


def results(judged: Iterable[tuple[Submission, dict[str, Outcome]]], exercises: list[str]):
    """Yield one result for each student and exercise, from the student's last notebook with it."""
    students: dict[str, list] = {}
    for submitted, outcomes in judged:
        students.setdefault(submitted.student, []).append((submitted.notebook, outcomes))
    ranks = {"missing": 0, "broken": 1}
    for student, notebooks in sorted(students.items()):
        for identifier in exercises:
            _, _, notebook, best = max(
                (ranks.get(outcomes[identifier].kind, 2), number, notebook, outcomes[identifier])
                for number, (notebook, outcomes) in enumerate(notebooks)
            )
            said = best.passed, best.kind, best.mistake, best.message
            yield Result(student, identifier, *said, notebook)


# The command


def main(arguments: list[str] | None = None) -> int:
    """Grade a folder; return 0 once it is done, whatever the grades."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="what was handed in")
    parser.add_argument("--json", type=Path, required=True, help="where to write the results")
    parser.add_argument("--csv", type=Path, help="where to write them as a table")
    parser.add_argument("--exercises", nargs="+", choices=TASKS, metavar="ID", help="(all found)")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="at a time")
    parser.add_argument("--seconds", type=float, default=60.0, help="for one notebook (60)")
    parser.add_argument("--memory", type=int, default=2000, help="MB for one notebook (2000)")
    parser.add_argument("--seed", type=int, help="of the drawn inputs, to repeat a run")
    options = parser.parse_args(arguments)
    if not options.folder.is_dir():
        parser.error(f"{options.folder} is not a folder")
    for out in filter(None, (options.json, options.csv)):
        if not out.absolute().parent.is_dir():
            parser.error(f"{out.parent} is not a folder")
    every = list(submissions(options.folder))
    if not every:
        parser.error(f"{options.folder} holds no submissions")
    torch.set_num_threads(1)
    seed = secrets.randbits(32) if options.seed is None else options.seed
    limits = {"seconds": options.seconds, "memory": options.memory * 1_000_000}
    asked = options.exercises or list({name for each in every for name in each.exercises} or TASKS)
    exercises = [name for name in TASKS if name in asked]
    found = grade(every, exercises, seed, max(1, options.processes), limits)
    write_json(options.json, seed, exercises, found)
    if options.csv:
        write_csv(options.csv, found)
    right = sum(result.passed for result in found)
    students = len({each.student for each in every})
    print(f"{students} students, {len(found)} results, {right} of them right: {options.json}")
    return 0


def grade(every: list[Submission], exercises: list[str], seed: int, processes: int, limits: dict):
    """Return the results, in order of students and exercises."""
    places = draw_places(seed)
    questions = {name: question(TASKS[name], places) for name in exercises}
    judged = []
    for done, submitted in zip(run_all(every, questions, processes, limits), every, strict=True):
        outcomes = {name: outcome_of(submitted, done, name, places) for name in exercises}
        judged.append((submitted, outcomes))
        show_progress(len(judged), len(every))
    return list(results(judged, exercises))


def show_progress(done: int, total: int) -> None:
    """Draw how far the grading is, over the line drawn before; in a log, only the last."""
    if done < total and not sys.stderr.isatty():
        return
    bar = "#" * (30 * done // total)
    print(f"\r[{bar:.<30}] {done} of {total}", end="\n" * (done == total), file=sys.stderr)


def write_json(path: Path, seed: int, exercises: list[str], found: list[Result]) -> None:
    """Write all results, and the seed that repeats them."""
    content = {"seed": seed, "exercises": exercises, "results": [asdict(each) for each in found]}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def write_csv(path: Path, found: list[Result]) -> None:
    """Write a row for each result; no text begins as a formula of a spreadsheet does."""
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
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
