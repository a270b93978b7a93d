"""What one query of one head does in steps 5 to 8: key by key, or block by block."""

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
    check_keys(f"num_tokens is {num_tokens}", num_tokens)
    scores, masked, weights = (
        tensors[name][sequence, head, query] for name in ("scores", "masked", "weights")
    )
    weighted = weights[:, None] * by_head["values"][sequence, head]  # (num_tokens, head_dim)
    (context,) = (step.tensors["context"] for step in steps if step.name == "context")
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
    most, future = weights.argmax().item(), num_tokens - 1 - query
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


def check_keys(what: str, count: int) -> None:
    """Raise ValueError if there are too many keys to draw beside each other."""
    if count > MAX_COLUMNS - 6:
        raise ValueError(f"{what}: at most {MAX_COLUMNS - 6} can be drawn")


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


def draw_running(scaled: torch.Tensor, values: torch.Tensor, size: int, block: int) -> svg.Picture:
    """Draw the running maximum, sum and context of one query, up to a block of keys.

    Args:
        scaled: the query's scaled scores, (num_tokens,), -inf at the future; the first is finite.
        values: (num_tokens, head_dim).
        size: keys in a block; the last block may have fewer.
        block: the block that was read last, from 0.

    Raises:
        ValueError: there is no such block, or there are too many keys to draw.

    Source: "Online normalizer calculation for softmax" (2018), algorithm 3.
    """
    check_keys(f"scaled has {len(scaled)} scores", len(scaled))
    key = torch.arange(len(scaled))
    blocks = key.split(size)
    if not 0 <= block < len(blocks):
        raise ValueError(f"block is {block}: one from 0 to {len(blocks) - 1} is expected")
    start, end = blocks[block][0].item(), blocks[block][-1].item() + 1
    read = [scaled[: keys[-1] + 1] for keys in blocks[: block + 1]]
    largest = torch.stack([row.max() for row in read])
    shrink = torch.exp(torch.cat([largest.new_tensor([-torch.inf]), largest[:-1]]) - largest)
    total = torch.stack([torch.exp(row - row.max()).sum() for row in read])
    powers = torch.exp(scaled - largest[-1])  # (num_tokens,)
    context = powers[:end] @ values[:end]  # (head_dim,)

    here = {"marked": [(0, i) for i in range(start, end)]}
    here["column_labels"] = [f"key {i}" for i in key.tolist()]
    wide = {"cell": (svg.CHARACTER * 8, svg.CELL_HEIGHT)}
    named = {"column_labels": [f"block {i}" for i in range(len(blocks))]}
    rows = {
        "scaled scores": (scaled, {"kept": [(key < end).tolist()], **here}),
        "powers": (powers, {"kept": [((start <= key) & (key < end)).tolist()]}),
        "largest": (largest, {**wide, **named}),
        "shrink": (shrink, wide),
        "total": (total, wide),
        "context": (context, {"column_labels": [str(i) for i in range(len(context))]}),
        "context / total": (context / total[-1], {}),
        "all keys at once": (torch.softmax(scaled, dim=0) @ values, {}),
    }
    found = {name: ", ".join(f"{v:.2f}" for v in row.tolist()) for name, (row, _) in rows.items()}
    return svg.picture(
        svg.below([strip(name, row[None], 0, **look) for name, (row, look) in rows.items()], gap=8),
        f"{len(read)} of {len(blocks)} blocks read: "
        f"largest {largest[-1]:.2f}, total {total[-1]:.2f}",
        f"The last block read is keys {start} to {end - 1}. Shrink is {shrink[-1]:.2f}. "
        f"Context / total is {found['context / total']}, that of all keys at once "
        f"{found['all keys at once']}.",
    )
