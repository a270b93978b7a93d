"""Vectors with two features as arrows, and small matrices under names of their own."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from eleven_steps.pictures import svg
from eleven_steps.pictures.grid import grid

UNIT = 62  # pixels for 1 along an axis
MARGIN = 26
FAR = 7  # pixels from a tip to its name
HALO = f"paint-order:stroke;stroke:{svg.GROUND};stroke-width:5px"  # keeps lines out of names
LETTERS = 14  # pixels: how high a line of a name is
MOST_ROWS, MOST_COLUMNS = 12, 12
LOOKS = {
    "plain": 'stroke-width="1.5"',
    "strong": 'stroke-width="4"',
    "dashed": 'stroke-width="2" stroke-dasharray="6 4"',
}


@dataclass(frozen=True)
class Arrow:
    """Say how to draw a vector."""

    name: str  # written at its tip; "" for none
    end: Sequence[float]  # the vector's two numbers
    look: str = "plain"  # or strong, or dashed
    colour: str = svg.INK  # of its line and its head; its name is in INK

    def __post_init__(self):
        if len(self.end) != 2 or not all(map(math.isfinite, self.end)):
            raise ValueError(f"{self.name} is {list(self.end)}: two finite numbers are expected")
        if self.look not in LOOKS:
            raise ValueError(f"{self.name} looks {self.look!r}: {', '.join(LOOKS)} are expected")


def draw_vectors(
    arrows: Sequence[Arrow],
    title: str,
    axes: tuple[str, str] = ("feature 0", "feature 1"),
    corners: tuple[tuple[float, float], tuple[float, float]] = ((0, 0), (4, 4)),
    shares: Sequence[tuple[str, float]] = (),
    angle: tuple[int, int] | None = None,
) -> svg.Picture:
    """Draw vectors in a plane.

    Args:
        arrows: what to draw.
        axes: what the two features mean.
        corners: the smallest and the largest values of (x, y) in sight; ValueError outside.
        shares: words with the share each gets, from 0 to 1, as a row below the plane.
        angle: places of two arrows: the angle from the first to the second is drawn, and the
            shadow that the second casts on the first.
    """
    (left, bottom), (right, top) = corners
    for arrow in arrows:
        if not (left <= arrow.end[0] <= right and bottom <= arrow.end[1] <= top):
            raise ValueError(f"{arrow.name} {list(arrow.end)} lies outside of {corners}")

    def place(x: float, y: float) -> tuple[float, float]:
        return MARGIN + (x - left) * UNIT, 1.5 * MARGIN + (top - y) * UNIT

    body = axis_lines(axes, corners, place)
    body += shadow(arrows[angle[0]].end, arrows[angle[1]].end, place) if angle else ""
    body += "".join(arrow_line(arrow, place) for arrow in arrows) + arrow_names(arrows, place)
    ends = [place(*arrow.end)[0] + 8 + svg.CHARACTER * len(arrow.name) for arrow in arrows]
    width = max(2 * MARGIN + (right - left) * UNIT, *ends)
    height = 1.5 * MARGIN + (top - bottom) * UNIT + (MARGIN if bottom < 0 else 42)
    drawing = svg.Drawing(body, width, height)
    if shares:
        columns = [word for word, _ in shares]
        row = [[share for _, share in shares]]
        cell = cell_for(columns)
        table = grid(row, shades=row, column_labels=columns, row_labels=["weight"], cell=cell)
        drawing = svg.below([drawing, table], gap=4)
    told = "; ".join(f"{a.name} ({a.end[0]:.2f}, {a.end[1]:.2f})" for a in arrows if a.name)
    return svg.picture(drawing, title, f"Vectors as ({axes[0]}, {axes[1]}): {told}.")


def axis_lines(axes, corners, place) -> str:
    """Draw the two axes with whole numbers along them and their meanings at their ends."""
    (left, bottom), (right, top) = corners
    (x0, y0), (x1, y1), (x, y) = place(left, bottom), place(right, top), place(0, 0)
    body = f'<path d="M{x0:g} {y:g}H{x1:g}M{x:g} {y0:g}V{y1:g}" style="stroke:{svg.LINE}"/>'
    for whole in range(math.ceil(left), math.floor(right) + 1):
        if whole:
            body += svg.text(str(whole), place(whole, 0)[0], y + 16, "middle")
    for whole in range(math.ceil(bottom), math.floor(top) + 1):
        if whole:
            body += svg.text(str(whole), x - 8, place(0, whole)[1] + 4, "end")
    return body + svg.text(axes[0], x1, y + 34, "end") + svg.text(axes[1], x - 14, y1 - 24)


def arrow_line(arrow: Arrow, place) -> str:
    """Draw an arrow with its head."""
    (x0, y0), (x, y) = place(0, 0), place(*arrow.end)
    long = math.hypot(x - x0, y - y0)
    if long < 1:
        return f'<circle cx="{x:g}" cy="{y:g}" r="3" style="fill:{arrow.colour}"/>'
    along, across = ((x - x0) / long, (y - y0) / long), ((y0 - y) / long, (x - x0) / long)
    # Short arrows have small heads: many large ones at one place are a blot.
    back = min(9, long if arrow.look == "strong" else long / 4)
    tips = [
        (x - back * along[0] + side * across[0], y - back * along[1] + side * across[1])
        for side in (back / 2, -back / 2)
    ]
    head = f"M{x:.1f} {y:.1f}" + "".join(f"L{a:.1f} {b:.1f}" for a, b in tips) + "z"
    neck = x - back / 2 * along[0], y - back / 2 * along[1]
    return (
        f'<path d="M{x0:.1f} {y0:.1f}L{neck[0]:.1f} {neck[1]:.1f}" {LOOKS[arrow.look]} '
        f'fill="none" style="stroke:{arrow.colour}"/><path d="{head}" style="fill:{arrow.colour}"/>'
    )


def arrow_names(arrows: Sequence[Arrow], place) -> str:
    """Write each arrow's name beyond its tip, over none of the tips and of the other names."""
    tips = [place(*arrow.end) for arrow in arrows]
    body, taken = "", [(x - 6, x + 6, y + 4) for x, y in tips]  # no name may cover one
    for arrow in (arrow for arrow in arrows if arrow.name):
        (x, y), long = place(*arrow.end), svg.CHARACTER * len(arrow.name)
        aside = arrow.end[0] < 0 and x - FAR >= long
        y += 18 if arrow.end[1] < 0 else -1 - FAR / 2
        y = free(y, x - FAR - long if aside else x + FAR, long, taken)
        style = HALO + (";font-weight:700" if arrow.look == "strong" else "")
        x, anchor = (x - FAR, "end") if aside else (x + FAR, "start")
        body += svg.text(arrow.name, x, y, anchor, style)
    return body


def free(y: float, left: float, long: float, taken: list[tuple[float, float, float]]) -> float:
    """Return how far down a name can stand, at y or above it, and take that place.

    Args:
        y: where it would stand if it were alone.
        left, long: where it begins, and how long it is; all in pixels.
        taken: left end, right end and y of each tip, and of each name that stands; it gets one
            more.
    """
    while any(
        left < right and begins < left + long and abs(y - other) < LETTERS
        for begins, right, other in taken
    ):
        y -= 1
    if long:
        taken.append((left, left + long, y))
    return y


def shadow(first: Sequence[float], second: Sequence[float], place) -> str:
    """Draw the arc from one vector to another, and the second's shadow on the first's line."""
    dot = first[0] * second[0] + first[1] * second[1]
    share = dot / (first[0] ** 2 + first[1] ** 2)
    foot, tip = place(first[0] * share, first[1] * share), place(*second)
    (x, y), ends = place(0, 0), []
    for vector in (first, second):
        size = 2 * math.hypot(*vector)
        ends.append(place(vector[0] / size, vector[1] / size))
    radius = place(0.5, 0)[0] - x  # an arc half a unit away from the origin
    turned = first[0] * second[1] - first[1] * second[0] < 0
    return (
        f'<path d="M{x:.1f} {y:.1f}L{foot[0]:.1f} {foot[1]:.1f}" stroke-width="9" '
        f'stroke-opacity="0.3" style="stroke:{svg.INK}"/>'
        f'<path d="M{tip[0]:.1f} {tip[1]:.1f}L{foot[0]:.1f} {foot[1]:.1f}" '
        f'stroke-dasharray="3 3" style="stroke:{svg.INK}"/>'
        f'<path d="M{ends[0][0]:.1f} {ends[0][1]:.1f}A{radius} {radius} 0 0 {int(turned)} '
        f'{ends[1][0]:.1f} {ends[1][1]:.1f}" fill="none" style="stroke:{svg.INK}"/>'
    )


def draw_matrices(
    matrices: Mapping[str, torch.Tensor],
    title: str,
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    shade: str = "",
    heads: Sequence[int | None] = (),
) -> svg.Picture:
    """Draw small matrices, each under its name; whole numbers stand without decimals.

    Args:
        matrices: tensors (rows, columns) by name.
        rows, columns: labels of every matrix; where only columns have some, the matrices stand
            below each other, so that each number stands below what it is made of.
        shade: which of them hold shares from 0 to 1, whose colour follows the number.
        heads: the head that each row belongs to, for its colour; none, if none is given.

    Raises:
        ValueError: one is not 2-D, is too large to draw, or does not fit the labels or heads.
    """
    check_matrices(matrices, rows, columns, heads)
    drawn = [
        svg.labelled(
            f"{name} {tuple(matrix.shape)}",
            grid(
                listed(matrix),
                heads=[[head] * matrix.shape[1] for head in heads] or None,
                shades=matrix.tolist() if name in shade.split() else None,
                row_labels=rows,
                column_labels=columns,
                cell=cell_for(columns),
            ),
        )
        for name, matrix in matrices.items()
    ]
    together = (
        svg.below(drawn, gap=8) if columns and not rows else svg.beside(drawn, gap=2 * svg.GAP)
    )
    told = "; ".join(f"{name} = {listed(matrix, 2)}" for name, matrix in matrices.items())
    return svg.picture(together, title, f"{told}.")


def check_matrices(matrices, rows, columns, heads) -> None:
    """Raise ValueError unless matrices are small enough, and all fit the labels and heads."""
    for name, matrix in matrices.items():
        shape = tuple(matrix.shape)
        if len(shape) != 2 or shape[0] > MOST_ROWS or shape[1] > MOST_COLUMNS:
            raise ValueError(
                f"{name} has shape {shape}: a matrix of at most {MOST_ROWS} x {MOST_COLUMNS} is "
                f"expected"
            )
        if (rows and len(rows) != shape[0]) or (columns and len(columns) != shape[1]):
            raise ValueError(
                f"{name} has shape {shape}, but {len(rows)} rows and {len(columns)} columns have "
                f"names"
            )
        if heads and len(heads) != shape[0]:
            raise ValueError(
                f"{name} has shape {shape}, but {len(heads)} heads are given: one for each row is "
                f"expected"
            )


def listed(matrix: torch.Tensor, decimals: int | None = None) -> list[list[float]]:
    """Return a matrix (rows, columns) as lists, of ints where all of it is whole."""
    if torch.equal(matrix, matrix.round() if matrix.is_floating_point() else matrix):
        return matrix.long().tolist()
    return [[v if decimals is None else round(v, decimals) for v in row] for row in matrix.tolist()]


def cell_for(labels: Sequence[str]) -> tuple[float, float]:
    """Return the size of a cell that is as wide as the longest label over it."""
    longest = max(map(len, labels), default=0)
    return max(svg.CELL_WIDTH, svg.CHARACTER * longest + 6), svg.CELL_HEIGHT
