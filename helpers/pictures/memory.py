"""What a tensor is in memory: one flat row of numbers, and strides that say how to walk it."""

import torch

from helpers.pictures.svg import Drawing, Picture, below, grid, heading, picture
from helpers.pictures.tensors import Shown

PER_LINE = 18


def draw_memory(shown: Shown, title: str) -> Picture:
    """Draw a tensor's storage in order, and its shape, stride and whether it is contiguous.

    Args:
        shown: the tensor, its letters and its heads, as for draw_tensor.
        title: what there is to see, in a sentence.
    """
    drawing, facts = strip(shown)
    return picture(drawing, title, f"{shown.name}: {facts}.")


def strip(shown: Shown) -> tuple[Drawing, str]:
    """Return the storage strip of a tensor and its facts in words."""
    tensor = shown.tensor
    size = tensor.untyped_storage().nbytes() // tensor.element_size()
    storage = tensor.as_strided((size,), (1,), 0)
    heads: list[int | None] = [None] * size
    for place, index in zip(places(tensor), indices(tensor), strict=True):
        heads[place] = shown.head(index)
    lines = []
    for start in range(0, size, PER_LINE):
        stop = min(start + PER_LINE, size)
        owners = heads[start:stop]
        lines.append(
            grid(
                [storage[start:stop].tolist()],
                heads=[owners],
                column_labels=list(map(str, range(start, stop))),
                foot_labels=["" if head is None else f"h{head}" for head in owners],
            )
        )
    contiguous = "contiguous" if tensor.is_contiguous() else "not contiguous"
    facts = f"shape {tuple(tensor.shape)}, stride {tensor.stride()}, {contiguous}"
    return below([heading(shown.name, facts), *lines], gap=4), facts


def indices(tensor: torch.Tensor) -> list[tuple[int, ...]]:
    """List every index of a tensor, the last axis fastest."""
    return list(map(tuple, torch.ones(tensor.shape).nonzero().tolist()))


def places(tensor: torch.Tensor) -> list[int]:
    """List where in storage each element lies, in the order of indices."""
    strides = tensor.stride()
    return [
        tensor.storage_offset() + sum(i * s for i, s in zip(index, strides, strict=True))
        for index in indices(tensor)
    ]
