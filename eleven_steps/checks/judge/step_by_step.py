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
    """One step of a class.

    Args:
        name: of the step.
        state: done; next; wrong, the first that is not right; dark, where nothing is known.
        tensors: the class's own, by name; of a wrong step those that stand in their places.
        right: what they should be.
    """

    name: str
    state: str
    tensors: dict[str, torch.Tensor]
    right: dict[str, torch.Tensor]


@dataclass(frozen=True)
class Reading:
    """How far a class is right on the whiteboard.

    Args:
        cls: the class.
        says: what check says of it.
        steps: all eleven.
    """

    cls: Any
    says: str
    steps: tuple[StepRead, ...]

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
        own = {}
        if walked and i < up_to or i == wrong:
            own = {name: _there(walked, step, name, i == wrong) for name in right}
        state = "done" if i < up_to else "wrong" if i == wrong else "dark"
        if wrong is None and i == up_to:
            state = "next"
        kept = {name: tensor.float() for name, tensor in own.items() if tensor is not None}
        yield StepRead(step, state, kept, right)


def _there(walked: Walk | None, step: str, name: str, wrong: bool) -> torch.Tensor | None:
    """The right tensor of a step; where it is wrong, what stands in its place if it is not there.

    That is made by a call of the same step, of the right numbers of the step before.
    """
    if walked is None:
        return None
    right = walked.right.scene[step][name]
    if (own := walked.own(right)) is not None or not wrong:
        return own
    number = STEPS.index(step) + 1
    made = [
        (walked.trace.tensors[index], walked.readings[index])
        for op, role in zip(walked.trace.ops, walked.roles, strict=True)
        if role == number
        for index in op.gave
    ]
    of_name = [t for t, each in made if each.who in (name, "") or number > 4]
    shaped = [t for t in of_name if t.shape == right.shape]
    least = [t for t in of_name if t.dim() == right.dim()]
    return next(reversed(shaped or least or of_name), None)
