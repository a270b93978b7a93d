"""Find the catalogued mistakes, one or two, that come to the same function as a class."""

import functools
import itertools
from typing import Any

import torch
from torch import nn

from helpers.attention import MultiHeadAttention
from helpers.checks.evidence import failure_key
from helpers.checks.guard import Failure, attempt
from helpers.checks.looks import (
    MAIN,
    SIMPLER,
    SIZES,
    Sizes,
    build,
    close,
    construct,
    look,
    parameter_shapes,
    planted,
    recorded,
    right_look,
    wrong_look,
)
from helpers.checks.mistakes import MISTAKES

Shapes = dict[str, tuple[int, ...]]


class Known:
    """A class beside the catalogue.

    Args:
        cls: a class with the lecture's constructor and layers.
        shapes: the shapes of its parameters by name, with qkv_bias False and True.
    """

    def __init__(self, cls: Any, shapes: dict[bool, Shapes]):
        self.cls = cls
        self.shapes = shapes
        self.looks: dict[Sizes, torch.Tensor | Failure] = {}

    def ignored(self, sizes: Sizes) -> frozenset[str]:
        """Biases that only this class or only the right one has; in both they are set to 0."""
        return frozenset(right_shapes(sizes.qkv_bias).keys() ^ self.shapes[sizes.qkv_bias].keys())

    def look(self, sizes: Sizes) -> torch.Tensor | Failure:
        """Output of the class at sizes."""
        if sizes not in self.looks:
            self.looks[sizes] = look(self.cls, sizes, self.ignored(sizes))
        return self.looks[sizes]

    def right(self, sizes: Sizes) -> torch.Tensor:
        """Output of the right class at sizes."""
        return right_look(sizes, self.ignored(sizes))

    def wrong(self, name: str, sizes: Sizes) -> torch.Tensor | Failure:
        """Output of a catalogued mistake at sizes."""
        return wrong_look((name,), sizes, self.ignored(sizes))

    @functools.cached_property
    def candidates(self) -> list[str]:
        """Catalogued mistakes whose layers have the shapes of this class; biases aside."""
        weights = {name: shape for name, shape in self.shapes[True].items() if len(shape) > 1}
        return [
            name
            for name in MISTAKES
            if (shapes := _planted_shapes(name))
            and all(shapes.get(each) == shape for each, shape in weights.items())
        ]

    def single(self) -> str | None:
        """The one catalogued mistake that comes to the same function."""
        return next((name for name in self.candidates if self.agrees((name,))), None)

    def pair(self, step: int) -> tuple[str, ...]:
        """Two catalogued mistakes that together come to the same function, the first at step."""
        here = [name for name in self.candidates if step in MISTAKES[name].steps]
        for one, other in itertools.product(here, self.candidates):
            if MISTAKES[other].step <= MISTAKES[one].step or not self.conceivable(one, other):
                continue
            collide = isinstance(attempt(planted, (one, other)), Failure)
            if not collide and self.agrees((one, other)):
                return one, other
        return ()

    def agrees(self, mistakes: tuple[str, ...]) -> bool:
        """Whether the class does what catalogued mistakes do, at every size.

        Where both raise at the main sizes and in the same call, it is enough that they agree
        wherever none raises: a call in another style may raise at other sizes.
        """
        alike_in_failure = False
        for sizes in SIZES + SIMPLER:
            mine, other = self.look(sizes), wrong_look(mistakes, sizes, self.ignored(sizes))
            failing = [isinstance(each, Failure) for each in (mine, other)]
            if sizes == MAIN and all(failing):
                keys = [_failure_key(cls, sizes) for cls in (self.cls, planted(mistakes))]
                alike_in_failure = keys[0] is not None and keys[0] == keys[1]
            if any(failing) and not alike_in_failure or not any(failing) and not close(mine, other):
                return False
        return True

    def conceivable(self, one: str, other: str) -> bool:
        """Whether wherever one of two mistakes changes nothing, the other is seen alone."""
        return all(
            close(self.wrong(second, sizes), self.look(sizes))
            for sizes in (*SIMPLER, MAIN)
            for first, second in ((one, other), (other, one))
            if close(self.wrong(first, sizes), self.right(sizes))
            or isinstance(self.wrong(second, sizes), Failure)
        )


@functools.cache
def right_shapes(bias: bool) -> Shapes:
    """Parameter names and shapes of the right class."""
    return parameter_shapes(construct(MultiHeadAttention, MAIN, bias))


@functools.cache
def _planted_shapes(name: str) -> Shapes:
    """Parameter names and shapes with a catalogued mistake; none if it is one of biases."""
    shapes: Shapes = {}
    for bias in (False, True):
        built = attempt(construct, planted((name,)), MAIN, bias)
        shapes = parameter_shapes(built) if isinstance(built, nn.Module) else {}
        if shapes.keys() != right_shapes(bias).keys():
            return {}
    return shapes


def _failure_key(cls: Any, sizes: Sizes) -> tuple | None:
    module = build(cls, sizes)
    if isinstance(module, Failure):
        return None
    return failure_key(recorded(module, sizes.input()))
