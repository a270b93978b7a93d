"""Panels of the eleven steps: a step's tensors as grids, from numbers to labelled outlines."""

import math
from collections.abc import Iterable, Sequence
from itertools import product, zip_longest

from eleven_steps.pictures import svg
from eleven_steps.pictures.grid import grid
from eleven_steps.pictures.tensors import COMPARED, COUNTS, Shown, TracedStep, shades

WIDTH, SPACE, PAD = 796, 10, 9
COLUMN = (WIDTH - 2 * SPACE) / 3
INSIDE = COLUMN - 2 * PAD
MOST_HEIGHT = 112  # of one tensor in a panel, before numbers give way to shades
NUMBERS = (38.0, 18.0)  # a cell that holds five characters of 11 px
SHADES = tuple((side, side) for side in (16.0, 12.0, 8.0, 6.0, 4.0))
OUTLINE = 58.0  # the height of an outline
EMPTY = svg.Drawing("", 0, 0)
DOTS = "\N{HORIZONTAL ELLIPSIS}"
SMALL = 6.7  # the width of one monospaced character at 11 px

OPERATIONS = {
    "shape": "read the sizes off x",
    "project": "W_query(x), W_key(x), W_value(x)",
    "view": "give each head an axis",
    "transpose": "transpose(1, 2): heads first",
    "scores": "queries @ keys.transpose(2, 3)",
    "mask": "masked_fill(future, -inf)",
    "softmax": "softmax(masked / head_dim**0.5)",
    "context": "weights @ values",
    "reformat": "transpose(1, 2): tokens first",
    "combine": "heads side by side again",
    "out_proj": "out_proj(context): the heads mix",
}

ROWS = (
    ("shape",),
    ("project", "view", "transpose"),
    ("scores", "mask", "softmax"),
    ("context", "reformat", "combine"),
    ("out_proj",),
)


def axes(step: TracedStep) -> list[str]:
    """List the letters of a step's tensors."""
    return step.letters.strip("()").split(", ")


def shape_of(step: TracedStep) -> str:
    """Write the shape of a step's tensors in letters and in numbers."""
    return f"{step.letters} = {tuple(next(iter(step.tensors.values())).shape)}"


def in_words(steps: Iterable[TracedStep]) -> str:
    """Say of each step which tensors it makes, and their shape."""
    each = (f"step {s.number} {s.name}: {' and '.join(s.tensors)} {shape_of(s)}" for s in steps)
    return "; ".join(each) + "."


def shown_of(step: TracedStep, name: str, num_heads: int) -> Shown:
    """Get a step's tensor ready to draw, in its heads' colours."""
    by_head = num_heads if step.name in ("W", "project", "combine") else None
    return Shown(step.tensors[name], name, " ".join(axes(step)), by_head)


def row(panels: Sequence[Sequence[svg.Drawing]]) -> svg.Drawing:
    """Frame panels of one row, the last as wide as is left, with their parts aligned."""
    heights = [max(d.height for d in part) for part in zip_longest(*panels, fillvalue=EMPTY)]
    height = sum(heights) + SPACE * (len(heights) - 1) + 2 * PAD
    drawn, x = "", 0.0
    for i, parts in enumerate(panels):
        width = COLUMN if i < len(panels) - 1 else WIDTH - x
        frame = (
            f'<rect x="0.5" y="0.5" width="{width - 1:g}" height="{height - 1:g}" rx="6" '
            f'fill="none" style="stroke:{svg.LINE}" stroke-opacity="0.6"/>'
        )
        inside, y = "", PAD
        for each, deep in zip(parts, heights, strict=False):
            inside += svg.part(PAD, y, each)
            y += deep + SPACE
        framed = svg.laid(f"below {PAD}", frame + inside, SPACE)
        drawn += svg.part(x, 0, svg.Drawing(framed, COLUMN, height))
        x += width + SPACE
    return svg.Drawing(
        f'<g style="font-size:11px">{svg.laid("beside", drawn, SPACE)}</g>', WIDTH, height
    )


def panel(step: TracedStep, num_heads: int, touched: bool = False) -> list[svg.Drawing]:
    """Draw what a step does, then its tensors; touched: whether a script has to find the cells."""
    letters, numbers = shape_of(step).split(" = ")
    what = [
        line(OPERATIONS.get(step.name, "what it multiplies with, learned")),
        line(letters, f"font-family:{svg.SANS}"),
        line(f"= {numbers}"),
    ]
    parts = [svg.below([title(step), *what], gap=3)]
    for name in step.tensors:
        drawing = fitted(shown_of(step, name, num_heads), f"{step.name}.{name}" if touched else "")
        parts.append(svg.below([line(name, "font-weight:700"), drawing], gap=2))
    return parts


def title(step: TracedStep) -> svg.Drawing:
    """Write a step's number in a disc and its name."""
    look = f"font:700 12px {svg.SANS}"
    name = named(step.name)
    body = f'<circle cx="10" cy="10" r="10" style="fill:{svg.INK}"/>'
    body += svg.text(str(step.number), 10, 14, "middle", f"{look};fill:{svg.GROUND}")
    return svg.Drawing(body + svg.at(27, 0, name), 27 + name.width, 21)


def line(content: str, style: str = "") -> svg.Drawing:
    """Write one line of 11 px."""
    return svg.Drawing(svg.text(content, 0, 11, style=style), SMALL * len(content), 14)


def fitted(shown: Shown, key: str) -> svg.Drawing:
    """Draw the first sequence of a tensor with as much detail as fits.

    Where there is a key, a script finds the cells by it.
    """
    if not shown.tensor.is_meta:
        for cell in (NUMBERS, *SHADES):
            drawing = grids(shown, cell, key)
            if drawing is not None:
                return drawing
    return outline(shown)


def grids(shown: Shown, cell: tuple[float, float], key: str) -> svg.Drawing | None:
    """Draw a tensor's grids with cells of this size; None if they do not fit."""
    outer, (rows, columns) = shown.tensor.shape[1:-2], shown.tensor.shape[-2:]
    gap, per_grid = 8, columns * cell[0]
    per_line = int((INSIDE + gap) // (per_grid + gap))
    lines = math.ceil(math.prod(outer) / max(per_line, 1))
    owners = outer[0] if outer else shown.num_heads or 0
    labels = names(
        shown.axes[1] if outer else "num_heads", owners, per_grid / (1 if outer else max(owners, 1))
    )
    if not per_line or lines * (rows * cell[1] + 22) > MOST_HEIGHT + 22 or len(labels) < owners:
        return None
    numbers = shown.tensor[0] if shown.axes[0] == "b" else shown.tensor
    strength = shades(numbers) if shown.name in COMPARED or cell != NUMBERS else None
    drawn = []
    for first, where in enumerate(product(*map(range, outer))):
        place = (0, *where)
        drawing = grid(
            numbers[where].tolist(),
            heads=[[shown.head((*place, i, j)) for j in range(columns)] for i in range(rows)],
            shades=None if strength is None else strength[where].tolist(),
            cell=cell,
            written=cell == NUMBERS,
            known_as=key and f'data-tensor="{key}" data-first="{first * rows * columns}"',
        )
        drawn.append(svg.labelled(labels[where[0]], drawing) if outer else drawing)
    if not outer and owners:
        band = per_grid / owners
        top = "".join(svg.text(one, (i + 0.5) * band, 12, "middle") for i, one in enumerate(labels))
        drawn = [svg.below([svg.Drawing(top, per_grid, 18), *drawn], gap=0)]
    return svg.beside(drawn, INSIDE, gap)


def names(axis: str, count: int, room: float) -> list[str]:
    """Name every index along an axis, in full or in short; no name where neither fits."""
    for noun in (f"{COUNTS[axis]} ", COUNTS[axis][0]):
        every = [f"{noun}{i}" for i in range(count)]
        if max(map(len, every), default=0) * SMALL <= room:
            return every
    return []


def outline(shown: Shown) -> svg.Drawing:
    """Draw a tensor as labelled boxes: every head or token, or the first few and the last."""
    outer, (rows, columns) = shown.tensor.shape[1:-2], shown.tensor.shape[-2:]
    axis, count = shown.axes[1] if outer else "num_heads", outer[0] if outer else shown.num_heads
    if count is None:
        body = box(None, 0, 0, INSIDE, OUTLINE)
        return svg.below([svg.Drawing(body, INSIDE, OUTLINE), line(f"{rows} x {columns}")], gap=4)
    gap = 3 if outer else 0
    least = SMALL * max(len(str(count - 1)), 2 if axis == "num_heads" else len(f"h{rows}")) + 4
    chosen = ends(count, int((INSIDE + gap) // (least + gap)))
    each = (INSIDE + gap) / len(chosen) - gap
    body = ""
    for place, i in enumerate(chosen):
        x = place * (each + gap)
        body += svg.text(DOTS if i is None else str(i), x + each / 2, 11, "middle")
        if i is None:
            continue
        if axis == "num_heads":
            body += box(i, x, 16, each, OUTLINE, shown.name in ("masked", "weights"))
            continue
        bands = ends(rows, int(OUTLINE // 14))
        for band, head in enumerate(bands):
            deep = OUTLINE / len(bands)
            y = 16 + band * deep
            body += box(head, x, y, each, deep) if head is not None else ""
            name = DOTS if head is None else f"h{head}"
            body += svg.text(name, x + each / 2, y + deep / 2 + 4, "middle")
    size = f"{count} {COUNTS[axis]}s, each {rows} x {columns if outer else columns // count}"
    return svg.below([svg.Drawing(body, INSIDE, OUTLINE + 16), line(size)], gap=4)


def ends(count: int, most: int) -> list[int | None]:
    """List 0 to count - 1, or the first ones, None for those left out, and the last."""
    if count <= most:
        return list(range(count))
    return [*range(max(most - 2, 1)), None, count - 1]


def box(
    head: int | None, x: float, y: float, width: float, height: float, triangle: bool = False
) -> str:
    """Draw a box in a head's colour, or only its lower triangle filled."""
    colour = svg.head_colour(head)
    shape = f"M{x:g} {y:g}l{width:g} {height:g}h-{width:g}z"
    whole = f"M{x:g} {y:g}h{width:g}v{height:g}h-{width:g}z"
    return (
        f'<path d="{shape if triangle else whole}" fill="{colour}" fill-opacity="{svg.TINT}"/>'
        f'<path d="{whole}" fill="none" stroke="{colour}"/>'
    )


def named(what: str) -> svg.Drawing:
    """Write the name of a panel."""
    return svg.Drawing(svg.text(what, 0, 15, style=f"font:700 14px {svg.SANS}"), 9 * len(what), 21)
