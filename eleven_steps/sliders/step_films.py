"""Films of one step each: its tensors before and after, and what it moves in memory."""

from functools import partial

import torch

from eleven_steps.pictures import Picture, Shown, draw_memory, draw_tensor, draw_tensors, storage
from eleven_steps.pictures.storage import pieces, read_by
from eleven_steps.sliders.film import Film, film
from eleven_steps.sliders.lesson import (
    EACH_HEAD,
    START,
    WIDTHS,
    at_steps,
    count,
    over_heads,
    run,
    split,
    tokens,
)


def explore_shape() -> Film:
    """Move the sequences and tokens of the input x (b, num_tokens, d_in)."""
    return film(shape_at, START, b=(1, 2, 3), num_tokens=range(1, 7))


def shape_at(b: int, num_tokens: int) -> Picture:
    """Draw x for b equal sequences of num_tokens tokens."""
    shown = Shown(tokens(num_tokens).expand(b, -1, -1), "x", "b num_tokens d_in")
    return draw_tensor(shown, f"{count(b, 'sequence')} of {count(num_tokens, 'token')}")


def explore_heads() -> Film:
    """Move d_out and num_heads, and see which features each head gets."""
    return over_heads(heads_at)


def heads_at(d_out: int, num_heads: int) -> Picture:
    """Draw the numbers of d_out features, one colour per head."""
    shown = Shown(torch.arange(d_out)[None], "features", "num_tokens d_out", num_heads)
    return draw_tensor(shown, f"d_out = {d_out}: {split(d_out, num_heads)}")


def explore_view() -> Film:
    """Move d_out and num_heads over the queries before and after step 3."""
    return over_heads(view_at)


def view_at(d_out: int, num_heads: int) -> Picture:
    """Draw the queries before and after step 3."""
    shown = at_steps(run(d_out, num_heads), "project.queries", "view.queries")
    return draw_tensors(shown, f"Each token keeps {split(d_out, num_heads)}", ["view"])


def explore_transpose() -> Film:
    """Move d_out and num_heads over the queries before and after step 4."""
    return over_heads(transpose_at)


def transpose_at(d_out: int, num_heads: int) -> Picture:
    """Draw the queries before and after step 4."""
    shown = at_steps(run(d_out, num_heads), "view.queries", "transpose.queries")
    title = f"{count(num_heads, 'head')}, each with all {START['num_tokens']} tokens"
    return draw_tensors(shown, title, ["transpose(1, 2)"])


def explore_scores() -> Film:
    """Move d_out and num_heads over the queries, the keys and their scores."""
    return over_heads(scores_at, WIDTHS[:3])


def scores_at(d_out: int, num_heads: int) -> Picture:
    """Draw the queries, the keys and the scores of every head."""
    which = "transpose.queries", "transpose.keys", "scores.scores"
    shown = at_steps(run(d_out, num_heads), *which)
    title = f"{count(num_heads, 'table')} of scores, however wide d_out = {d_out} is"
    return draw_tensors(shown, title, ["and", "queries @ keys.transpose(2, 3)"])


def explore_scores_tokens() -> Film:
    """Move num_tokens over the scores of two heads: they grow with its square."""
    return film(scores_grow_at, START, num_tokens=range(1, 7))


def scores_grow_at(num_tokens: int) -> Picture:
    """Draw the scores of num_tokens tokens in two heads."""
    (shown,) = at_steps(run(num_tokens=num_tokens), "scores.scores")
    scores = count(num_tokens**2, "score")
    return draw_tensor(shown, f"{count(num_tokens, 'token')}: {scores} in each head")


def explore_mask() -> Film:
    """Move num_tokens and num_heads over the scores before and after the mask."""
    return film(mask_at, START, num_tokens=range(1, 7), num_heads=(1, 2))


def mask_at(num_tokens: int, num_heads: int) -> Picture:
    """Draw the scores before and after step 6."""
    shown = at_steps(run(6, num_heads, num_tokens), "scores.scores", "mask.masked")
    future = num_tokens * (num_tokens - 1) // 2
    title = f"{count(num_tokens, 'token')}: {future} of {num_tokens**2} scores per head are future"
    return draw_tensors(shown, title, ["masked_fill(future, -inf)"])


def explore_softmax() -> Film:
    """Move num_tokens and num_heads over the masked scores and their weights."""
    return film(softmax_at, START, num_tokens=range(1, 7), num_heads=(1, 2))


def softmax_at(num_tokens: int, num_heads: int) -> Picture:
    """Draw the masked scores and the weights that step 7 makes of them."""
    shown = at_steps(run(6, num_heads, num_tokens), "mask.masked", "softmax.weights")
    title = f"{count(num_tokens * num_heads, 'row')} of weights, each adds up to 1"
    return draw_tensors(shown, title, [f"softmax(masked / {6 // num_heads}**0.5)"])


def explore_context() -> Film:
    """Move d_out and num_heads over the weights, the values and the context."""
    return over_heads(context_at, WIDTHS[:3])


def context_at(d_out: int, num_heads: int) -> Picture:
    """Draw the weights, the values and the context that step 8 makes of them."""
    which = "softmax.weights", "transpose.values", "context.context"
    shown = at_steps(run(d_out, num_heads), *which)
    return draw_tensors(shown, "Weights mix the values of one head", ["and", "weights @ values"])


def explore_memory(before: str, after: str) -> Film:
    """Move d_out and num_heads over the storage of two tensors, as "project.queries"."""
    draw = partial(memory_at, which=(before, after))
    return over_heads(draw)


def memory_at(d_out: int, num_heads: int, which: tuple[str, str]) -> Picture:
    """Draw the storage of a tensor before and after a step, as "view.queries"."""
    before, after = at_steps(run(d_out, num_heads), *which)
    moved = not torch.equal(storage(before.tensor), storage(after.tensor))
    title = "The numbers are copied into a new order" if moved else "No number moves in memory"
    return draw_memory([before, after], title, [which[1].split(".")[0]])


def explore_storage(*which: str) -> Film:
    """Move num_heads and the head whose places are framed in storage, as "transpose.queries"."""
    draw = partial(storage_at, which=which)
    return film(draw, START, **EACH_HEAD)


def storage_at(num_heads: int, head: int, which: tuple[str, ...]) -> Picture:
    """Draw the storage of tensors with the places framed that one head reads."""
    shown = at_steps(run(6, num_heads), *which)
    found = [
        count(len(pieces(i for i, heads in read_by(one).items() if head in heads)), "piece")
        for one in shown
    ]
    title = f"Head {head} of {num_heads} reads {found[0]}"
    if len(found) > 1:
        title += f" before step {which[-1].split('.')[0]}, {found[-1]} after it"
    return draw_memory(shown, title, head=head)
