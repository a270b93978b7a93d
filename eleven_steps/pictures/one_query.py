"""Attention to look at: what one query of one head does in steps 5 to 8, key by key."""

from collections.abc import Sequence
from typing import Any

import torch

from eleven_steps.pictures import svg
from eleven_steps.pictures.grid import grid
from eleven_steps.pictures.tensors import MAX_COLUMNS, TracedStep

LEFT = svg.CHARACTER * 20  # where the cells begin, right of the labels


def draw_attention(
    steps: Sequence[TracedStep], head: int, query: int, sequence: int = 0
) -> svg.Picture:
    """Draw the row of one query: scores, masked, scaled, weights, weighted values, context.

    Every key has a column, so that each number stands below the one it is made of.

    Args:
        steps: the eleven steps of a trace.
        head, query, sequence: which row of the scores to draw.

    Raises:
        ValueError: there is no such row, or it has too many keys to draw.
    """
    tensors = {name: tensor for step in steps for name, tensor in step.tensors.items()}
    by_head = next(step.tensors for step in steps if step.name == "transpose")
    b, num_heads, num_tokens, head_dim = by_head["values"].shape
    if not (0 <= sequence < b and 0 <= head < num_heads and 0 <= query < num_tokens):
        raise ValueError(
            f"sequence {sequence}, head {head}, query {query} is not in scores, whose shape is "
            f"(b, num_heads, num_tokens, num_tokens) = {(b, num_heads, num_tokens, num_tokens)}"
        )
    if num_tokens > MAX_COLUMNS - 6:
        raise ValueError(f"num_tokens is {num_tokens}: at most {MAX_COLUMNS - 6} can be drawn")
    scores, masked, weights = (
        tensors[name][sequence, head, query] for name in ("scores", "masked", "weights")
    )
    values = by_head["values"][sequence, head]  # (num_tokens, head_dim)
    (context,) = (step.tensors["context"] for step in steps if step.name == "context")
    weighted = weights[:, None] * values  # (num_tokens, head_dim)
    made = context[sequence, head, query]  # (head_dim,)

    keys = [f"key {i}" for i in range(num_tokens)]
    parts = [
        strip("5 scores", scores[None], head, column_labels=keys),
        strip("6 masked", masked[None], head),
        strip(f"7 masked / {head_dim}**0.5", masked[None] / head_dim**0.5, head),
        strip(
            "7 weights", weights[None], head, weights.sum()[None], "sum", shades=[weights.tolist()]
        ),
        strip("8 weight x value", weighted.T, head, made, "context", column_labels=keys),
    ]
    most = weights.argmax().item()
    future = num_tokens - 1 - query
    return svg.picture(
        svg.below(parts, gap=8),
        f"Head {head}: token {query} looks most at {'itself' if most == query else f'token {most}'}"
        f", with weight {distinct(weights)}",
        f"Scores, masked, divided scores and weights have shape (num_tokens,) = ({num_tokens},), "
        f"the weighted values (head_dim, num_tokens) = ({head_dim}, {num_tokens}). "
        f"-inf makes {future} weight{'s' * (future != 1)} 0, the weights add up to "
        f"{weights.sum():.2f}, and the weighted values to the context, (head_dim,) = "
        f"({head_dim},).",
    )


def distinct(weights: torch.Tensor) -> str:
    """Write the largest of some weights, with a third digit where two do not tell it apart."""
    shown = [sorted(f"{each:.{digits}f}" for each in weights) for digits in (2, 3)]
    return shown[0][-1] if shown[0][-1] not in shown[0][:-1] else shown[1][-1]


def strip(
    label: str,
    rows: torch.Tensor,
    head: int,
    sums: torch.Tensor | None = None,
    total: str = "",
    **look: Any,
) -> svg.Drawing:
    """Draw rows of one head beside their label, and at the right what each adds up to."""
    main = grid(rows.tolist(), [[head] * rows.shape[1]] * len(rows), **look)
    top = main.height - len(rows) * svg.CELL_HEIGHT
    body = svg.text(label, 0, top + 15) + svg.at(LEFT, 0, main)
    width = LEFT + main.width
    if sums is not None:
        body += svg.text("=", width + svg.GAP, top + 15, "middle")
        column = grid([[one] for one in sums.tolist()], [[head]] * len(rows))
        body += svg.at(width + 2 * svg.GAP, top, column)
        width += 2 * svg.GAP + column.width + svg.GAP / 2
        body += svg.text(total, width, top + 15)
        width += svg.CHARACTER * len(total)
    return svg.Drawing(body, width, main.height)
