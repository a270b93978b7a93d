"""Changes of step 2: grouped heads, latents, and cross attention."""

from dataclasses import dataclass

import torch
from torch import nn

from eleven_steps.beyond.variants.module import Call, Part


@dataclass(frozen=True)
class GroupedHeads(Part):
    """Let neighbouring heads share keys and values: steps 2 and 4.

    W_key and W_value make num_kv_heads heads only. num_kv_heads=1 is multi-query attention.

    Raises:
        ValueError: num_kv_heads does not divide num_heads.

    Source: "Fast Transformer Decoding: One Write-Head is All You Need" (2019) for one head, "GQA:
    Training Generalized Multi-Query Transformer Models from Multi-Head Checkpoints" (2023).
    """

    num_kv_heads: int
    turn = 4  # after the cache, so that it stores few heads

    def check(self, mha):  # noqa: D102
        check_divisor(mha, "num_kv_heads", self.num_kv_heads)

    def learn(self, mha):  # noqa: D102
        mha.num_kv_heads = self.num_kv_heads
        for name in ("W_key", "W_value"):
            if layer := getattr(mha, name):  # None if the layer borrows keys
                width, bias = self.num_kv_heads * mha.head_dim, layer.bias is not None
                setattr(mha, name, nn.Linear(mha.d_in, width, bias=bias))

    def transpose(self, call: Call, queries, keys, values):
        """Repeat key heads (b, num_kv_heads, num_keys, head_dim) in groups: 0, 0, 1, 1."""
        group = call.mha.num_heads // self.num_kv_heads
        keys = keys.repeat_interleave(group, dim=1)  # (b, num_heads, num_keys, head_dim)
        values = values.repeat_interleave(group, dim=1)  # (b, num_heads, num_keys, head_dim)
        return queries, keys, values


@dataclass(frozen=True)
class Latent(Part):
    """Make keys and values from one small latent for each token: step 2.

    With rope_dim, rope_dim features join each query and key; the key's are the same for all heads.
    Rope(width=rope_dim) turns them, and leaves alone what is made from latents.

    Args:
        latent_dim: features of the latent.
        rope_dim: features that carry the position; 0 for none.
        key_dim: features of each head's keys that are made from a latent; head_dim if None.
        eps: of the norm of latents, and of a QueryLatent's.

    Source: multi-head latent attention, MLA, of "DeepSeek-V2" (2024), section 2.1.
    """

    latent_dim: int
    rope_dim: int = 0
    key_dim: int | None = None
    eps: float = 1e-6
    does, apart = "makes keys for every head", "GroupedHeads"

    def learn(self, mha):  # noqa: D102
        keys, bias = mha.num_heads * (self.key_dim or mha.head_dim), mha.W_key.bias is not None
        mha.key_dim = keys // mha.num_heads + self.rope_dim
        mha.W_query = nn.Linear(mha.d_in, mha.num_heads * mha.key_dim, bias=bias)
        mha.W_down = nn.Linear(mha.d_in, self.latent_dim + self.rope_dim, bias=bias)
        mha.latent_norm = nn.RMSNorm(self.latent_dim, eps=self.eps)
        mha.W_key, mha.W_value = (nn.Linear(self.latent_dim, n, bias) for n in (keys, mha.d_out))

    def project(self, call: Call):
        """Project x to latents, cache these, and make keys and values from them."""
        mha, heads = call.mha, (call.mha.num_heads, -1)
        latents, shared = mha.W_down(call.x).split([self.latent_dim, self.rope_dim], dim=-1)
        latents, shared = call.change("project_latents", mha.latent_norm(latents), shared)
        (queries,) = call.change("project_queries", mha.W_query(call.x))
        keys = mha.W_key(latents).unflatten(-1, heads)  # (b, num_keys, num_heads, head_dim)
        shared = shared.unsqueeze(2).expand(-1, -1, mha.num_heads, -1)  # the same for all heads
        return queries, torch.cat([keys, shared], -1).flatten(2), mha.W_value(latents)


@dataclass(frozen=True)
class QueryLatent(Part):
    """Make queries from a latent of their own, with Latent or KeysAsValues: step 2.

    It is not kept: it saves weights, 3 of 4 in DeepSeek-V3.

    Source: as Latent, section 2.1.2.
    """

    query_dim: int
    turn = 1  # after Latent, which decides how wide queries are
    does, needs = "makes queries only", "Latent KeysAsValues"

    def learn(self, mha):  # noqa: D102
        bias, eps = mha.W_query.bias is not None, getattr(mha.part(Latent), "eps", 1e-6)
        mha.W_query_up = nn.Linear(self.query_dim, mha.W_query.out_features, bias=bias)
        mha.W_query = nn.Linear(mha.d_in, self.query_dim, bias=bias)
        mha.query_latent_norm = nn.RMSNorm(self.query_dim, eps=eps)

    def project_queries(self, call: Call, latents):
        """Make queries from the latents (b, num_tokens, query_dim) of W_query."""
        return (call.mha.W_query_up(call.mha.query_latent_norm(latents)),)


@dataclass(frozen=True, eq=False)
class OtherSequence(Part):
    """Make keys and values from a second sequence: cross attention, steps 2 and 6.

    Queries come from x, keys and values from other, and nothing of other is hidden: it is no later
    and no earlier than x. Padding(is_padding) beside it speaks of other's tokens.

    Args:
        other: (b, num_keys, d_in), as many sequences as x has.

    Raises:
        ValueError: other does not fit.

    Source: "Attention Is All You Need" (2017), section 3.2.3, encoder-decoder attention.
    """

    other: torch.Tensor
    does, apart = "has no positions in common with x", "Rope Alibi Window Cache"

    def check(self, mha):  # noqa: D102
        shape = tuple(getattr(self.other, "shape", ()))
        if len(shape) != 3 or 0 in shape or shape[2] != mha.W_key.in_features:
            raise ValueError(
                f"other is a {type(self.other).__name__} of shape {shape}: a tensor "
                f"(b, num_keys, {mha.W_key.in_features}) is expected"
            )

    def project(self, call: Call):
        """Make queries from x, keys and values from the other sequence."""
        mha = call.mha
        check_other(self.other, call.x)
        return mha.W_query(call.x), mha.W_key(self.other), mha.W_value(self.other)

    def mask(self, call: Call, hidden):
        """Hide nothing: (num_tokens, num_keys), all False."""
        return (hidden.new_zeros(call.x.shape[1], self.other.shape[1]),)


def check_divisor(mha, name: str, number: int) -> None:
    """Raise unless a number divides num_heads."""
    if mha.num_heads % number:
        raise ValueError(
            f"num_heads is {mha.num_heads} and {name} is {number}: a divisor is expected, so that "
            f"each serves equally many heads"
        )


def check_other(other: torch.Tensor, x: torch.Tensor) -> None:
    """Raise unless other (b, any number of tokens, any width) has x's b and dtype."""
    if len(x) != len(other):
        raise ValueError(
            f"x has b = {len(x)} sequences and other {len(other)}: as many are expected"
        )
    if x.dtype != other.dtype:
        raise TypeError(f"x holds {x.dtype} and other {other.dtype}: the same dtype is expected")
