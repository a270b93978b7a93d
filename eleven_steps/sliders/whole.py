"""Films over all eleven steps at once: the map, real models."""

import torch

from eleven_steps.beyond.sizes import load_models
from eleven_steps.pictures import Picture, draw_compact, draw_map
from eleven_steps.sliders.film import Film, film
from eleven_steps.sliders.lesson import START, divisors, traced
from helpers.attention import MultiHeadAttention
from helpers.trace import trace


def explore_map() -> Film:
    """Move num_tokens, d_out and num_heads over the map of the whole block."""
    return film(map_at, START, num_tokens=(2, 3, 4), d_out=(4, 6, 12), num_heads=divisors)


def map_at(num_tokens: int, d_out: int, num_heads: int) -> Picture:
    """Draw the map of the whole block, a row for each step."""
    return draw_compact(traced(d_out, num_heads, num_tokens)[1])


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
