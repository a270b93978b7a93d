"""Steps 6 to 8 as motion: scores are covered, shares grow, weighted values add up."""

import torch

from eleven_steps.pictures import svg
from eleven_steps.pictures.moving import (
    LABELS,
    ROOM,
    TOP,
    Motion,
    face,
    headings,
    names,
    places,
    way,
    written,
)
from eleven_steps.pictures.tensors import Shown

WIDE = 2 * svg.CELL_WIDTH  # a cell in which a bar grows
SUMMANDS, SHORT = svg.CHARACTER * 26, svg.CHARACTER * 17  # for what stands before a weighted row


def draw_cover(scores: Shown, masked: Shown, room: float = ROOM) -> Motion:
    """Draw the scores with the mask above them, which falls onto those that it hides.

    Args:
        scores, masked: (1, num_heads, num_tokens, num_tokens), before and after step 6.
        room: how wide a line of heads may be, in pixels.

    Raises:
        ValueError: there is more than one sequence.
    """
    check_one(scores)
    num_tokens = scores.tensor.shape[-1]
    drop = num_tokens * svg.CELL_HEIGHT + 2 * TOP + svg.GAP / 2
    lines = {"room": room, "deeper": drop}
    above = [(x, y - TOP) for x, y in places(scores, **lines)]
    hidden = (masked.tensor == -torch.inf).flatten().tolist()
    cells = empty = covers = ""
    for i, (x, y) in enumerate(above):
        cells += put(x, y + drop, face(head_of(scores, i), shade(scores, i)) + said(scores, i))
        empty += f"M{x:g} {y:g}h{svg.CELL_WIDTH}v{svg.CELL_HEIGHT}h-{svg.CELL_WIDTH}z"
        if hidden[i]:
            covers += f'<g class="moves">{put(x, y, face(None, svg.FAINT) + hatch())}</g>'
    mask = "".join(
        svg.text("mask", x, y - 5)
        for x, y in above[:: num_tokens**2]  # one for each head
    )
    mask += f'<path d="{empty}" fill="none" style="stroke:{svg.LINE}" stroke-opacity="0.5"/>'
    count = sum(hidden) // scores.tensor.shape[1]
    grids = svg.Drawing(
        mask + put(0, drop - TOP, names(scores, **lines)) + cells + covers,
        max(x for x, _ in above) + svg.CELL_WIDTH,
        above[-1][1] + drop + svg.CELL_HEIGHT,
    )
    drawn = svg.picture(
        svg.below([headings(scores, masked), grids], gap=4),
        f"mask: in each head it falls on {count} of {num_tokens**2} scores",
        f"From {scores.name} {scores.shape} to {masked.name}; -inf covers each score whose key "
        "comes after its query.",
    )
    return Motion(drawn, [(0.0, drop)] * sum(hidden))


def draw_shares(scaled: Shown, weights: Shown, room: float = ROOM) -> Motion:
    """Draw scaled scores, in each cell a bar that grows to the score's weight.

    Args:
        scaled, weights: (1, num_heads, num_tokens, num_tokens), before and after the softmax.
        room: how wide a line of heads may be, in pixels.

    Raises:
        ValueError: there is more than one sequence.
    """
    check_one(scaled)
    wide = min(WIDE, (room - LABELS) // weights.tensor.shape[-1])
    lines = {"room": room, "deeper": svg.GAP}
    spots, shares = places(weights, wide, **lines), weights.tensor.flatten().tolist()
    drawn, ways = names(weights, wide, **lines), []
    for i, (x, y) in enumerate(spots):
        head = head_of(weights, i)
        drawn += put(x, y, face(head, svg.FAINT, wide))
        if shares[i]:
            bar = f'<path d="M0 0h1v{svg.CELL_HEIGHT}h-1z" fill="{svg.head_colour(head)}" '
            drawn += put(x, y, f'<g class="moves">{bar}fill-opacity="{svg.TINT}"/></g>')
            ways.append((0.0, 0.0, round(shares[i] * wide, 2)))
        old, new = said(scaled, i, wide), said(weights, i, wide)
        drawn += put(x, y, f'<g class="before">{old}</g><g class="after" opacity="0">{new}</g>')
    right = max(x for x, _ in spots) + wide
    grids = svg.Drawing(drawn, right, spots[-1][1] + svg.CELL_HEIGHT)
    finished = svg.picture(
        svg.below([headings(scaled, weights), grids], gap=4),
        "softmax: in each row the bars fill one cell together",
        f"From {scaled.name} {scaled.shape} to {weights.name}; a bar's length is its weight, as a "
        "share of its cell.",
    )
    return Motion(finished, ways)


def draw_sum(
    weights: Shown, values: Shown, context: Shown, head: int, query: int, room: float = ROOM
) -> Motion:
    """Draw each value row times its weight; they glide together into one row of the context.

    Args:
        weights: (1, num_heads, num_tokens, num_tokens).
        values, context: (1, num_heads, num_tokens, head_dim).
        head, query: the row of the context that they make.
        room: how wide it may be, in pixels; what stands before the rows is short if it must.

    Raises:
        ValueError: there is more than one sequence.
    """
    check_one(weights)
    row, rows = weights.tensor[0, head, query], values.tensor[0, head]
    parts = row[:, None] * rows  # (num_tokens, head_dim)
    sums = parts.cumsum(0)  # what is gathered when a row has arrived
    end = 2 * TOP + len(parts) * svg.CELL_HEIGHT + svg.GAP
    whole = SUMMANDS + parts.shape[1] * svg.CELL_WIDTH <= room
    left, of, whose = (SUMMANDS, "values of ", f" of token {query}") if whole else (SHORT, "", "")
    drawn, moving, ways = svg.text(f"head {head}", left, 12), "", []
    for j in range(parts.shape[1]):
        x = left + j * svg.CELL_WIDTH
        drawn += svg.text(str(j), x + svg.CELL_WIDTH / 2, 2 * TOP - 5, "middle")
        drawn += put(x, end, face(head, 0))
    for i, (part, gathered) in enumerate(zip(parts.tolist(), sums.tolist(), strict=True)):
        y = 2 * TOP + i * svg.CELL_HEIGHT
        label = f"{'+ ' if i else ''}{svg.number(row[i].item())} x {of}token {i}"
        drawn += svg.text(label, left - 6, y + 15, "end")
        for j, (value, total) in enumerate(zip(part, gathered, strict=True)):
            x = left + j * svg.CELL_WIDTH
            leaving, arriving = (face(head) + written(each) for each in (value, total))
            drawn += put(x, y, leaving)
            both = f'{leaving}<g class="arriving" opacity="0">{arriving}</g>'
            moving += f'<g class="moves">{put(x, y, both)}</g>'
            ways.append(way((x, y), (x, end)))
    drawn += svg.text(f"= context{whose}", left - 6, end + 15, "end")
    grid = svg.Drawing(
        drawn + moving, left + parts.shape[1] * svg.CELL_WIDTH, end + svg.CELL_HEIGHT
    )
    finished = svg.picture(
        svg.below([headings(values, context), grid], gap=4),
        f"context: token {query} of head {head} adds up {len(parts)} weighted rows",
        f"From {values.name} {values.shape} to {context.name}; each row of values, times its "
        "weight, goes into one row.",
    )
    return Motion(finished, ways)


def check_one(shown: Shown) -> None:
    """Raise ValueError unless there is one sequence."""
    if shown.tensor.shape[0] != 1:
        raise ValueError(f"b is {shown.tensor.shape[0]}: expected one sequence")


def put(x: float, y: float, body: str) -> str:
    """Place SVG elements at (x, y)."""
    return svg.at(x, y, svg.Drawing(body, 0, 0))


def head_of(shown: Shown, i: int) -> int:
    """Return the head of the number that stands i-th in (1, num_heads, rows, columns)."""
    return i // shown.tensor[0, 0].numel()


def shade(shown: Shown, i: int) -> float:
    """Return how opaque the i-th cell is."""
    return svg.FAINT + svg.STEP * round(shown.strength.flatten()[i].item() * 10)


def said(shown: Shown, i: int, width: float = svg.CELL_WIDTH) -> str:
    """Write the i-th number of a tensor."""
    return written(shown.tensor.flatten()[i].item(), width)


def hatch() -> str:
    """Draw what hides a score: -inf, on hatched ground as in every picture."""
    line = f"M0 {svg.CELL_HEIGHT}{svg.slash(svg.CELL_WIDTH, svg.CELL_HEIGHT)}"
    return f'<path d="{line}" style="stroke:{svg.LINE}" stroke-opacity="0.5"/>' + written(
        -torch.inf
    )
