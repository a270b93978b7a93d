"""Scores as bars that can be dragged, the weights that a softmax makes of them, and the scale."""

from collections.abc import Sequence

import torch

from eleven_steps.pictures import svg
from eleven_steps.pictures.handles import Handle, Handled

LEFT = svg.CHARACTER * 11  # for what stands before a row of numbers
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
    scaled: torch.Tensor,
    weights: torch.Tensor,
    start: torch.Tensor,
    reach: tuple[int, int],
) -> Handled:
    """Draw one query's scores as bars to be dragged, its weights beside them, the scale below.

    Args:
        scores: (num_tokens,), one for each key.
        divisor: what the scores are divided by before the softmax.
        scaled: (num_tokens,), the scores divided by it.
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
    zero, bottom = ROW + reach[1] * unit, ROW + HIGH + svg.GAP / 2
    right, top = LEFT + count * svg.CELL_WIDTH + 3 * svg.GAP, bottom + 4 * ROW + svg.GAP
    body = svg.text("scores", LEFT, 12, style="font-weight:700")
    body += svg.text("weights", right, 12, style="font-weight:700")
    body += bars(scores * unit, LEFT, zero) + bars(weights * FULL, right, zero)
    body += marks(start * FULL, right, zero)
    body += row("key", range(count), bottom, (LEFT, right))
    # A phone shows the left half alone while a bar is dragged, so the weights stand there too.
    table = {"score": scores, f"/ {divisor:.2f}": scaled, "weight": weights}
    for line, (name, numbers) in enumerate(table.items(), 1):
        body += row(name, numbers.tolist(), bottom + line * ROW, (LEFT,))
    body += row("", weights.tolist(), bottom + ROW, (right,))
    body += svg.text("dashed: at first", right, bottom + 2 * ROW + 12)
    body += scale(divisor, top)
    best = int(weights.argmax())
    title = f"Divided by {divisor:.2f}, key {best} gets {weights[best]:.2f} of 1"
    pairs = zip(scores.tolist(), weights.tolist(), strict=True)
    told = [f"key {i}: {score:.2f} gets {weight:.2f}" for i, (score, weight) in enumerate(pairs)]
    drawn = svg.Drawing(body, right + count * svg.CELL_WIDTH, top + 5 * ROW)
    drawn = svg.picture(drawn, title, f"Scores and weights: {', '.join(told)}.").padded(WIDTH)
    handles = [
        handle(i, scores[i].item(), weights[i].item(), zero, unit, reach) for i in range(count)
    ]
    return Handled(drawn, (*handles, handle_of_scale(divisor, weights[best].item(), top)))


def handle(
    i: int, score: float, weight: float, zero: float, unit: float, reach: tuple[int, int]
) -> Handle:
    """Return the handle at the end of the i-th score's bar; it moves up and down."""
    origin = LEFT + (i + 0.5) * svg.CELL_WIDTH + 2, zero + svg.TITLE_HEIGHT
    ends = (0.0, round(score, 2)), *((0.0, float(end)) for end in reach)
    says = f"{score:.2f}, weight {weight:.2f}"
    return Handle(f"score of key {i}", *ends, origin, (1, unit), says, STEP)


def handle_of_scale(divisor: float, largest: float, top: float) -> Handle:
    """Return the handle on the scale of what scores are divided by; it moves sideways."""
    ends = (divisor, 0.0), (LEAST, 0.0), (MOST, 0.0)
    origin = LEFT + 2, top + 2 * ROW + svg.TITLE_HEIGHT
    says = f"{divisor:.2f}, largest weight {largest:.2f}"
    return Handle("divided by", *ends, origin, (SCALE, 1), says, STEP)


def bars(lengths: torch.Tensor, left: float, zero: float) -> str:
    """Draw a bar for each length (num_tokens,) in pixels, up from a line, or down if below 0."""
    body = (
        f'<path d="M{left:g} {zero:g}h{len(lengths) * svg.CELL_WIDTH}" style="stroke:{svg.LINE}"/>'
    )
    for i, long in enumerate(lengths.tolist()):
        x, y = left + (i + 0.5) * svg.CELL_WIDTH - BAR / 2, zero - max(long, 0)
        body += (
            f'<path d="M{x:g} {y:.1f}h{BAR}v{abs(long):.1f}h-{BAR}z" stroke-opacity="0.8" '
            f'fill-opacity="0.35" style="fill:{svg.INK};stroke:{svg.INK}"/>'
        )
    return body


def marks(heights: torch.Tensor, left: float, zero: float) -> str:
    """Draw a dashed line at each height (num_tokens,) in pixels above a line."""
    lines = "".join(
        f"M{left + i * svg.CELL_WIDTH + 2:g} {zero - high:.1f}h{svg.CELL_WIDTH - 4}"
        for i, high in enumerate(heights.tolist())
    )
    return (
        f'<path d="{lines}" stroke-width="2" stroke-dasharray="4 3" fill="none" '
        f'style="stroke:{svg.INK}"/>'
    )


def row(name: str, values: Sequence[float], y: float, places: Sequence[float]) -> str:
    """Write a row of numbers under the columns that begin at each place, after their name."""
    return svg.text(name, LEFT - 6, y + 12, "end") + "".join(
        svg.text(svg.number(value), x + (i + 0.5) * svg.CELL_WIDTH, y + 12, "middle")
        for x in places
        for i, value in enumerate(values)
    )


def scale(divisor: float, top: float) -> str:
    """Draw what the scores are divided by, with the head_dim that each tick is the root of."""
    y = top + 2 * ROW
    body = svg.text(f"divided by {divisor:.2f}", LEFT, top + 12, style="font-weight:700")
    body += f'<path d="M{LEFT + LEAST * SCALE:g} {y:g}H{LEFT + MOST * SCALE:g}'
    body += "".join(f"M{LEFT + tick * SCALE:g} {y - 5:g}v10" for tick in TICKS)
    body += f'" style="stroke:{svg.LINE}"/>'
    for name, power, line in (("", 1, 1), ("head_dim", 2, 2)):
        body += svg.text(name, LEFT - 6, y + line * ROW + 6, "end")
        for tick in TICKS:
            x = LEFT + tick * SCALE
            body += svg.text(str(tick**power), x, y + line * ROW + 6, "middle")
    return body
