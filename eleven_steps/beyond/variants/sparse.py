"""Sparse attention: each query attends to the keys that an indexer rates highest (step 6)."""

from dataclasses import dataclass

import torch
from torch import nn

from eleven_steps.beyond.variants.gqa import check_divisor
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


@dataclass(frozen=True)
class TopBlocks(TopKeys):
    """Show each query `size` blocks of neighbouring keys, and hide all others: step 6.

    A block's rate is the best product of the indexer's query with a key in it. Each head of the
    indexer chooses for a group of heads. The query's own block, and the local - 1 before it, are
    among the chosen.

    Args:
        size, index_heads, index_dim, rope: as in TopKeys, but size counts blocks.
        block: keys in a block.
        local: blocks that are always seen, the query's own first.

    Raises:
        ValueError: index_heads do not divide num_heads.

    Source: MiniMax-M3 (2026), as transformers' MiniMaxM3VLIndexer.
    """

    block: int = 128
    local: int = 1

    def check(self, mha):  # noqa: D102
        check_divisor(mha, "index_heads", self.index_heads)

    def learn(self, mha):  # noqa: D102
        mha.W_index_query = nn.Linear(mha.d_in, self.index_heads * self.index_dim, bias=False)
        mha.W_index_key = nn.Linear(mha.d_in, self.index_dim, bias=False)
        mha.index_query_norm = nn.RMSNorm(self.index_dim, eps=1e-6)
        mha.index_norm = nn.RMSNorm(self.index_dim, eps=1e-6)

    def index_queries(self, call: Call) -> torch.Tensor:
        """Return the indexer's normalised queries, (b, index_heads, num_tokens, index_dim)."""
        return call.mha.index_query_norm(super().index_queries(call))

    def mask(self, call: Call, hidden):
        """Hide the blocks that a group of heads has not chosen: (b, num_heads, tokens, keys)."""
        num_tokens, num_keys = hidden.shape[-2:]
        queries, keys = self.index_vectors(call)
        rates = (queries @ keys.transpose(2, 3)).masked_fill(hidden, -torch.inf)
        rates = nn.functional.pad(rates, (0, -num_keys % self.block), value=-torch.inf)
        rates = rates.unflatten(-1, (-1, self.block)).amax(dim=-1)  # one rate for each block
        blocks = torch.arange(rates.shape[-1], device=rates.device)
        own = torch.arange(call.end - num_tokens, call.end, device=rates.device) // self.block
        back = own[:, None] - blocks  # (num_tokens, blocks)
        rates = rates.masked_fill((back >= 0) & (back < self.local), torch.inf)
        best = rates.topk(min(self.size, rates.shape[-1]), dim=-1).indices
        left = torch.ones_like(rates, dtype=torch.bool).scatter(-1, best, False)
        left = left.repeat_interleave(self.block, dim=-1)[..., :num_keys]
        group = call.mha.num_heads // self.index_heads
        return (hidden | left.repeat_interleave(group, dim=1),)
