"""Changes of what enters the softmax: caps, temperatures, no scale, sinks (steps 4, 5 and 7)."""

from dataclasses import dataclass

import torch
from torch import nn

from eleven_steps.beyond.variants.module import Call, Part


@dataclass(frozen=True)
class Cap(Part):
    """Cap scores softly, so that none exceeds a limit: step 5.

    Args:
        limit: the largest scaled score. Step 7 has yet to divide by sqrt(head_dim), so the scores
            of step 5 are held below limit * sqrt(head_dim).

    Source: Gemma 2 (2024), section 2, "logit soft-capping", with limit 50.
    """

    limit: float = 50.0

    def check(self, mha):  # noqa: D102
        if not self.limit > 0:
            raise ValueError(f"limit is {self.limit}: a positive number is expected")

    def scores(self, call: Call, scores):
        """Cap scores (b, num_heads, num_tokens, num_keys) with a tanh."""
        limit = self.limit * call.mha.key_dim**0.5
        return (limit * torch.tanh(scores / limit),)


@dataclass(frozen=True)
class Temperature(Part):
    """Scale queries up every `floor` tokens, so that weights stay sharp: step 4.

    Without it, weights become flatter as more keys share them. Layers without RoPE use it.

    Args:
        scale, floor: queries grow by 1 + scale * log(1 + (tokens read) // floor).

    Source: Llama 4 (2025), as transformers' Llama4TextAttention; "Scalable-Softmax Is Superior for
    Attention" (2025).
    """

    scale: float = 0.1
    floor: int = 8192
    order = 2

    def transpose(self, call: Call, queries, keys, values):
        """Scale queries (b, num_heads, num_tokens, key_dim) by their position."""
        read = torch.arange(call.end - queries.shape[2] + 1, call.end + 1, device=queries.device)
        stretch = 1 + self.scale * torch.log1p((read // self.floor).to(queries.dtype))
        return queries * stretch[:, None], keys, values


@dataclass(frozen=True)
class Unscaled(Part):
    """Leave out the division by sqrt(head_dim) in step 7, where norms keep queries and keys short.

    Source: Gemma 4 (2026), as transformers' Gemma4TextAttention.
    """

    def scaled(self, call: Call, scaled):
        """Undo the division of scores (b, num_heads, num_tokens, num_keys)."""
        return (scaled * call.mha.key_dim**0.5,)


@dataclass(frozen=True)
class Sinks(Part):
    """Give each head a learned score that takes weight but has no value: step 7.

    The weights of a row then sum to less than 1, so a head may contribute little.

    Source: gpt-oss (2025), model card, section 2.2; "Efficient Streaming Language Models with
    Attention Sinks" (2023) explains why heads need one.
    """

    def learn(self, mha):  # noqa: D102
        mha.sinks = nn.Parameter(torch.zeros(mha.num_heads))

    def softmax(self, call: Call, scaled):
        """Add a sink to the softmax of rows (b, num_heads, num_tokens, num_keys), and drop it."""
        sinks = call.mha.sinks.view(-1, 1, 1).expand(*scaled.shape[:-1], 1)
        return torch.softmax(torch.cat([scaled, sinks], dim=-1), dim=-1)[..., :-1]
