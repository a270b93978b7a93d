"""The whole block in one picture that fits a screen: a row for each step."""

import math
from collections.abc import Iterable, Sequence
from itertools import product

from eleven_steps.pictures import svg
from eleven_steps.pictures.grid import grid
from eleven_steps.pictures.tensors import Shown, TracedStep, shades

WIDTH, WORDS, ROW = 800, 372, 34  # of a map, of the words in a row, of a row
THIRD = (WIDTH - WORDS) / 3
NAMES = 58  # the room for a tensor's name
SIDES = (11, 10, 8, 6, 5, 4, 3)  # of a cell
DEEPEST = 44.0  # of a tensor
PHONE = 296  # what boxes may take beside a name, to fit a phone
GAP = 4
OUTLINE = 22  # the height of an outline
SMALL = 6.7  # the width of one monospaced character at 11 px
DOTS = "\N{HORIZONTAL ELLIPSIS}"

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


def draw_map(steps: Sequence[TracedStep]) -> svg.Picture:
    """Draw the whole block, for any legal sizes: each tensor as cells, or as outlines if too large.

    Outlines need no numbers, so the steps of a module on the device "meta" will do. Of several
    sequences the first is drawn.

    Args:
        steps: the eleven steps of a trace.

    Raises:
        ValueError: steps are not the eleven of the course, in order.
    """
    if [step.name for step in steps] != list(OPERATIONS):
        raise ValueError(
            f"steps are {', '.join(step.name for step in steps) or 'none'}: "
            f"the eleven of a trace are expected, {', '.join(OPERATIONS)}"
        )
    sizes = sizes_of({step.name: step for step in steps})
    rule = svg.Drawing(
        f'<path d="M0 0h{WIDTH}" style="stroke:{svg.LINE}" stroke-opacity="0.4"/>', 0, 5
    )
    ruled = [part for step in steps for part in (rule, row(step, sizes["num_heads"]))]
    heads = f"{sizes['num_heads']} head{'s' * (sizes['num_heads'] > 1)}"
    return svg.picture(
        svg.below([*ruled, legend(sizes)], gap=0),
        f"d_out = {sizes['d_out']} is split into {heads} of {sizes['head_dim']} and joined again",
        in_words(steps),
    )


def axes(step: TracedStep) -> list[str]:
    """List the letters of a step's tensors."""
    return step.letters.strip("()").split(", ")


def shape_of(step: TracedStep) -> str:
    """Write the shape of a step's tensors in letters and in numbers."""
    return f"{step.letters} = {tuple(next(iter(step.tensors.values())).shape)}"


def in_words(steps: Iterable[TracedStep]) -> str:
    """Say of each step which tensors it makes, and their shape."""
    told = (f"step {s.number} {s.name}: {' and '.join(s.tensors)} {shape_of(s)}" for s in steps)
    return "; ".join(told) + "."


def sizes_of(steps: dict[str, TracedStep]) -> dict[str, int]:
    """Read every letter's number off the tensors."""
    sizes: dict[str, int] = {}
    for name in ("shape", "project", "view"):
        first = next(iter(steps[name].tensors.values()))
        sizes |= dict(zip(axes(steps[name]), first.shape, strict=True))
    return sizes


def shown_of(step: TracedStep, name: str, num_heads: int) -> Shown:
    """Get a step's tensor ready to draw, in its heads' colours."""
    by_head = num_heads if step.name in ("project", "combine") else None
    return Shown(step.tensors[name], name, " ".join(axes(step)), by_head)


def row(step: TracedStep, num_heads: int) -> svg.Drawing:
    """Draw what a step does and the shape it makes, then its tensors, each at its own place."""
    name = title(step)
    drawn = svg.at(0, 0, svg.Drawing(name.body, 112, name.height))
    drawn += svg.at(122, 4, line(OPERATIONS[step.name], "font-size:11px"))
    drawn += svg.at(27, 19, line(shape_of(step), f"font:11px {svg.SANS}"))
    height = float(ROW)
    room = THIRD if len(step.tensors) > 1 else 3 * THIRD
    for place, called in enumerate(step.tensors):
        shown = shown_of(step, called, num_heads)
        cells = small(shown, room - NAMES - 10) or outline(shown, min(room - NAMES - 10, PHONE))
        both = svg.text(called, 0, 13, style="font-size:11px") + svg.at(NAMES, 2, cells)
        whole = svg.Drawing(both, NAMES + cells.width, cells.height + 2)
        drawn += svg.at(WORDS + place * room, 0, whole)
        height = max(height, cells.height + 2)
    return svg.Drawing(drawn, WIDTH, height + 2)


def title(step: TracedStep) -> svg.Drawing:
    """Write a step's number in a disc and its name."""
    look = f"font:700 12px {svg.SANS}"
    name = svg.text(step.name, 0, 15, style=f"font:700 14px {svg.SANS}")
    body = f'<circle cx="10" cy="10" r="10" style="fill:{svg.INK}"/>'
    body += svg.text(str(step.number), 10, 14, "middle", f"{look};fill:{svg.GROUND}")
    width = 9 * len(step.name)
    return svg.Drawing(body + svg.at(27, 0, svg.Drawing(name, width, 21)), 27 + width, 21)


def line(content: str, style: str = "") -> svg.Drawing:
    """Write one line of 11 px."""
    return svg.Drawing(svg.text(content, 0, 11, style=style), SMALL * len(content), 14)


def small(shown: Shown, room: float, deepest: float = DEEPEST) -> svg.Drawing | None:
    """Draw a tensor in the largest cells that leave it inside its room; None if none are there."""
    if shown.tensor.is_meta:
        return None
    outer, (rows, columns) = shown.tensor.shape[1:-2], shown.tensor.shape[-2:]
    numbers = shown.tensor[0]
    strength = numbers if shown.name == "weights" else shades(numbers)
    for side in SIDES:
        in_line = int((room + GAP) // (columns * side + GAP))
        lines = math.ceil(math.prod(outer) / max(in_line, 1))
        if not in_line or lines * (rows * side + GAP / 2) > deepest:
            continue
        grids = [
            grid(
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
    return None


def outline(shown: Shown, room: float) -> svg.Drawing:
    """Draw a tensor as boxes in heads' colours: every head or token, or the first and the last."""
    outer, (rows, columns) = shown.tensor.shape[1:-2], shown.tensor.shape[-2:]
    axis, count = shown.axes[1] if outer else "num_heads", outer[0] if outer else shown.num_heads
    if count is None:
        drawn = box(None, 0, 0, room, OUTLINE)
        drawn += svg.text(f"{rows} x {columns}", room / 2, 15, "middle", "font-size:11px")
        return svg.Drawing(drawn, room, OUTLINE)
    by_head = axis == "num_heads"
    gap, top = (3 if outer else 0), (0 if by_head else 14)
    chosen = ends(count, int((room + gap) // (SMALL * len(str(count - 1)) + 8 + gap)))
    width = (room + gap) / len(chosen) - gap
    drawn = ""
    for place, i in enumerate(chosen):
        x = place * (width + gap)
        bands = [] if i is None else [i] if by_head else ends(rows, 3)
        for band, head in enumerate(bands):
            if head is not None:
                deep = OUTLINE / len(bands)
                half = shown.name in ("masked", "weights")
                drawn += box(head, x, top + band * deep, width, deep, half)
        name = DOTS if i is None else str(i)
        drawn += svg.text(name, x + width / 2, 15 if by_head else 11, "middle", "font-size:11px")
    return svg.Drawing(drawn, room, top + OUTLINE)


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
    whole = svg.outline(x, y, width, height)
    return (
        f'<path d="{shape if triangle else whole}" fill="{colour}" fill-opacity="{svg.TINT}"/>'
        f'<path d="{whole}" fill="none" stroke="{colour}"/>'
    )


def legend(sizes: dict[str, int]) -> svg.Drawing:
    """Name the heads' colours and say how to read a row."""
    words, style = "a cell is one number, larger is stronger", f"font:11px {svg.SANS}"
    drawn = svg.at(0, 7, line(words, style))
    x = float(WORDS)
    for head in ends(sizes["num_heads"], 7):
        name = DOTS if head is None else f"head {head}"
        chip = svg.text(name, 4 * len(name), 13, "middle", "font-size:11px")
        chip += "" if head is None else box(head, 0, 0, 8 * len(name), 18)
        drawn += svg.at(x, 4, svg.Drawing(chip, 8 * len(name), 20))
        x += 8 * len(name) + 8
    below = [svg.Drawing(drawn, WIDTH, 24)]
    if sizes["b"] > 1:
        first = f"Drawn is sequence 0 of b = {sizes['b']}; all go the same way."
        below.append(line(first, style))
    return svg.below(below, gap=0)
