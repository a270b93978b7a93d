"""Differential attention: each head minus a share of its partner (steps 4 and 8)."""

import math
from dataclasses import dataclass

import torch
from torch import nn

from eleven_steps.beyond.variants.module import Call, Part


@dataclass(frozen=True)
class Differential(Part):
    """Subtract from each head a learned share of its partner head: steps 4 and 8.

    Head i has head i + num_heads / 2 as its partner. Both attend to the values of both, twice as
    wide. What the two contexts have in common counts as noise, and is subtracted.

    Args:
        layer: the layer's number, from 0: before training, later layers subtract more.

    Source: "Differential Transformer" (2024), as transformers' DiffLlamaAttention.
    """

    layer: int = 0
    order = 5  # after groups have repeated heads

    def check(self, mha):  # noqa: D102
        if mha.num_heads % 2 or mha.num_kv_heads % 2:
            raise ValueError(
                f"num_heads is {mha.num_heads}, with {mha.num_kv_heads} of keys: two even numbers "
                f"are expected, since each head has a partner"
            )

    @property
    def start(self) -> float:
        """Return the share before training."""
        return 0.8 - 0.6 * math.exp(-0.3 * self.layer)

    def learn(self, mha):  # noqa: D102
        mha.shares = nn.Parameter(0.1 * torch.randn(4, mha.head_dim))

    def transpose(self, call: Call, queries, keys, values):
        """Give each head the values of both heads of its pair.

        The values become (b, num_heads, num_keys, 2 head_dim).
        """
        both = torch.cat(values.chunk(2, dim=1), dim=-1)  # (b, num_heads / 2, num_keys, 2 head_dim)
        return queries, keys, both.repeat(1, 2, 1, 1)

    def context(self, call: Call, context):
        """Subtract, and normalise: (b, num_heads / 2, num_tokens, 2 head_dim)."""
        found, alike = context.chunk(2, dim=1)
        first, second = call.mha.shares.unflatten(0, (2, 2)).prod(dim=1).sum(dim=-1).exp()
        left = found - (first - second + self.start) * alike
        return ((1 - self.start) * nn.functional.rms_norm(left, left.shape[-1:], eps=1e-5),)
