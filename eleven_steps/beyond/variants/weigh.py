"""Steps 7 and 10: how much of what a head found goes on."""

from dataclasses import dataclass

import torch
from torch import nn

from eleven_steps.beyond.variants.module import Call, Part


@dataclass(frozen=True)
class Sinks(Part):
    """Give each head a learned score to spend weight on without a value: step 7.

    The weights of a row then sum to less than 1: a head may say little.

    Source: gpt-oss (2025), model card, section 2.2; "Efficient Streaming Language Models with
    Attention Sinks" (2023) on why heads want one.
    """

    def learn(self, mha):  # noqa: D102
        mha.sinks = nn.Parameter(torch.zeros(mha.num_heads))

    def softmax(self, call: Call, scaled):
        """Let the sink take part in each row's softmax, and drop its weight."""
        sinks = call.mha.sinks.view(-1, 1, 1).expand(*scaled.shape[:-1], 1)
        return torch.softmax(torch.cat([scaled, sinks], dim=-1), dim=-1)[..., :-1]


@dataclass(frozen=True)
class Gate(Part):
    """Let each token weigh, from 0 to 1, every feature that its heads bring: step 10.

    Source: "Gated Attention for Large Language Models: Non-linearity, Sparsity, and
    Attention-Sink-Free" (2025), as in Qwen3-Next (2025).
    """

    turn = 1  # after a norm of what the heads bring

    def learn(self, mha):  # noqa: D102
        mha.W_gate = nn.Linear(mha.d_in, mha.d_out, bias=mha.W_query.bias is not None)

    def combine(self, call: Call, context):
        """Multiply context (b, num_tokens, d_out) by the gate."""
        return (context * torch.sigmoid(call.mha.W_gate(call.x)),)
