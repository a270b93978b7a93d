"""Tensors as grids: one, several in a row of changes, a matrix product."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product, zip_longest
from typing import Protocol

import torch

from eleven_steps.pictures import svg
from eleven_steps.pictures.grid import grid

# What one index along an axis counts.
COUNTS = {
    "b": "sequence",
    "num_tokens": "token",
    "num_keys": "key",
    "num_heads": "head",
    "num_kv_heads": "head",
    "head_dim": "feature",
    "d_in": "feature",
    "d_out": "feature",
    "context_length": "token",
}
MAX_COLUMNS, MAX_GRIDS = 18, 40
COMPARED = {"scores", "masked", "weights"}  # one is read beside the others of its row


@dataclass(frozen=True)
class Shown:
    """Say how to draw a tensor.

        draw_tensors([Shown(queries, "queries", "b num_tokens d_out", num_heads=2)], "Two heads")

    Args:
        tensor: the numbers, two to four dimensions.
        name: what the course calls it, "queries" for one.
        letters: its axes in the course's letters, "b num_tokens d_out" for one.
        num_heads: where no axis is called num_heads but the last one holds the heads side by side,
            their number; None draws it grey.
        only_head: the one head that all of the tensor belongs to, or None.
        owners: the head that each element belongs to, of the tensor's shape, where no axis says it.
        marked: indices of the elements to frame.
        shade: whether the colour's strength follows the number, as it always does where numbers are
            read beside each other: scores, masked, weights.
    """

    tensor: torch.Tensor
    name: str
    letters: str
    num_heads: int | None = None
    only_head: int | None = None
    marked: Sequence[tuple[int, ...]] = ()
    shade: bool = False
    owners: torch.Tensor | None = None

    def __post_init__(self):
        if not 2 <= self.tensor.dim() <= 4 or self.tensor.dim() != len(self.axes):
            raise ValueError(
                f"{self.name} has shape {tuple(self.tensor.shape)}, but its letters are "
                f"({', '.join(self.axes)}): two to four axes, one letter each, are expected"
            )
        if self.owners is not None and self.owners.shape != self.tensor.shape:
            raise ValueError(
                f"the owners of {self.name} have shape {tuple(self.owners.shape)}: expected "
                f"{tuple(self.tensor.shape)}, one for each number"
            )

    @property
    def axes(self) -> list[str]:
        """Return the letters of the shape as a list."""
        return self.letters.split()

    @property
    def shape(self) -> str:
        """Return the shape in letters and in numbers."""
        return f"({', '.join(self.axes)}) = {tuple(self.tensor.shape)}"

    @property
    def strength(self) -> torch.Tensor | None:
        """Return how strong each cell's colour is, from 0 to 1, or None where all are alike."""
        if not self.shade and self.name not in COMPARED or self.tensor.is_meta:
            return None
        return self.tensor if self.name == "weights" else shades(self.tensor)

    def head(self, index: tuple[int, ...]) -> int | None:
        """Return the head that the element at index belongs to."""
        if self.owners is not None:
            return int(self.owners[index])
        for axis in {"num_heads", "num_kv_heads"} & set(self.axes):
            return index[self.axes.index(axis)]
        if self.num_heads is None:
            return self.only_head
        return index[-1] * self.num_heads // self.tensor.shape[-1]


class TracedStep(Protocol):
    """What a picture asks of a traced step: helpers.trace.Step is one."""

    number: int
    name: str
    letters: str
    tensors: dict[str, torch.Tensor]


def draw_tensors(shown: Sequence[Shown], title: str, between: Sequence[str] = ()) -> svg.Picture:
    """Draw tensors one below the other.

    Args:
        shown: the tensors, in the order in which they come about.
        between: what is done between each tensor and the next, written beside an arrow.
    """
    description = "; ".join(f"{one.name} {one.shape}" for one in shown) + "."
    return svg.picture(chain([block(one) for one in shown], between), title, description)


def draw_product(left: Shown, right: Shown, product: Shown, row: int, column: int) -> svg.Picture:
    """Draw a matrix product of 2-D tensors, with one row, one column and the cell they make framed.

    Args:
        left, right, product: as in product = left @ right.
        row, column: the element of product to follow.
    """
    inner = left.tensor.shape[1]
    if not (0 <= row < len(product.tensor) and 0 <= column < product.tensor.shape[1]):
        raise ValueError(
            f"row {row}, column {column} is not in {product.name}, whose shape is "
            f"{tuple(product.tensor.shape)}"
        )
    marks = ([(row, k) for k in range(inner)], [(k, column) for k in range(inner)], [(row, column)])
    shown = left, right, product
    planes = [plane(one, (), marked=cells) for one, cells in zip(shown, marks, strict=True)]
    a, b, c = (
        svg.labelled(f"{one.name} {tuple(one.tensor.shape)}", drawn)
        for one, drawn in zip(shown, planes, strict=True)
    )
    low, end = max(a.height, c.height), max(drawing.width for drawing in planes[1:])
    end_of_rows = b.height + svg.GAP + low
    # Columns stand below columns.
    x, y = (a.width + 2 * svg.GAP + end - drawing.width for drawing in planes[1:])
    together = svg.Drawing(
        svg.at(0, end_of_rows - a.height, a)
        + svg.at(x, 0, b)
        + svg.at(y, end_of_rows - c.height, c),
        max(x + b.width, y + c.width),
        end_of_rows,
    )
    value = product.tensor[row, column].item()
    told = value if isinstance(value, int) else f"{value:.4f}"
    return svg.picture(
        together,
        f"Row {row} of {left.name} meets column {column} of {right.name}: {told}",
        f"{product.name} {product.shape} is {left.name} {left.shape} times {right.name} "
        f"{right.shape}; each element is one dot product over {inner} pairs.",
    )


def block(shown: Shown) -> svg.Drawing:
    """Draw a tensor under its name and shape, one grid per index of the leading axes."""
    *outer, rows, columns = shown.tensor.shape
    count = math.prod(outer)
    if columns > MAX_COLUMNS or count * rows > MAX_GRIDS * 4:
        raise ValueError(
            f"{shown.name} has shape {tuple(shown.tensor.shape)}: at most {MAX_COLUMNS} columns "
            f"and {MAX_GRIDS * 4} rows can be drawn as numbers"
        )
    grids = []
    for where in product(*map(range, outer)):
        named = zip(shown.axes, where, strict=False)
        label = ", ".join(
            f"{COUNTS[a]} {i}" for a, i in named if a != "b" or shown.tensor.shape[0] > 1
        )
        drawing = plane(shown, where)
        grids.append(svg.labelled(label, drawing) if label else drawing)
    return svg.below([svg.heading(shown.name, shown.shape), svg.beside(grids)], gap=2)


def plane(
    shown: Shown, where: tuple[int, ...], marked: Sequence[tuple[int, int]] = ()
) -> svg.Drawing:
    """Draw the matrix at an index of the leading axes, its rows and columns labelled."""
    matrix = shown.tensor[where]
    rows, columns = (COUNTS.get(axis, axis) for axis in shown.axes[-2:])
    if rows == "token" and columns in ("token", "key"):
        rows, columns = "query", "key"
    size = range(matrix.shape[0]), range(matrix.shape[1])
    values = matrix.tolist()
    inside = [i[len(where) :] for i in shown.marked if i[: len(where)] == where]
    return grid(
        values,
        heads=[[shown.head((*where, i, j)) for j in size[1]] for i in size[0]],
        shades=None if shown.strength is None else shown.strength[where].tolist(),
        marked=[*inside, *marked],
        row_labels=[f"{rows} {i}" for i in size[0]],
        column_labels=[f"key {j}" if columns == "key" else str(j) for j in size[1]],
        top_labels=head_labels(shown),
    )


def shades(numbers: torch.Tensor) -> torch.Tensor:
    """Say how large each of (...) numbers is among the finite ones: (...), from 0 to 1."""
    finite = numbers[numbers.isfinite()]
    if not len(finite) or finite.max() == finite.min():
        return torch.ones_like(numbers)
    return ((numbers - finite.min()) / (finite.max() - finite.min())).clamp(0, 1)


def head_labels(shown: Shown) -> list[str]:
    """Name each head over its first column, where heads lie side by side."""
    if shown.num_heads is None or "num_heads" in shown.axes:
        return []
    width = shown.tensor.shape[-1]
    head_dim = width // shown.num_heads
    return [f"h{j // head_dim}" if j % head_dim == 0 else "" for j in range(width)]


def chain(drawings: Sequence[svg.Drawing], between: Sequence[str]) -> svg.Drawing:
    """Stack drawings from top to bottom, with an arrow after each that has a label in between."""
    parts = []
    for drawing, label in zip_longest(drawings, between):
        parts += [drawing] if label is None else [drawing, arrow(label)]
    return svg.below(parts, gap=10)


def arrow(label: str) -> svg.Drawing:
    """Draw an arrow down, with the operation written beside it; "and" is no operation."""
    if label == "and":
        return svg.line(label)
    body = (
        f'<path d="M12 1v14m-5 -5l5 6l5 -6" fill="none" stroke-width="2" style="stroke:{svg.INK}"/>'
    )
    return svg.Drawing(body + svg.text(label, 28, 14), 28 + svg.CHARACTER * len(label), 20)
