"""Try what a function may have done with what it was given, and see its own numbers come out."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from eleven_steps.checks.judge.say import say
from eleven_steps.checks.know.right import Parts, Scene
from eleven_steps.checks.run.cases import LAYERS, close
from eleven_steps.checks.run.isolate import Failure, attempt, clock_paused
from eleven_steps.helpers.trace import SHAPES, STEPS

Given = Sequence[tuple[str, torch.Tensor, str]]  # name, tensor, its axes in letters if known

# What is applied to one tensor, as code.
APPLIED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "torch.softmax({}, dim=-1)": lambda t: t.softmax(-1),
    "torch.softmax({}, dim=-2)": lambda t: t.softmax(-2),
    "torch.log_softmax({}, dim=-1)": lambda t: t.log_softmax(-1),
    "{}.exp()": torch.exp,
    "{}.log()": torch.log,
    "{}.tanh()": torch.tanh,
    "{}.sigmoid()": torch.sigmoid,
    "{}.relu()": torch.relu,
    "{}.triu()": torch.triu,
    "{}.tril()": torch.tril,
    "{}.abs()": torch.abs,
    "{}.sqrt()": torch.sqrt,
    "{}.square()": torch.square,
    "-{}": torch.neg,
    "1 / {}": torch.reciprocal,
}
APPLIED |= {f"{{}}.sum({n})": lambda t, n=n: t.sum(n) for n in range(4)}
APPLIED |= {f"{{}}.mean({n})": lambda t, n=n: t.mean(n) for n in range(4)}
APPLIED |= {f"{{}}[{':, ' * n}0]": lambda t, n=n: t.select(n, 0) for n in range(4)}
APPLIED["{}.diagonal(0, -2, -1)"] = lambda t: t.diagonal(0, -2, -1)

APPLIED |= {
    f"torch.nn.functional.{name}({{}})": getattr(functional, name)
    for name in ("elu", "gelu", "silu", "softplus")
} | {
    "torch.nn.functional.elu({}) + 1": lambda t: functional.elu(t) + 1,
    "torch.nn.functional.normalize({}, dim=-1)": lambda t: functional.normalize(t, dim=-1),
    "layer_norm({0}, {0}.shape[-1:])": lambda t: functional.layer_norm(t, t.shape[-1:]),
    "rms_norm({0}, {0}.shape[-1:])": lambda t: functional.rms_norm(t, t.shape[-1:]),
    "torch.nn.functional.pad({}, (0, 0, 1, 0))[..., :-1, :]": lambda t: functional.pad(
        t, (0, 0, 1, 0)
    )[..., :-1, :],
    "{}.round(decimals=2)": lambda t: t.round(decimals=2),
    "{}.round(decimals=1)": lambda t: t.round(decimals=1),
}
for axis in range(4):
    APPLIED |= {
        f"{{}}.cumsum({axis})": lambda t, n=axis: t.cumsum(n),
        f"{{}}.flip({axis})": lambda t, n=axis: t.flip(n),
        f"{{}}.roll(1, {axis})": lambda t, n=axis: t.roll(1, n),
        f"{{0}} + {{0}}.roll(1, {axis})": lambda t, n=axis: t + t.roll(1, n),
        f"{{0}} - {{0}}.mean({axis}, keepdim=True)": lambda t, n=axis: t - t.mean(n, True),
        f"{{0}} / {{0}}.sum({axis}, keepdim=True)": lambda t, n=axis: t / t.sum(n, True),
        f"{{0}}.mean({axis}, keepdim=True).expand_as({{0}})": lambda t, n=axis: t.mean(
            n, True
        ).expand_as(t),
    }

# What is applied to either side of a product.
TURNED = {"{}": lambda t: t, "{}.transpose(-2, -1)": lambda t: t.mT}
TURNED |= {code: APPLIED[code] for code in ("torch.softmax({}, dim=-1)", "{}.tril()", "{}.abs()")}


def given_of(arguments: Sequence[object], scene: Scene) -> Given:
    """The tensors among a function's arguments, and the weights of layers, by their names."""
    steps = [(n, t, SHAPES[step]) for step in STEPS for n, t in scene.steps[step].items()]
    named = []
    for argument in arguments:
        if isinstance(argument, torch.Tensor) and argument.is_floating_point():
            named += [each for each in steps if each[1] is argument][:1]
        elif isinstance(argument, torch.nn.Linear):
            layers = (n for n in LAYERS if getattr(scene.module, n) is argument)
            named += [(f"{name}.weight", argument.weight.detach(), "") for name in layers]
    return named


def made_of(part: torch.Tensor, right: torch.Tensor, given: Given) -> str:
    """Say what a function made of what it was given, if one thing gives just these numbers."""
    with clock_paused():
        for name, tensor, letters in given:
            if code := _moved(part, tensor, name, letters):
                return code
        for name, tensor, _ in given:
            if code := applied([part], tensor, name):
                return say("it_is", code=code).text
        if code := applied([part], right, "it"):
            return say("applied", code=code).text
        if order := turned(part, right):
            return say("axes_in_order", order=order).text
        for code, product in _products(given):
            if _same(part, product):
                return say("it_is", code=code).text
    return ""


def applied(parts: Iterable[torch.Tensor], tensor: torch.Tensor, name: str) -> str:
    """The code that makes one of some parts of a tensor, if a usual thing does; else ""."""
    with clock_paused():
        made = [(code, attempt(change, tensor)) for code, change in APPLIED.items()]
        codes = (code for part in parts for code, other in made if _same(part, other))
        return next((code.format(name) for code in codes), "")


def _same(part: torch.Tensor, other: torch.Tensor | Failure) -> bool:
    return not isinstance(other, Failure) and part.shape == other.shape and close(part, other)


def _moved(part: torch.Tensor, tensor: torch.Tensor, name: str, letters: str) -> str:
    """Say how a tensor is another with its axes moved, read in another shape or not."""
    if part.numel() != tensor.numel() or not tensor.isfinite().all():
        return ""
    flat, axes = part.flatten(), letters.strip("()").split(", ")
    for order in itertools.permutations(range(tensor.dim())):
        turned = tensor.permute(order)
        if not close(flat, turned.flatten()):
            continue
        plain = order == tuple(range(tensor.dim()))
        code = name if plain else f"{name}.permute{order}"
        if part.shape != turned.shape:
            return say("it_is_read", code=code).text
        if not plain and len(axes) == len(order):
            return say("it_is_moved", code=code, axes=", ".join(axes[each] for each in order)).text
    return ""


def turned(part: torch.Tensor, right: torch.Tensor) -> tuple[int, ...]:
    """The order of axes in which what is right is what came; empty if there is none."""
    if part.numel() != right.numel() or part.dim() != right.dim():
        return ()
    orders = list(itertools.permutations(range(right.dim())))[1:]
    return next((order for order in orders if _same(part, right.permute(order))), ())


def _products(given: Given) -> Iterator[tuple[str, torch.Tensor | Failure]]:
    for (one, left, _), (other, right, _) in itertools.product(given, repeat=2):
        for first, second in itertools.product(TURNED, repeat=2):
            code = f"{first.format(one)} @ {second.format(other)}"
            yield code, attempt(torch.matmul, TURNED[first](left), TURNED[second](right))


def expression(answer: Callable[[Scene], Parts], scenes: list[Scene], returned: list[Parts]) -> str:
    """Say what the first wrong whole number is in letters, where one expression fits everywhere."""
    for index, right in enumerate(zip(*map(answer, scenes), strict=True)):
        if not all(isinstance(each, int) for each in right):
            return ""
        mine = [whole(parts[index]) if index < len(parts) else None for parts in returned]
        if mine == list(right):
            continue
        if len({*mine}) == 1 and mine[0] is not None:
            return say("always", number=mine[0]).text
        names = list(scenes[0].case.letters)[:-2]  # head_dim is what is asked for
        two = list(itertools.permutations(names, 2))
        pairs = [f"{a} {sign} {b}" for sign in ("*", "//", "%") for a, b in two]
        for codes in (names, pairs):
            fitting = [c for c in codes if [eval(c, {}, s.case.letters) for s in scenes] == mine]
            if fitting:
                return say("it_is", code=fitting[0]).text if len(fitting) == 1 else ""
    return ""


def whole(part: Any) -> int | None:
    """A whole number of any kind as an int; None for anything else."""
    scalar = type(part) is torch.Tensor and part.dim() == 0 or issubclass(type(part), np.generic)
    part = part.item() if scalar else part
    return part if type(part) is int else None
