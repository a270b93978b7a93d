"""Rotary position embedding, RoPE: queries and keys rotated by their positions (step 4)."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from eleven_steps.beyond.variants.module import Call, Part
from eleven_steps.helpers.attention import check_sizes

PAIRINGS = ("halves", "neighbours")


@dataclass(frozen=True)
class Rope(Part):
    """Rotate queries and keys by position, so that scores depend on distance (RoPE): step 4.

    Args:
        base: pair p of P is rotated by base ** (-p / P) radians per token.
        pairing: which two features form a pair: "halves", p and p + P, or "neighbours", 2 p and
            2 p + 1. Weights trained with one are wrong with the other.
        width: how many features of a head are rotated, or below 1 which share of them.
        first: whether these are the first features of a head, not the last.
        scaling: stretches positions for longer texts, as LinearScaling or YarnScaling do.

    Source: "RoFormer: Enhanced Transformer with Rotary Position Embedding" (2021), section 3.2.
    """

    base: float = 10_000.0
    pairing: str = "halves"
    width: float | None = None
    first: bool = False
    scaling: Callable[[torch.Tensor, float], torch.Tensor] | None = None
    order = 2

    def rotary_dim(self, features: int) -> int:
        """Return how many features of a head are rotated."""
        if self.width is None:
            return features
        return max(2, 2 * round(features * self.width / 2)) if self.width < 1 else self.width

    def check(self, mha):  # noqa: D102
        check_pairing(self.pairing)
        if not self.base > 0:
            raise ValueError(f"base is {self.base}: a positive number is expected")
        width = self.rotary_dim(mha.key_dim)
        check_sizes(width=width)
        if width % 2 or width > mha.key_dim:
            raise ValueError(
                f"{width} of {mha.key_dim} features of a head are to be rotated in pairs: "
                f"an even number, {mha.key_dim} at most, is expected"
            )

    def transpose(self, call: Call, queries, keys, values):
        """Rotate queries and keys (b, heads, tokens, key_dim), not values."""
        return self.rotated(queries, call.end), self.rotated(keys, call.end), values

    def rotated(self, vectors: torch.Tensor, end: int) -> torch.Tensor:
        """Rotate tokens (b, heads, tokens, key_dim), the last of them at position end - 1."""
        positions = torch.arange(end - vectors.shape[2], end, device=vectors.device)
        return self.rotated_to(vectors, positions)

    def rotated_to(self, vectors: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """Rotate vectors (b, heads, tokens, key_dim) to positions (tokens,)."""
        width = self.rotary_dim(vectors.shape[-1])
        begin = 0 if self.first else vectors.shape[-1] - width
        before, rotary, after = vectors.tensor_split([begin, begin + width], dim=-1)
        rotary = rotate(rotary, positions, self.base, self.pairing, self.scaling)
        return torch.cat([before, rotary, after], dim=-1)

    def scaled(self, call: Call, scaled):
        """Multiply scores (b, num_heads, num_tokens, num_keys) by the factor of the scaling."""
        factor = getattr(self.scaling, "attention_factor", 1.0)
        return (scaled if factor == 1 else scaled * factor**2,)


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
        positions: (num_tokens,), how many tokens come before each.
        base, pairing, scaling: as in Rope.

    Returns:
        Vectors of the same shape and the same lengths, whose products depend on distances alone.
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
    rotated = first * cos - second * sin, second * cos + first * sin
    return torch.stack(rotated, dim=axis).flatten(-2)


def check_pairing(pairing: str) -> None:
    """Raise unless pairing is one of PAIRINGS."""
    if pairing not in PAIRINGS:
        raise ValueError(f"pairing is {pairing!r}: one of {', '.join(PAIRINGS)} is expected")
