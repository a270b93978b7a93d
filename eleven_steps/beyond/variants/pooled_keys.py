"""Pooled keys: several tokens share one key (steps 2, 4, 6 and 10)."""

from dataclasses import dataclass

import torch
from torch import nn

from eleven_steps.beyond.variants.gqa import check_divisor
from eleven_steps.beyond.variants.module import Call, Part
from eleven_steps.beyond.variants.rope import Rope
from eleven_steps.beyond.variants.sparse import Indexer


@dataclass(frozen=True)
class Pool(Part):
    """Append one pooled key, which is also its value, for each `size` tokens: steps 4 and 6.

    Each feature of a pooled key is a mean over its tokens, weighted by a softmax along the tokens.
    A query sees it once all its tokens are read. Models usually add a window: near tokens are seen
    one by one, distant tokens in pools.

    Args:
        size: how many tokens become one key; an incomplete pool at the end is not used.
        overlap: whether a pool also draws on the size tokens before its own.

    Source: compressed keys of DeepSeek-V4 (2026), as transformers' DeepseekV4HCACompressor, and
    with overlap DeepseekV4CSACompressor.
    """

    size: int
    overlap: bool = False
    order = 3  # after rotation, before groups repeat heads
    reason = "needs all of x at once"
    excludes = "Cache Padding OtherSequence Full Alibi Linear TopKeys"

    def learn(self, mha):  # noqa: D102
        pooling(mha, "pool", self.size, mha.head_dim, self.overlap)

    def transpose(self, call: Call, queries, keys, values):
        """Append pools, rotated to their first positions, to (b, heads, keys, head_dim)."""
        pools = pooled(call, "pool", self.size, self.overlap).unsqueeze(1)
        if rope := call.mha.part(Rope):
            places = self.size * torch.arange(pools.shape[2], device=pools.device)
            pools = rope.rotated_to(pools, places)
        pools = pools.expand(-1, keys.shape[1], -1, -1)
        return queries, torch.cat([keys, pools], dim=2), torch.cat([values, pools], dim=2)

    def mask(self, call: Call, hidden):
        """Hide pools that are not complete: (..., num_tokens, num_keys + pools)."""
        read = torch.arange(1, call.end + 1, device=hidden.device)[-hidden.shape[-2] :]
        pools = torch.arange(call.end // self.size, device=hidden.device)
        waiting = pools >= (read // self.size)[:, None]  # (num_tokens, pools)
        return (torch.cat([hidden, waiting.expand(*hidden.shape[:-1], -1)], dim=-1),)


def pooling(mha, name: str, size: int, width: int, overlap: bool) -> None:
    """Add to mha the layers that pool `size` tokens into `width` features."""
    wide = width * (2 if overlap else 1)
    setattr(mha, f"W_{name}", nn.Linear(mha.d_in, wide, bias=False))
    setattr(mha, f"W_{name}_gate", nn.Linear(mha.d_in, wide, bias=False))
    setattr(mha, f"{name}_bias", nn.Parameter(torch.zeros(size, wide)))
    setattr(mha, f"{name}_norm", nn.RMSNorm(width, eps=1e-6))


def pooled(call: Call, name: str, size: int, overlap: bool) -> torch.Tensor:
    """Return the pools of x, (b, pools, width), normalised and not rotated."""
    whole = call.x[:, : call.x.shape[1] // size * size]
    offered, rates = (
        getattr(call.mha, layer)(whole).unflatten(1, (-1, size))  # (b, pools, size, width)
        for layer in (f"W_{name}", f"W_{name}_gate")
    )
    rates = rates + getattr(call.mha, f"{name}_bias")
    if overlap:  # half of the features belong to the next pool
        offered, rates = (
            torch.cat([nn.functional.pad(before, (0, 0, 0, 0, 1, -1), value=fill), own], dim=2)
            for (before, own), fill in (
                (offered.chunk(2, -1), 0.0),
                (rates.chunk(2, -1), -torch.inf),
            )
        )
    weights = torch.softmax(rates, dim=2)
    return getattr(call.mha, f"{name}_norm")((weights * offered).sum(dim=2))


@dataclass(frozen=True)
class TopPools(Indexer):
    """Show each query only the `size` pools that an indexer rates highest: step 6.

    Args: as in Indexer.

    Source: DeepSeek-V4 (2026), as transformers' DeepseekV4Indexer.
    """

    order = 4  # after Pool has appended its columns
    reason, needs = "chooses among pools", "Pool"

    def learn(self, mha):  # noqa: D102
        super().learn(mha)
        pool = mha.part(Pool)
        pooling(mha, "index_pool", pool.size, self.index_dim, pool.overlap)

    def index_vectors(self, call: Call) -> tuple[torch.Tensor, torch.Tensor]:
        """Return index_queries, rotated, and pools (b, 1, pools, index_dim)."""
        pool, rope, queries = call.mha.part(Pool), call.mha.part(Rope), self.index_queries(call)
        keys = pooled(call, "index_pool", pool.size, pool.overlap).unsqueeze(1)
        if rope:
            places = pool.size * torch.arange(keys.shape[2], device=keys.device)
            queries, keys = rope.rotated(queries, call.end), rope.rotated_to(keys, places)
        return queries, keys

    def mask(self, call: Call, hidden):
        """Hide all visible pools but the best `size`: (b, 1, num_tokens, ...)."""
        tokens, waiting = hidden.tensor_split([call.end], dim=-1)
        (left,) = super().mask(call, waiting)
        return (torch.cat([tokens.expand(*left.shape[:-1], -1), left], dim=-1),)


@dataclass(frozen=True)
class GroupedOut(Part):
    """Replace out_proj by two smaller layers, the first for each group of heads: step 10.

    Args:
        groups: how many groups the heads form, neighbours together.
        rank: features that each group passes on.

    Source: DeepSeek-V4 (2026), as transformers' DeepseekV4GroupedLinear.
    """

    groups: int
    rank: int
    order = 2

    def check(self, mha):  # noqa: D102
        check_divisor(mha, "groups", self.groups)

    def learn(self, mha):  # noqa: D102
        width, out = mha.d_out // self.groups, mha.out_proj
        mha.W_groups = nn.Parameter(torch.randn(self.groups, self.rank, width) / width**0.5)
        bias = out.bias is not None
        mha.out_proj = nn.Linear(self.groups * self.rank, out.out_features, bias=bias)

    def combine(self, call: Call, context):
        """Project the features of each group to `rank`: (b, num_tokens, groups * rank)."""
        by_group = context.unflatten(-1, (self.groups, -1)).unsqueeze(-1)
        return ((call.mha.W_groups @ by_group).flatten(2),)
