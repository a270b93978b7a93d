"""RoPE for texts longer than those of training: slower rotations (step 4)."""

import math
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class LinearScaling:
    """Rotate all pairs `factor` times slower, as if positions were closer together.

    Source: "Extending Context Window of Large Language Models via Position Interpolation" (2023).
    """

    factor: float

    def __call__(self, radian: torch.Tensor, base: float) -> torch.Tensor:
        """Stretch radian (pairs,), the number of tokens in which a pair rotates by one radian."""
        return radian * self.factor


@dataclass(frozen=True)
class FirstPairs:
    """Rotate only a share of the pairs, the fast ones.

    Source: Gemma 4 (2026), as transformers computes rope_type "proportional".
    """

    share: float

    def __call__(self, radian: torch.Tensor, base: float) -> torch.Tensor:
        """Stretch radian (pairs,); it is infinite for pairs that do not rotate."""
        places = torch.arange(len(radian), device=radian.device)
        return radian.masked_fill(places >= int(self.share * len(radian)), torch.inf)


@dataclass(frozen=True)
class Llama3Scaling:
    """Rotate slow pairs `factor` times slower, fast pairs as before, and blend in between.

    A pair is fast if it turns round high times or more within original tokens, slow if low times
    or less.

    Source: Llama 3.1 (2024), as transformers computes rope_type "llama3".
    """

    factor: float
    original: int
    low: float = 1.0
    high: float = 4.0

    def __call__(self, radian: torch.Tensor, base: float) -> torch.Tensor:
        """Stretch radian (pairs,) as above."""
        rounds = self.original / (2 * math.pi * radian)
        fast = ((rounds - self.low) / (self.high - self.low)).clamp(0, 1)
        return blended(radian, fast, self.factor)


@dataclass(frozen=True)
class YarnScaling:
    """Blend as Llama3Scaling does, pair by pair, and sharpen the scores: steps 4 and 7.

    Args:
        factor: slow pairs turn so much slower.
        original: the tokens of a text before.
        fast, slow: rounds within original tokens of the pairs between which the blend lies.
        whole: the two pairs are rounded, down and up.
        sharpens: scores are sharpened; DeepSeek-V4 (2026) leaves them as they are.

    Source: "YaRN: Efficient Context Window Extension of Large Language Models" (2023), sections
    3.2 and 3.4, as transformers computes rope_type "yarn".
    """

    factor: float
    original: int
    fast: float = 32.0
    slow: float = 1.0
    whole: bool = True
    sharpens: bool = True

    @property
    def attention_factor(self) -> float:
        """Return the factor of queries and keys; scaled scores are multiplied by its square."""
        return 0.1 * math.log(self.factor) + 1 if self.sharpens and self.factor > 1 else 1.0

    def __call__(self, radian: torch.Tensor, base: float) -> torch.Tensor:
        """Stretch radian (pairs,) as above."""
        low, high = (
            len(radian) * math.log(self.original / (2 * math.pi * rounds)) / math.log(base)
            for rounds in (self.fast, self.slow)
        )  # indices of the pairs that make this many turns
        if self.whole:
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, 2 * len(radian) - 1)
        places = torch.arange(len(radian), dtype=radian.dtype, device=radian.device)
        slow = ((places - low) / (high - low or 0.001)).clamp(0, 1)
        return blended(radian, 1 - slow, self.factor)


def blended(radian: torch.Tensor, fast: torch.Tensor, factor: float) -> torch.Tensor:
    """Return radian (pairs,) where fast is 1, factor times as much where 0, and a blend between."""
    return 1 / (fast / radian + (1 - fast) / (factor * radian))
