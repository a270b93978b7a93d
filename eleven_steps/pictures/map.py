"""The whole block in one picture: eleven panels, from numbers at small sizes to outlines."""

from collections.abc import Sequence

from eleven_steps.pictures import svg
from eleven_steps.pictures.panels import (
    DOTS,
    OPERATIONS,
    ROWS,
    SMALL,
    SPACE,
    axes,
    box,
    ends,
    in_words,
    line,
    named,
    panel,
    row,
)
from eleven_steps.pictures.tensors import TracedStep


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
    if [step.name for step in steps] != list(OPERATIONS):
        raise ValueError(
            f"steps are {', '.join(step.name for step in steps) or 'none'}: "
            f"the eleven of a trace are expected, {', '.join(OPERATIONS)}"
        )
    by_name = {step.name: step for step in steps}
    sizes = sizes_of(by_name)
    rows = []
    for names in ROWS:
        panels = [panel(by_name[name], sizes["num_heads"], touched=touched) for name in names]
        if "shape" in names:
            panels.append(sizes_panel(sizes))
        if "out_proj" in names:
            panels.append(legend(sizes))
        rows.append(row(panels))
    return svg.picture(
        svg.below(rows, gap=SPACE),
        split_and_joined(sizes),
        in_words(steps),
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
        sizes |= dict(zip(axes(steps[name]), first.shape, strict=True))
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
        words = (0, line(letter)), (84, line(f"= {sizes[letter]}")), (154, line(what))
        parts = "".join(svg.part(x, 0, each) for x, each in words)
        lines.append(svg.Drawing(svg.laid("beside", parts, SPACE), 154 + words[-1][1].width, 14))
    return [svg.below([named("Sizes"), *lines[:3]], gap=3), svg.below(lines[3:], gap=3)]


def legend(sizes: dict[str, int]) -> list[svg.Drawing]:
    """Name the heads' colours and say how to read a panel."""
    chips, x = "", 0.0
    for head in ends(sizes["num_heads"], 8):
        label = DOTS if head is None else f"head {head}"
        width = SMALL * len(label) + 10
        chip = box(head, 0, 0, width, 18) if head is not None else ""
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
        named("How to read it"),
        svg.Drawing(svg.laid("beside", chips, 4), x, 22),
        line(lines[0]),
    ]
    return [svg.below(first, gap=6), svg.below(list(map(line, lines[1:])), gap=3)]
