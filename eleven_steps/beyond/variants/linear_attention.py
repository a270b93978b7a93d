"""Linear attention: without a softmax, (Q K^T) V = Q (K^T V), so that no cache has to grow."""

from dataclasses import dataclass, field

import torch
from torch import nn

from eleven_steps.beyond.variants.alibi import distances
from eleven_steps.beyond.variants.module import Call, Part


@dataclass(frozen=True)
class Linear(Part):
    """Use the scores themselves as weights, without softmax and scale: steps 4, 7 and 10.

    Instead of the softmax, SiLU on queries, keys and values and a norm of the context keep numbers
    bounded. Weights decay with the distance.

    Args:
        decays: one number for each head: a weight is multiplied by exp(-decay * distance). ALiBi
            subtracts the same from a score, before the softmax.

    Source: "Transformers are RNNs" (2020); SiLU, norm and decay as in the lightning attention of
    MiniMax-01 (2025), transformers' MiniMaxLightningAttention.
    """

    decays: tuple[float, ...]

    def check(self, mha):  # noqa: D102
        if len(self.decays) != mha.num_heads:
            raise ValueError(f"{len(self.decays)} decays: one for each of {mha.num_heads} heads")

    def learn(self, mha):  # noqa: D102
        mha.context_norm = nn.RMSNorm(mha.d_out, eps=1e-6)

    def transpose(self, call: Call, queries, keys, values):
        """Apply SiLU to each feature of all three, (b, num_heads, num_tokens, head_dim)."""
        return tuple(map(nn.functional.silu, (queries, keys, values)))

    def softmax(self, call: Call, scaled):
        """Return scores (..., num_tokens, num_keys) as weights, which decay with distance."""
        scores = scaled.masked_fill(scaled == -torch.inf, 0) * call.mha.key_dim**0.5
        back = distances(*scores.shape[-2:], scores.device).clamp(min=0)
        return scores * decay(self, scores, back)

    def combine(self, call: Call, context):
        """Normalise the context of all heads together, (b, num_tokens, d_out)."""
        return (call.mha.context_norm(context),)


@dataclass(eq=False)
class State(Part):
    """Cache one table for each head instead of keys and values: the sum of key times value.

    x holds the new tokens, which attend to each other as usual; the table replaces all tokens
    before them. A new sequence needs a new State.
    """

    # (b, num_heads, head_dim, head_dim), whatever the number of tokens
    kept: torch.Tensor | None = field(default=None, init=False, repr=False)
    past: int = field(default=0, init=False)  # tokens read so far
    order = 9  # last, so that the table gets the final keys and values
    reason, needs = "stores one sum over all tokens", "Linear"
    excludes = "Cache Alibi Window Padding"

    def transpose(self, call: Call, queries, keys, values):
        """Store the tensors that step 8 needs: (b, num_heads, num_tokens, head_dim) each."""
        self.new = queries, keys, values
        return queries, keys, values

    def mask(self, call: Call, hidden):
        """Remove the columns of old tokens from (num_tokens, num_keys); they have no keys."""
        return (hidden[..., self.past :],)

    def context(self, call: Call, context):
        """Add the table's part to context (b, num_heads, tokens, head_dim); update the table."""
        queries, keys, values = self.new
        count = torch.arange(1, call.x.shape[1] + 1, device=context.device)[:, None]
        fade = [decay(call.mha.part(Linear), keys, n) for n in (count, count[-1:] - count)]
        new = (keys * fade[1]).transpose(2, 3) @ values
        old = torch.zeros_like(new) if self.kept is None else self.kept
        self.kept, self.past = old * fade[0][..., -1:, :] + new, call.end
        return (context + (queries * fade[0]) @ old,)


def decay(part: Linear, like: torch.Tensor, distance: torch.Tensor) -> torch.Tensor:
    """Return exp(-price * distance) for each head, (num_heads, *distance.shape)."""
    prices = torch.tensor(part.decays, dtype=like.dtype, device=like.device)
    return torch.exp(-prices[:, None, None] * distance)
