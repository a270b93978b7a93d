"""A class that is asked, and the questions that are put to it."""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from eleven_steps.checks.adapt.adapted import cases_for, takes
from eleven_steps.checks.judge.constructor import shapes_of
from eleven_steps.checks.judge.say import Finding, say, together
from eleven_steps.checks.know.right import play
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.run.ask import Pass, Seen, is_remote, once
from eleven_steps.checks.run.cases import Case, close, singled
from eleven_steps.checks.run.isolate import Failure, attempt
from eleven_steps.checks.run.making import Built, Shapes, build, learners
from eleven_steps.checks.run.places import numbers_in
from eleven_steps.checks.run.variant import LECTURE, Variant


class Subject:
    """A class with the lecture's constructor and layers that is asked, and what was found in it."""

    def __init__(self, cls: Any, built: Built, variant: Variant = LECTURE):
        self.cls, self.built, self.variant = cls, built, variant
        self.shapes: Shapes = built.biased.shapes
        self.cases = cases_for(cls, variant)
        self.found: set[str] = set()  # names of probes, or outputs
        self.seen_in: dict[Case, Seen] = {}

    @functools.cached_property
    def named(self) -> tuple[list[Case], list[Case]]:
        """Cases of the sizes that the class's own code names: short texts, and long ones."""
        module = None if is_remote(self.cls) else attempt(build, self.cls, self.cases.main)
        inner = learners(module)
        if not isinstance(inner, nn.Module):
            return [], []
        told = tuple(vars(kind).get("__init__") for kind in type(inner).__mro__)
        numbers = attempt(numbers_in, inner, told=told)
        return singled(() if isinstance(numbers, Failure) else numbers, self.variant)

    def plain(self, case: Case) -> Case:
        """The case with biases that only this class or only the right one has set to 0."""
        like = self.cases.biased if case.qkv_bias else self.cases.main
        own, right = self.built.at(case).shapes, shapes_of(like)
        return replace(case, without=frozenset(right.keys() ^ own.keys()))

    def seen(self, case: Case) -> Seen:
        """What is seen of the class in a case."""
        if case not in self.seen_in:
            self.seen_in[case] = once(self.cls, self.plain(case), Pass())[0]
        return self.seen_in[case]

    def right(self, case: Case, *mistakes: str) -> torch.Tensor | Failure:
        """Output of the right class, or of one with these mistakes."""
        return play(self.plain(case), *mistakes).out

    def out(self, case: Case) -> torch.Tensor | Failure:
        """Output of the class."""
        return self.seen(case).out

    def outs(self, case: Case, *passes: Pass, dropout: float = 0.0) -> list[Any]:
        """Outputs of one module in several passes in a row."""
        return [seen.out for seen in once(self.cls, self.plain(case), *passes, dropout=dropout)]

    def with_sizes(self, case: Case, sizes: dict[str, int]) -> torch.Tensor | Failure:
        """Output of the class where it stores other sizes under some names."""
        return self.outs(case, Pass(stored=sizes))[0]

    def leaks(self, case: Case | None = None, **options: Any) -> bool | None:
        """Whether the last token moves the output of others; None if it fails."""
        case = case or self.cases.main
        other = case.x
        other[:, -1] += 1
        one, two = self.outs(case, Pass(**options), Pass(other, **options))
        if isinstance(one, Failure) or isinstance(two, Failure):
            return None
        return not close(one[:, :-1], two[:, :-1])

    def other(self, case: Case) -> Case:
        """A case of other sizes, in which it is asked again; the same with other numbers."""
        fitting = [e for e in self.cases.every if e.num_tokens > 3 and e.b > 1 and e != case]
        sized = [e for e in fitting if (e.d_in, e.d_out) != (case.d_in, case.d_out)]
        return sized[-1] if sized else replace(case, seed=case.seed + 1)


Question = Callable[[Subject, Case], Finding | None]


def heads_left_out(subject: Subject, case: Case) -> Finding | None:
    """Say which heads have no part in the output: without their values it stays the same."""
    shape = play(case).module.W_value.weight.shape
    values, passes = case.weight("W_value.weight", shape), [Pass()]
    for head in range(0, case.d_out if shape[0] == case.d_out else 0, case.head_dim):
        less = values.clone()
        less[head : head + case.head_dim] = 0
        passes.append(Pass(weights={"W_value.weight": less}))
    first, *outs = subject.outs(case, *passes)
    if any(isinstance(out, Failure) or out.isnan().any() for out in (first, *outs)):
        return None
    heads = [str(i) for i, out in enumerate(outs) if close(out, first)]
    if 0 < len(heads) < case.num_heads:
        return say("heads_left_out", 8, which=", ".join(heads), num_heads=case.num_heads)
    return None


def decided(subject: Subject, wrong: Sequence[Case], case: Case, where: str) -> str:
    """Say where a class that is right in the main case is wrong, and what decides it.

    From a case that is wrong one letter at a time takes the value of one that is right. Where the
    output is right then, it is that letter which decides: nothing else was changed.
    """
    main = subject.cases.main
    if main in wrong:
        return ""
    moved = ((name, other) for name, other in _single(case, main) if takes(subject.cls, other))
    letters = [name for name, other in moved if close(subject.out(other), subject.right(other))]
    if case.d_in == case.d_out and "d_in" in letters:  # the others only make the output wider
        letters = [letter for letter in letters if letter in ("qkv_bias", "d_in")]
    if letters == ["qkv_bias"]:
        return say("right_without_bias").text
    values = {name: getattr(main, name) for name in letters}
    told = " or ".join(f"{name} to {value}" for name, value in values.items())
    hint = wording("changed_alone", changes=told) if told else ""
    return together(say("right_elsewhere", where=where).text, hint)


def _single(case: Case, main: Case) -> Iterator[tuple[str, Case]]:
    """Each letter with the case in which it alone is as in the main one."""
    names = "qkv_bias", "b", "num_tokens", "d_in", "num_heads", "head_dim", "context_length"
    for name in names:
        if getattr(case, name) != getattr(main, name):
            sizes = {letter: getattr(main if letter == name else case, letter) for letter in names}
            sizes["d_out"] = sizes["num_heads"] * sizes.pop("head_dim")
            sizes["context_length"] = max(sizes["context_length"], sizes["num_tokens"])
            yield name, replace(case, **sizes)
