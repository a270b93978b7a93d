"""What a recording needs of tensors: find them, copy them, and take fused attention apart."""

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import nn

from eleven_steps.checks.run.isolate import Failure, attempt

MOST = 70_000  # numbers in a tensor that is kept; those of the cases are smaller


def tensors_in(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    """The tensors among some values, and in what these hold."""
    return (each for each in flat(values) if isinstance(each, torch.Tensor))


def flat(values: Iterable[Any]) -> Iterator[Any]:
    """Values, and in place of lists, tuples, dictionaries and slices what these hold."""
    for value in values:
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
        key, value = (each.repeat_interleave(group, -3) for each in (key, value))
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
    return [
        *module.named_parameters(remove_duplicate=False),
        *module.named_buffers(remove_duplicate=False),
    ]


def copy_of(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor as it is now; of a large one its shape alone."""
    plain = tensor.device.type == "cpu" and tensor.layout == torch.strided
    if not plain or tensor.numel() > MOST:
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
