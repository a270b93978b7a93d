"""Sliders over pictures: explore_* return films, in files by what they show."""

from helpers.sliders.cache import explore_cache
from helpers.sliders.film import Film, film
from helpers.sliders.heads import explore_moments
from helpers.sliders.lesson import run, tokens
from helpers.sliders.memory import explore_memory, explore_storage
from helpers.sliders.motion import explore_motion
from helpers.sliders.products import (
    explore_attention,
    explore_blocks,
    explore_context_product,
    explore_out_proj,
    explore_project,
    explore_running,
)
from helpers.sliders.source import explore_source
from helpers.sliders.steps import (
    explore_combine,
    explore_context,
    explore_heads,
    explore_mask,
    explore_reformat,
    explore_scores,
    explore_scores_tokens,
    explore_shape,
    explore_softmax,
    explore_transpose,
    explore_view,
)
from helpers.sliders.touch import explore_numbers
from helpers.sliders.whole import explore_follow, explore_map, explore_models, explore_neighbours
from helpers.sliders.words import explore_angle, explore_meaning, explore_search

__all__ = [
    "Film",
    "explore_angle",
    "explore_attention",
    "explore_blocks",
    "explore_cache",
    "explore_combine",
    "explore_context",
    "explore_context_product",
    "explore_follow",
    "explore_heads",
    "explore_map",
    "explore_mask",
    "explore_meaning",
    "explore_memory",
    "explore_models",
    "explore_moments",
    "explore_motion",
    "explore_neighbours",
    "explore_numbers",
    "explore_out_proj",
    "explore_project",
    "explore_reformat",
    "explore_running",
    "explore_scores",
    "explore_scores_tokens",
    "explore_search",
    "explore_shape",
    "explore_softmax",
    "explore_source",
    "explore_storage",
    "explore_transpose",
    "explore_view",
    "film",
    "run",
    "tokens",
]
