"""Look an answer up among the mistakes of the catalogue, alone and in pairs."""

import functools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from helpers.checks.cases import Case, cases_of, close, lecture_parameters
from helpers.checks.facts import Built, Pass, Shapes
from helpers.checks.followed import Followed
from helpers.checks.isolate import Failure
from helpers.checks.mistakes import mistakes_of
from helpers.checks.observe import once
from helpers.checks.places import exact
from helpers.checks.right import Scene, play
from helpers.trace import STEPS


class Looks:
    """The outputs of a class at the cases, each computed once.

    Args:
        cls: a class with the lecture's constructor and layers.
        built: what its constructor makes, with qkv_bias False and True.
        variant: the change since the lecture that it is to have.
    """

    def __init__(self, cls: Any, built: Built, variant: str = ""):
        self.cls, self.built, self.variant = cls, built, variant
        self.cases = cases_of(variant)
        self.mistakes = mistakes_of(variant)
        self.outs: dict[Case, torch.Tensor | Failure] = {}

    @property
    def shapes(self) -> Shapes:
        """The shapes of its parameters by name, with biases."""
        return self.built[True].shapes

    def plain(self, case: Case) -> Case:
        """The case with biases that only this class or only the right one has set to 0."""
        own = self.built[case.qkv_bias].shapes
        return replace(case, without=frozenset(_right(case.qkv_bias, self.variant) ^ own.keys()))

    def out(self, case: Case) -> torch.Tensor | Failure:
        """Output of the class."""
        if case not in self.outs:
            self.outs[case] = once(self.cls, self.plain(case), Pass())[0].out
        return self.outs[case]

    def right(self, case: Case) -> torch.Tensor:
        """Output of the right class."""
        return play(self.plain(case)).out

    def wrong(self, case: Case, *mistakes: str) -> torch.Tensor | Failure:
        """Output of a class with these mistakes."""
        return play(self.plain(case), *mistakes).out


def single(looks: Looks, step: int | None = None, near: int | None = None) -> str | None:
    """The one catalogued mistake that comes to the same function as a class.

    Args:
        looks: the class.
        step: where it fails, if it fails; mistakes made elsewhere then need more than a failure.
        near: the step whose mistakes are tried first, to save time.
    """
    for name in _candidates(looks.shapes, looks.variant, near):
        alike = _agrees(looks, name)
        if alike == "function" or alike and step in (None, *looks.mistakes[name].steps):
            return name
    return None


def pair(looks: Looks, way: Followed, step: int) -> tuple[str, ...]:
    """Two catalogued mistakes that together come to the same function, the first at step.

    Args:
        looks: the class.
        way: its forward, recorded: what the first mistake makes must be among its tensors.
        step: where it leaves the right way.
    """
    every = candidates(looks.shapes, looks.variant)
    for one in (name for name in every if step in looks.mistakes[name].steps):
        made = [_shown(way, play(way.case, one), name) for name in STEPS]
        for other in every:
            first, second = looks.mistakes[one].step, looks.mistakes[other].step
            if second <= first or not any(made[first - 1 : second - 1]):
                continue
            likely = _conceivable(looks, one, other) and not _collide(looks, one, other)
            if likely and _agrees(looks, one, other) == "function":
                return one, other
    return ()


def _shown(way: Followed, wrong: Scene, step: str) -> bool:
    """Whether what a wrong class records at a step is among the tensors of a forward."""
    tensors = wrong.steps.get(step, {}).values()
    right = way.right[step].values()
    differs = any(not close(one, other) for one, other in zip(tensors, right, strict=False))
    return differs and all(exact(way.tensors, each, False) for each in tensors)


def candidates(shapes: Shapes, variant: str = "") -> list[str]:
    """Catalogued mistakes whose layers have these shapes; biases aside."""
    return list(_candidates(shapes, variant))


def _candidates(shapes: Shapes, variant: str, near: int | None = None) -> Iterator[str]:
    weights = {name: shape for name, shape in shapes.items() if len(shape) > 1}
    every = mistakes_of(variant)
    for name in sorted(every, key=lambda each: near not in every[each].steps):
        planted = _planted_shapes(name, variant)
        if planted and all(planted.get(each) == shape for each, shape in weights.items()):
            yield name


def _agrees(looks: Looks, *mistakes: str) -> str:
    """Whether the class does what catalogued mistakes do, in every case: how that shows, or "".

    Two that fail in the main case are one function if they agree wherever neither fails, and differ
    from the right class somewhere there: a call in another style may fail in more cases. They are
    alike in failure if they fail in the very same cases, or in the same words.
    """
    differs, together, apart = False, False, False
    for case in looks.cases.every + looks.cases.simpler:
        mine, other = looks.out(case), looks.wrong(case, *mistakes)
        failing = [isinstance(each, Failure) for each in (mine, other)]
        if any(failing):
            apart |= not all(failing)
            if failing[0] != failing[1] and (case == looks.cases.main or not _fails(looks)):
                return ""
        elif not close(mine, other):
            return ""
        else:
            together = True
            differs |= not close(other, looks.right(case))
    if differs:
        return "function"
    in_step = together and not apart and not looks.variant  # there, nothing tells where it fails
    return "failure" if in_step or _same_words(looks, *mistakes) else ""


def _fails(looks: Looks) -> bool:
    return isinstance(looks.out(looks.cases.main), Failure)


def _same_words(looks: Looks, *mistakes: str) -> bool:
    main = looks.cases.main
    mine, other = looks.out(main), looks.wrong(main, *mistakes)
    return isinstance(mine, Failure) and isinstance(other, Failure) and mine.text == other.text


def _conceivable(looks: Looks, one: str, other: str) -> bool:
    """Whether wherever one of two mistakes changes nothing, the other is seen alone."""
    return all(
        close(looks.wrong(case, second), looks.out(case))
        for case in (*looks.cases.simpler, looks.cases.main)
        for first, second in ((one, other), (other, one))
        if close(looks.wrong(case, first), looks.right(case))
        or isinstance(looks.wrong(case, second), Failure)
    )


def _collide(looks: Looks, one: str, other: str) -> bool:
    try:
        play(looks.cases.main, one, other)
    except ValueError:  # both change the same line
        return True
    return False


@functools.cache
def _right(bias: bool, variant: str) -> frozenset[str]:
    """Parameter names of the right class."""
    module = play(replace(cases_of(variant).main, qkv_bias=bias)).module
    return frozenset(lecture_parameters(module, variant))


@functools.cache
def _planted_shapes(name: str, variant: str) -> Shapes:
    """Parameter names and shapes with a catalogued mistake; none if it is one of biases."""
    shapes: Shapes = {}
    for bias in (False, True):
        module = play(replace(cases_of(variant).main, qkv_bias=bias), name).module
        own = lecture_parameters(module, variant) if isinstance(module, nn.Module) else {}
        if own.keys() != _right(bias, variant):
            return {}
        shapes = {each: tuple(weight.shape) for each, weight in own.items()}
    return shapes
