"""Look an answer up among the mistakes of the catalogue, alone and in pairs."""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from eleven_steps.checks.know.mistakes import mistakes_of
from eleven_steps.checks.know.right import Scene, play
from eleven_steps.checks.name.locate.failing import failing_step, worded_step
from eleven_steps.checks.name.locate.follow import follow
from eleven_steps.checks.name.locate.places import exact
from eleven_steps.checks.name.locate.recording import NAMES, Followed
from eleven_steps.checks.name.outcome import Finding
from eleven_steps.checks.name.say import dropped, from_notebook, letters, say, together
from eleven_steps.checks.run.ask import ask, once, used_by
from eleven_steps.checks.run.cases import SAME, Case, cases_of, close, lecture_parameters
from eleven_steps.checks.run.facts import Built, Pass, Shapes
from eleven_steps.checks.run.isolate import Failure
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
        own, right = self.built[case.qkv_bias].shapes, made(self.variant)[case.qkv_bias]
        return replace(case, without=frozenset(right.keys() ^ own.keys()))

    def out(self, case: Case) -> torch.Tensor | Failure:
        """Output of the class."""
        if case not in self.outs:
            self.outs[case] = once(self.cls, self.plain(case), Pass())[0].out
        return self.outs[case]

    def ours(self, case: Case, *mistakes: str) -> torch.Tensor | Failure:
        """Output of the right class, or of one with these mistakes."""
        return play(self.plain(case), *mistakes).out

    def leaks(self) -> bool | None:
        """Whether in training the last token moves the output of the first; None if it fails."""
        other = self.cases.main.x
        other[:, -1] += 1
        passes = Pass(train=True), Pass(other, train=True)
        one, two = (seen.out for seen in once(self.cls, self.cases.main, *passes))
        if isinstance(one, Failure) or isinstance(two, Failure):
            return None
        return not close(one[:, 0], two[:, 0])


def unlike(looks: Looks, wrong: Sequence[Case]) -> Iterator[Finding]:
    """Name the mistake that outputs in some cases come to, or two, or the step to look at.

    Args:
        looks: the class.
        wrong: the cases in which its output is not the right one.
    """
    main, biased = looks.cases.main, looks.cases.biased
    case = looks.plain(biased if biased in wrong else wrong[0])
    record = ask(looks.cls, "record", case)
    if isinstance(record, Failure):
        yield say("constructor_raises", worded_step(record), error=record.told)
        return
    way, out, used = Followed(record, case), record.seen.out, used_by(looks.cls)
    where = letters(case) if main in wrong else f"b = {case.b}, {letters(case)}"
    if raised := isinstance(out, Failure):
        step = None if looks.variant else failing_step(way, out)
        found = say("forward_raises", step, error=out.told, where=where)
    else:
        first, again = once(looks.cls, case, Pass(seed=1), Pass(seed=2))
        if not close(first.out, again.out, SAME):
            yield say("random_in_eval", None if all(map(way.made, NAMES.values())) else 2)
            return
        found = follow(way) or say("other_output", where=where)
    name = single(looks, found.step if raised else None, found.step if looks.variant else None)
    if name and raised and not used["dropped"] and _unspoilt(way, name):
        name = None
    names = (name,) if name else pair(looks, way, found.step) if found.step and not raised else ()
    if names == ("no_mask",) and looks.leaks() is False:
        yield say("future_in_eval")
    elif names:
        yield from (say(each, found.step, case=main) for each in names)
    else:
        reads = say("forward_reads", what=from_notebook(used)).text if used["names"] else ""
        other = main not in wrong and not raised
        elsewhere = say("right_elsewhere", where=where).text if other else ""
        yield replace(found, text=together(found.text, dropped(used), reads, elsewhere))


def _unspoilt(way: Followed, name: str) -> bool:
    """Whether what a mistake would have spoilt at its step is there."""
    step = STEPS[mistakes_of(way.case.variant)[name].step - 1]
    return step in play(way.case, name).steps and way.done(step)


def single(looks: Looks, step: int | None = None, near: int | None = None) -> str | None:
    """The one catalogued mistake that comes to the same function as a class.

    Args:
        looks: the class.
        step: where it fails, if it fails; mistakes made elsewhere then need more than a failure.
        near: the step whose mistakes are tried first, to save time.
    """
    for name in candidates(looks.shapes, looks.variant, near):
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
    every = list(candidates(looks.shapes, looks.variant))
    for one in (name for name in every if step in looks.mistakes[name].steps):
        shown = [_shown(way, play(way.case, one), name) for name in STEPS]
        for other in every:
            first, second = looks.mistakes[one].step, looks.mistakes[other].step
            if second <= first or not any(shown[first - 1 : second - 1]):
                continue
            if _conceivable(looks, one, other) and _agrees(looks, one, other) == "function":
                return one, other
    return ()


def _shown(way: Followed, wrong: Scene, step: str) -> bool:
    """Whether what a wrong class records at a step is among the tensors of a forward."""
    tensors = wrong.steps.get(step, {}).values()
    right = way.right[step].values()
    differs = any(not close(one, other) for one, other in zip(tensors, right, strict=False))
    return differs and all(exact(way.tensors, each, False) for each in tensors)


def candidates(shapes: Shapes, variant: str = "", near: int | None = None) -> Iterator[str]:
    """Yield the catalogued mistakes whose layers have these shapes, biases aside; near ones first.

    A mistake of the biases themselves is seen in the constructor, and is none of them.
    """
    every, right = mistakes_of(variant), made(variant)
    weights = {name: shape for name, shape in shapes.items() if len(shape) > 1}
    for name in sorted(every, key=lambda each: near not in every[each].steps):
        planted = made(variant, name)
        same = planted.keys() == right.keys() and all(
            planted[bias].keys() == right[bias].keys() for bias in right
        )
        if same and weights.items() <= planted[True].items():
            yield name


def _agrees(looks: Looks, *mistakes: str) -> str:
    """Whether the class does what catalogued mistakes do, in every case: how that shows, or "".

    Two that fail in the main case are one function if they agree wherever neither fails, and differ
    from the right class somewhere there: a call in another style may fail in more cases. They are
    alike in failure if they fail in the very same cases, or in the same words.
    """
    main = looks.cases.main
    fails = isinstance(looks.out(main), Failure)
    differs, together, apart = False, False, False
    for case in looks.cases.every + looks.cases.simpler:
        mine, other = looks.out(case), looks.ours(case, *mistakes)
        failing = [isinstance(each, Failure) for each in (mine, other)]
        if any(failing):
            apart |= not all(failing)
            if failing[0] != failing[1] and (case == main or not fails):
                return ""
        elif not close(mine, other):
            return ""
        else:
            together = True
            differs |= not close(other, looks.ours(case))
    if differs:
        return "function"
    in_step = together and not apart and not looks.variant  # there, nothing tells where it fails
    same_words = fails and looks.out(main).text == looks.ours(main, *mistakes).text
    return "failure" if in_step or same_words else ""


def _conceivable(looks: Looks, one: str, other: str) -> bool:
    """Whether wherever one of two mistakes changes nothing, the other is seen alone."""
    return all(
        close(looks.ours(case, second), looks.out(case))
        for case in (*looks.cases.simpler, looks.cases.main)
        for first, second in ((one, other), (other, one))
        if close(looks.ours(case, first), looks.ours(case))
        or isinstance(looks.ours(case, second), Failure)
    )


@functools.cache
def made(variant: str, *mistakes: str) -> dict[bool, Shapes]:
    """What the right class is made of, or one with mistakes: shapes by names, by qkv_bias.

    What cannot be built is left out.
    """
    main = cases_of(variant).main
    modules = {bias: play(replace(main, qkv_bias=bias), *mistakes).module for bias in (False, True)}
    return {
        bias: {name: tuple(p.shape) for name, p in lecture_parameters(module, variant).items()}
        for bias, module in modules.items()
        if isinstance(module, nn.Module)
    }
