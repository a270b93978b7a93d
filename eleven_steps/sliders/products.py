"""Films of numbers: a head's block of a product, a running softmax, strides, pairs that turn."""

import math
from functools import partial

import torch

from eleven_steps.beyond import variants
from eleven_steps.pictures import Picture, Shown, draw_dials, draw_product, draw_running, draw_walk
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


def explore_strides(flat: torch.Tensor) -> Film:
    """Move the strides of a table, and see it read anew from the same flat list.

    Args:
        flat: (places,), all that there is to read.
    """
    rows, columns = 3, 4

    def draw(down: int, right: int) -> Picture:
        table = flat.as_strided((rows, columns), (down, right))
        finding = f"A step down walks {down} place{'s' * (down != 1)}, a step right {right}"
        return draw_walk(Shown(table, "table", "num_tokens d_in"), finding)

    def rights(down: int) -> range:
        return range((len(flat) - 1 - down * (rows - 1)) // (columns - 1) + 1)

    most = (len(flat) - 1) // (rows - 1)
    return film(draw, {"down": columns, "right": 1}, down=range(most + 1), right=rights)


def explore_dials(query: torch.Tensor, key: torch.Tensor, base: float = 10.0) -> Film:
    """Move a query and a key in a text, and see RoPE turn each pair of their features.

    Args:
        query, key: (pairs, 2), as they are at position 0.
        base: pair p of P turns by base ** (-p / P) radians a token.
    """
    pairs = len(query)
    angles = [base ** (-pair / pairs) for pair in range(pairs)]

    def turned(vectors: torch.Tensor, position: int) -> torch.Tensor:
        row = variants.rotate(vectors.reshape(1, -1), torch.tensor([position]), base, "neighbours")
        return row.view(pairs, 2)

    def draw(query_at: int, key_at: int) -> Picture:
        finding = f"Query at {query_at}, key at {key_at}: {query_at - key_at:+d} tokens apart"
        return draw_dials(turned(query, query_at), turned(key, key_at), angles, finding)

    places = range(6)
    return film(draw, {"query_at": 3, "key_at": 1}, query_at=places, key_at=places)
