"""The whole block on one screen: a row for each step, its tensors as small shaded cells."""

import math
from collections.abc import Sequence
from itertools import product

from eleven_steps.pictures import svg
from eleven_steps.pictures.map import sizes_of, split_and_joined
from eleven_steps.pictures.panels import OPERATIONS, box, in_words, line, shape_of, shown_of, title
from eleven_steps.pictures.tensors import Shown, TracedStep, shades

WIDTH, WORDS, ROW = 800, 346, 34  # of the picture, of the words in a row; the least height of a row
THIRD = (WIDTH - WORDS) / 3
NAMES = 58  # the room for a tensor's name
SIDES = (11, 10, 8, 6, 5, 4, 3)  # of a cell
DEEPEST = 44.0  # of a tensor
GAP = 4


def draw_compact(steps: Sequence[TracedStep]) -> svg.Picture:
    """Draw the whole block so that it fits a screen: shades tell large numbers from small ones.

    Args:
        steps: the eleven steps of a trace, whose numbers are there; of several sequences the
            first is drawn.

    Raises:
        ValueError: a tensor is too large for its place; draw_map draws any size.
    """
    sizes = sizes_of({step.name: step for step in steps})
    rows = [row(step, sizes["num_heads"]) for step in steps]
    rule = f'<path d="M0 0h{WIDTH}" style="stroke:{svg.LINE}" stroke-opacity="0.4"/>'
    ruled = [each for drawn in rows for each in (svg.Drawing(rule, 0, 5), drawn)]
    return svg.picture(
        svg.below([*ruled, legend(sizes["num_heads"])], gap=0),
        split_and_joined(sizes),
        in_words(steps),
    )


def row(step: TracedStep, num_heads: int) -> svg.Drawing:
    """Draw what a step does and the shape it makes, then its tensors, each at its own place."""
    name = title(step)
    drawn = svg.part(0, 0, svg.Drawing(name.body, 112, name.height))
    drawn += svg.part(122, 4, line(OPERATIONS[step.name], "font-size:11px"))
    drawn += svg.part(27, 19, line(shape_of(step), f"font:11px {svg.SANS}"))
    height = float(ROW)
    room = THIRD if len(step.tensors) > 1 else 3 * THIRD
    for place, called in enumerate(step.tensors):
        cells = small(shown_of(step, called, num_heads), room - NAMES - 10)
        x = WORDS + place * room
        both = svg.text(called, 0, 13, style="font-size:11px") + svg.at(NAMES, 2, cells)
        drawn += svg.part(x, 0, svg.Drawing(both, NAMES + cells.width, cells.height + 2))
        height = max(height, cells.height + 2)
    return svg.Drawing(svg.laid("beside", drawn, 10), WIDTH, height + 2)


def small(shown: Shown, room: float, deepest: float = DEEPEST) -> svg.Drawing:
    """Draw one sequence of a tensor in the largest cells that leave it inside its room."""
    outer, (rows, columns) = shown.tensor.shape[1:-2], shown.tensor.shape[-2:]
    numbers = shown.tensor[0]
    strength = numbers if shown.name == "weights" else shades(numbers)
    for side in SIDES:
        in_line = int((room + GAP) // (columns * side + GAP))
        lines = math.ceil(math.prod(outer) / max(in_line, 1))
        if not in_line or lines * (rows * side + GAP / 2) > deepest:
            continue
        grids = [
            svg.grid(
                numbers[where].tolist(),
                heads=[
                    [shown.head((0, *where, i, j)) for j in range(columns)] for i in range(rows)
                ],
                shades=strength[where].tolist(),
                cell=(side, side),
                written=False,
            )
            for where in product(*map(range, outer))
        ]
        return svg.beside(grids, room, GAP)
    raise ValueError(
        f"{shown.name} {shown.shape} is too large for a row: at most {deepest:g} x {room:.0f} "
        f"pixels are there"
    )


def legend(num_heads: int) -> svg.Drawing:
    """Name the heads' colours and say what a shade means."""
    words = "one cell is one number, the larger the stronger"
    drawn = svg.part(0, 7, line(words, f"font:11px {svg.SANS}"))
    for head in range(num_heads):
        x = WORDS + head * min(58, 3 * THIRD / num_heads)
        name = f"head {head}" if num_heads <= 8 else str(head)
        chip = box(head, 0, 0, 8 * len(name), 18)
        chip += svg.text(name, 4 * len(name), 13, "middle", "font-size:11px")
        drawn += svg.part(x, 4, svg.Drawing(chip, 8 * len(name), 20))
    return svg.Drawing(svg.laid("beside", drawn, 6), WIDTH, 24)
