"""Watch the operations of torch: what each was given, what it gave, and what that is made of."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from eleven_steps.beyond.dispatch import DispatchMode
from eleven_steps.checks.run.isolate import clock_paused

MOST = 20_000  # numbers in a tensor that is kept; the cases' own are far smaller


@dataclass(frozen=True)
class Held:
    """A tensor as it was, and which of the four layers it is made of."""

    tensor: torch.Tensor
    made_of: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Call:
    """One operation: its name, what it was given, what it gave."""

    name: str
    given: tuple[Held, ...]
    gave: tuple[Held, ...]


class Recorder(DispatchMode):
    """Write down every operation."""

    def __init__(self):
        super().__init__()
        self.calls: list[Call] = []

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        """Run the operation and keep copies."""
        with clock_paused():
            given = tuple(_held((args, kwargs)))
        result = operation(*args, **(kwargs or {}))
        with clock_paused():
            gave = [result]
            if operation._schema.is_mutable and isinstance(result, torch.Tensor):
                gave.append(result._base)  # what is written into through a view
            name = operation._schema.name.removeprefix("aten::")
            self.calls.append(Call(name, given, tuple(_held(gave))))
        return result


class Watch(TorchFunctionMode):
    """Remember the torch function that raised, with what it was given, and the first cut.

    A tensor is cut out of the gradient where what it is made of has one, and it has none.
    """

    failing: tuple[str, tuple[torch.Tensor, ...], tuple[int, ...]] | None = None
    cut: torch.Tensor | None = None

    def __torch_function__(self, function, types, args=(), kwargs=None):
        """Call function and look whether it returns."""
        try:
            result = function(*args, **(kwargs or {}))
            tracked = any(each.requires_grad for each in tensors_in((args, kwargs)))
            floating = isinstance(result, torch.Tensor) and result.is_floating_point()
            if tracked and self.cut is None and floating and not result.requires_grad:
                self.cut = result.detach().clone()
            return result
        except Exception:
            given = tuple(held.tensor for held in _held((args, kwargs)))
            numbers = tuple(each for each in _flat((args, kwargs)) if type(each) is int)
            self.failing = getattr(function, "__name__", ""), given, numbers
            raise


def marked(calls: list[Call], others: dict[str, list[Call]]) -> Iterator[Call]:
    """Yield calls with what each tensor is made of.

    Args:
        calls: of one forward.
        others: of the same forward with one layer changed, by the layer's name.
    """
    for index, call in enumerate(calls):
        twins = {
            name: other[index]
            for name, other in others.items()
            if index < len(other) and other[index].name == call.name
        }
        given = _made_of(call.given, {name: twin.given for name, twin in twins.items()})
        gave = _made_of(call.gave, {name: twin.gave for name, twin in twins.items()})
        yield Call(call.name, given, gave)


def _made_of(held: tuple[Held, ...], twins: dict[str, tuple[Held, ...]]) -> tuple[Held, ...]:
    return tuple(
        Held(one.tensor, frozenset(n for n, twin in twins.items() if _moved(one, twin[i : i + 1])))
        for i, one in enumerate(held)
    )


def _moved(one: Held, twin: tuple[Held, ...]) -> bool:
    """Whether some number of a twin, if there is one, is another; each is measured by its size."""
    return any(
        one.tensor.shape != each.tensor.shape
        or not torch.allclose(each.tensor, one.tensor, 1e-6, 1e-6, equal_nan=True)
        for each in twin
    )


def _held(values: Iterable[Any]) -> Iterator[Held]:
    for each in tensors_in(values):
        if each.is_floating_point() and each.numel() <= MOST and each.device.type == "cpu":
            yield Held(each.detach().to(torch.float32).clone())


def tensors_in(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    """The tensors among some values, and in what these hold."""
    return (each for each in _flat(values) if isinstance(each, torch.Tensor))


def _flat(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, tuple | list | dict):
            yield from _flat(value.values() if isinstance(value, dict) else value)
        else:
            yield value
