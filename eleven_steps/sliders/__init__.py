"""Sliders over pictures: explore_* return films, in files by what they show."""

from eleven_steps.sliders.arcs import explore_arcs, explore_sentence
from eleven_steps.sliders.drag import Drag
from eleven_steps.sliders.film import Film, film
from eleven_steps.sliders.lesson import run, tokens
from eleven_steps.sliders.live import Live
from eleven_steps.sliders.model_films import (
    explore_cache,
    explore_map,
    explore_models,
    explore_moments,
)
from eleven_steps.sliders.motion import explore_motion
from eleven_steps.sliders.products import (
    explore_attention,
    explore_blocks,
    explore_context_product,
    explore_out_proj,
    explore_project,
    explore_running,
)
from eleven_steps.sliders.source import explore_source
from eleven_steps.sliders.step_films import (
    explore_context,
    explore_heads,
    explore_mask,
    explore_memory,
    explore_scores,
    explore_scores_tokens,
    explore_shape,
    explore_softmax,
    explore_storage,
    explore_transpose,
    explore_view,
)
from eleven_steps.sliders.touch import explore_numbers
from eleven_steps.sliders.words import (
    explore_angle,
    explore_meaning,
    explore_mix,
    explore_search,
    explore_shares,
)

__all__ = [
    "Drag",
    "Film",
    "Live",
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
