"""Grade one notebook: run it where it is shut in, and judge here what it answers."""

import time
from dataclasses import dataclass, field
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
    """What a notebook may use."""

    seconds: float = 60.0
    cell: float = 10.0  # seconds
    memory: int = 2_000_000_000  # bytes

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


@dataclass(frozen=True)
class Grader:
    """Runs notebooks, one at a time, and has their answers judged."""

    isolation: Isolation  # what shuts a notebook in
    course: Path  # the folder that copy_course made
    limits: Limits  # for all runs of a notebook together
    exercises: list[str]  # the identifiers that count

    def outcomes(self, judges: Judge, submitted: Submission) -> dict[str, Said]:
        """Return what is said of each exercise in one notebook; judges is where it is judged."""
        if not submitted.notebook:
            return dict.fromkeys(self.exercises, Said("missing", "no notebook is handed in."))
        if submitted.broken:
            return dict.fromkeys(self.exercises, Said("broken", f"{submitted.broken}."))
        done = Run(until=time.monotonic() + HARD * self.limits.seconds)
        if set(self.exercises) & set(submitted.exercises):
            try:
                self.run(done, submitted, judges)
            except OSError as error:  # no process is left, or no memory
                done = Run(ended=f"could not be run ({type(error).__name__})")
        return {name: what_is_said(submitted, done, name) for name in self.exercises}

    def run(self, done: Run, submitted: Submission, judges: Judge) -> None:
        """Run a notebook; again without the cell or the answer that brought its process down."""
        for _ in range(RUNS):
            with Sandbox(self.isolation, self.course, self.limits.memory) as box:
                try:
                    return self.run_once(done, submitted, box, judges)
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
            if time.monotonic() > done.until or done.spent > self.limits.seconds:
                break
        done.ended = reason

    def run_once(self, done: Run, submitted: Submission, box: Sandbox, judges: Judge) -> None:
        """Run the cells that are left and judge what they answer; when Lost, done says where."""
        done.cell, done.exercise, limits = None, None, self.limits
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
                counts = exercise in self.exercises and exercise not in done.stopped
                if counts and asked == own.get(exercise, exercise):
                    done.exercise = exercise
                    said = self.judge(asked, box, judges)
                    if said.kind != "unfinished" or exercise not in done.said:
                        done.said[exercise] = said
                    done.exercise = None
                    continue
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

    def judge(self, identifier: str, box: Sandbox, judges: Judge) -> Said:
        """Let the answer that waits in the sandbox be judged; raise Lost if that is lost by it."""
        answer = self.limits.answer
        content = judges.judge(identifier, box, min(HARD * answer, self.limits.seconds))
        box.tell({"next": True} | content.get("start", {}), self.limits.cell)
        if content["late"]:
            return Said("error", f"no end after {answer:g} seconds of running.")
        return Said(**content["said"])


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
