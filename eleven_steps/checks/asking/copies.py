"""Copy what a learner's code returns, from plain types only."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import nn

from eleven_steps.checks.asking.isolation import CPU_STRIDED, attempt, type_name
from eleven_steps.helpers.attention import MultiHeadAttention

KEEPABLE = 100_000  # numbers in a copied tensor, ten times what any answer needs
LARGEST = 10**300
DEEPEST, LONGEST = 9, 1000  # nesting of lists, and items in a list


def as_data(value: Any, depth: int = DEEPEST) -> Any:
    """Copy a number, text, tensor, list or dictionary, so that nobody else holds the copy.

    Only what is exactly of these types is kept: an object of any other type, a subclass of Tensor
    for example, becomes an object that has the name of its type and nothing else. Of a tensor with
    more than KEEPABLE numbers, as `expand` makes them, the shape is kept.
    """
    kind = type(value)
    if value is None or value is ... or kind in (bool, float):
        return value
    if kind is int:
        return max(min(value, LARGEST), -LARGEST)
    if kind in (Fraction, Decimal):
        return float(value)
    if issubclass(kind, np.number | np.bool_):
        return as_data(value.item(), 0)
    if kind is str:
        return value[:LONGEST]
    if kind in (list, tuple, range, torch.Size) and depth and len(value) <= LONGEST:
        return (list if kind is list else tuple)(as_data(part, depth - 1) for part in value)
    if kind is dict and depth and len(value) <= LONGEST:
        return {key: as_data(value[key], depth - 1) for key in value if type(key) in (str, int)}
    if kind is MultiHeadAttention:
        return value
    kept = attempt(_numbers, value, kind)
    return kept if type(kept) in (torch.Tensor, np.ndarray) else stand_in(type_name(value))


def stand_in(name: str) -> Any:
    """Make an object that has nothing but the name of a type."""
    return type(name, (), {})()


def _numbers(value: Any, kind: type) -> torch.Tensor | np.ndarray | None:
    if kind is np.ndarray:
        return torch.as_tensor(value.copy()).numpy()  # of numbers, not of objects
    if kind not in (torch.Tensor, nn.Parameter) or value.is_quantized:
        return None
    if value.device.type == "meta" or value.layout != torch.strided:
        return torch.empty(value.shape, dtype=value.dtype, device="meta")
    if (value.layout, value.device.type) != CPU_STRIDED:
        return None
    if value.numel() > KEEPABLE:
        return torch.empty(value.shape, dtype=value.dtype, device="meta")
    return value.detach().clone().resolve_conj().resolve_neg()
