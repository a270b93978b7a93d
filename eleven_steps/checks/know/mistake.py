"""What is known of one mistake of the catalogue."""

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from helpers.trace import STEPS


@dataclass(frozen=True)
class Mistake:
    """One wrong function that learners write.

    Args:
        identifier: a stable name, as in wrong_class("no_scale").
        step: the step it is made at, 1 to 11.
        sentence: what is wrong, what was expected and where to look; code stands in backticks.
        why: why it matters.
        edits: pairs of old and new text in the source of MultiHeadAttention and its base class,
            or of eleven_steps.beyond.variants where a variant is named.
        also: other steps whose mistakes come to the same function.
        variant: the change since the lecture it is made in, by its name in contract.VARIANTS.
    """

    identifier: str
    step: int
    sentence: str
    why: str
    edits: tuple[tuple[str, str], ...]
    also: tuple[int, ...] = ()
    variant: str = ""

    @property
    def told(self) -> str:
        """What is wrong, and why it matters."""
        return f"{self.sentence} {self.why}"

    @property
    def steps(self) -> tuple[int, ...]:
        """Every step at which this same function can be written, the usual one first."""
        return (self.step, *self.also)


def _making(step: int) -> Callable[..., Mistake]:
    def make(identifier: str, *rest: Any, **more: Any) -> Mistake:
        return Mistake(identifier, step, *rest, **more)

    return make


# at.softmax("no_scale", ...) is a mistake of step 7.
at = SimpleNamespace(**{name: _making(number) for number, name in enumerate(STEPS, start=1)})
