"""Steps 2, 4 and 6 along the axis of tokens: several keys become one."""

from dataclasses import dataclass

import torch
from torch import nn

from eleven_steps.beyond.variants.choose import TopBlocks, TopKeys
from eleven_steps.beyond.variants.keep import Cache
from eleven_steps.beyond.variants.linear import Linear
from eleven_steps.beyond.variants.look import Alibi, Full, Padding
from eleven_steps.beyond.variants.module import Call, Part
from eleven_steps.beyond.variants.project import OtherSequence
from eleven_steps.beyond.variants.turn import Rope
from eleven_steps.helpers.attention import check_sizes


@dataclass(frozen=True)
class Pool(Part):
    """Put one key for each size tokens behind the keys, which is its own value: steps 4 and 6.

    Feature by feature, a pooled key is a mean of what its tokens offer, weighed by a softmax along
    the tokens. It is seen once all its tokens are read. Beside it stands a window, as a rule: what
    is near is seen token by token, what is far in summaries.

    Args:
        size: how many tokens become one key; those that are left over at the end wait.
        overlap: whether a pool also draws on the size tokens before its own.

    Raises:
        TypeError, ValueError: size is no positive int, or a part beside it brings or keeps other
            keys, or counts tokens where pools stand.

    Source: compressed keys of DeepSeek-V4 (2026), as transformers' DeepseekV4HCACompressor, and
    with overlap DeepseekV4CSACompressor.
    """

    size: int
    overlap: bool = False
    turn = 3  # after queries and keys are turned, before groups share
    fused = False

    def check(self, mha):  # noqa: D102
        check_sizes(pool=self.size)
        for kind in (Cache, Padding, OtherSequence, Full, Alibi, Linear, TopKeys, TopBlocks):
            if mha.part(kind):
                raise ValueError(f"Pool needs all of x at once: no {kind.__name__} is expected")

    def learn(self, mha):  # noqa: D102
        pooling(mha, "pool", self.size, mha.head_dim, self.overlap)

    def transpose(self, call: Call, queries, keys, values):
        """Put pools, turned to their first tokens' places, behind (b, heads, keys, head_dim)."""
        pools = pooled(call, "pool", self.size, self.overlap).unsqueeze(1)
        if rope := call.mha.part(Rope):
            places = self.size * torch.arange(pools.shape[2], device=pools.device)
            pools = rope.turned_to(pools, places)
        pools = pools.expand(-1, keys.shape[1], -1, -1)
        return queries, torch.cat([keys, pools], dim=2), torch.cat([values, pools], dim=2)

    def mask(self, call: Call, hidden):
        """Hide pools that are not complete: (..., num_tokens, num_keys + pools)."""
        read = torch.arange(1, call.end + 1, device=hidden.device)[-hidden.shape[-2] :]
        pools = torch.arange(call.end // self.size, device=hidden.device)
        waiting = pools >= (read // self.size)[:, None]  # (num_tokens, pools)
        return (torch.cat([hidden, waiting.expand(*hidden.shape[:-1], -1)], dim=-1),)


def pooling(mha, name: str, size: int, width: int, overlap: bool) -> None:
    """Give mha the layers that pool size tokens into width features."""
    wide = width * (2 if overlap else 1)
    setattr(mha, f"W_{name}", nn.Linear(mha.d_in, wide, bias=False))
    setattr(mha, f"W_{name}_gate", nn.Linear(mha.d_in, wide, bias=False))
    setattr(mha, f"{name}_bias", nn.Parameter(torch.zeros(size, wide)))
    setattr(mha, f"{name}_norm", nn.RMSNorm(width, eps=1e-6))


def pooled(call: Call, name: str, size: int, overlap: bool) -> torch.Tensor:
    """Return the pools of x, (b, pools, width), normed and not turned."""
    whole = call.x[:, : call.x.shape[1] // size * size]
    offered, rates = (
        getattr(call.mha, layer)(whole).unflatten(1, (-1, size))  # (b, pools, size, width)
        for layer in (f"W_{name}", f"W_{name}_gate")
    )
    rates = rates + getattr(call.mha, f"{name}_bias")
    if overlap:  # half of the features speak for the next pool, the others for their own
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
class TopPools(Part):
    """Let an indexer with pools of its own choose the size best pools of each query: step 6.

    It rates pools as TopKeys rates keys. Queries come from QueryLatent's latent.

    Raises:
        TypeError, ValueError: a size is no positive int, or no Pool stands beside it.

    Source: DeepSeek-V4 (2026), as transformers' DeepseekV4Indexer.
    """

    size: int
    index_heads: int
    index_dim: int
    turn = 4  # after Pool has put its columns behind

    def check(self, mha):  # noqa: D102
        check_sizes(size=self.size, index_heads=self.index_heads, index_dim=self.index_dim)
        if not mha.part(Pool):
            raise ValueError("TopPools chooses among pools: a Pool part is expected beside it")

    def learn(self, mha):  # noqa: D102
        width = mha.W_query.out_features if hasattr(mha, "W_query_up") else mha.d_in
        mha.W_index_query = nn.Linear(width, self.index_heads * self.index_dim, bias=False)
        mha.W_index_weight = nn.Linear(mha.d_in, self.index_heads, bias=False)
        pool = mha.part(Pool)
        pooling(mha, "index_pool", pool.size, self.index_dim, pool.overlap)

    def mask(self, call: Call, hidden):
        """Hide all but the size best of the pools that are seen: (b, 1, num_tokens, ...)."""
        mha, pool, rope = call.mha, call.mha.part(Pool), call.mha.part(Rope)
        source = call.x
        if hasattr(mha, "W_query_up"):
            source = mha.query_latent_norm(mha.W_query(call.x))
        queries = mha.W_index_query(source).unflatten(-1, (self.index_heads, -1)).transpose(1, 2)
        keys = pooled(call, "index_pool", pool.size, pool.overlap).unsqueeze(1)
        if rope:
            places = pool.size * torch.arange(keys.shape[2], device=keys.device)
            queries, keys = rope.turned(queries, call.end), rope.turned_to(keys, places)
        products = torch.relu(queries @ keys.transpose(2, 3))
        weights = mha.W_index_weight(call.x).transpose(1, 2).unsqueeze(-1)
        tokens, waiting = hidden.tensor_split([hidden.shape[-1] - keys.shape[2]], dim=-1)
        rates = (weights * products).sum(dim=1, keepdim=True).masked_fill(waiting, -torch.inf)
        best = rates.topk(min(self.size, rates.shape[-1]), dim=-1).indices
        left = waiting | torch.ones_like(rates, dtype=torch.bool).scatter(-1, best, False)
        return (torch.cat([tokens.expand(*left.shape[:-1], -1), left], dim=-1),)


@dataclass(frozen=True)
class GroupedOut(Part):
    """Lead to out in two smaller layers, the first for each group of heads by itself: step 10.

    Args:
        groups: how many groups the heads form, neighbours together.
        rank: features that each group passes on.

    Raises:
        TypeError, ValueError: a size is no positive int, or groups do not divide num_heads.

    Source: DeepSeek-V4 (2026), as transformers' DeepseekV4GroupedLinear.
    """

    groups: int
    rank: int
    turn = 2

    def check(self, mha):  # noqa: D102
        check_sizes(groups=self.groups, rank=self.rank)
        if mha.num_heads % self.groups:
            raise ValueError(
                f"num_heads is {mha.num_heads} and groups is {self.groups}: a divisor is expected"
            )

    def learn(self, mha):  # noqa: D102
        width, out = mha.d_out // self.groups, mha.out_proj
        mha.W_groups = nn.Parameter(torch.randn(self.groups, self.rank, width) / width**0.5)
        bias = out.bias is not None
        mha.out_proj = nn.Linear(self.groups * self.rank, out.out_features, bias=bias)

    def combine(self, call: Call, context):
        """Take each group's features to rank: (b, num_tokens, groups * rank)."""
        by_group = context.unflatten(-1, (self.groups, -1)).unsqueeze(-1)
        return ((call.mha.W_groups @ by_group).flatten(2),)
