"""Films of storage: what a step moves in memory, and what one head reads."""

from functools import partial

import torch

from eleven_steps.pictures import Picture, draw_memory, storage
from eleven_steps.pictures.storage import pieces, read_by
from eleven_steps.sliders.film import Film, film
from eleven_steps.sliders.lesson import EACH_HEAD, START, at_steps, count, over_heads, run


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
