"""The right class of a change since the lecture, built and called as a learner's class is."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from helpers.attention import record_nothing

# The parts that the module is built with, from what a constructor gets besides.
BUILT: dict[str, Callable[..., list[Any]]] = {
    "gqa": lambda room, num_kv_heads: [room.GroupedHeads(num_kv_heads)],
    "norm": lambda room: [room.Norm()],
    "rope": lambda room: [room.Rope()],
    "alibi": lambda room, slopes: [room.Alibi()],
    "cap": lambda room, limit: [room.Cap(limit)],
    "window": lambda room, window: [room.Window(window)],
    "padding": lambda room: [],
    "other": lambda room: [],
    "sinks": lambda room: [room.Sinks()],
    "gate": lambda room: [room.Gate()],
    "latent": lambda room, latent_dim, rope_dim: [
        room.Latent(latent_dim, rope_dim),
        room.Rope(width=rope_dim),
    ],
    "cache": lambda room: [room.Rope()],
}


def fitted(names: dict[str, Any], variant: str) -> type:
    """Make the class of a variant that is called as contract.called calls a learner's.

    Args:
        names: what eleven_steps.beyond.variants holds, or an edited copy of it.
        variant: which change.
    """
    room = SimpleNamespace(**names)

    class Fitted(room.VariantAttention):
        def __init__(self, d_in, d_out, context_length, dropout, heads, qkv_bias=False, **sizes):
            parts = BUILT[variant](room, **sizes)
            super().__init__(d_in, d_out, context_length, dropout, heads, qkv_bias, parts)

        def forward(self, x, given=None, record=record_nothing):
            kind = {"padding": room.Padding, "other": room.OtherSequence}.get(variant)
            if variant == "cache":
                cache = given or room.Cache()
                return room.VariantAttention.forward(self.plus(cache), x, record), cache
            twin = self.plus(kind(given)) if kind else self
            return room.VariantAttention.forward(twin, x, record)

    return Fitted
