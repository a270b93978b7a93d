"""Grade one notebook: run it in a sandbox, and judge its answers in another process."""

import contextlib
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from handed_in import Submission
from judging import LONGEST_TEXT, Judge, as_verdict
from sandbox import Isolation, Lost, Sandbox
from wire import PLACE

from eleven_steps.checks.verdict import MARKS, Verdict

START = 600  # seconds after which a process that is not ready counts as lost
ANSWER = 5.0  # seconds for the answer to one exercise, as in a notebook
SEARCH = 10.0  # seconds to check one answer and to find the place where it goes wrong
HARD = 6  # wall time to wait, as a multiple of the limit, because processors may be shared
LONGEST_NAME = 100  # characters of the name of an exercise
RUNS = 6  # most runs of one notebook, each without one more cell or answer that ended the process


@dataclass(frozen=True)
class Limits:
    """Hold the limits of time and memory for one notebook."""

    seconds: float = 60.0
    cell: float = 10.0  # seconds
    memory: int = 2_000_000_000  # bytes

    @property
    def answer(self) -> float:
        return min(ANSWER, self.cell)


@dataclass
class Run:
    """Hold the state of a run: its verdicts, and the cells and answers that were stopped."""

    said: dict[str, Verdict] = field(default_factory=dict)
    ran: set[str] = field(default_factory=set)  # exercises whose answer is code that was run
    stopped: dict[str, Verdict] = field(default_factory=dict)
    cells: dict[int, Verdict] = field(default_factory=dict)
    omitted: list[int] = field(default_factory=list)
    cell: int | None = None
    exercise: str | None = None
    until: float = 0.0  # hard end of the run, in seconds of time.monotonic
    spent: float = 0.0  # seconds used so far
    ended: str = ""


@dataclass(frozen=True)
class Grader:
    """Run notebooks, one at a time, and have their answers judged."""

    isolation: Isolation  # of the sandboxes that notebooks run in
    course: Path  # the folder that copy_course made, without answers
    whole: Path  # the folder with answers, in which places are searched
    limits: Limits  # for all runs of a notebook together
    exercises: list[str]  # the identifiers that count

    def verdicts(self, judges: Judge, submitted: Submission) -> dict[str, Verdict]:
        """Return the verdict on each exercise in one notebook, as the process `judges` gives it."""
        if not submitted.notebook:
            return dict.fromkeys(self.exercises, Verdict("missing", "no notebook is handed in."))
        if submitted.broken:
            return dict.fromkeys(self.exercises, Verdict("broken", f"{submitted.broken}."))
        done = Run(until=time.monotonic() + HARD * self.limits.seconds)
        if set(self.exercises) & set(submitted.exercises):
            try:
                self.run(done, submitted, judges)
            except OSError as error:  # no process is left, or no memory
                done = Run(ended=f"could not be run ({type(error).__name__})")
        judged = {name: what_is_said(submitted, done, name) for name in self.exercises}
        ran = {name: verdict for name, verdict in done.said.items() if judged.get(name) is verdict}
        wrong = {n: v for n, v in ran.items() if n in done.ran and v.kind not in MARKS}
        return judged | (self.with_places(done, submitted, wrong) if wrong else {})

    def with_places(
        self, done: Run, submitted: Submission, wrong: dict[str, Verdict]
    ) -> dict[str, Verdict]:
        """Return wrong verdicts with the lines at fault, as far as a second process finds them.

        The cells run again in a process that has the whole course, within the same limits.
        """
        found, limits = dict(wrong), self.limits
        with (
            contextlib.suppress(Lost, OSError),
            Sandbox(self.isolation, self.whole, limits.memory) as box,
        ):
            box.hear(START)
            box.spent, box.allowed = 0.0, limits.seconds
            box.until = time.monotonic() + HARD * limits.seconds
            box.tell(self.job(done, submitted) | {"wanted": list(wrong)}, START)
            while "end" not in (fact := box.hear(HARD * max(limits.cell, SEARCH))):
                name = fact.get("place")
                # If an exercise has several answers, the last one that was started counts.
                if isinstance(name, str) and name in wrong and fact.get("kind") != "unfinished":
                    found[name] = with_place(wrong[name], fact)
        return found

    def job(self, done: Run, submitted: Submission) -> dict[str, Any]:
        """Return the job for a process in a sandbox."""
        skipped = [submitted.own.get(name, name) for name in done.stopped]
        job = {"cells": submitted.cells, "omitted": done.omitted, "skipped": skipped}
        job["seconds"] = {"cell": self.limits.cell, "answer": self.limits.answer}
        return job | {"memory": self.limits.memory}

    def run(self, done: Run, submitted: Submission, judges: Judge) -> None:
        """Run a notebook; if a cell or answer ends the process, run it again without that one."""
        for _ in range(RUNS):
            with Sandbox(self.isolation, self.course, self.limits.memory) as box:
                try:
                    return self.run_once(done, submitted, box, judges)
                except Lost as lost:
                    reason = str(lost)
                done.spent += box.spent
            if done.exercise:
                message = f"while this answer ran, the notebook {reason}."
                done.stopped[done.exercise] = Verdict("stopped", message)
            elif done.cell is not None and done.cell not in done.omitted:
                message = f"while the cell of this exercise ran, the notebook {reason}."
                done.cells[done.cell] = Verdict("stopped", message)
                done.omitted.append(done.cell)
            else:
                break
            if time.monotonic() > done.until or done.spent > self.limits.seconds:
                break
        done.ended = reason

    def run_once(self, done: Run, submitted: Submission, box: Sandbox, judges: Judge) -> None:
        """Run the remaining cells and judge their answers; if Lost is raised, `done` says where."""
        done.cell, done.exercise, limits = None, None, self.limits
        box.hear(START)
        box.spent = 0.0  # starting does not count as work of the notebook
        box.allowed, box.until = limits.seconds - done.spent, done.until
        own = submitted.own
        box.tell(self.job(done, submitted), START)
        while "end" not in (fact := box.hear(HARD * limits.cell)):
            if isinstance(asked := fact.get("exercise"), str):
                exercise = ".".join(asked.split(".")[:2])  # without a seed
                counts = exercise in self.exercises and exercise not in done.stopped
                if counts and asked == own.get(exercise, exercise):
                    done.exercise = exercise
                    said, ran = self.judge(asked, box, judges)
                    if said.kind != "unfinished" or exercise not in done.said:
                        done.said[exercise] = said
                    done.ran |= {exercise} if ran else set()
                    done.exercise = None
                    continue
                if asked != own.get(exercise, asked):
                    message = f"these are not your own numbers: those are {own[exercise]}."
                    done.said.setdefault(exercise, Verdict("other_numbers", message))
                content = judges.judge(asked[:LONGEST_NAME], box, limits.cell, asked=False)
                box.tell({"next": True} | content.get("start", {}), limits.cell)
            elif isinstance(number := fact.get("cell"), int):
                done.cell = number
                if "late" in fact:
                    message = f"no end of the cell of this exercise after {limits.cell:g} seconds."
                    done.cells[number] = Verdict("stopped", message)
                elif "error" in fact:
                    message = f"the cell of this exercise raises {str(fact['error'])[:300]}."
                    done.cells[number] = Verdict("error", message)

    def judge(self, identifier: str, box: Sandbox, judges: Judge) -> tuple[Verdict, bool]:
        """Return the verdict on the answer in the sandbox, and whether the answer is code.

        Raises:
            Lost: the answer brought the sandbox down.
        """
        answer = self.limits.answer
        content = judges.judge(identifier, box, min(HARD * answer, self.limits.seconds))
        box.tell({"next": True} | content.get("start", {}), self.limits.cell)
        if content["late"]:
            return Verdict("error", f"no end after {answer:g} seconds of running."), False
        return as_verdict(content["said"]), content["ran"]


def with_place(verdict: Verdict, fact: dict) -> Verdict:
    """Return a verdict with line and texts of the place that the second sandbox reports.

    The fact may be forged, so it changes neither the kind of the verdict nor its mistake and
    points. It adds a line and, unless the mistake has a name, replaces the texts of the verdict.
    """
    line, texts = fact.get("line"), {name: fact.get(name) for name in PLACE}
    plain = type(line) is int and all(type(text) is str for text in texts.values())
    if not plain or fact.get("kind") != verdict.kind:
        return verdict
    said = {name: " ".join(text[:LONGEST_TEXT].split()) for name, text in texts.items()}
    return replace(verdict, line=line, **({"code": said["code"]} if verdict.mistake else said))


def what_is_said(submitted: Submission, done: Run, identifier: str) -> Verdict:
    """Return the verdict on one exercise, or a verdict that says why there is none."""
    for known in done.stopped, done.said:
        if identifier in known:
            return known[identifier]
    cell = submitted.exercises.get(identifier)
    if cell is None:
        return Verdict("missing", f'no cell says `check("{identifier}", ...)`.')
    if cell in done.cells:
        return done.cells[cell]
    if done.ended:
        return Verdict("stopped", f"the notebook {done.ended}, before this exercise.")
    return Verdict("missing", f'`check("{identifier}", ...)` is not reached.')
