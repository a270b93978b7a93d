"""Norms of queries, keys and values (step 4)."""

from dataclasses import dataclass

from torch import nn

from eleven_steps.beyond.variants.module import Call, Part


@dataclass(frozen=True)
class Norm(Part):
    """Normalise every query and key to length sqrt(head_dim), with learned scales: step 4.

    Args:
        eps: what is added to the mean of squares.
        queries, keys: whether they learn a number for each feature.

    Source: RMSNorm on queries and keys as in Qwen3 (2025) and Gemma 3 (2025); the idea with
    LayerNorm in "Scaling Vision Transformers to 22 Billion Parameters" (2023).
    """

    eps: float = 1e-6
    queries: bool = True
    keys: bool = True
    order = 1

    def learn(self, mha):  # noqa: D102
        norm, eps = nn.RMSNorm, self.eps
        mha.query_norm = norm(mha.key_dim, eps=eps, elementwise_affine=self.queries)
        mha.key_norm = norm(mha.key_dim, eps=eps, elementwise_affine=self.keys)

    def transpose(self, call: Call, queries, keys, values):
        """Normalise queries and keys (b, heads, tokens, key_dim), head by head."""
        return call.mha.query_norm(queries), call.mha.key_norm(keys), values


@dataclass(frozen=True)
class ValueNorm(Part):
    """Normalise values as well: step 4.

    Args:
        as_keys: whether they take the learned numbers of Norm's keys; none otherwise.

    Source: Gemma 4 (2026); as_keys for DeepSeek-V4 (2026), whose keys are its values.
    """

    as_keys: bool = False
    order = 1

    def check(self, mha):  # noqa: D102
        if self.as_keys and not mha.part(Norm):
            raise ValueError("ValueNorm normalises values as keys, so it needs Norm")

    def transpose(self, call: Call, queries, keys, values):
        """Normalise values (b, num_heads, num_keys, head_dim), head by head."""
        if self.as_keys:
            return queries, keys, call.mha.key_norm(values)
        return queries, keys, nn.functional.rms_norm(values, values.shape[-1:], eps=1e-6)
