"""Sparse attention: each query attends to the keys that an indexer rates highest (step 6)."""

from dataclasses import dataclass

import torch
from torch import nn

from eleven_steps.beyond.variants.module import Call, Part
from eleven_steps.beyond.variants.rope import Rope


@dataclass(frozen=True)
class Indexer(Part):
    """Hide all keys of a query but the `size` keys that a small indexer rates highest: step 6.

    The indexer has queries of its own heads and one key for each token, or for several. A key's
    rate is the sum over those heads of relu(query @ key) times a weight that is made from x.

    Args:
        size: how many keys a query may see at most.
        index_heads, index_dim: heads of the indexer, and the features of each.

    Source: sparse attention with a "lightning indexer", DSA, of DeepSeek-V3.2 (2025), section 2.1,
    as in transformers' DeepseekV32Indexer.
    """

    size: int
    index_heads: int
    index_dim: int
    reason, excludes = "rates tokens of x", "OtherSequence"

    def learn(self, mha):  # noqa: D102
        width = mha.W_query.out_features if hasattr(mha, "W_query_up") else mha.d_in
        mha.W_index_query = nn.Linear(width, self.index_heads * self.index_dim, bias=False)
        mha.W_index_weight = nn.Linear(mha.d_in, self.index_heads, bias=False)

    def mask(self, call: Call, hidden):
        """Hide all visible keys but the best `size`: (b, 1, num_tokens, num_keys)."""
        queries, keys = self.index_vectors(call)
        products = torch.relu(queries @ keys.transpose(2, 3))
        weights = call.mha.W_index_weight(call.x).transpose(1, 2).unsqueeze(-1)
        rates = (weights * products).sum(dim=1, keepdim=True).masked_fill(hidden, -torch.inf)
        best = rates.topk(min(self.size, rates.shape[-1]), dim=-1).indices
        return (hidden | torch.ones_like(rates, dtype=torch.bool).scatter(-1, best, False),)

    def index_queries(self, call: Call) -> torch.Tensor:
        """Return the indexer's queries of x, (b, index_heads, num_tokens, index_dim)."""
        mha, source = call.mha, call.x
        if hasattr(mha, "W_query_up"):
            source = mha.query_latent_norm(mha.W_query(call.x))
        return mha.W_index_query(source).unflatten(-1, (self.index_heads, -1)).transpose(1, 2)


@dataclass(frozen=True)
class TopKeys(Indexer):
    """Rate every token, and show each query the tokens with the highest rates: step 6.

    Args:
        size, index_heads, index_dim: as in Indexer.
        rope: rotates the indexer's queries and keys, if given.
    """

    rope: Rope | None = None
    order = 3  # after window and padding, so that only visible keys are rated

    def learn(self, mha):  # noqa: D102
        super().learn(mha)
        mha.W_index_key = nn.Linear(mha.d_in, self.index_dim, bias=False)
        mha.index_norm = nn.LayerNorm(self.index_dim, eps=1e-6)

    def index_vectors(self, call: Call) -> tuple[torch.Tensor, torch.Tensor]:
        """Return index_queries, and one key for each token so far, (b, 1, num_keys, index_dim)."""
        queries = self.index_queries(call)
        keys = call.mha.index_norm(call.mha.W_index_key(call.x)).unsqueeze(1)
        if self.rope:
            queries, keys = self.rope.rotated(queries, call.end), self.rope.rotated(keys, call.end)
        (keys,) = call.change("index_keys", keys)
        return queries, keys
