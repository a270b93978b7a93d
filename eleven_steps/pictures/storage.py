"""What a tensor is in memory: one flat row of numbers, and strides that say how to walk it."""

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import product
from operator import mul

import torch

from eleven_steps.pictures import svg
from eleven_steps.pictures.grid import grid
from eleven_steps.pictures.tensors import Shown, chain

PER_LINE, MOST_LINES = 18, 20
PER_PART = 6  # of a line, which breaks between parts where a page is narrow


def draw_memory(shown: Sequence[Shown], title: str, between: Sequence[str] = ()) -> svg.Picture:
    """Draw the storage of tensors in order, each with its shape, stride and whether contiguous.

    Any strided tensor will do: a slice leaves the places empty that it does not read, and an
    expanded tensor reads a place several times.

    Args:
        shown, title, between: as for draw_tensors.

    Raises:
        ValueError: a storage is too long to draw.
    """
    strips, facts = zip(*map(strip, shown), strict=True)
    return svg.picture(chain(strips, between), title, "; ".join(facts) + ".")


def strip(shown: Shown) -> tuple[svg.Drawing, str]:
    """Return the storage strip of a tensor and its facts in words."""
    tensor, numbers = shown.tensor, storage(shown.tensor).tolist()
    if len(numbers) > PER_LINE * MOST_LINES:
        raise ValueError(
            f"{shown.name} has {len(numbers)} places in storage: at most "
            f"{PER_LINE * MOST_LINES} can be drawn"
        )
    readers = read_by(shown)
    lines = []
    for start in range(0, len(numbers), PER_LINE):
        line = range(start, min(start + PER_LINE, len(numbers)))
        parts = [line[i : i + PER_PART] for i in range(0, len(line), PER_PART)]
        cells = [cells_at(part, numbers, readers) for part in parts]
        lines.append(svg.beside(cells, math.inf, 0))
    facts = f"shape {tuple(tensor.shape)}, stride {tensor.stride()}, "
    facts += f"offset {tensor.storage_offset()}, " if tensor.storage_offset() else ""
    facts += "contiguous" if tensor.is_contiguous() else "not contiguous"
    above, told = [svg.heading(shown.name, facts)], f"{shown.name} {facts}"
    if len(readers) < tensor.numel():
        more = f"its {tensor.numel()} numbers stand in {len(readers)} places"
        above.append(svg.line(more, 12, 16))
        told += f", {more}"
    return svg.below([*above, *lines], gap=4), told


def cells_at(
    places: range, numbers: list[float], readers: dict[int, set[int | None]]
) -> svg.Drawing:
    """Draw places of a storage in a row, with whom each belongs to."""
    owners = [readers.get(i, set()) for i in places]
    return grid(
        [[numbers[i] for i in places]],
        heads=[[min(heads) if len(heads) == 1 else None for heads in owners]],
        kept=[[bool(heads) for heads in owners]],
        column_labels=list(map(str, places)),
        foot_labels=[owner(heads) for heads in owners],
    )


def read_by(shown: Shown) -> dict[int, set[int | None]]:
    """Map the places in storage that a tensor reads to the heads they belong to."""
    readers = defaultdict(set)
    start, strides = shown.tensor.storage_offset(), shown.tensor.stride()
    for index in product(*map(range, shown.tensor.shape)):
        readers[start + sum(map(mul, index, strides))].add(shown.head(index))
    return readers


def owner(heads: set[int | None]) -> str:
    """Name the heads that read a place."""
    named = sorted(heads - {None})
    if not named:
        return ""
    return f"h{named[0]}" if len(named) == 1 else f"h{named[0]}-{named[-1]}"


def storage(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor's storage, (numbers,), in order, however the tensor walks it."""
    size = tensor.untyped_storage().nbytes() // tensor.element_size()
    return tensor.as_strided((size,), (1,), 0)
