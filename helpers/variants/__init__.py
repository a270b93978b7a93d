"""What models since the lecture changed: MultiHeadAttention with one step, or a few, made new."""

from helpers.variants.fused import FusedVariantAttention
from helpers.variants.keep import Cache, LatentCache
from helpers.variants.look import Alibi, Cap, Padding, Window, alibi_slopes, distances
from helpers.variants.module import Call, Part, VariantAttention
from helpers.variants.project import GroupedHeads, Latent, OtherSequence
from helpers.variants.turn import PAIRINGS, Norm, Rope, rotate
from helpers.variants.weigh import Gate, Sinks

__all__ = [
    "PAIRINGS",
    "Alibi",
    "Cache",
    "Call",
    "Cap",
    "FusedVariantAttention",
    "Gate",
    "GroupedHeads",
    "Latent",
    "LatentCache",
    "Norm",
    "OtherSequence",
    "Padding",
    "Part",
    "Rope",
    "Sinks",
    "VariantAttention",
    "Window",
    "alibi_slopes",
    "distances",
    "rotate",
]
