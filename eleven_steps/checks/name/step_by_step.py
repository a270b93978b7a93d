"""Read a class step by step on the whiteboard: what of each step is among its own tensors."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from eleven_steps.checks.judge.answers import check
from eleven_steps.checks.know.right import play
from eleven_steps.checks.name.locate.recording import NAMES, Recording, exact
from eleven_steps.checks.run.ask import ask
from eleven_steps.checks.run.cases import LAYERS, TASK_CASES, close
from eleven_steps.checks.run.facts import Record
from eleven_steps.checks.run.isolate import TimeUp, isolated
from helpers.trace import STEPS

EXERCISE, SECONDS = "your_class.1", 5.0
RIGHT = ("right", "so far", "unfinished", "failed")  # outcomes that call nothing wrong
WHITEBOARD = TASK_CASES[0]
# Which layers a tensor is made of, by its name.
MADE_OF = {name: {layer} for layer, name in NAMES.items()} | {
    **dict.fromkeys(("scores", "masked", "weights"), {"W_query", "W_key"}),
    "context": {*NAMES},
    "out": {*LAYERS},
}


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
    recording = _recorded(cls)
    x = recording and _own(recording, WHITEBOARD.x)
    done = [i for i, step in enumerate(STEPS) if recording and i and recording.done(step)]
    last = max(done, default=-1 if x is None else 0)  # what comes before it is done by whatever way
    if outcome.kind in RIGHT:
        steps = _steps(recording, last + 1)
    else:
        wrong = min(outcome.step or last + 2, len(STEPS)) - 1
        steps = _steps(recording, min(wrong, last + 1), wrong)
    return Reading(cls, outcome.message, tuple(steps))


def _recorded(cls: Any) -> Recording | None:
    """Its forward on the whiteboard, where it can be recorded."""
    with isolated(SECONDS):
        try:
            record = ask(cls, "record", WHITEBOARD)
        except TimeUp:
            return None
    return Recording(record, WHITEBOARD) if isinstance(record, Record) else None


def _steps(recording: Recording | None, up_to: int, wrong: int | None = None) -> Iterator[StepRead]:
    """Read all steps: as many are done, and one may be wrong, counted from 0."""
    for i, (step, right) in enumerate(play(WHITEBOARD).steps.items()):
        own = {}
        if recording and i < up_to:
            own = {name: _own(recording, each) for name, each in right.items()}
        elif recording and i == wrong:
            own = {name: _there(recording, step, name) for name in right}
        state = "done" if i < up_to else "wrong" if i == wrong else "dark"
        if wrong is None and i == up_to:
            state = "next"
        kept = {name: tensor for name, tensor in own.items() if tensor is not None}
        yield StepRead(step, state, kept, right)


def _own(recording: Recording, right: torch.Tensor) -> torch.Tensor | None:
    """The class's own tensor that is the right one; x is handed in."""
    given = [held.tensor for call in recording.record.calls for held in call.given]
    return next((each for each in (*recording.tensors, *given) if close(each, right)), None)


def _there(recording: Recording, step: str, name: str) -> torch.Tensor | None:
    """The right tensor of a step, or what stands in its place."""
    own = _own(recording, recording.right[step][name])
    return _instead(recording, step, name) if own is None else own


def _instead(recording: Recording, step: str, name: str) -> torch.Tensor | None:
    """What stands where the tensor of a step should: it is made of the same layers, and of no step
    before. Its shape counts most, then its axes, then that its numbers are of no step before."""
    wanted, before = recording.right[step][name], STEPS[: STEPS.index(step)]
    rights = [right for each in before for right in recording.right[each].values()]
    made = [held.tensor for held in recording.held if held.made_of == MADE_OF.get(name)]
    found = [
        (
            each.shape != wanted.shape,
            each.dim() != wanted.dim(),
            any(exact([each], right, False) for right in rights),
            each,
        )
        for each in made
        if each.dim() > 2 and not any(exact([each], right) for right in rights)
    ]
    least = min((rank[:3] for rank in found), default=None)
    every = [each for *rank, each in found if tuple(rank) == least]
    return every[-1] if least and least[2] else next(iter(every), None)
