"""Caps, ALiBi and masks: changes of the scores by distance, and of what a query may see."""

from dataclasses import dataclass

import torch

from eleven_steps.beyond.variants.module import Call, Part
from eleven_steps.helpers.attention import check_sizes


@dataclass(frozen=True)
class Cap(Part):
    """Cap scores softly, so that none exceeds a limit: step 5.

    Args:
        limit: the largest scaled score. Step 7 has yet to divide by sqrt(head_dim), so the scores
            of step 5 are held below limit * sqrt(head_dim).

    Raises:
        ValueError: limit is not positive.

    Source: Gemma 2 (2024), section 2, "logit soft-capping", with limit 50.
    """

    limit: float = 50.0

    def check(self, mha):  # noqa: D102
        if not self.limit > 0:
            raise ValueError(f"limit is {self.limit}: a positive number is expected")

    def scores(self, call: Call, scores):
        """Cap scores (b, num_heads, num_tokens, num_keys) with a tanh."""
        limit = self.limit * call.mha.key_dim**0.5
        return (limit * torch.tanh(scores / limit),)


@dataclass(frozen=True)
class Alibi(Part):
    """Subtract from each score its distance times a slope of the head: step 5.

    Source: "Train Short, Test Long: Attention with Linear Biases Enables Input Length
    Extrapolation" (2021), section 3. Step 7 divides the scores, not the price: hence the root.
    """

    turn = 1  # after a cap, which does not apply to the distance

    def scores(self, call: Call, scores):
        """Subtract slope * distance from scores (b, num_heads, num_tokens, num_keys)."""
        slopes = (
            alibi_slopes(call.mha.num_heads, scores.dtype).to(scores.device) * call.mha.key_dim**0.5
        )
        price = slopes[:, None, None] * distances(*scores.shape[-2:], scores.device).to(scores)
        return (scores - price,)


@dataclass(frozen=True)
class Full(Part):
    """Hide nothing, so that tokens also see later tokens, as in an encoder: step 6."""

    def mask(self, call: Call, hidden):
        """Return a mask (num_tokens, num_keys) that hides nothing."""
        return (torch.zeros_like(hidden),)


@dataclass(frozen=True)
class Window(Part):
    """Let a token see itself and the size - 1 tokens before it, no further: step 6.

    Source: "Longformer" (2020), section 3.1, causal as in Mistral 7B (2023), section 2.
    """

    size: int
    turn = 1

    def mask(self, call: Call, hidden):
        """Also hide the keys that are `size` tokens back or more: (num_tokens, num_keys)."""
        return (hidden | (distances(*hidden.shape[-2:], hidden.device) >= self.size),)


@dataclass(frozen=True)
class Chunks(Part):
    """Cut the text into chunks of size tokens, and let a token see its own chunk only: step 6.

    Source: three of four layers of Llama 4 (2025).
    """

    size: int
    turn = 1

    def mask(self, call: Call, hidden):
        """Also hide the keys of other chunks: (num_tokens, num_keys)."""
        chunks = torch.arange(hidden.shape[-1], device=hidden.device) // self.size
        return (hidden | (chunks[-hidden.shape[-2] :, None] != chunks),)


@dataclass(frozen=True, eq=False)
class Padding(Part):
    """Hide padding, the tokens that fill up short sequences at either end: step 6.

    A query that would see no key at all, as padding on the left does, sees all instead: softmax
    over nothing is NaN. What comes out at padded tokens means nothing.

    Args:
        is_padding: (b, tokens), True where a token is filling; as many tokens as there are keys, or
            more, of which the first count.

    Raises:
        TypeError, ValueError: is_padding is not boolean, does not fit, or is True all along.
    """

    is_padding: torch.Tensor
    turn = 2

    def check(self, mha):  # noqa: D102
        if not isinstance(self.is_padding, torch.Tensor) or self.is_padding.dtype != torch.bool:
            raise TypeError(
                "is_padding: a boolean tensor (b, tokens) is expected, True for padding"
            )
        if self.is_padding.dim() != 2 or self.is_padding.all(dim=1).any():
            raise ValueError(
                f"is_padding has shape {tuple(self.is_padding.shape)}: (b, tokens) is expected, "
                f"with a token that is none in each sequence"
            )

    def mask(self, call: Call, hidden):
        """Hide padded keys from every query: (b, 1, num_tokens, num_keys)."""
        check_padding(self.is_padding, len(call.x), hidden.shape[-1])
        hidden = hidden | self.is_padding[:, None, None, : hidden.shape[-1]].to(hidden.device)
        return (hidden & ~hidden.all(dim=-1, keepdim=True),)


def check_padding(is_padding: torch.Tensor, b: int, num_keys: int) -> None:
    """Raise unless is_padding is (b, num_keys or more)."""
    if is_padding.shape[0] != b or is_padding.shape[1] < num_keys:
        raise ValueError(
            f"is_padding has shape {tuple(is_padding.shape)}, but there are b = {b} sequences of "
            f"{num_keys} keys: ({b}, {num_keys}) is expected"
        )


def distances(num_tokens: int, num_keys: int, device: torch.device | None = None) -> torch.Tensor:
    """Return how many tokens each key is before each query, (num_tokens, num_keys).

    The queries are the last num_tokens of the keys' tokens. Below 0 a key comes later.
    """
    keys = torch.arange(num_keys, device=device)
    return keys[num_keys - num_tokens :, None] - keys


def alibi_slopes(num_heads: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return the slope of ALiBi for each head, (num_heads,).

    Powers of 2 from 2 ** (-8 / n) to 2 ** -8, where n heads are a power of 2; else every second of
    twice as many first, as ALiBi's own code picks them.

    Raises:
        TypeError, ValueError: num_heads is no positive int.
    """
    check_sizes(num_heads=num_heads)
    above = 1 << (num_heads - 1).bit_length()  # the next power of 2
    slopes = 2 ** (-8 * torch.arange(1, above + 1, dtype=torch.float64) / above)
    order = slopes if above == num_heads else torch.cat([slopes[1::2], slopes[::2]])[:num_heads]
    return order.to(dtype)
