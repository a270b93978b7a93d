"""Pictures of tensors as SVG: deterministic, readable in both themes, with words beside them."""

from helpers.pictures.arcs import Head, draw_arcs, tell_words
from helpers.pictures.attention import draw_attention
from helpers.pictures.bars import draw_bars
from helpers.pictures.blocks import draw_blocks
from helpers.pictures.changes import draw_cover, draw_shares, draw_sum
from helpers.pictures.compact import draw_compact
from helpers.pictures.follow import draw_follow
from helpers.pictures.handles import Handle, Handled
from helpers.pictures.linked import draw_linked, steps_of
from helpers.pictures.map import draw_map
from helpers.pictures.memory import draw_memory, storage
from helpers.pictures.motion import Motion, draw_motion
from helpers.pictures.numbers import Linear, draw_numbers, pairs, tell, written
from helpers.pictures.processes import draw_heads_over_processes, draw_ring
from helpers.pictures.reach import reach, reach_all
from helpers.pictures.running import draw_running
from helpers.pictures.source import draw_source
from helpers.pictures.steps import draw_steps
from helpers.pictures.svg import HEAD_COLOURS, Picture
from helpers.pictures.tensors import Shown, draw_product, draw_tensor, draw_tensors
from helpers.pictures.tips import draw_key, draw_mix
from helpers.pictures.vectors import Arrow, draw_matrices, draw_vectors
from helpers.pictures.weights import draw_patterns, draw_weights, draw_words

__all__ = [
    "Arrow",
    "HEAD_COLOURS",
    "Head",
    "Handle",
    "Handled",
    "Linear",
    "Motion",
    "Picture",
    "Shown",
    "draw_arcs",
    "draw_attention",
    "draw_bars",
    "draw_blocks",
    "draw_compact",
    "draw_cover",
    "draw_follow",
    "draw_heads_over_processes",
    "draw_key",
    "draw_linked",
    "draw_map",
    "draw_matrices",
    "draw_memory",
    "draw_mix",
    "draw_motion",
    "draw_numbers",
    "draw_patterns",
    "draw_product",
    "draw_ring",
    "draw_running",
    "draw_shares",
    "draw_source",
    "draw_steps",
    "draw_sum",
    "draw_tensor",
    "draw_tensors",
    "draw_vectors",
    "draw_weights",
    "draw_words",
    "pairs",
    "reach",
    "reach_all",
    "steps_of",
    "storage",
    "tell",
    "tell_words",
    "written",
]
