"""Masks: none, a sliding window, chunks, and padding (step 6)."""

from dataclasses import dataclass

import torch

from eleven_steps.beyond.variants.alibi import distances
from eleven_steps.beyond.variants.module import Call, Part


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
    order = 1

    def mask(self, call: Call, hidden):
        """Also hide the keys that are `size` tokens back or more: (num_tokens, num_keys)."""
        return (hidden | (distances(*hidden.shape[-2:], hidden.device) >= self.size),)


@dataclass(frozen=True)
class Chunks(Part):
    """Cut the text into chunks of size tokens, and let a token see its own chunk only: step 6.

    Source: three of four layers of Llama 4 (2025).
    """

    size: int
    order = 1

    def mask(self, call: Call, hidden):
        """Also hide the keys of other chunks: (num_tokens, num_keys)."""
        chunks = torch.arange(hidden.shape[-1], device=hidden.device) // self.size
        return (hidden | (chunks[-hidden.shape[-2] :, None] != chunks),)


@dataclass(frozen=True, eq=False)
class Padding(Part):
    """Hide padding, the tokens that fill up short sequences at either end: step 6.

    A query that would see no key at all, such as padding on the left, sees all of them, because a
    softmax over nothing is NaN. The output at padded tokens has no meaning.

    Args:
        is_padding: (b, tokens), True for padding; at least as many tokens as there are keys.
    """

    is_padding: torch.Tensor
    order = 2

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
