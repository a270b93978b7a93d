"""Pictures of tensors as SVG: deterministic, readable in both themes, with words beside them.

Tensors and texts enter, never models, nothing that moves, and no randomness. A title says in a
sentence what there is to see; words are those of a sentence, one a token.
"""

from eleven_steps.pictures.arcs import Head, draw_arcs
from eleven_steps.pictures.blocks import draw_blocks
from eleven_steps.pictures.code import draw_source
from eleven_steps.pictures.map import draw_map
from eleven_steps.pictures.storage import draw_memory, storage
from eleven_steps.pictures.svg import HEAD_COLOURS, Picture
from eleven_steps.pictures.table import show_table
from eleven_steps.pictures.tensors import Shown, draw_product, draw_tensors
from eleven_steps.pictures.vectors import Arrow, draw_matrices, draw_vectors
from eleven_steps.pictures.weights import draw_patterns, draw_weights, draw_words
