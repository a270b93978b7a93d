"""Pictures of tensors as SVG: deterministic, readable in both themes, with words beside them."""

from helpers.pictures.attention import draw_attention
from helpers.pictures.blocks import draw_blocks
from helpers.pictures.follow import draw_follow
from helpers.pictures.map import draw_map
from helpers.pictures.memory import draw_memory, storage
from helpers.pictures.processes import draw_heads_over_processes, draw_ring
from helpers.pictures.reach import reach
from helpers.pictures.running import draw_running
from helpers.pictures.svg import HEAD_COLOURS, Picture
from helpers.pictures.tensors import Shown, draw_product, draw_steps, draw_tensor, draw_tensors
from helpers.pictures.vectors import Arrow, draw_matrices, draw_vectors
from helpers.pictures.weights import draw_patterns, draw_weights

__all__ = [
    "Arrow",
    "HEAD_COLOURS",
    "Picture",
    "Shown",
    "draw_attention",
    "draw_blocks",
    "draw_follow",
    "draw_heads_over_processes",
    "draw_map",
    "draw_matrices",
    "draw_memory",
    "draw_patterns",
    "draw_product",
    "draw_ring",
    "draw_running",
    "draw_steps",
    "draw_tensor",
    "draw_tensors",
    "draw_vectors",
    "draw_weights",
    "reach",
    "storage",
]
