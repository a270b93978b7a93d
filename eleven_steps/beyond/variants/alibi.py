"""ALiBi: a price on each score that grows with the distance (step 5)."""

from dataclasses import dataclass

import torch

from eleven_steps.beyond.variants.module import Call, Part
from eleven_steps.helpers.attention import check_sizes


@dataclass(frozen=True)
class Alibi(Part):
    """Subtract from each score its distance times a slope of the head: step 5.

    Source: "Train Short, Test Long: Attention with Linear Biases Enables Input Length
    Extrapolation" (2021), section 3. Step 7 divides by sqrt(head_dim): the price is multiplied by
    it before.
    """

    order = 1  # after a cap, which does not apply to the distance

    def scores(self, call: Call, scores):
        """Subtract slope * distance from scores (b, num_heads, num_tokens, num_keys)."""
        slopes = (
            alibi_slopes(call.mha.num_heads, scores.dtype).to(scores.device) * call.mha.key_dim**0.5
        )
        price = slopes[:, None, None] * distances(*scores.shape[-2:], scores.device).to(scores)
        return (scores - price,)


def alibi_slopes(num_heads: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return the slope of ALiBi for each head, (num_heads,).

    If the number n of heads is a power of 2, they are powers of 2, from 2 ** (-8 / n) to 2 ** -8.
    For other numbers they are picked from twice as many, as in ALiBi's own code.
    """
    check_sizes(num_heads=num_heads)
    above = 1 << (num_heads - 1).bit_length()  # the next power of 2
    slopes = 2 ** (-8 * torch.arange(1, above + 1, dtype=torch.float64) / above)
    order = slopes if above == num_heads else torch.cat([slopes[1::2], slopes[::2]])[:num_heads]
    return order.to(dtype)


def distances(num_tokens: int, num_keys: int, device: torch.device | None = None) -> torch.Tensor:
    """Return how many tokens each key is before each query, (num_tokens, num_keys).

    The queries belong to the last num_tokens keys. A negative distance means that the key is later.
    """
    keys = torch.arange(num_keys, device=device)
    return keys[num_keys - num_tokens :, None] - keys
