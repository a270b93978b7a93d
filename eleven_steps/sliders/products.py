"""Films of numbers being made: a head's block of a product, a running softmax."""

import math
from functools import partial

import torch

from eleven_steps.pictures import Picture, Shown, draw_product, draw_running
from eleven_steps.sliders.film import Film, film
from eleven_steps.sliders.lesson import run, tokens


def explore_blocks() -> Film:
    """Move num_heads and the head whose block of W_query makes that head's queries."""
    return film(
        block_at, {"num_heads": 2}, num_heads=(1, 2, 3, 6), head=lambda num_heads: range(num_heads)
    )


def block_at(num_heads: int, head: int) -> Picture:
    """Draw one head's queries = x @ its columns of W_query."""
    mha, steps = run(6, num_heads)
    block = mha.W_query.weight.detach().chunk(num_heads)[head].T
    return draw_product(
        Shown(tokens()[0], "x", "num_tokens d_in"),
        Shown(block, f"block {head} of W_query", "d_in head_dim", only_head=head),
        Shown(
            steps["transpose"]["queries"][0, head],
            f"queries of head {head}",
            "num_tokens head_dim",
            only_head=head,
        ),
        row=1,
        column=0,
    )


def explore_running(scaled: torch.Tensor, values: torch.Tensor) -> Film:
    """Move the size of the blocks and the block read last, for scores (num_tokens,) and values."""
    choices = {"size": range(1, len(scaled) + 1)}
    choices["block"] = lambda size: range(math.ceil(len(scaled) / size))
    return film(partial(draw_running, scaled, values), {"size": 2}, **choices)
