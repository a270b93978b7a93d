"""The kinds of exercise: a function to write or repair, a number to explain, a class that grows,
a line to choose, lines to put in order, a test to write.

What is right, and what a mistake of the catalogue gives instead, is read off recorded forward
passes; nothing is computed twice.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from eleven_steps.checks.know.right import Parts, Scene, play
from eleven_steps.checks.run.cases import TASK_CASES, Case
from eleven_steps.checks.run.isolate import attempt, clock_paused
from eleven_steps.helpers.trace import SHAPES, STEPS

Saying = str | tuple[str, str]  # of a wrong answer; a pair adds the mistake of the catalogue
Numbers = float | tuple[float, ...] | tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Slip:
    """A usual wrong answer: its sentence, what a function then returns, its name in the catalogue.

    Without a function of its own, the catalogued mistake is planted and played.
    """

    sentence: str
    returns: Callable[[Scene], Any] | None = None
    mistake: str | None = None


def as_parts(returned: Any) -> Parts:
    """What a function returned, in a tuple of its own if it is one thing."""
    return returned if type(returned) is tuple else (returned,)


@dataclass(frozen=True)
class Write:
    """Ask for a function: to write, or, where a slip is planted, to repair."""

    identifier: str  # "scores.1" for the first exercise of step 5
    gets: Callable[[Scene], Parts]  # its arguments; they are copied before it is called
    names: tuple[str, ...]  # of what it returns, as the trace calls it
    slips: tuple[Slip, ...]  # the usual wrong answers
    planted: bool = False  # whether it ships with the first of them
    right: Callable[[Scene], Any] | None = None  # where that is not what the trace has
    step: str = ""  # the name of the step that it belongs to
    shape: str | tuple[str, ...] = ""  # in letters, or one for each name; the step's if empty
    cases: tuple[Case, ...] = TASK_CASES  # where it is tried; in the third all sizes differ
    counts: Callable[[torch.Tensor], torch.Tensor] | None = None  # what of a tensor, if not all
    without: dict[str, str] = field(default_factory=dict)  # names it may not call: what is said
    heeds: dict[int, str] = field(default_factory=dict)  # arguments that decide how it is made

    @property
    def variant(self) -> str:
        """The change since the lecture that it is about."""
        return self.cases[0].variant

    @property
    def number(self) -> int:
        """The step that it belongs to, 1 to 11."""
        return STEPS.index(self.step) + 1

    @property
    def letters(self) -> tuple[str, ...]:
        """The shape of each tensor it returns, in letters."""
        if type(self.shape) is tuple:
            return self.shape
        return (self.shape or SHAPES[self.step],) * len(self.names)

    def answer(self, scene: Scene) -> Parts:
        """Return what is right for the scene of the right class, or came out of a wrong one."""
        if self.right:
            return self.counted(as_parts(self.right(scene)))
        return self.counted(tuple(scene[self.step][name] for name in self.names))

    def counted(self, parts: Parts) -> Parts:
        """Return of each tensor what counts; what is no matrix stays as it is."""
        tables = (type(part) is torch.Tensor and part.dim() > 1 for part in parts)
        if not self.counts:
            return parts
        return tuple(self.counts(p) if t else p for p, t in zip(parts, tables, strict=True))

    def slipped(self, slip: Slip, scene: Scene) -> Parts:
        """Return what a function with this slip returns or raises; scene is the right class's."""
        if slip.returns:
            with clock_paused():
                returned = attempt(slip.returns, scene)
            return self.counted(as_parts(returned))
        wrong = play(scene.case, slip.mistake)
        return self.answer(wrong) if self.step in wrong.steps else wrong.at(self.step)


@dataclass(frozen=True)
class Explain:
    """Ask for a number, a row of numbers or a matrix, to be found by thinking."""

    identifier: str
    answer: Numbers
    slips: dict[Numbers, Saying]
    also: tuple[Numbers, ...] = ()  # right in place of the answer, rounded numbers for example
    apart: float = 1e-4  # how far a right answer may be from these
    whole: bool = False  # must it be one of these as it stands, or each number of any of them


@dataclass(frozen=True)
class Grow:
    """Ask for a whole class, which may be filled in as far as any step."""

    identifier: str


@dataclass(frozen=True)
class Choose:
    """Ask for one of a few lines, by its letter."""

    identifier: str
    answer: str
    slips: dict[str, Saying]  # by each of the other letters


@dataclass(frozen=True)
class Line:
    """One line that may be chosen."""

    code: str
    step: int  # that it takes, 1 to 11
    mistake: str = ""  # of the catalogue, where it takes the step wrongly


@dataclass(frozen=True)
class Order:
    """Ask for eleven of these lines in an order in which they run and are right."""

    identifier: str
    lines: dict[str, Line]


@dataclass(frozen=True)
class Catch:
    """Ask for a function test(cls) that catches wrong classes and lets right ones pass."""

    identifier: str


Task = Write | Explain | Grow
Quiz = Choose | Order | Catch
