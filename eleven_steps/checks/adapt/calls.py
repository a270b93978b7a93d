"""How a forward of somebody else's is called: with x alone or three times, with which mask."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, is_dataclass
from typing import Any

import torch

from eleven_steps.checks.run.copies import tensors_in

# call(module, x, hidden): hidden (num_tokens, num_tokens) is True where a key must not be seen.
Call = Callable[..., Any]

MASKS = ("mask", "attn_mask", "attention_mask", "causal_mask", "src_mask", "tgt_mask", "bias")
FLAGS = ("is_causal", "causal")
SHAPES = {
    "(num_tokens, num_tokens)": (),
    "(1, 1, num_tokens, num_tokens)": (None, None),
    "(b, num_tokens, num_tokens)": (None,),
    "(num_tokens, num_tokens, 1)": (..., None),
}
KINDS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "True where a key is seen": lambda hidden, x: ~hidden,
    "True where a key is hidden": lambda hidden, x: hidden,
    "-inf where a key is hidden": lambda hidden, x: torch.zeros_like(
        hidden, dtype=x.dtype
    ).masked_fill(hidden, -torch.inf),
    "1 where a key is seen": lambda hidden, x: (~hidden).to(x.dtype),
}


@dataclass(frozen=True)
class Way:
    """One way to call a forward; calling it calls a module so.

    Args:
        names: the parameters that get x, by keyword; empty for the first by place.
        mask: the parameter that gets a mask; "" for none.
        kind: what the mask holds, a name in KINDS; "flag" where it is a flag.
        shape: the mask's, a name in SHAPES.
        first: whether tokens come first, (num_tokens, b, d_in).
    """

    names: tuple[str, ...] = ()
    mask: str = ""
    kind: str = ""
    shape: str = ""
    first: bool = False

    def __call__(self, module: Any, x: torch.Tensor, hidden: torch.Tensor) -> Any:
        """Call the module and return what it returns; x has tokens first where they come first."""
        named = dict.fromkeys(self.names, x)
        if self.kind == "flag":
            named[self.mask] = True
        elif self.mask:
            mask = KINDS[self.kind](hidden, x)[SHAPES[self.shape]]
            many = x.shape[self.first], -1, -1
            named[self.mask] = mask.expand(many) if "(b," in self.shape else mask
        return module(**named) if self.names else module(x, **named)

    @property
    def told(self) -> str:
        """The call in a few words."""
        order = "(num_tokens, b, d_in)" if self.first else "x"
        text = ", ".join(f"{name}=x" for name in self.names) or order
        if self.kind == "flag":
            text += f", {self.mask}=True"
        elif self.mask:
            text += f", {self.mask} {self.shape}, {self.kind}"
        return f"forward({text})" + (
            " with (num_tokens, b, d_in)" if self.first and self.names else ""
        )


def output(returned: Any, d_out: int) -> Any:
    """The first tensor (b, num_tokens, d_out) of whatever is returned, or else the first tensor."""
    several = vars(returned).values() if is_dataclass(returned) else [returned]
    every = list(tensors_in(several))
    fitting = (each for each in every if each.dim() == 3 and each.shape[-1] == d_out)
    return next(fitting, every[0] if every else returned)


def ways(module: Any, causal: bool) -> Iterator[Way]:
    """Yield every way to call a module's forward that its parameters allow, plain ones first."""
    every = inspect.signature(module.forward).parameters.values()
    usual = [each for each in every if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)]
    names = [each.name for each in usual]
    mask = next((name for name in MASKS if name in names), "")
    flag = next((name for name in FLAGS if name in names), "")
    needed = [e.name for e in usual if e.default is e.empty and e.name not in (mask, flag)]
    # One that stands alone may go by place; several are the queries, keys and values.
    given = (
        tuple(needed)
        if len(needed) > 1 or any(e.kind is e.KEYWORD_ONLY for e in usual if e.name in needed)
        else ()
    )
    optional = mask and next(e for e in usual if e.name == mask).default is not inspect._empty
    for first in (False, True):
        if not mask or optional:
            yield Way(given, first=first)
        if flag and causal:
            yield Way(given, flag, "flag", first=first)
        if mask and (causal or not optional):
            yield from (Way(given, mask, kind, shape, first) for kind in KINDS for shape in SHAPES)
