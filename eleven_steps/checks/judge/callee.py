"""A class from elsewhere that is right as it is read, and how a question calls it otherwise."""

import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from eleven_steps.checks.adapt.adapted import Adapted
from eleven_steps.checks.adapt.built import left_as_is, sizes_given
from eleven_steps.checks.adapt.calls import KINDS, Around, InPieces, left_alone
from eleven_steps.checks.judge.say import Finding, say
from eleven_steps.checks.know.right import planted, play
from eleven_steps.checks.run.ask import Pass, Seen, once
from eleven_steps.checks.run.cases import Case, cases_of, close
from eleven_steps.checks.run.contract import called
from eleven_steps.checks.run.isolate import Failure, attempt
from eleven_steps.checks.run.making import build
from eleven_steps.checks.run.variant import Variant


class Callee:
    """A wrapper of a class that is right, and what it was asked besides."""

    def __init__(self, wrapper: type[Adapted]):
        self.wrapper, self.case = wrapper, cases_of(wrapper.variant).main
        self.variant = wrapper.variant
        made = attempt(build, wrapper, self.case)
        failed = isinstance(made, Failure)
        self.inner, self.width = (None, 0) if failed else (made.called.inner, made.width)
        self.judged = wrapper  # at the moment: it may be one that stands beside
        self.notes: list[str] = []  # what is said of it besides
        self.tried: list[Any] = [wrapper.call]
        self.shown: list[str] = []  # flags with which right weights are returned
        self.apart: list[str] = []  # what does not run together
        self.settled: set[str] = set()  # parameters with a question of their own
        self.pieces: InPieces | None = None  # a way in which it is right in pieces

    @property
    def right(self) -> torch.Tensor:
        """What the right class gives."""
        return play(self.case).out

    @property
    def parameters(self) -> list[inspect.Parameter]:
        """Those of its forward."""
        if self.inner is None:
            return []
        return [*inspect.signature(self.inner.forward).parameters.values()]

    @property
    def options(self) -> list[inspect.Parameter]:
        """Those of its constructor that it is told nothing for."""
        told = sizes_given(self.case) | self.wrapper.choice
        every = left_as_is(self.wrapper.build, told)
        return [parameter for parameter in every if parameter.name not in self.settled]

    @property
    def left(self) -> list[str]:
        """Those that have a default, which no call that was tried gives."""
        names = [] if self.inner is None else attempt(left_alone, self.inner, *self.tried)
        return [] if isinstance(names, Failure) else [n for n in names if n not in self.settled]

    @property
    def bare(self) -> tuple[Any, str]:
        """The call without the mask that it hands over, and that parameter's name, or ""."""
        call = self.wrapper.call
        if call.way.kind not in KINDS:
            return call, ""
        way = replace(call.way, mask="", kind="", shape="")
        return way if call.way is call else replace(call, way=way), call.way.mask

    def right_with(self, record: Callable[..., None], variant: Variant) -> torch.Tensor:
        """What the right class gives where record writes into what its steps make."""
        case = replace(self.case, variant=variant)
        with torch.no_grad():
            right = build(planted(variant=case.variant), case)
            return called(right, case, case.x, record=record)

    def calling(self, call: Any) -> type[Adapted]:
        """The same wrapper, called in another way."""
        return self.wrapper.but(call=call)

    def one_module(self, call: Any) -> Callable[..., Any]:
        """Call one module time and again, each time with an x and what its parameters get."""
        handing = Handing(call)
        module = attempt(build, self.calling(handing), self.case)

        def run(x: torch.Tensor | None = None, **named: torch.Tensor) -> Any:
            handing.named.clear()
            handing.named.update(named)
            return attempt(torch.no_grad()(module), self.case.x if x is None else x)

        return run

    def seen(self, call: Any, *xs: torch.Tensor | None) -> list[Seen]:
        """What is seen of one module, called in another way with each x in a row; see seen_of."""
        return seen_of(self.calling(call), self.case, *(xs or [None]))

    def out(self, call: Any) -> torch.Tensor | None:
        """The output of a call; None where there is none."""
        every = self.seen(call)
        return every[0].out if every else None


@dataclass(frozen=True)
class Handing(Around):
    """A way to call in which parameters get something besides, and a mask hides something else."""

    way: Any
    named: dict[str, Any] = field(default_factory=dict)
    hides: Callable[[torch.Tensor], torch.Tensor] = torch.clone  # of what is usually hidden
    returned: list[Any] = field(default_factory=list)  # by each call

    def __call__(self, module: Any, x: torch.Tensor, hidden: torch.Tensor, *more: Any) -> Any:
        """Call the module so, and keep what it returns."""
        named = functools.partial(module, **self.named)
        self.returned.append(self.way(named, x, self.hides(hidden), *more))
        return self.returned[-1]


def unlike(mine: Any, right: Any, name: str, /, **values: Any) -> Finding | None:
    """Say by its name what it means that two results differ; None where they agree."""
    return None if close(mine, right) else say(name, **values)


def x_written(every: Iterable[Seen], call: str) -> Finding | None:
    """What is wrong where a call, told in a few words, writes into x."""
    return written(1, call, "its input x") if any("x" in seen.changed for seen in every) else None


def written(step: int, call: str, what: str) -> Finding:
    """What is wrong where a call writes into what it is given."""
    return say("input_changed_there", step, call=call, what=what)


# What depends on what


def hides_by_itself(wrapper: type[Adapted], case: Case) -> bool | None:
    """Whether some token has no part in what comes out at some other; None if that is not seen.

    Where sequences mix, what is called a token here is none.
    """
    moved = []
    for token in range(case.num_tokens):
        other = case.x
        other[:, token] += 1
        moved.append(other)
    first, *rest = [seen.out for seen in seen_of(wrapper, case, None, *moved)] or [None]
    if first is None or mixes(wrapper, case):
        return None
    return any(not (out - first).abs().amax((0, 2)).gt(1e-6).all() for out in rest)


def mixes(wrapper: type[Adapted], case: Case) -> bool:
    """Whether one sequence of a batch moves what comes out of another: it is no batch then."""
    other = case.x
    other[0] += 1
    both = seen_of(wrapper, case, None, other)
    return bool(both) and not close(*(seen.out[1:] for seen in both))


def joins(wrapper: type[Adapted], case: Case) -> bool:
    """Whether queries find the keys of another sequence, and those of their own beside them."""
    variant = wrapper.variant.but(full="").beside("other")
    if variant is None or len(wrapper.call.names) < 2:
        return False
    x, other = case.x, case.x[:, [0, *range(case.num_tokens)]].flip(-1)  # a token more
    with torch.no_grad():
        right = build(planted(variant=variant), replace(case, variant=variant))
        out = attempt(attempt(build, wrapper, case), x, other)
        wanted = right(x, torch.cat([x, other], 1))
    return getattr(out, "shape", None) == wanted.shape and close(out, wanted)


def seen_of(wrapper: type[Adapted], case: Case, *xs: torch.Tensor | None) -> list[Seen]:
    """What is seen of one module in a row; nothing where a call fails or has another shape."""
    every, shape = once(wrapper, case, *map(Pass, xs)), (case.b, case.num_tokens, case.d_out)
    return every if all(getattr(reply.out, "shape", None) == shape for reply in every) else []
