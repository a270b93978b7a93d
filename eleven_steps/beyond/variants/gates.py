"""Gates: how much of each feature, or of each head, goes on to out_proj (step 10)."""

from dataclasses import dataclass

import torch
from torch import nn

from eleven_steps.beyond.variants.module import Call, Part


@dataclass(frozen=True)
class Gate(Part):
    """Multiply every feature of a token's context by a gate from 0 to 1: step 10.

    Source: "Gated Attention for Large Language Models: Non-linearity, Sparsity, and
    Attention-Sink-Free" (2025), as in Qwen3-Next (2025).
    """

    order = 1  # after a norm of the context

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
