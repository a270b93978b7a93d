"""Pictures of tensors as SVG: deterministic, readable in both themes, with words beside them."""

from eleven_steps.pictures.bars import draw_bars
from eleven_steps.pictures.blocks import draw_blocks
from eleven_steps.pictures.changes import draw_cover, draw_shares, draw_sum
from eleven_steps.pictures.code import draw_source
from eleven_steps.pictures.done import draw_steps
from eleven_steps.pictures.handles import Handle, Handled
from eleven_steps.pictures.linked import draw_linked, steps_of
from eleven_steps.pictures.map import draw_compact, draw_map
from eleven_steps.pictures.moving import Motion, draw_motion
from eleven_steps.pictures.numbers import Linear, draw_numbers, pairs, tell, written
from eleven_steps.pictures.one_query import draw_attention, draw_running
from eleven_steps.pictures.processes import draw_heads_over_processes, draw_ring
from eleven_steps.pictures.reach import reach_all
from eleven_steps.pictures.reading import Head, draw_arcs, tell_words
from eleven_steps.pictures.storage import draw_memory, storage
from eleven_steps.pictures.svg import HEAD_COLOURS, Picture
from eleven_steps.pictures.tensors import Shown, draw_product, draw_tensor, draw_tensors
from eleven_steps.pictures.tips import draw_key, draw_mix
from eleven_steps.pictures.vectors import Arrow, draw_matrices, draw_vectors
from eleven_steps.pictures.weights import draw_patterns, draw_weights, draw_words

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
    "reach_all",
    "steps_of",
    "storage",
    "tell",
    "tell_words",
    "written",
]
