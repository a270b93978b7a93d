"""What one query of one head knows after each block of keys: a running softmax."""

from typing import Any

import torch

from eleven_steps.pictures import svg
from eleven_steps.pictures.grid import grid
from eleven_steps.pictures.tensors import MAX_COLUMNS

MOST_KEYS = MAX_COLUMNS - 6
LEFT = svg.CHARACTER * 20  # where the cells begin, right of the labels


def strip(label: str, row: torch.Tensor, **look: Any) -> svg.Drawing:
    """Draw a row (numbers,) of a head beside its label."""
    main = grid([row.tolist()], [[0] * len(row)], **look)
    body = svg.text(label, 0, main.height - svg.CELL_HEIGHT + 15) + svg.at(LEFT, 0, main)
    return svg.Drawing(body, LEFT + main.width, main.height)


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
    if len(scaled) > MOST_KEYS:
        raise ValueError(f"scaled has {len(scaled)} scores: at most {MOST_KEYS} can be drawn")
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
    rows = {
        "scaled scores": (scaled, {"kept": [(key < end).tolist()], **here}),
        "powers": (powers, {"kept": [((start <= key) & (key < end)).tolist()]}),
        "largest": (largest, {**wide, "column_labels": [f"block {i}" for i in range(len(blocks))]}),
        "shrink": (shrink, wide),
        "total": (total, wide),
        "context": (context, {"column_labels": [str(i) for i in range(len(context))]}),
        "context / total": (context / total[-1], {}),
        "all keys at once": (torch.softmax(scaled, dim=0) @ values, {}),
    }
    found = {name: ", ".join(f"{v:.2f}" for v in row.tolist()) for name, (row, _) in rows.items()}
    return svg.picture(
        svg.below([strip(name, row, **look) for name, (row, look) in rows.items()], gap=8),
        f"{len(read)} of {len(blocks)} blocks read: "
        f"largest {largest[-1]:.2f}, total {total[-1]:.2f}",
        f"The last block read is keys {start} to {end - 1}. Shrink is {shrink[-1]:.2f}. "
        f"Context / total is {found['context / total']}, that of all keys at once "
        f"{found['all keys at once']}.",
    )
