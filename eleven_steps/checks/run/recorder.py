"""Watch the operations of torch: what each was given, what it gave, and what that is made of."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from eleven_steps.beyond.dispatch import DispatchMode
from eleven_steps.checks.run.isolate import clock_paused

# Operations that may be given tensors of two devices.
FREE = ("_to_copy", "copy_", "index", "index_put", "index_put_", "_index_put_impl_")
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


# Devices


class DeviceWatch(DispatchMode):
    """Notice where tensors of two devices meet, as on a GPU they must not; single numbers may.

    The second device is torch's "meta", of whose tensors there is only the shape. What an operation
    makes of shapes is found with zeros on the CPU: torch's own way loads a compiler first.
    """

    def __init__(self):
        super().__init__()
        self.met = False

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        """Run the operation after a look at the devices of its tensors."""
        kwargs = kwargs or {}
        tensors = list(tensors_in((args, kwargs)))
        devices = {each.device.type for each in tensors if each.dim()}
        name = operation._schema.name.removeprefix("aten::")
        self.met |= name not in FREE and len(devices) > 1
        to = torch.device(kwargs.get("device") or "cpu").type
        if "meta" in {to, *(each.device.type for each in tensors)}:
            return _with_zeros(operation, args, kwargs)
        return operation(*args, **kwargs)


def _with_zeros(operation: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Run an operation with zeros for all without numbers; what it returns is without them again.

    But what it is told to put on the CPU stays there.
    """
    given = [each for each in tensors_in((args, kwargs)) if each.device.type == "meta"]
    zeros = {id(each): _zeros(each) for each in given}
    returned = {id(zeros[id(each)]): each for each in given}  # by what works in place

    def without_numbers(result: torch.Tensor) -> torch.Tensor:
        shape, strides = result.shape, result.stride()
        return torch.empty_strided(shape, strides, dtype=result.dtype, device="meta")

    on_cpu = kwargs.get("device") == torch.device("cpu")
    if kwargs.get("device") is not None:
        kwargs = kwargs | {"device": torch.device("cpu")}
    args, kwargs = _replaced((args, kwargs), lambda each: zeros.get(id(each), each))
    result = operation(*args, **kwargs)
    if on_cpu:
        return result
    return _replaced(result, lambda each: returned.get(id(each), without_numbers(each)))


def _zeros(tensor: torch.Tensor) -> torch.Tensor:
    """Zeros on the CPU that lie as a tensor does."""
    last = sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.stride(), strict=True))
    flat = torch.zeros(max(last + 1, 0), dtype=tensor.dtype, device="cpu")
    return flat.as_strided(tensor.shape, tensor.stride())


def _replaced(value: Any, other: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The same with other tensors."""
    if isinstance(value, torch.Tensor):
        return other(value)
    if isinstance(value, dict):
        return {name: _replaced(each, other) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(_replaced(each, other) for each in value)
    return value
