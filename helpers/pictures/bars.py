"""Scores as bars that can be dragged, the weights that a softmax makes of them, and the scale."""

import math
from collections.abc import Sequence

import torch

from helpers.pictures.handles import Handle, Handled
from helpers.pictures.svg import (
    CELL_WIDTH,
    CHARACTER,
    GAP,
    INK,
    LINE,
    TITLE_HEIGHT,
    Drawing,
    number,
    picture,
    text,
)
from helpers.pictures.tips import written

LEFT = CHARACTER * 11  # for what stands before a row of numbers
BAR = 28  # pixels; a column is as wide as a cell
HIGH = 196  # pixels from the lowest score in sight to the highest
FULL = 130  # pixels of a weight of 1
ROW = 18
SCALE = 19  # pixels for 1 along the scale
LEAST, MOST = 0.5, 16.0  # that scores are divided by
TICKS = (1, 2, 4, 8, 16)
MOST_KEYS = 5
WIDTH = 480
STEP = 0.5


def draw_bars(
    scores: torch.Tensor,
    divisor: float,
    weights: torch.Tensor,
    start: torch.Tensor,
    reach: tuple[int, int],
) -> Handled:
    """Draw one query's scores as bars to be dragged, its weights beside them, the scale below.

    Args:
        scores: (num_tokens,), one for each key.
        divisor: what the scores are divided by before the softmax.
        weights: (num_tokens,), shares from 0 to 1 that come out.
        start: (num_tokens,), the weights before anything was dragged, as dashed lines.
        reach: the smallest and the largest score in sight.

    Raises:
        ValueError: there are fewer than 2 or more than 5 keys, a score is out of reach, or the
            divisor is not from 0.5 to 16.
    """
    count = len(scores)
    if not 2 <= count <= MOST_KEYS:
        raise ValueError(f"there are {count} scores: expected from 2 to {MOST_KEYS}")
    unit = HIGH / (reach[1] - reach[0])
    zero = ROW + reach[1] * unit
    right = LEFT + count * CELL_WIDTH + 3 * GAP
    body = text("scores", LEFT, 12, style="font-weight:700")
    body += text("weights", right, 12, style="font-weight:700")
    for at in (LEFT, right):
        body += f'<path d="M{at:g} {zero:g}h{count * CELL_WIDTH}" style="stroke:{LINE}"/>'
    rows = list(zip(scores.tolist(), weights.tolist(), start.tolist(), strict=True))
    handles = []
    for i, (score, weight, before) in enumerate(rows):
        middle = (i + 0.5) * CELL_WIDTH
        body += bar(LEFT + middle, zero, score * unit) + bar(right + middle, zero, weight * FULL)
        y, x = zero - before * FULL, right + middle - CELL_WIDTH / 2 + 2
        body += f'<path d="M{x:g} {y:.1f}h{CELL_WIDTH - 4}" stroke-width="2" '
        body += f'stroke-dasharray="4 3" style="stroke:{INK}"/>'
        handles.append(
            Handle(
                f"score of key {i}",
                (0.0, score),
                (0.0, float(reach[0])),
                (0.0, float(reach[1])),
                (LEFT + middle + 2, zero + TITLE_HEIGHT),
                (1.0, unit),
                f"{score:.2f}, weight {weight:.2f}",
                STEP,
            )
        )
    bottom = ROW + HIGH + GAP / 2
    body += numbers("key", range(count), bottom, (LEFT, right))
    body += numbers("score", scores.tolist(), bottom + ROW, (LEFT,))
    body += numbers(f"/ {divisor:.2f}", (scores / divisor).tolist(), bottom + 2 * ROW, (LEFT,))
    body += numbers("", weights.tolist(), bottom + ROW, (right,))
    body += text("dashed: at first", right, bottom + 2 * ROW + 12)
    top = bottom + 3 * ROW + GAP
    body += scale(divisor, top)
    says = f"{divisor:.2f}, largest weight {weights.max():.2f}"
    origin = (LEFT + 2, top + 2 * ROW + TITLE_HEIGHT)
    handles.append(
        Handle(
            "divided by", (divisor, 0.0), (LEAST, 0.0), (MOST, 0.0), origin, (SCALE, 1), says, STEP
        )
    )
    best = int(weights.argmax())
    title = f"Divided by {divisor:.2f}, key {best} gets {weights[best]:.2f} of 1"
    listed = ", ".join(f"key {i}: {s:.2f} gets {w:.2f}" for i, (s, w, _) in enumerate(rows))
    drawn = Drawing(body, right + count * CELL_WIDTH, top + 4 * ROW + 4)
    return Handled(picture(drawn, title, f"Scores and weights: {listed}.").padded(WIDTH), (*handles,))


def bar(middle: float, zero: float, long: float) -> str:
    """Draw a bar from a line up, or down if it is below 0."""
    x, y = middle - BAR / 2, zero - max(long, 0)
    return (
        f'<path d="M{x:g} {y:.1f}h{BAR}v{abs(long):.1f}h-{BAR}z" stroke-opacity="0.8" '
        f'fill-opacity="0.35" style="fill:{INK};stroke:{INK}"/>'
    )


def numbers(name: str, row: Sequence[float], y: float, places: Sequence[float]) -> str:
    """Write a row of numbers under the columns that begin at each place, after their name."""
    return text(name, LEFT - 6, y + 12, "end") + "".join(
        text(number(value), x + (i + 0.5) * CELL_WIDTH, y + 12, "middle")
        for x in places
        for i, value in enumerate(row)
    )


def scale(divisor: float, top: float) -> str:
    """Draw what the scores are divided by, with the head_dim that each tick is the root of."""
    y = top + 2 * ROW
    body = text(f"divided by {divisor:.2f}", LEFT, top + 12, style="font-weight:700")
    body += f'<path d="M{LEFT + LEAST * SCALE:g} {y:g}H{LEFT + MOST * SCALE:g}'
    body += "".join(f"M{LEFT + tick * SCALE:g} {y - 5:g}v10" for tick in TICKS)
    body += f'" style="stroke:{LINE}"/>'
    for name, power, line in (("", 1, 1), ("head_dim", 2, 2)):
        body += text(name, LEFT - 6, y + line * ROW + 6, "end")
        for tick in TICKS:
            x = LEFT + tick * SCALE
            body += text(str(tick**power), x, y + line * ROW + 6, "middle")
    return body
