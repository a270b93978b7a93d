"""Variants of MultiHeadAttention: parts that change one step, or a few, as newer models do.

Every part is in a released model, to which bench/prove.py proves it equal. This room holds no whole
models, and nothing around attention.
"""

from eleven_steps.beyond.variants.alibi import Alibi, alibi_slopes, distances
from eleven_steps.beyond.variants.cross_attention import OtherSequence
from eleven_steps.beyond.variants.differential import Differential
from eleven_steps.beyond.variants.gated_delta import Delta, delta_rule
from eleven_steps.beyond.variants.gates import Gate
from eleven_steps.beyond.variants.gqa import GroupedHeads
from eleven_steps.beyond.variants.kv_cache import Cache, LatentCache
from eleven_steps.beyond.variants.linear_attention import Linear, State
from eleven_steps.beyond.variants.masks import Chunks, Full, Padding, Window
from eleven_steps.beyond.variants.mla import Latent, QueryLatent
from eleven_steps.beyond.variants.module import Call, Part, VariantAttention
from eleven_steps.beyond.variants.norms import Norm, ValueNorm
from eleven_steps.beyond.variants.pooled_keys import GroupedOut, Pool, TopPools
from eleven_steps.beyond.variants.rope import PAIRINGS, Rope, rotate
from eleven_steps.beyond.variants.rope_scaling import (
    FirstPairs,
    LinearScaling,
    Llama3Scaling,
    YarnScaling,
)
from eleven_steps.beyond.variants.shared_kv import (
    BorrowedChoice,
    BorrowedKeys,
    KeysAsValues,
    Lender,
    RotatedValues,
)
from eleven_steps.beyond.variants.softmax import Cap, Sinks, Temperature, Unscaled
from eleven_steps.beyond.variants.sparse import TopKeys
