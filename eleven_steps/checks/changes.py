"""Build the right class of each newer change that notebook 19 has an exercise about."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from eleven_steps.beyond import variants
from eleven_steps.checks.asking.cases import Case
from eleven_steps.helpers.attention import record_nothing

# The parts that a module is built with, from a room that holds the variants and a number of heads.
# Padding and a cache come with each call.
PARTS: dict[str, Callable[[Any, int], list[Any]]] = {
    "gqa": lambda room, heads: [room.GroupedHeads(num_kv_heads(heads))],
    "norm": lambda room, heads: [room.Norm()],
    "rope": lambda room, heads: [room.Rope(first=True)],
    "alibi": lambda room, heads: [room.Alibi()],
    "cap": lambda room, heads: [room.Cap(2 / heads)],
    "window": lambda room, heads: [room.Window(3)],
    "padding": lambda room, heads: [],
    "topk": lambda room, heads: [room.TopKeys(3, 16, 8)],
    "sinks": lambda room, heads: [room.Sinks()],
    "gate": lambda room, heads: [room.Gate()],
    "cache": lambda room, heads: [room.Rope(first=True)],
    "linear": lambda room, heads: [room.Linear(tuple(variants.alibi_slopes(heads).tolist()))],
}


def num_kv_heads(num_heads: int) -> int:
    """Return the number of key heads: half of num_heads, or the largest divisor below."""
    return max((n for n in range(1, num_heads // 2 + 1) if num_heads % n == 0), default=1)


def sizes_of(case: Case) -> dict[str, Any]:
    """Return the numbers of a case's change, by name."""
    return {"limit": 2 / case.num_heads, "decays": variants.alibi_slopes(case.num_heads)}


def is_padding(b: int, num_tokens: int) -> torch.Tensor:
    """Mark the padding (b, num_tokens): where the first sequence begins, where the last ends."""
    filled = torch.zeros(b, num_tokens, dtype=torch.bool)
    many = max(num_tokens // 3, 1) if num_tokens > 1 else 0
    filled[0, :many] = True
    if b > 1:
        filled[-1, num_tokens - many :] = True
    return filled


def changed_class(change: str, room: Any = variants) -> type[variants.VariantAttention]:
    """Make the class of a change, with the lecture's constructor.

    Its forward takes x; with "padding" also is_padding (b, num_tokens); with "cache" also past, and
    it then returns the output and the past of the next call.

    Args:
        change: a name in PARTS.
        room: what holds the variants: the module, or a namespace with an edited copy.
    """

    class Changed(room.VariantAttention):
        def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
            sizes = d_in, d_out, context_length, dropout, num_heads, qkv_bias
            super().__init__(*sizes, parts=PARTS[change](room, num_heads))

        def forward(self, x, record=record_nothing, is_padding=None, past=None):
            forward = room.VariantAttention.forward
            if change == "padding":
                return forward(self.plus(room.Padding(is_padding)), x, record)
            if change != "cache":
                return forward(self, x, record)
            past = past or room.Cache()
            return forward(self.plus(past), x, record), past

    return Changed


def call_changed(module: nn.Module, case: Case, record: Callable[..., None]) -> torch.Tensor:
    """Call a module of a case's change with the case's x; with a cache, in three pieces."""
    x = case.x
    if case.change == "padding":
        return module(x, record, is_padding=is_padding(*x.shape[:2]))
    if case.change != "cache":
        return module(x, record)
    half, outs, past = x.shape[1] // 2, [], None
    for piece in x.split([n for n in (half, 1, x.shape[1] - half - 1) if n], dim=1):
        out, past = module(piece, record, past=past)
        outs.append(out)
    return torch.cat(outs, dim=1)


def namespace_of(names: dict[str, Any]) -> SimpleNamespace:
    """Return the names that an edited copy of the variants defines."""
    return SimpleNamespace(**names)
