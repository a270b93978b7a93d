"""A block around attention: a norm before its layers or after, and the sum with x."""

from typing import Any

import torch
from torch import nn

from eleven_steps.checks.run.cases import close
from eleven_steps.checks.run.copies import tensors_in


def norms(module: nn.Module, width: int) -> list[str]:
    """The names of the norms of x or of the output: their weights are as wide."""
    return [
        name
        for name, each in module.named_modules()
        if is_norm(each) and getattr(getattr(each, "weight", None), "shape", None) == (width,)
    ]


def is_norm(module: nn.Module) -> bool:
    """Whether a module is a norm, by the name of its class."""
    return "norm" in type(module).__name__.lower()


class Block:
    """Takes a norm of x away, and gives back what out_proj gave where no more than block follows.

    What follows may be a sum with x, a norm, or both, in any order; all else stays as it is.

    Args:
        inner: the module.
        width: features of x.
        last: the name of its out_proj, or "" if it has none.
    """

    def __init__(self, inner: nn.Module, width: int, last: str):
        self.x = self.out = None
        self.normed: list[tuple[torch.Tensor, torch.Tensor]] = []  # behind out_proj: before, after
        for name in norms(inner, width):
            inner.get_submodule(name).register_forward_hook(self._norm)
        if last:
            inner.get_submodule(last).register_forward_hook(self._keep)

    def begin(self, x: torch.Tensor | None) -> None:
        """Get ready for a call with x."""
        self.x, self.out, self.normed = x, None, []

    def end(self, module: nn.Module, returned: Any) -> Any:
        """What out_proj gave, where what is returned is that with no more than a block around."""
        out, x, normed = self.out, self.x, self.normed
        self.begin(None)  # nothing is kept
        if not isinstance(returned, torch.Tensor) or out is None or returned.shape != out.shape:
            return returned
        if module.training:  # dropout may act in between
            return out
        firsts = [out, out + x if out.shape == x.shape else out]
        lasts = firsts + [b for a, b in normed if any(close(a, each) for each in firsts)]
        lasts += [each + x for each in lasts if each.shape == x.shape]
        return out if any(close(returned, each) for each in lasts) else returned

    def _norm(self, norm: nn.Module, args: tuple, out: Any) -> torch.Tensor | None:
        if self.out is not None:
            self.normed.append((args[0], next(tensors_in([out]))))
        of_x = self.x is not None and args[0].shape == self.x.shape
        return args[0] if of_x and args[0].data_ptr() == self.x.data_ptr() else None

    def _keep(self, layer: nn.Module, args: tuple, out: Any) -> None:
        self.out = next(tensors_in([out]))  # beside it there may be a scale
