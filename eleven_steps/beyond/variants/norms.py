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
        whole: whether all heads of a token are normed as one, not each head by itself.
        centred: whether their mean is taken away first, and a number added last: LayerNorm.

    Source: RMSNorm on queries and keys as in Qwen3 (2025) and Gemma 3 (2025), whole as in OLMo 2
    (2024); the idea with LayerNorm in "Scaling Vision Transformers to 22 Billion Parameters"
    (2023).
    """

    eps: float = 1e-6
    queries: bool = True
    keys: bool = True
    whole: bool = False
    centred: bool = False
    order = 1

    def learn(self, mha):  # noqa: D102
        few = next((e.num_kv_heads for e in mha.parts if hasattr(e, "num_kv_heads")), mha.num_heads)
        heads = (mha.num_heads, few) if self.whole else (1, 1)
        for name, many in zip(("query", "key"), heads, strict=True):
            learns = self.queries if name == "query" else self.keys
            norm = WholeNorm if self.whole else nn.LayerNorm if self.centred else nn.RMSNorm
            norm = norm(many * mha.key_dim, eps=self.eps, elementwise_affine=learns)
            setattr(mha, f"{name}_norm", norm)

    def transpose(self, call: Call, queries, keys, values):
        """Normalise queries and keys (b, heads, tokens, key_dim), head by head."""
        return call.mha.query_norm(queries), call.mha.key_norm(keys), values


class WholeNorm(nn.RMSNorm):
    """Normalise vectors (b, heads, tokens, key_dim), all heads of a token together."""

    def forward(self, vectors):  # noqa: D102
        together = super().forward(vectors.transpose(1, 2).flatten(2))
        return together.unflatten(2, (vectors.shape[1], -1)).transpose(1, 2)


@dataclass(frozen=True)
class ValueNorm(Part):
    """Normalise values as well: step 4.

    Args:
        as_keys: whether they take the learned numbers of Norm's keys; none otherwise.

    Raises:
        ValueError: as_keys is set, and the module has no Norm.

    Source: Gemma 4 (2026); as_keys for DeepSeek-V4 (2026), whose keys are its values.
    """

    as_keys: bool = False
    order = 1

    def check(self, mha):  # noqa: D102
        if self.as_keys and not mha.part(Norm):
            raise ValueError("ValueNorm normalises values as keys: it needs Norm")

    def transpose(self, call: Call, queries, keys, values):
        """Normalise values (b, num_heads, num_keys, head_dim), head by head."""
        if self.as_keys:
            return queries, keys, call.mha.key_norm(values)
        return queries, keys, nn.functional.rms_norm(values, values.shape[-1:], eps=1e-6)
