"""Norms, RoPE and temperature: changes of queries and keys in step 4."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from eleven_steps.beyond.variants.module import Call, Part
from eleven_steps.helpers.attention import check_sizes

PAIRINGS = ("halves", "neighbours")


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
    turn = 1

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
    turn = 1

    def check(self, mha):  # noqa: D102
        if self.as_keys and not mha.part(Norm):
            raise ValueError("ValueNorm norms values as keys: a Norm part is expected beside it")

    def transpose(self, call: Call, queries, keys, values):
        """Normalise values (b, num_heads, num_keys, head_dim), head by head."""
        if self.as_keys:
            return queries, keys, call.mha.key_norm(values)
        return queries, keys, nn.functional.rms_norm(values, values.shape[-1:], eps=1e-6)


@dataclass(frozen=True)
class Rope(Part):
    """Rotate queries and keys by position, so that scores depend on distance (RoPE): step 4.

    Args:
        base: pair p of P turns by base ** (-p / P) radians a token.
        pairing: which two features turn together: "halves", feature p and p + P, or "neighbours",
            2 p and 2 p + 1. Weights trained with one are wrong with the other.
        width: the last so many features of a head turn, below 1 that share of them; all unless
            given.
        first: the first width features turn instead.
        scaling: how positions are stretched for longer texts: a LinearScaling, Llama3Scaling or
            YarnScaling.

    Raises:
        TypeError, ValueError: pairing is unknown, base not positive, or width odd or too large.

    Source: "RoFormer: Enhanced Transformer with Rotary Position Embedding" (2021), section 3.2.
    """

    base: float = 10_000.0
    pairing: str = "halves"
    width: float | None = None
    first: bool = False
    scaling: Callable[[torch.Tensor, float], torch.Tensor] | None = None
    turn = 2

    def turning(self, features: int) -> int:
        """Return how many features of a head are rotated."""
        if self.width is None:
            return features
        return max(2, 2 * round(features * self.width / 2)) if self.width < 1 else self.width

    def check(self, mha):  # noqa: D102
        check_pairing(self.pairing)
        if not self.base > 0:
            raise ValueError(f"base is {self.base}: a positive number is expected")
        width = self.turning(mha.key_dim)
        check_sizes(width=width)
        if width % 2 or width > mha.key_dim:
            raise ValueError(
                f"{width} of {mha.key_dim} features of a head are to turn in pairs: "
                f"an even number, {mha.key_dim} at most, is expected"
            )

    def transpose(self, call: Call, queries, keys, values):
        """Rotate queries and keys (b, heads, tokens, key_dim), not values."""
        return self.turned(queries, call.end), self.turned(keys, call.end), values

    def turned(self, vectors: torch.Tensor, end: int) -> torch.Tensor:
        """Rotate tokens (b, heads, tokens, key_dim), the last of them at position end - 1."""
        positions = torch.arange(end - vectors.shape[2], end, device=vectors.device)
        return self.turned_to(vectors, positions)

    def turned_to(self, vectors: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """Rotate vectors (b, heads, tokens, key_dim) to positions (tokens,)."""
        width = self.turning(vectors.shape[-1])
        begin = 0 if self.first else vectors.shape[-1] - width
        before, turning, after = vectors.tensor_split([begin, begin + width], dim=-1)
        turning = rotate(turning, positions, self.base, self.pairing, self.scaling)
        return torch.cat([before, turning, after], dim=-1)

    def scaled(self, call: Call, scaled):
        """Multiply scores (b, num_heads, num_tokens, num_keys) by the factor of the scaling."""
        factor = getattr(self.scaling, "attention_factor", 1.0)
        return (scaled if factor == 1 else scaled * factor**2,)


@dataclass(frozen=True)
class Temperature(Part):
    """Scale queries up every `floor` tokens, so that weights stay sharp: step 4.

    In a longer row more keys share the weight. Models use it in layers without positions.

    Args:
        scale, floor: queries grow by 1 + scale * log(1 + (tokens read) // floor).

    Source: Llama 4 (2025), as transformers' Llama4TextAttention; "Scalable-Softmax Is Superior for
    Attention" (2025).
    """

    scale: float = 0.1
    floor: int = 8192
    turn = 2

    def transpose(self, call: Call, queries, keys, values):
        """Scale queries (b, num_heads, num_tokens, key_dim) by their position."""
        read = torch.arange(call.end - queries.shape[2] + 1, call.end + 1, device=queries.device)
        stretch = 1 + self.scale * torch.log1p((read // self.floor).to(queries.dtype))
        return queries * stretch[:, None], keys, values


def rotate(
    vectors: torch.Tensor,
    positions: torch.Tensor,
    base: float = 10_000.0,
    pairing: str = "halves",
    scaling: Callable[[torch.Tensor, float], torch.Tensor] | None = None,
) -> torch.Tensor:
    """Rotate each pair of features by its position times its own angle.

    Args:
        vectors: (..., num_tokens, features), an even number of features.
        positions: (num_tokens,), how many tokens stand before each.
        base, pairing, scaling: as in Rope.

    Returns:
        As vectors. Lengths are kept, and the product of two depends on their distance alone.

    Raises:
        ValueError: pairing is not one of PAIRINGS.

    Source: as Rope.
    """
    check_pairing(pairing)
    pairs = vectors.shape[-1] // 2
    exact = torch.promote_types(vectors.dtype, torch.float32)
    powers = torch.arange(pairs, dtype=exact, device=vectors.device) / pairs
    radian = base**powers  # tokens in which a pair rotates by one radian
    radian = scaling(radian, base) if scaling else radian
    angles = positions.to(exact)[:, None] / radian  # (num_tokens, pairs)
    cos, sin = angles.cos().to(vectors.dtype), angles.sin().to(vectors.dtype)
    shape, axis = ((2, pairs), -2) if pairing == "halves" else ((pairs, 2), -1)
    first, second = vectors.unflatten(-1, shape).unbind(axis)  # (..., num_tokens, pairs) each
    turned = first * cos - second * sin, second * cos + first * sin
    return torch.stack(turned, dim=axis).flatten(-2)


def check_pairing(pairing: str) -> None:
    """Raise unless pairing is one of PAIRINGS."""
    if pairing not in PAIRINGS:
        raise ValueError(f"pairing is {pairing!r}: one of {', '.join(PAIRINGS)} is expected")
