"""Variants of MultiHeadAttention: parts that change one step, or a few, as newer models do.

Every part is in a released model and has a row in bench/changes.toml. This room holds no whole
models, and nothing around attention.
"""

from eleven_steps.beyond.variants.choose import TopBlocks, TopKeys
from eleven_steps.beyond.variants.delta import Delta
from eleven_steps.beyond.variants.keep import Cache, LatentCache
from eleven_steps.beyond.variants.linear import Linear, State, delta_rule
from eleven_steps.beyond.variants.look import (
    Alibi,
    Cap,
    Chunks,
    Full,
    Padding,
    Window,
    alibi_slopes,
    distances,
)
from eleven_steps.beyond.variants.module import Call, Part, VariantAttention
from eleven_steps.beyond.variants.pool import GroupedOut, Pool, TopPooledKeys, TopPools
from eleven_steps.beyond.variants.project import GroupedHeads, Latent, OtherSequence, QueryLatent
from eleven_steps.beyond.variants.scaling import (
    FirstPairs,
    LinearScaling,
    Llama3Scaling,
    YarnScaling,
)
from eleven_steps.beyond.variants.share import (
    BorrowedChoice,
    BorrowedKeys,
    KeysAsValues,
    Lends,
    TurnedBack,
)
from eleven_steps.beyond.variants.turn import PAIRINGS, Norm, Rope, Temperature, ValueNorm, rotate
from eleven_steps.beyond.variants.weigh import Differential, Gate, HeadGate, Sinks, Unscaled
