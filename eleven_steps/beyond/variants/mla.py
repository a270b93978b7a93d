"""Multi-head latent attention: keys and values, or queries, from small latents (step 2)."""

from dataclasses import dataclass

import torch
from torch import nn

from eleven_steps.beyond.variants.module import Call, Part


@dataclass(frozen=True)
class Latent(Part):
    """Make keys and values from one small latent for each token: step 2.

    Each query and key also gets rope_dim features that Rope(width=rope_dim) rotates; those of a key
    are the same for all heads.

    Args:
        latent_dim: features of the latent.
        rope_dim: features that carry the position; 0 for none.
        key_dim: features of each head's keys that are made from a latent, head_dim by default.

    Source: multi-head latent attention, MLA, of "DeepSeek-V2" (2024), section 2.1.
    """

    latent_dim: int
    rope_dim: int = 0
    key_dim: int | None = None
    reason, excludes = "makes keys for every head", "GroupedHeads"

    def learn(self, mha):  # noqa: D102
        keys, bias = mha.num_heads * (self.key_dim or mha.head_dim), mha.W_key.bias is not None
        mha.key_dim = keys // mha.num_heads + self.rope_dim
        mha.W_query = nn.Linear(mha.d_in, mha.num_heads * mha.key_dim, bias=bias)
        mha.W_down = nn.Linear(mha.d_in, self.latent_dim + self.rope_dim, bias=bias)
        mha.latent_norm = nn.RMSNorm(self.latent_dim, eps=1e-6)
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

    No cache stores this latent. It saves weights, 3 of 4 in DeepSeek-V3.

    Source: as Latent, section 2.1.2.
    """

    query_dim: int
    order = 1  # after Latent, which decides how wide queries are
    reason, needs = "makes queries only", "Latent KeysAsValues"

    def learn(self, mha):  # noqa: D102
        bias = mha.W_query.bias is not None
        mha.W_query_up = nn.Linear(self.query_dim, mha.W_query.out_features, bias=bias)
        mha.W_query = nn.Linear(mha.d_in, self.query_dim, bias=bias)
        mha.query_latent_norm = nn.RMSNorm(self.query_dim, eps=1e-6)

    def project_queries(self, call: Call, latents):
        """Make queries from the latents (b, num_tokens, query_dim) of W_query."""
        return (call.mha.W_query_up(call.mha.query_latent_norm(latents)),)
