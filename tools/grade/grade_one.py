"""Grade one notebook: run it where it is shut in, and judge here what it answers."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from handed_in import Submission
from sandbox import Isolation, Lost, Sandbox

from eleven_steps.checks import check

START = 120  # seconds after which a process that is not ready counts as lost
ANSWER = 5.0  # seconds for the answer to one exercise, as where it was written
HARD = 6  # times as long as it is told, a process is waited for: it may share its processor
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
    asked, given = StandIn(sandbox, limits), {}
    try:
        outcome = check(identifier, asked, record=False)
        said = Said(outcome.kind, outcome.message[:2000], outcome.passed, outcome.mistake)
        given = start_of(outcome)
    except Exception as error:  # forged data may be odd in any way
        said = Said("type", f"this cannot be looked at ({type(error).__name__}).")
    if said.kind == "failed":  # only what is forged brings the check itself to fail
        said = Said("type", "this cannot be looked at.")
    if isinstance(asked.failed, TimeoutError):
        said = Said("error", str(asked.failed))
    elif asked.failed:
        raise asked.failed
    sandbox.tell({"next": True} | given, limits.cell)
    return said


def start_of(outcome: Any) -> dict:
    """Return what a pencil-and-paper problem starts from: its matrices and sizes, as plain data."""
    given = {name: matrix.tolist() for name, matrix in outcome.given.items()}
    return {"given": given, "sizes": dict(outcome.sizes)}


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
                said = judge(exercise, box, limits)
                if said.kind != "unfinished" or exercise not in done.said:
                    done.said[exercise] = said
                done.exercise = None
            else:
                box.tell({"next": True} | start_of(check(exercise)), limits.cell)
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
