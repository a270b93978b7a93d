"""A softmax in blocks, as the exercise of notebook 17 asks for it, and as learners get it wrong."""

from collections.abc import Callable

import torch

Sum = torch.Tensor | float
Add = Callable[[Sum, torch.Tensor, torch.Tensor], Sum]  # what is kept, shrink, what a block adds
Top = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # of the largest so far and a block


def highest(largest: torch.Tensor, block: torch.Tensor) -> torch.Tensor:
    """Return the largest score of each query so far; block is (..., num_tokens, size)."""
    return torch.maximum(largest, block.amax(-1, keepdim=True))


def powers_of(block: torch.Tensor, largest: torch.Tensor) -> torch.Tensor:
    """Return exp of each score, measured from the largest, 1 at most."""
    return torch.exp(block - largest)


def rescaled(kept: Sum, shrink: torch.Tensor, new: torch.Tensor) -> Sum:
    """Return what is kept, measured from the largest score now, with what a block adds."""
    return kept * shrink + new


def in_blocks(
    scaled: torch.Tensor,
    values: torch.Tensor,
    size: int,
    *,
    top: Top = highest,
    powers: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = powers_of,
    total: Add = rescaled,
    context: Add = rescaled,
    each: Callable[[Sum, Sum], Sum] = lambda context, total: context,
    over: Callable[[Sum, Sum, torch.Tensor], torch.Tensor] = lambda context, total, new: (
        context / total
    ),
) -> torch.Tensor:
    """Return the context of scaled scores that are read a block of keys at a time.

    Args:
        scaled: (b, num_heads, num_tokens, num_tokens), the future at -inf.
        values: (b, num_heads, num_tokens, head_dim).
        size: keys of a block; the last may be shorter.
        top: what a block is measured from.
        powers: what becomes of a block and the largest score so far.
        total, context: how either is kept.
        each: what becomes of the context after a block.
        over: what is returned, of context, total and the last block's sum.
    """
    largest, powers_sum, mixed = torch.full_like(scaled[..., :1], -torch.inf), 0.0, 0.0
    for block, v in zip(scaled.split(size, -1), values.split(size, -2), strict=True):
        before, largest = largest, top(largest, block)
        shrink, parts = torch.exp(before - largest), powers(block, largest)
        new = parts.sum(-1, keepdim=True)
        powers_sum = total(powers_sum, shrink, new)
        mixed = each(context(mixed, shrink, parts @ v), powers_sum)
    return over(mixed, powers_sum, new)
