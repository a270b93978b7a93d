"""What a tensor is in memory: one flat row of numbers, and strides that say how to walk it."""

from collections.abc import Sequence

import torch

from helpers.pictures.svg import Drawing, Picture, below, grid, heading, picture
from helpers.pictures.tensors import Shown, chain

PER_LINE = 18


def draw_memory(shown: Sequence[Shown], title: str, between: Sequence[str] = ()) -> Picture:
    """Draw the storage of tensors in order, each with its shape, stride and whether contiguous.

    Args:
        shown, title, between: as for draw_tensors.
    """
    strips, facts = zip(*map(strip, shown), strict=True)
    return picture(chain(strips, between), title, "; ".join(facts) + ".")


def strip(shown: Shown) -> tuple[Drawing, str]:
    """Return the storage strip of a tensor and its facts in words."""
    tensor, numbers = shown.tensor, storage(shown.tensor).tolist()
    size = len(numbers)
    heads: list[int | None] = [None] * size
    for index in indices(tensor):
        heads[place(tensor, index)] = shown.head(index)
    lines = []
    for start in range(0, size, PER_LINE):
        stop = min(start + PER_LINE, size)
        owners = heads[start:stop]
        lines.append(
            grid(
                [numbers[start:stop]],
                heads=[owners],
                column_labels=list(map(str, range(start, stop))),
                foot_labels=["" if head is None else f"h{head}" for head in owners],
            )
        )
    contiguous = "contiguous" if tensor.is_contiguous() else "not contiguous"
    facts = f"shape {tuple(tensor.shape)}, stride {tensor.stride()}, {contiguous}"
    return below([heading(shown.name, facts), *lines], gap=4), f"{shown.name} {facts}"


def storage(tensor: torch.Tensor) -> torch.Tensor:
    """Return all numbers of a tensor's storage in order, however the tensor walks them."""
    size = tensor.untyped_storage().nbytes() // tensor.element_size()
    return tensor.as_strided((size,), (1,), 0)


def indices(tensor: torch.Tensor) -> list[tuple[int, ...]]:
    """List every index of a tensor, the last axis fastest."""
    return list(map(tuple, torch.ones(tensor.shape).nonzero().tolist()))


def place(tensor: torch.Tensor, index: Sequence[int]) -> int:
    """Say where in storage the element at an index lies."""
    steps = zip(index, tensor.stride(), strict=True)
    return tensor.storage_offset() + sum(i * stride for i, stride in steps)
