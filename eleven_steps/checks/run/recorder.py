"""Watch where tensors are cut out of the gradient, and where those of two devices meet."""

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from eleven_steps.beyond.dispatch import DispatchMode
from eleven_steps.checks.run.copies import tensors_in

# Operations that may be given tensors of two devices.
FREE = ("_to_copy", "copy_", "index", "index_put", "index_put_", "_index_put_impl_")


class Watch(TorchFunctionMode):
    """Remember the first tensor that is cut out of the gradient.

    It is where what it is made of has a gradient, and it has none.
    """

    cut: torch.Tensor | None = None

    def __torch_function__(self, function, types, args=(), kwargs=None):
        """Call function and look at what it returns."""
        result = function(*args, **(kwargs or {}))
        tracked = any(each.requires_grad for each in tensors_in((args, kwargs)))
        floating = isinstance(result, torch.Tensor) and result.is_floating_point()
        if tracked and self.cut is None and floating and not result.requires_grad:
            self.cut = result.detach().clone()
        return result


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
    if isinstance(value, torch.Tensor):
        return other(value)
    if isinstance(value, dict):
        return {name: _replaced(each, other) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(_replaced(each, other) for each in value)
    return value
