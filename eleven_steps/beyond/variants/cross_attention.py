"""Cross attention: queries from x, keys and values from a second sequence (steps 2 and 6)."""

from dataclasses import dataclass

import torch

from eleven_steps.beyond.variants.module import Call, Part


@dataclass(frozen=True, eq=False)
class OtherSequence(Part):
    """Make keys and values from a second sequence: cross attention, steps 2 and 6.

    Queries come from x, keys and values from other. No token of other is hidden, because it is
    neither earlier nor later than x. With Padding(is_padding), is_padding marks other's tokens.

    Args:
        other: (b, num_keys, d_in), as many sequences as x has.

    Source: "Attention Is All You Need" (2017), section 3.2.3, encoder-decoder attention.
    """

    other: torch.Tensor
    reason, excludes = "has no positions in common with x", "Rope Alibi Window Cache"

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


def check_other(other: torch.Tensor, x: torch.Tensor) -> None:
    """Raise unless other (b, any number of tokens, any width) has x's b and dtype."""
    if len(x) != len(other):
        raise ValueError(
            f"x has b = {len(x)} sequences and other {len(other)}: as many are expected"
        )
    if x.dtype != other.dtype:
        raise TypeError(f"x holds {x.dtype} and other {other.dtype}: the same dtype is expected")
