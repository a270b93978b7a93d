"""Films over all eleven steps at once: the map, numbers followed through it, real models."""

from functools import partial

import torch

from helpers.attention import MultiHeadAttention
from helpers.pictures import Picture, draw_compact, draw_follow, draw_map
from helpers.sizes import load_models
from helpers.sliders.film import Film, film
from helpers.sliders.lesson import (
    START,
    divisors,
    run,
    traced,
)
from helpers.trace import SHAPES, trace


def explore_map() -> Film:
    """Move num_tokens, d_out and num_heads over the map of the whole block."""
    return film(map_at, START, num_tokens=(2, 3, 4), d_out=(4, 6, 12), num_heads=divisors)


def map_at(num_tokens: int, d_out: int, num_heads: int) -> Picture:
    """Draw the map of the whole block, a row for each step."""
    return draw_compact(traced(d_out, num_heads, num_tokens)[1])


# What the sliders over one number of a tensor are called.
AXES = {
    "num_tokens": "token",
    "num_heads": "head",
    "head_dim": "feature",
    "d_in": "feature",
    "d_out": "feature",
}


# Where a number has something to tell: a query that may look at all keys, and one key before it.
TELLING = {"token": 2, "query": 2, "key": 1}


def explore_neighbours(name: str, *steps: str) -> Film:
    """Move over all numbers of a tensor, as "view.queries", and follow each through some steps.

    Raises:
        KeyError: there is no such tensor.
        ValueError: as draw_follow does.
    """
    step, _, tensor = name.partition(".")
    shape = run()[1][step][tensor].shape[1:]
    letters = SHAPES[step].strip("()").split(", ")[1:]
    names = [AXES[letter] for letter in letters]
    if names[-2:] == ["token", "token"]:
        names[-2:] = ["query", "key"]
    choices = dict(zip(names, map(range, shape), strict=True))
    return film(partial(neighbours_at, which=(name, steps)), TELLING, **choices)


def neighbours_at(which: tuple[str, tuple[str, ...]], **index: int) -> Picture:
    """Draw some steps with the number followed that stands at an index of a tensor."""
    name, steps = which
    return draw_follow(traced()[1], name, (0, *index.values()), steps)


def explore_models() -> Film:
    """Move over real models, and see all eleven shapes of one layer at its context_length."""
    return film(model_at, model=[model.name for model in load_models()])


def model_at(model: str) -> Picture:
    """Draw the map of one layer of a model of data/models.json, one sequence as long as allowed."""
    size = next(each for each in load_models() if each.name == model)
    with torch.device("meta"):  # shapes without numbers: nothing is computed or stored
        mha = MultiHeadAttention(size.d_out, size.d_out, size.context_length, 0.0, size.num_heads)
        x = torch.empty(1, size.context_length, size.d_out)
    return draw_map(trace(mha, x))
