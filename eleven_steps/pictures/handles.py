"""Pictures with handles: where a reader can take hold of them, and how far each handle goes."""

from collections.abc import Sequence
from dataclasses import dataclass

from eleven_steps.pictures.svg import Picture


@dataclass(frozen=True)
class Handle:
    """Say where a picture can be taken hold of.

    Args:
        name: what the handle moves, read aloud.
        value: where it stands, along the two axes that it moves along: to the right, and up.
        low, high: how far it goes; equal along an axis that it does not move along.
        origin: where (0, 0) of its axes lies in the picture, in pixels from the top left corner.
        unit: how many pixels 1 is, to the right and up.
        step: how far a press of an arrow key moves it.
        says: where it stands, in words.
    """

    name: str
    value: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    origin: Sequence[float]
    unit: Sequence[float]
    says: str
    step: float = 0.1

    def __post_init__(self):
        for at, low, high in zip(self.value, self.low, self.high, strict=True):
            if not low <= at <= high:
                raise ValueError(
                    f"{self.name} is at {list(self.value)}: expected from {list(self.low)} to "
                    f"{list(self.high)}"
                )


@dataclass(frozen=True)
class Handled:
    """Hold a picture and its handles, in the order in which Tab reaches them."""

    picture: Picture
    handles: tuple[Handle, ...]
