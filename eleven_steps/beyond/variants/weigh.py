"""Sinks, gates and differential attention: how much each head contributes."""

import math
from dataclasses import dataclass

import torch
from torch import nn

from eleven_steps.beyond.variants.module import Call, Part


@dataclass(frozen=True)
class Sinks(Part):
    """Give each head a learned score that takes weight but has no value: step 7.

    The weights of a row then sum to less than 1: a head may say little.

    Source: gpt-oss (2025), model card, section 2.2; "Efficient Streaming Language Models with
    Attention Sinks" (2023) on why heads want one.
    """

    def learn(self, mha):  # noqa: D102
        mha.sinks = nn.Parameter(torch.zeros(mha.num_heads))

    def softmax(self, call: Call, scaled):
        """Add a sink to the softmax of rows (b, num_heads, num_tokens, num_keys), and drop it."""
        sinks = call.mha.sinks.view(-1, 1, 1).expand(*scaled.shape[:-1], 1)
        return torch.softmax(torch.cat([scaled, sinks], dim=-1), dim=-1)[..., :-1]


@dataclass(frozen=True)
class Gate(Part):
    """Multiply every feature of a token's context by a gate from 0 to 1: step 10.

    Source: "Gated Attention for Large Language Models: Non-linearity, Sparsity, and
    Attention-Sink-Free" (2025), as in Qwen3-Next (2025).
    """

    turn = 1  # after a norm of the context

    def learn(self, mha):  # noqa: D102
        mha.W_gate = nn.Linear(mha.d_in, mha.d_out, bias=mha.W_query.bias is not None)

    def combine(self, call: Call, context):
        """Multiply context (b, num_tokens, d_out) by the gate."""
        return (context * torch.sigmoid(call.mha.W_gate(call.x)),)


@dataclass(frozen=True)
class HeadGate(Gate):
    """Multiply each head of a token's context by one gate from 0 to 1: step 10.

    Source: the same paper, as in Ling 3 (2026).
    """

    def learn(self, mha):  # noqa: D102
        mha.W_gate = nn.Linear(mha.d_in, mha.num_heads, bias=mha.W_query.bias is not None)

    def combine(self, call: Call, context):
        """Multiply context (b, num_tokens, d_out), head by head, by the gate."""
        heads = context.unflatten(-1, (call.mha.num_heads, -1)).movedim(-1, 0)  # head_dim first
        return (super().combine(call, heads)[0].movedim(0, -1).flatten(-2),)


@dataclass(frozen=True)
class Unscaled(Part):
    """Leave out the division of step 7; norms keep queries and keys short instead.

    Source: Gemma 4 (2026), as transformers' Gemma4TextAttention.
    """

    def scaled(self, call: Call, scaled):
        """Undo the division of scores (b, num_heads, num_tokens, num_keys)."""
        return (scaled * call.mha.key_dim**0.5,)


@dataclass(frozen=True)
class Differential(Part):
    """Subtract from each head a learned share of its partner head: steps 4 and 8.

    Head i has head i + num_heads / 2 as its partner. Both mix the same values, those of both, twice
    as wide; what the two find alike is noise, and goes.

    Args:
        layer: the layer's number from 0 on: later layers take away more from the start.

    Raises:
        ValueError: num_heads is odd, or heads share keys so that partners have the same.

    Source: "Differential Transformer" (2024), as transformers' DiffLlamaAttention.
    """

    layer: int = 0
    turn = 5  # after groups have repeated heads

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
        """Return the values of both partners for each: (b, num_heads, num_keys, 2 head_dim)."""
        both = torch.cat(values.chunk(2, dim=1), dim=-1)  # (b, num_heads / 2, num_keys, 2 head_dim)
        return queries, keys, both.repeat(1, 2, 1, 1)

    def context(self, call: Call, context):
        """Subtract, and normalise: (b, num_heads / 2, num_tokens, 2 head_dim)."""
        found, alike = context.chunk(2, dim=1)
        first, second = call.mha.shares.unflatten(0, (2, 2)).prod(dim=1).sum(dim=-1).exp()
        left = found - (first - second + self.start) * alike
        return ((1 - self.start) * nn.functional.rms_norm(left, left.shape[-1:], eps=1e-5),)
