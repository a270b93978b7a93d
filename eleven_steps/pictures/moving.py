"""A step that moves numbers, as motion: each cell's way from its old place to its new one."""

import math
from dataclasses import dataclass
from itertools import product

from eleven_steps.pictures import svg
from eleven_steps.pictures.numbers import MOVES, moved
from eleven_steps.pictures.storage import place, storage
from eleven_steps.pictures.tensors import COUNTS, Shown

LABELS, TOP = svg.CHARACTER * 8, 18
SHORT = svg.CHARACTER * 4  # for the names of rows where their noun stands above them
PER_LINE, PER_PART = 18, 6  # of a storage; a narrow line holds one or more parts
ROOM, NARROW = 800, 270  # pixels that a drawing may be wide, on a page and on a phone


@dataclass(frozen=True)
class Motion:
    """Hold the picture before a step, and how far each of its cells moves to the right and down.

    Args:
        picture: as it begins, its cells in groups with the class "moves".
        ways: for each of these groups in order, how far it has moved in the end, in pixels; where
            it grows, a third number says how many times as wide it is in the end.
    """

    picture: svg.Picture
    ways: list[tuple[float, ...]]


def draw_motion(step: str, before: Shown, after: Shown, room: float = ROOM) -> Motion:
    """Draw a tensor as grids with its storage below, and work out where each cell goes.

    Args:
        step: view, transpose, reformat or combine.
        before, after: the tensor before and after the step, of one sequence.
        room: how wide lines of grids and of storage may be, in pixels.

    Raises:
        ValueError: the step moves nothing, or there is more than one sequence.
    """
    if step not in MOVES or before.tensor.shape[0] != 1:
        raise ValueError(
            f"step {step} of b = {before.tensor.shape[0]}: expected one sequence, and "
            f"{', '.join(MOVES)}"
        )
    came_from = moved(step, before.tensor, after.tensor).flatten().tolist()
    lines = {"room": room, "deeper": svg.GAP}
    old, new = places(before, **lines), places(after, **lines)
    ways = [(0.0, 0.0)] * len(old)
    for now, was in enumerate(came_from):
        ways[was] = way(old[was], new[now])
    inside = before.tensor[0].flatten().tolist()
    heads = [before.head(index) for index in product(*map(range, before.tensor.shape))]
    cells = "".join(map(cell, inside, heads, old))
    grids = svg.Drawing(
        f'<g class="before">{names(before, **lines)}</g>'
        f'<g class="after" opacity="0">{names(after, **lines)}</g>{cells}',
        max(x for x, _ in [*old, *new]) + svg.CELL_WIDTH,
        max(y for _, y in [*old, *new]) + svg.CELL_HEIGHT,
    )
    strip, strip_ways = memory(before, after, came_from, room)
    copied = any(way != (0.0, 0.0) for way in strip_ways)
    kept = "the numbers are copied into a new order" if copied else "no number moves in storage"
    drawn = svg.picture(
        svg.below([svg.below([headings(before, after), grids], gap=4), strip]),
        f"{step}: {kept}",
        f"From {before.shape} to {after.shape}; below, the storage of {after.name}, "
        f"{len(strip_ways)} places.",
    )
    return Motion(drawn, ways + strip_ways)


def headings(before: Shown, after: Shown) -> svg.Drawing:
    """Write the tensor's name and shape before the step, and those after it in the same place."""
    old, new = (svg.heading(shown.name, shown.shape) for shown in (before, after))
    body = f'<g class="before">{old.body}</g><g class="after" opacity="0">{new.body}</g>'
    return svg.Drawing(body, max(old.width, new.width), 20)


def corners(
    shown: Shown, width: float = svg.CELL_WIDTH, room: float = ROOM, deeper: float = 0
) -> list[tuple[float, float]]:
    """Return where each grid of a tensor begins, labels included: side by side, in lines.

    Args:
        shown: the tensor, of one sequence.
        width: of a cell, in pixels.
        room: how wide a line may be.
        deeper: how much deeper than its grids a line is.
    """
    *outer, rows, columns = shown.tensor.shape[1:]
    wide = before_cells(shown, width, room) + columns * width + svg.GAP
    high = 2 * TOP + rows * svg.CELL_HEIGHT + deeper
    in_line = max(int((room + svg.GAP) // wide), 1)
    return [(i % in_line * wide, i // in_line * high) for i in range(math.prod(outer))]


def before_cells(
    shown: Shown, width: float = svg.CELL_WIDTH, room: float = ROOM, **_: float
) -> float:
    """Return the room for the names of rows: short ones, where full ones leave too little."""
    return LABELS if LABELS + shown.tensor.shape[-1] * width <= room else SHORT


def places(
    shown: Shown, width: float = svg.CELL_WIDTH, **lines: float
) -> list[tuple[float, float]]:
    """Return where each number of a tensor stands, in the tensor's order; lines as in corners."""
    *_, rows, columns = shown.tensor.shape
    left = before_cells(shown, width, **lines)
    return [
        (x + left + j * width, y + 2 * TOP + i * svg.CELL_HEIGHT)
        for x, y in corners(shown, width, **lines)
        for i, j in product(range(rows), range(columns))
    ]


def names(shown: Shown, width: float = svg.CELL_WIDTH, **lines: float) -> str:
    """Write what grids, rows and columns of a tensor count; lines as in corners."""
    *outer, rows, columns = shown.tensor.shape[1:]
    axes = shown.axes[1:]
    row, column = ("query", "key ") if axes[-2] == axes[-1] else (COUNTS[axes[-2]], "")
    drawn, left = "", before_cells(shown, width, **lines)
    short = left == SHORT
    for head in range(shown.num_heads or 0 if not outer else 0):
        drawn += svg.text(f"head {head}", left + head * columns / shown.num_heads * width, 12)
    for grid, (x, y) in enumerate(corners(shown, width, **lines)):
        drawn += svg.text(f"{COUNTS[axes[0]]} {grid}", x + left, y + 12) if outer else ""
        drawn += svg.text(row, x, y + 2 * TOP - 5) if short else ""
        for i in range(rows):
            base = y + 2 * TOP + i * svg.CELL_HEIGHT + 15
            drawn += svg.text(str(i) if short else f"{row} {i}", x + left - 6, base, "end")
        for j in range(columns):
            middle = x + left + (j + 0.5) * width
            drawn += svg.text(f"{column}{j}", middle, y + 2 * TOP - 5, "middle")
    return drawn


def memory(
    before: Shown, after: Shown, came_from: list[int], room: float
) -> tuple[svg.Drawing, list[tuple[float, float]]]:
    """Draw the storage before a step, and say how far each of its cells moves."""
    index = list(product(*map(range, before.tensor.shape)))
    later = list(product(*map(range, after.tensor.shape)))
    goes = {
        place(before.tensor, index[was]): place(after.tensor, later[now])
        for now, was in enumerate(came_from)
    }
    heads = {place(before.tensor, each): before.head(each) for each in index}
    numbers = storage(before.tensor).tolist()
    per_line = min(PER_LINE, int(room // (PER_PART * svg.CELL_WIDTH)) * PER_PART)
    spots = [spot(i, per_line) for i in range(len(numbers))]
    ways = [way(spots[i], spots[goes[i]]) for i in range(len(numbers))]
    labels = "".join(
        svg.text(str(i), x + svg.CELL_WIDTH / 2, y - 5, "middle") for i, (x, y) in enumerate(spots)
    )
    cells = "".join(cell(one, heads[i], spots[i], f"h{heads[i]}") for i, one in enumerate(numbers))
    body = svg.text("storage", 0, 12, style="font-weight:700") + labels + cells
    width = min(len(numbers), per_line) * svg.CELL_WIDTH
    return svg.Drawing(body, width, spots[-1][1] + svg.CELL_HEIGHT + TOP), ways


def way(old: tuple[float, float], new: tuple[float, float]) -> tuple[float, float]:
    """Return how far it is from one place to another, to the right and down."""
    return round(new[0] - old[0], 2), round(new[1] - old[1], 2)


def spot(i: int, per_line: int) -> tuple[float, float]:
    """Return where a place of storage is drawn."""
    return i % per_line * svg.CELL_WIDTH, 2 * TOP + i // per_line * (
        svg.CELL_HEIGHT + 2 * TOP + svg.GAP
    )


def cell(value: float, head: int | None, where: tuple[float, float], owner: str = "") -> str:
    """Draw one number that can move, with its owner's name below."""
    name = svg.text(owner, svg.CELL_WIDTH / 2, svg.CELL_HEIGHT + 14, "middle") if owner else ""
    drawn = svg.Drawing(face(head) + written(value) + name, svg.CELL_WIDTH, svg.CELL_HEIGHT)
    return f'<g class="moves">{svg.at(*where, drawn)}</g>'


def face(head: int | None, opacity: float = svg.TINT, width: float = svg.CELL_WIDTH) -> str:
    """Draw a cell in its head's colour, opaque, for cells pass over one another."""
    colour, box = svg.head_colour(head), f"M0 0h{width}v{svg.CELL_HEIGHT}h-{width}z"
    return (
        f'<path d="{box}" style="fill:{svg.GROUND}"/>'
        f'<path d="{box}" fill="{colour}" stroke="{colour}" fill-opacity="{opacity:g}"/>'
    )


def written(value: float, width: float = svg.CELL_WIDTH) -> str:
    """Write a cell's number."""
    return svg.text(svg.number(value), width / 2, svg.CELL_HEIGHT / 2 + 4, "middle")
