"""Compare two results so that NaN or an empty result never counts as equal."""

from collections.abc import Iterable

import torch


def worst(pairs: Iterable[tuple[torch.Tensor, torch.Tensor]]) -> float:
    """Return the largest absolute difference between elements, over all pairs of tensors.

    Python's max() loses a NaN: max(0.0, nan) is 0.0. Here one NaN anywhere makes the answer NaN,
    and NaN <= limit is False.

    Raises:
        ValueError: there is no pair, a tensor is empty, or two shapes differ.
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
