"""The first thing that is not right on the way to what came."""

from dataclasses import dataclass, field
from typing import Any

from eleven_steps.checks.run.places import Place


@dataclass(frozen=True)
class Difference:
    """The first thing that is not right.

    Args:
        step: to look at, 1 to 11.
        reason: idle, skipped, other, projection, size, family, scale, hidden, rows, early, stored,
            before, blocks, rescaled, made, torch or name; see judge/say.
        op: the call, by its number in the trace; None where none was reached.
        place: where to look in the learner's source.
        index: the tensor that is not what the call takes, or that it makes; None where unknown.
        wanted: the right tensor that is there in its stead and not used; None where there is none.
        values: what else was established.
    """

    step: int
    reason: str
    op: int | None = None
    place: Place | None = None
    index: int | None = None
    wanted: int | None = None
    values: dict[str, Any] = field(default_factory=dict)
