"""Sliders over pictures: explore_* return films, in files by what they show."""

from helpers.sliders.arcs import explore_arcs, explore_sentence
from helpers.sliders.cache import explore_cache
from helpers.sliders.drag import Drag
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
from helpers.sliders.shares import explore_shares
from helpers.sliders.source import explore_source
from helpers.sliders.steps import (
    explore_context,
    explore_heads,
    explore_mask,
    explore_scores,
    explore_scores_tokens,
    explore_shape,
    explore_softmax,
    explore_transpose,
    explore_view,
)
from helpers.sliders.touch import explore_numbers
from helpers.sliders.whole import explore_map, explore_models
from helpers.sliders.words import explore_angle, explore_meaning, explore_mix, explore_search

__all__ = [
    "Drag",
    "Film",
    "explore_angle",
    "explore_arcs",
    "explore_attention",
    "explore_blocks",
    "explore_cache",
    "explore_context",
    "explore_context_product",
    "explore_heads",
    "explore_map",
    "explore_mask",
    "explore_meaning",
    "explore_memory",
    "explore_mix",
    "explore_models",
    "explore_moments",
    "explore_motion",
    "explore_numbers",
    "explore_out_proj",
    "explore_project",
    "explore_running",
    "explore_scores",
    "explore_scores_tokens",
    "explore_search",
    "explore_sentence",
    "explore_shape",
    "explore_shares",
    "explore_softmax",
    "explore_source",
    "explore_storage",
    "explore_transpose",
    "explore_view",
    "film",
    "run",
    "tokens",
]
