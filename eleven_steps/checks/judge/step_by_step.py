"""Read a class step by step on the whiteboard: what of each step is among its own tensors."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from eleven_steps.checks.judge.answers import check
from eleven_steps.checks.judge.blame import blamed
from eleven_steps.checks.judge.path import Walk
from eleven_steps.checks.know.right import play
from eleven_steps.checks.run.cases import TASK_CASES
from eleven_steps.checks.run.isolate import TimeUp, isolated
from eleven_steps.helpers.trace import STEPS

EXERCISE, SECONDS = "your_class.1", 5.0
RIGHT = ("right", "so far", "unfinished", "failed")  # outcomes that call nothing wrong
WHITEBOARD = TASK_CASES[0]


@dataclass(frozen=True)
class StepRead:
    """One step of a class."""

    name: str
    state: str  # done; next; wrong, the first that is not right; dark, where nothing is known
    tensors: dict[str, torch.Tensor]  # the class's own; of a wrong step what stands in their places
    right: dict[str, torch.Tensor]  # what they should be


@dataclass(frozen=True)
class Reading:
    """How far a class is right on the whiteboard."""

    cls: Any
    says: str  # what check says of it
    steps: tuple[StepRead, ...]  # all eleven

    @property
    def whole(self) -> bool:
        """Whether all eleven steps are right."""
        return all(step.state == "done" for step in self.steps)


def read_class(cls: Any) -> Reading:
    """Read how far a class is right, in its own tensors: for sliders.explore_class.

    Args:
        cls: a class of the course's names, as far as it has come; whatever it does stays inside.
    """
    outcome = check(EXERCISE, cls, record=False)
    with isolated(SECONDS):
        try:
            blame = blamed(cls, WHITEBOARD)
        except TimeUp:
            blame = None
    walked = blame and blame.walked
    done = [i for i, step in enumerate(STEPS) if walked and walked.reached(step)]
    last = max(done, default=-1)  # what comes before it is done by whatever way
    if outcome.kind in RIGHT:
        steps = _steps(walked, last + 1)
    else:
        wrong = min(outcome.step or last + 2, len(STEPS)) - 1
        steps = _steps(walked, min(wrong, last + 1), wrong)
    return Reading(cls, outcome.message, tuple(steps))


def _steps(walked: Walk | None, up_to: int, wrong: int | None = None) -> Iterator[StepRead]:
    """Read all steps: as many are done, and one may be wrong, counted from 0."""
    for i, (step, right) in enumerate(play(WHITEBOARD).steps.items()):
        state = "done" if i < up_to else "wrong" if i == wrong else "dark"
        if wrong is None and i == up_to:
            state = "next"
        own = {}
        if walked and state in ("done", "wrong"):
            own = {name: _there(walked, step, name, state == "wrong") for name in right}
        kept = {name: tensor.float() for name, tensor in own.items() if tensor is not None}
        yield StepRead(step, state, kept, right)


def _there(walked: Walk, step: str, name: str, wrong: bool) -> torch.Tensor | None:
    """The right tensor of a step; where it is wrong, what stands in its place if it is not there.

    That is made by a call of the same step, of the right numbers of the step before.
    """
    right, number = walked.right.scene[step][name], STEPS.index(step) + 1
    if (own := walked.own(right)) is not None or not wrong:
        return own
    ops = (op for op, role in zip(walked.trace.ops, walked.roles, strict=True) if role == number)
    of_name = [
        walked.trace.tensors[index]
        for op in ops
        for index in op.gave
        if walked.readings[index].who in (name, "") or number > 4
    ]
    shaped = [t for t in of_name if t.shape == right.shape]
    least = [t for t in of_name if t.dim() == right.dim()]
    return next(reversed(shaped or least or of_name), None)
