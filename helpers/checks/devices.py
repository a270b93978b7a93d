"""Find tensors that would stay behind if a module moved to a GPU, on a machine that has none."""

from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from helpers.checks.guard import attempt

GPU = torch.device("cuda", 0)
# These take tensors of several devices, or only look at them.
FREE = {
    "__getitem__",
    "__setitem__",
    "__get__",
    "to",
    "type_as",
    "copy_",
    "size",
    "dim",
    "expand_as",
}


class PretendMoved(TorchFunctionMode):
    """Let parameters, buffers and x say that they lie on a GPU, and watch who meets whom.

    Every tensor is on the GPU, stored from before forward, or made in forward on the CPU; what is
    computed of several is on the GPU if one of them is. left_behind holds the kinds that met a
    tensor on the GPU without lying there.
    """

    def __init__(self, module: nn.Module, x: torch.Tensor):
        super().__init__()
        moved = [*module.parameters(), *module.buffers(), x]
        self.kinds = {id(each): "gpu" for each in moved}
        self.alive: list[Any] = moved
        self.left_behind: set[str] = set()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        """Call function on the CPU and note where its result would lie."""
        kwargs = dict(kwargs or {})
        name = getattr(function, "__name__", "")
        tensors = list(_tensors([*args, *kwargs.values()]))
        kinds = [self.kinds.get(id(each), "stored") for each in tensors]
        if name == "__get__" and getattr(function, "__self__", None) is torch.Tensor.device:
            return GPU if kinds[0] == "gpu" else torch.device("cpu")
        if "gpu" in kinds and name not in FREE:
            self.left_behind |= {
                kind
                for kind, tensor in zip(kinds, tensors, strict=True)
                if kind != "gpu" and tensor.numel() > 1
            }
        kind = next((each for each in ("gpu", "stored") if each in kinds), "made")
        if name in ("to", "cpu", "cuda") or not tensors:
            wanted = [each for each in (*args, *kwargs.values()) if _is_gpu(each)]
            kind = "gpu" if wanted or name == "cuda" else "made" if name == "cpu" else kind
        args = tuple("cpu" if _is_gpu(each) else each for each in args)
        kwargs = {key: "cpu" if _is_gpu(each) else each for key, each in kwargs.items()}
        result = args[0] if name == "cuda" else function(*args, **kwargs)
        for each in _tensors([result]):
            self.kinds[id(each)] = kind
            self.alive.append(each)
        return result


def left_behind(module: nn.Module, x: torch.Tensor) -> set[str]:
    """What would stay behind on the CPU: "stored" tensors, tensors "made" in forward."""
    pretend = PretendMoved(module, x)

    def forward() -> None:
        with pretend, torch.no_grad():
            module(x)

    attempt(forward)
    return pretend.left_behind


def _is_gpu(value: Any) -> bool:
    return isinstance(value, torch.device) and value == GPU


def _tensors(values: Any) -> Any:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, tuple | list):
            yield from _tensors(value)
