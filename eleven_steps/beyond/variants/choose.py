"""Step 6, decided by the numbers themselves: each query looks at the keys that fit it best."""

from dataclasses import dataclass

import torch
from torch import nn

from eleven_steps.beyond.variants.module import Call, Part
from eleven_steps.beyond.variants.project import OtherSequence
from eleven_steps.beyond.variants.turn import Rope
from helpers.attention import check_sizes


@dataclass(frozen=True)
class TopKeys(Part):
    """Let a small indexer rate all keys, and hide all but the size best of each query: step 6.

    The indexer has queries of its own heads and one key for each token. A key's rate is the sum
    over those heads of a weight, made from x, times the product of query and key, if above 0.

    Args:
        size: how many keys a query may see at most.
        index_heads, index_dim: heads of the indexer, and the features of each.
        rope: turns the indexer's queries and keys, if given.

    Raises:
        TypeError, ValueError: a size is no positive int, or keys come from another sequence.

    Source: sparse attention with a "lightning indexer", DSA, of DeepSeek-V3.2 (2025), section 2.1,
    as in transformers' DeepseekV32Indexer.
    """

    size: int
    index_heads: int
    index_dim: int
    rope: Rope | None = None
    turn = 3  # among what window and padding have left

    def check(self, mha):  # noqa: D102
        check_sizes(size=self.size, index_heads=self.index_heads, index_dim=self.index_dim)
        if mha.part(OtherSequence):
            raise ValueError(
                "TopKeys rates tokens of x: no TopKeys is expected beside OtherSequence"
            )

    def learn(self, mha):  # noqa: D102
        width = mha.W_query.out_features if hasattr(mha, "W_query_up") else mha.d_in
        mha.W_index_query = nn.Linear(width, self.index_heads * self.index_dim, bias=False)
        mha.W_index_key = nn.Linear(mha.d_in, self.index_dim, bias=False)
        mha.W_index_weight = nn.Linear(mha.d_in, self.index_heads, bias=False)
        mha.index_norm = nn.LayerNorm(self.index_dim, eps=1e-6)

    def mask(self, call: Call, hidden):
        """Hide all but the size best of the keys that are seen: (b, 1, num_tokens, num_keys)."""
        queries, keys = index_vectors(self, call)
        products = torch.relu(queries @ keys.transpose(2, 3))
        weights = call.mha.W_index_weight(call.x).transpose(1, 2).unsqueeze(-1)
        rates = (weights * products).sum(dim=1, keepdim=True).masked_fill(hidden, -torch.inf)
        best = rates.topk(min(self.size, rates.shape[-1]), dim=-1).indices
        return (hidden | torch.ones_like(rates, dtype=torch.bool).scatter(-1, best, False),)


def index_vectors(part: TopKeys, call: Call) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the indexer's queries of x, and the one key of each token that was read so far.

    (b, index_heads, num_tokens, index_dim) and (b, 1, num_keys, index_dim).
    """
    mha, source = call.mha, call.x
    if hasattr(mha, "W_query_up"):
        source = mha.query_latent_norm(mha.W_query(call.x))
    queries = mha.W_index_query(source).unflatten(-1, (part.index_heads, -1)).transpose(1, 2)
    keys = mha.index_norm(mha.W_index_key(call.x)).unsqueeze(1)
    if part.rope:
        queries, keys = part.rope.turned(queries, call.end), part.rope.turned(keys, call.end)
    (keys,) = call.change("index_keys", keys)
    return queries, keys
