"""What models since the lecture changed: MultiHeadAttention with one step, or a few, made new."""

from eleven_steps.beyond.variants.choose import TopKeys
from eleven_steps.beyond.variants.fused import FusedVariantAttention
from eleven_steps.beyond.variants.keep import Cache, LatentCache
from eleven_steps.beyond.variants.linear import Linear, State, delta_rule
from eleven_steps.beyond.variants.look import (
    Alibi,
    Cap,
    Full,
    Padding,
    Window,
    alibi_slopes,
    distances,
)
from eleven_steps.beyond.variants.module import Call, Part, VariantAttention
from eleven_steps.beyond.variants.project import GroupedHeads, Latent, OtherSequence, QueryLatent
from eleven_steps.beyond.variants.scaling import LinearScaling, Llama3Scaling, YarnScaling
from eleven_steps.beyond.variants.turn import PAIRINGS, Norm, Rope, rotate
from eleven_steps.beyond.variants.weigh import Gate, Sinks

__all__ = [
    "PAIRINGS",
    "Alibi",
    "Cache",
    "Call",
    "Cap",
    "Full",
    "FusedVariantAttention",
    "Gate",
    "GroupedHeads",
    "Latent",
    "LatentCache",
    "Linear",
    "LinearScaling",
    "Llama3Scaling",
    "Norm",
    "OtherSequence",
    "Padding",
    "Part",
    "QueryLatent",
    "Rope",
    "Sinks",
    "State",
    "TopKeys",
    "VariantAttention",
    "Window",
    "YarnScaling",
    "alibi_slopes",
    "delta_rule",
    "distances",
    "rotate",
]
