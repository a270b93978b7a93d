"""The whole block in one picture: eleven panels, or a row for each step that fits a screen."""

import math
from collections.abc import Sequence
from itertools import product

from eleven_steps.pictures import panels, svg
from eleven_steps.pictures.grid import grid
from eleven_steps.pictures.tensors import Shown, TracedStep, shades

WIDTH, WORDS, ROW = 800, 346, 34  # of a compact map, of the words in a row, of a row
THIRD = (WIDTH - WORDS) / 3
NAMES = 58  # the room for a tensor's name
SIDES = (11, 10, 8, 6, 5, 4, 3)  # of a cell
DEEPEST = 44.0  # of a tensor
GAP = 4


def draw_map(steps: Sequence[TracedStep], touched: bool = False) -> svg.Picture:
    """Draw the whole block, each tensor as its grids, for any legal sizes.

    Where a tensor's numbers do not fit they give way to shades, and shades to labelled outlines.
    Outlines need no numbers, so the steps of a module on the device "meta" will do. Of several
    sequences the first is drawn.

    Args:
        steps: the eleven steps of a trace.
        touched: whether a script has to find the cells.

    Raises:
        ValueError: steps are not the eleven of the course, in order.
    """
    if [step.name for step in steps] != list(panels.OPERATIONS):
        raise ValueError(
            f"steps are {', '.join(step.name for step in steps) or 'none'}: "
            f"the eleven of a trace are expected, {', '.join(panels.OPERATIONS)}"
        )
    by_name = {step.name: step for step in steps}
    sizes = sizes_of(by_name)
    rows = []
    for names in panels.ROWS:
        drawn = [panels.panel(by_name[name], sizes["num_heads"], touched) for name in names]
        if "shape" in names:
            drawn.append(sizes_panel(sizes))
        if "out_proj" in names:
            drawn.append(legend(sizes))
        rows.append(panels.row(drawn))
    return svg.picture(
        svg.below(rows, gap=panels.SPACE), split_and_joined(sizes), panels.in_words(steps)
    )


def draw_compact(steps: Sequence[TracedStep]) -> svg.Picture:
    """Draw the whole block so that it fits a screen: shades tell large numbers from small ones.

    Args:
        steps: the eleven steps of a trace, whose numbers are there; of several sequences the
            first is drawn.

    Raises:
        ValueError: a tensor is too large for its place; draw_map draws any size.
    """
    sizes = sizes_of({step.name: step for step in steps})
    rows = [compact_row(step, sizes["num_heads"]) for step in steps]
    rule = f'<path d="M0 0h{WIDTH}" style="stroke:{svg.LINE}" stroke-opacity="0.4"/>'
    ruled = [each for drawn in rows for each in (svg.Drawing(rule, 0, 5), drawn)]
    return svg.picture(
        svg.below([*ruled, compact_legend(sizes["num_heads"])], gap=0),
        split_and_joined(sizes),
        panels.in_words(steps),
    )


def split_and_joined(sizes: dict[str, int]) -> str:
    """Say what there is to see in a map."""
    heads = f"{sizes['num_heads']} head{'s' * (sizes['num_heads'] > 1)}"
    return f"d_out = {sizes['d_out']} is split into {heads} of {sizes['head_dim']} and joined again"


def sizes_of(steps: dict[str, TracedStep]) -> dict[str, int]:
    """Read every letter's number off the tensors."""
    sizes: dict[str, int] = {}
    for name in ("shape", "project", "view"):
        first = next(iter(steps[name].tensors.values()))
        sizes |= dict(zip(panels.axes(steps[name]), first.shape, strict=True))
    return sizes


def sizes_panel(sizes: dict[str, int]) -> list[svg.Drawing]:
    """Write what step 1 reads and chooses."""
    d_out, num_heads = sizes["d_out"], sizes["num_heads"]
    meanings = {
        "b": "sequences in the batch",
        "num_tokens": "tokens of a sequence",
        "d_in": "features of a token coming in",
        "d_out": "features of a token going out",
        "num_heads": "heads that share d_out",
        "head_dim": f"features of a head, d_out / num_heads = {d_out} / {num_heads}",
    }
    lines = []
    for letter, what in meanings.items():
        words = (
            (0, panels.line(letter)),
            (84, panels.line(f"= {sizes[letter]}")),
            (154, panels.line(what)),
        )
        parts = "".join(svg.part(x, 0, each) for x, each in words)
        lines.append(
            svg.Drawing(svg.laid("beside", parts, panels.SPACE), 154 + words[-1][1].width, 14)
        )
    return [svg.below([panels.named("Sizes"), *lines[:3]], gap=3), svg.below(lines[3:], gap=3)]


def legend(sizes: dict[str, int]) -> list[svg.Drawing]:
    """Name the heads' colours and say how to read a panel."""
    chips, x = "", 0.0
    for head in panels.ends(sizes["num_heads"], 8):
        label = panels.DOTS if head is None else f"head {head}"
        width = panels.SMALL * len(label) + 10
        chip = panels.box(head, 0, 0, width, 18) if head is not None else ""
        chip += svg.text(label, width / 2, 13, "middle")
        chips += svg.part(x, 0, svg.Drawing(chip, width, 22))
        x += width + 4
    lines = [
        "A grid's rows and columns are the last two letters of the shape.",
        "Numbers that do not fit give way to shades, the larger the stronger;",
        "shades that do not fit give way to outlines.",
    ]
    if sizes["b"] > 1:
        lines.append(f"Drawn is sequence 0 of b = {sizes['b']}; all go the same way.")
    first = [
        panels.named("How to read it"),
        svg.Drawing(svg.laid("beside", chips, 4), x, 22),
        panels.line(lines[0]),
    ]
    return [svg.below(first, gap=6), svg.below(list(map(panels.line, lines[1:])), gap=3)]


def compact_row(step: TracedStep, num_heads: int) -> svg.Drawing:
    """Draw what a step does and the shape it makes, then its tensors, each at its own place."""
    name = panels.title(step)
    drawn = svg.part(0, 0, svg.Drawing(name.body, 112, name.height))
    drawn += svg.part(122, 4, panels.line(panels.OPERATIONS[step.name], "font-size:11px"))
    drawn += svg.part(27, 19, panels.line(panels.shape_of(step), f"font:11px {svg.SANS}"))
    height = float(ROW)
    room = THIRD if len(step.tensors) > 1 else 3 * THIRD
    for place, called in enumerate(step.tensors):
        cells = small(panels.shown_of(step, called, num_heads), room - NAMES - 10)
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
    raise ValueError(
        f"{shown.name} {shown.shape} is too large for a row: at most {deepest:g} x {room:.0f} "
        f"pixels are there"
    )


def compact_legend(num_heads: int) -> svg.Drawing:
    """Name the heads' colours and say what a shade means."""
    words = "one cell is one number, the larger the stronger"
    drawn = svg.part(0, 7, panels.line(words, f"font:11px {svg.SANS}"))
    for head in range(num_heads):
        x = WORDS + head * min(58, 3 * THIRD / num_heads)
        name = f"head {head}" if num_heads <= 8 else str(head)
        chip = panels.box(head, 0, 0, 8 * len(name), 18)
        chip += svg.text(name, 4 * len(name), 13, "middle", "font-size:11px")
        drawn += svg.part(x, 4, svg.Drawing(chip, 8 * len(name), 20))
    return svg.Drawing(svg.laid("beside", drawn, 6), WIDTH, 24)
