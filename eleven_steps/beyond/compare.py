"""Compare two results so that NaN or an empty result never counts as equal."""

from collections.abc import Iterable

import torch


def worst(pairs: Iterable[tuple[torch.Tensor, torch.Tensor]]) -> float:
    """Return the largest absolute difference between elements, over all pairs of tensors.

    One NaN anywhere makes it NaN, so that NaN <= limit is False; Python's max() would lose a NaN.
    """
    differences = []
    for one, other in pairs:
        if one.shape != other.shape or not one.numel():
            raise ValueError(
                f"shapes are {tuple(one.shape)} and {tuple(other.shape)}: two equal ones, with "
                f"numbers to compare, are expected"
            )
        differences.append((one - other).abs().max().double())
    if not differences:
        raise ValueError("nothing was compared: a pair of tensors is expected")
    return torch.stack(differences).max().item()
