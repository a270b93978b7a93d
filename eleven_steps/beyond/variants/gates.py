"""Gated attention: a share of each feature of the context goes on to out_proj (step 10)."""

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
