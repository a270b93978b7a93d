"""Films of numbers being made: matrix products, a row of attention, a running softmax."""

import math
from functools import partial

import torch

from eleven_steps.pictures import Picture, Shown, draw_attention, draw_product, draw_running
from eleven_steps.sliders.film import Film, film
from eleven_steps.sliders.lesson import EACH_HEAD, START, WIDTHS, over_heads, run, tokens, traced


def explore_project() -> Film:
    """Move d_out and num_heads of one projection, with each head's share of W_query."""
    return over_heads(project_at, WIDTHS[:4])


def project_at(d_out: int, num_heads: int) -> Picture:
    """Draw queries = x @ W_query, each column in the colour of the head that will own it."""
    mha, steps = run(d_out, num_heads)
    return draw_product(
        Shown(tokens()[0], "x", "num_tokens d_in"),
        Shown(mha.W_query.weight.detach().T, "W_query", "d_in d_out", num_heads),
        Shown(steps["project"]["queries"][0], "queries", "num_tokens d_out", num_heads),
        row=1,
        column=d_out - 1,
    )


def explore_blocks() -> Film:
    """Move num_heads and the head whose block of W_query makes that head's queries."""
    return film(block_at, START, **EACH_HEAD)


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


def explore_attention() -> Film:
    """Move the head and the query token over one row of attention, from score to context."""
    return film(attention_at, {"query": 2}, head=range(2), query=range(6))


def attention_at(head: int, query: int) -> Picture:
    """Draw one row of attention of six tokens, the lesson's three first."""
    return draw_attention(traced(num_tokens=6)[1], head, query)


def explore_context_product() -> Film:
    """Move the head, the query token and the feature over one number of the context."""
    return film(context_product_at, {"query": 1}, head=range(2), query=range(3), feature=range(3))


def context_product_at(head: int, query: int, feature: int) -> Picture:
    """Draw context = weights @ values of one head, following the query's feature."""
    _, steps = run()
    left, right, product = (
        Shown(steps[step][name][0, head], name, letters, only_head=head)
        for step, name, letters in (
            ("softmax", "weights", "num_tokens num_tokens"),
            ("transpose", "values", "num_tokens head_dim"),
            ("context", "context", "num_tokens head_dim"),
        )
    )
    return draw_product(left, right, product, row=query, column=feature)


def explore_running(scaled: torch.Tensor, values: torch.Tensor) -> Film:
    """Move the size of the blocks and the block read last, for scores (num_tokens,) and values."""
    choices = {"size": range(1, len(scaled) + 1)}
    choices["block"] = lambda size: range(math.ceil(len(scaled) / size))
    return film(partial(draw_running, scaled, values), {"size": 2}, **choices)


def explore_out_proj() -> Film:
    """Move d_out and num_heads over the last matrix product."""
    return over_heads(out_proj_at, WIDTHS[:4])


def out_proj_at(d_out: int, num_heads: int) -> Picture:
    """Draw out = context @ weight + bias, the context in the colours of its heads."""
    mha, steps = run(d_out, num_heads)
    out = steps["out_proj"]["out"][0] - mha.out_proj.bias.detach()
    return draw_product(
        Shown(steps["combine"]["context"][0], "context", "num_tokens d_out", num_heads),
        Shown(mha.out_proj.weight.detach().T, "out_proj.weight.T", "d_out d_out"),
        Shown(out, "out - bias", "num_tokens d_out"),
        row=1,
        column=d_out - 1,
    )
