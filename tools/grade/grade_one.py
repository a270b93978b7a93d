"""Grade one notebook: run it where it is shut in, and judge here what it answers."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from handed_in import Submission
from judging import Judge, Said
from sandbox import Isolation, Lost, Sandbox

START = 600  # seconds after which a process that is not ready counts as lost
ANSWER = 5.0  # seconds for the answer to one exercise, as where it was written
HARD = 6  # times as long as it is told, a process is waited for: it may share its processor
LONGEST_NAME = 100  # characters of what may be an exercise
RUNS = 6  # of one notebook, each without one more thing that brought it down


@dataclass(frozen=True)
class Limits:
    """What a notebook may use: seconds, seconds of one cell, bytes of memory."""

    seconds: float = 60.0
    cell: float = 10.0
    memory: int = 2_000_000_000

    @property
    def answer(self) -> float:
        return min(ANSWER, self.cell)


@dataclass
class Run:
    """What has become of a notebook so far: answers, cells that raised or were stopped, the end."""

    said: dict[str, Said] = field(default_factory=dict)
    stopped: dict[str, Said] = field(default_factory=dict)
    cells: dict[int, Said] = field(default_factory=dict)
    omitted: list[int] = field(default_factory=list)
    cell: int | None = None
    exercise: str | None = None
    until: float = 0.0  # in seconds of time.monotonic, whatever happens
    spent: float = 0.0  # seconds of those that it may take
    ended: str = ""


def judge(identifier: str, box: Sandbox, judges: Judge, limits: Limits) -> Said:
    """Let the answer that waits in the sandbox be judged; raise Lost if that is lost by it."""
    content = judges.judge(identifier, box, min(HARD * limits.answer, limits.seconds))
    box.tell({"next": True} | content.get("start", {}), limits.cell)
    if content["late"]:
        return Said("error", f"no end after {limits.answer:g} seconds of running.")
    return Said(**content["said"])


def run_once(
    done: Run,
    submitted: Submission,
    exercises: list[str],
    box: Sandbox,
    judges: Judge,
    limits: Limits,
) -> None:
    """Run the cells that are left and judge what they answer.

    Raises:
        Lost: while done.exercise was asked, or else while done.cell ran, or between.
    """
    done.cell = done.exercise = None
    box.hear(START)
    box.spent = 0.0  # to start is no work of the notebook's
    box.allowed, box.until = limits.seconds - done.spent, done.until
    own = submitted.own
    skipped = [own.get(name, name) for name in done.stopped]
    job = {"cells": submitted.cells, "omitted": done.omitted, "skipped": skipped}
    job["seconds"] = {"cell": limits.cell, "answer": limits.answer}
    box.tell(job | {"memory": limits.memory}, START)
    while "end" not in (fact := box.hear(HARD * limits.cell)):
        if isinstance(asked := fact.get("exercise"), str):
            exercise = ".".join(asked.split(".")[:2])  # without a seed
            if (
                exercise in exercises
                and exercise not in done.stopped
                and asked == own.get(exercise, exercise)
            ):
                done.exercise = exercise
                said = judge(asked, box, judges, limits)
                if said.kind != "unfinished" or exercise not in done.said:
                    done.said[exercise] = said
                done.exercise = None
            else:
                if asked != own.get(exercise, asked):
                    message = f"these are not your own numbers: those are {own[exercise]}."
                    done.said.setdefault(exercise, Said("other_numbers", message))
                content = judges.judge(asked[:LONGEST_NAME], box, limits.cell, asked=False)
                box.tell({"next": True} | content.get("start", {}), limits.cell)
        elif isinstance(number := fact.get("cell"), int):
            done.cell = number
            if "late" in fact:
                message = f"no end of the cell of this exercise after {limits.cell:g} seconds."
                done.cells[number] = Said("stopped", message)
            elif "error" in fact:
                text = str(fact["error"])[:300]
                done.cells[number] = Said("error", f"the cell of this exercise raises {text}.")


def run(
    submitted: Submission, exercises: list[str], start: Callable, judges: Judge, limits: Limits
) -> Run:
    """Run a notebook; again without the cell or the answer that brought its process down.

    Args:
        submitted: the notebook.
        exercises: the identifiers that count.
        start: returns a new sandbox.
        judges: where answers are judged.
        limits: for all runs together.
    """
    done = Run(until=time.monotonic() + HARD * limits.seconds)
    for _ in range(RUNS):
        with start() as box:
            try:
                run_once(done, submitted, exercises, box, judges, limits)
                return done
            except Lost as lost:
                reason = str(lost)
            done.spent += box.spent
        if done.exercise:
            message = f"while this answer ran, the notebook {reason}."
            done.stopped[done.exercise] = Said("stopped", message)
        elif done.cell is not None and done.cell not in done.omitted:
            message = f"while the cell of this exercise ran, the notebook {reason}."
            done.cells[done.cell] = Said("stopped", message)
            done.omitted.append(done.cell)
        else:
            break
        if time.monotonic() > done.until or done.spent > limits.seconds:
            break
    done.ended = reason
    return done


def outcomes(
    isolation: Isolation,
    course: Path,
    limits: Limits,
    exercises: list[str],
    judges: Judge,
    submitted: Submission,
) -> dict[str, Said]:
    """Return what is said of each exercise in one notebook."""
    if not submitted.notebook:
        return dict.fromkeys(exercises, Said("missing", "no notebook is handed in."))
    if submitted.broken:
        return dict.fromkeys(exercises, Said("broken", f"{submitted.broken}."))
    if not set(exercises) & set(submitted.exercises):
        done = Run()
    else:
        start = partial(Sandbox, isolation, course, limits.memory)
        try:
            done = run(submitted, exercises, start, judges, limits)
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
