"""The one primitive: a grid of numbers in cells, in the colours of their heads."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eleven_steps.pictures import svg


def grid(
    rows: Sequence[Sequence[float]],
    heads: Sequence[Sequence[int | None]] | None = None,
    shades: Sequence[Sequence[float]] | None = None,
    marked: Iterable[tuple[int, int]] = (),
    row_labels: Sequence[str] = (),
    column_labels: Sequence[str] = (),
    foot_labels: Sequence[str] = (),
    top_labels: Sequence[str] = (),
    cell: tuple[float, float] = (svg.CELL_WIDTH, svg.CELL_HEIGHT),
    written: bool = True,
    kept: Sequence[Sequence[bool]] | None = None,
) -> svg.Drawing:
    """Draw numbers in cells, one colour per head.

    Args:
        rows: the numbers, row by row; -inf is written so, on hatched ground.
        heads: the head each cell belongs to, laid out as rows; None is no head.
        shades: how strong each cell's colour is, from 0 to 1, laid out as rows.
        marked: (row, column) of the cells to frame.
        row_labels, column_labels, foot_labels: what stands left of, above and below the cells.
        top_labels: what stands above the column labels.
        cell: width and height of a cell.
        written: whether the numbers are written; if not, shades are all there is to see.
        kept: which cells to draw in full, laid out as rows; the others stay empty.
    """
    left = svg.CHARACTER * max(map(len, row_labels), default=0) + (6 if row_labels else 0)
    above = [line for line in (top_labels, column_labels) if line]
    top, (width, height) = 16 * len(above), cell
    marked = set(marked)
    cells = [
        Cell(
            value,
            *(left + j * width, top + i * height),
            svg.head_colour(heads[i][j] if heads else None),
            None if shades is None else shades[i][j],
            kept is None or kept[i][j],
            (i, j) in marked,
        )
        for i, row in enumerate(rows)
        for j, value in enumerate(row)
    ]
    below_cells = top + height * len(rows)
    lines = [*zip((11, 27), above, strict=False), (below_cells + 14, foot_labels)]
    body = by_look(cells, cell, written) + hatched(cells, cell, written) + framed(cells, cell)
    body += "".join(
        svg.text(label, left - 6, top + (i + 0.5) * height + 4, "end")
        for i, label in enumerate(row_labels)
    )
    body += "".join(
        svg.text(label, left + (j + 0.5) * width, y, "middle")
        for y, labels in lines
        for j, label in enumerate(labels)
        if label
    )
    body += numbers(cells, cell) if written else ""
    right = left + width * max(map(len, rows), default=0)
    return svg.Drawing(body, right, below_cells + (17 if foot_labels else 0))


@dataclass(frozen=True)
class Cell:
    """Hold one number of a grid."""

    value: float
    x: float  # where its cell's top left corner stands
    y: float
    colour: str  # its head's
    shade: float | None  # how strong its colour is, from 0 to 1
    full: bool  # whether it is drawn; if not, its cell stays empty
    marked: bool  # whether it is framed

    def outline(self, size: tuple[float, float]) -> str:
        """Return the path around the cell."""
        return svg.outline(self.x, self.y, *size)

    def look(self, written: bool) -> tuple[str, float, float]:
        """Return the colour, the width of the line around it, and how opaque the cell is."""
        if not self.full:
            return svg.NEUTRAL, 0.4, 0.0
        line = 1 if written else 0.2
        # With nothing to read through it a shade may be deep.
        step = svg.STEP if written else 2 * svg.STEP
        if self.value == -math.inf:
            return self.colour, line, svg.FAINT
        opacity = svg.TINT if self.shade is None else svg.FAINT + step * round(self.shade * 10)
        return self.colour, line, opacity


def by_look(cells: Sequence[Cell], size: tuple[float, float], written: bool) -> str:
    """Draw cells, those that look alike as one path: that is short."""
    looks: dict[tuple[str, float], dict[float, str]] = {}
    for cell in cells:
        colour, line, opacity = cell.look(written)
        alike = looks.setdefault((colour, line), {})
        alike[opacity] = alike.get(opacity, "") + cell.outline(size)
    return "".join(
        f'<g fill="{colour}" stroke="{colour}" stroke-width="{line}">'
        + "".join(f'<path d="{d}" fill-opacity="{opacity:g}"/>' for opacity, d in paths.items())
        + "</g>"
        for (colour, line), paths in looks.items()
    )


def hatched(cells: Sequence[Cell], size: tuple[float, float], written: bool) -> str:
    """Hatch the cells that hold -inf, around the number if there is one."""
    wide, high = size
    end = f"l{0.26 * wide:g} -{0.26 * high:g}"
    around = f"{end}m{0.48 * wide:g} -{0.48 * high:g}{end}"
    way = around if written else f"l{wide:g} -{high:g}"
    hidden = [cell for cell in cells if cell.full and cell.value == -math.inf]
    d = "".join(f"M{cell.x:g} {cell.y + high:g}{way}" for cell in hidden)
    return f'<path d="{d}" style="stroke:{svg.LINE}" stroke-opacity="0.5"/>' if d else ""


def framed(cells: Sequence[Cell], size: tuple[float, float]) -> str:
    """Frame the cells that are marked."""
    d = "".join(cell.outline(size) for cell in cells if cell.marked)
    return f'<path d="{d}" fill="none" stroke-width="3" style="stroke:{svg.INK}"/>' if d else ""


def numbers(cells: Sequence[Cell], size: tuple[float, float]) -> str:
    """Write the numbers of cells in their middle."""
    right, down = size[0] / 2, size[1] / 2 + 4
    drawn = "".join(
        svg.text(svg.number(cell.value), cell.x + right, cell.y + down)
        for cell in cells
        if cell.full
    )
    return f'<g text-anchor="middle">{drawn}</g>' if drawn else ""
