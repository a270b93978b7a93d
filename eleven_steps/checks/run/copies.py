"""Copies of what a learner's code holds, and the tensors in it; fused attention taken apart."""

from collections.abc import Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import nn

from eleven_steps.checks.run.isolate import CPU_STRIDED, Failure, attempt, type_name
from eleven_steps.helpers.attention import MultiHeadAttention

KEEPABLE = 100_000  # numbers in a tensor that is kept: no answer and no case needs a tenth of it
LARGEST = 10**300
DEEPEST, LONGEST = 9, 1000  # lists in lists, and things in a list


def tensors_in(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    """The tensors among some values, and in what these hold."""
    return (value for value in flat(values) if isinstance(value, torch.Tensor))


def flat(values: Iterable[Any]) -> Iterator[Any]:
    """Values, and in place of lists, tuples, dictionaries and slices what these hold."""
    for value in values:
        if isinstance(value, slice):
            value = value.start, value.stop, value.step
        if isinstance(value, tuple | list | dict):
            yield from flat(value.values() if isinstance(value, dict) else value)
        else:
            yield value


def attention_apart(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    """What torch's fused attention does, call by call."""
    if enable_gqa:
        group = query.size(-3) // key.size(-3)
        key, value = (tensor.repeat_interleave(group, -3) for tensor in (key, value))
    scores = query @ key.transpose(-2, -1) * (query.size(-1) ** -0.5 if scale is None else scale)
    if is_causal:
        past = torch.ones(query.size(-2), key.size(-2), dtype=torch.bool).tril()
        scores = scores.masked_fill(~past, -torch.inf)
    elif attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, -torch.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    return scores.softmax(-1) @ value


def held_by(module: Any) -> list[tuple[str, torch.Tensor]]:
    """The parameters and buffers of a module, by name."""
    if not isinstance(module, nn.Module):
        return []
    kinds = module.named_parameters, module.named_buffers
    return [held for kind in kinds for held in kind(remove_duplicate=False)]


def copy_of(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor as it is now; of a large one its shape alone."""
    strided = tensor.device.type == "cpu" and tensor.layout == torch.strided
    if not strided or tensor.numel() > KEEPABLE:
        return torch.empty(tuple(tensor.shape), device="meta")
    copy = attempt(lambda: tensor.detach().clone().as_subclass(torch.Tensor))
    return torch.empty(0) if isinstance(copy, Failure) else copy


def version_of(tensor: torch.Tensor) -> int:
    """How often a tensor was written into, through whatever view."""
    version = attempt(lambda: tensor._version)
    return version if type(version) is int else 0


def memory_of(tensor: torch.Tensor) -> int:
    """Where a tensor's numbers lie; 0 where that is not told."""
    address = attempt(lambda: tensor.untyped_storage().data_ptr())
    return address if type(address) is int else 0


# What may travel


def as_data(value: Any, depth: int = DEEPEST) -> Any:
    """Return a number, text, tensor, list or dictionary as a copy that nobody else holds.

    Only what is exactly of these types is kept: an object of any other, a subclass of Tensor for
    one, becomes an object that has the name of its type and nothing else. Of a tensor with more
    than KEEPABLE numbers, as `expand` makes them, the shape is kept.
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
    """Return an object of which nothing is known but the name of its type."""
    return type(name, (), {})()


def _numbers(value: Any, kind: type) -> torch.Tensor | np.ndarray | None:
    if kind is np.ndarray:
        return torch.as_tensor(value.copy()).numpy()  # of numbers, not of objects
    if kind not in (torch.Tensor, nn.Parameter) or value.is_quantized:
        return None
    if (value.layout, value.device.type) != CPU_STRIDED:
        return None
    if value.numel() > KEEPABLE:
        return torch.empty(value.shape, dtype=value.dtype, device="meta")
    return value.detach().clone().resolve_conj().resolve_neg()
