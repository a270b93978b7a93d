"""What bench/prove.py proves: a row for each change and each module that has it."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import nn

from eleven_steps.beyond.variants import (
    Alibi,
    Cache,
    Cap,
    Gate,
    GroupedHeads,
    Latent,
    LatentCache,
    Norm,
    OtherSequence,
    Padding,
    Part,
    Rope,
    Sinks,
    Window,
)
from helpers.attention import future_mask

D, HEADS, TOKENS = 24, 3, 9  # d_in = d_out, num_heads, num_tokens: no two alike


@dataclass(frozen=True)
class Proof:
    """What is to be equal: a change, a model of transformers, the parts that make ours the same.

    padding: which tokens of two sequences are filling, if any. cache: a cache for ours, beside
    transformers' own.
    """

    change: str
    model: str
    parts: list[Part] = field(default_factory=list)
    sizes: dict = field(default_factory=dict)
    heads: int = HEADS
    padding: torch.Tensor | None = None
    cache: Callable[[], Part] | None = None

    @property
    def module(self) -> str:
        """The name of the module."""
        return f"transformers {self.model}Attention"


@dataclass(frozen=True)
class TorchProof:
    """The same for torch's own module, called with what fits the change."""

    change: str
    call: Callable[[nn.MultiheadAttention, torch.Tensor], torch.Tensor]
    parts: Callable[[torch.Tensor], list[Part]] = lambda x: []
    real: torch.Tensor | None = None
    module = "torch nn.MultiheadAttention"


LEFT = torch.tensor([[True] * 3 + [False] * 6, [False] * TOKENS])
RIGHT = LEFT.flip(1)
OTHER = torch.randn(2, 5, D, generator=torch.Generator().manual_seed(7))
OTHER_PADDING = RIGHT[:, :5] | torch.tensor([[False] * 4 + [True], [False] * 5])
THETA = {"rope_type": "default", "rope_theta": 500.0}
GQA = {"num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 4}
LATENT = {"kv_lora_rank": 10, "q_lora_rank": None, "qk_rope_head_dim": 4, "qk_nope_head_dim": 8}
LATENT |= {"v_head_dim": 8, "n_routed_experts": 4, "n_group": 1, "topk_group": 1}
LATENT |= {"num_experts_per_tok": 2, "moe_intermediate_size": 8, "rope_parameters": THETA}
LATENT |= {"num_key_value_heads": HEADS, "head_dim": 4}
FEW = {"num_local_experts": 2, "num_experts_per_tok": 1, "num_experts": 2}
SHARED = {"moe_intermediate_size": 8, "shared_expert_intermediate_size": 8}
SLIDING = {"sliding_window": 4, "layer_types": ["sliding_attention"]}
TURN = Rope(500.0)


def groups(*more: Part) -> list[Part]:
    """Return the parts of most models of today, and more."""
    return [GroupedHeads(2), TURN, *more]


PROOFS = [
    TorchProof("plain", lambda mha, x: mha(x, x, x, attn_mask=future_mask(TOKENS))[0]),
    Proof("plain", "GPT2"),
    Proof("gqa", "Llama", groups(), GQA, 6),
    Proof("mqa", "Llama", [GroupedHeads(1), TURN], {"num_key_value_heads": 1}),
    Proof("rope halves", "Llama", [TURN]),
    Proof("rope neighbours", "Cohere", [Rope(500.0, "neighbours")], {"use_qk_norm": False}),
    Proof("norm", "Qwen3", groups(Norm()), GQA, 6),
    Proof("norm window", "Gemma3", groups(Norm(), Window(4)), GQA | SLIDING, 6),
    Proof("alibi", "Bloom", [Alibi()]),
    Proof("alibi", "Mpt", [Alibi()]),
    Proof("cap", "Gemma2", groups(Cap(0.5)), GQA | {"layer_types": ["full_attention"]}, 6),
    Proof("cap window", "Gemma2", groups(Cap(0.5), Window(4)), GQA | SLIDING, 6),
    Proof("window", "Mistral", groups(Window(4)), GQA | {"sliding_window": 4}, 6),
    Proof("sinks", "GptOss", groups(Sinks()), GQA | FEW | {"layer_types": ["full_attention"]}, 6),
    Proof("sinks window", "GptOss", groups(Sinks(), Window(4)), GQA | FEW | SLIDING, 6),
    Proof(
        "gate",
        "Qwen3Next",
        groups(Norm(), Gate()),
        GQA | FEW | SHARED | {"layer_types": ["full_attention"], "partial_rotary_factor": 1.0},
        6,
    ),
    Proof("latent", "DeepseekV2", [Latent(10, 4), Rope(500.0, "neighbours", 4)], LATENT),
    Proof("latent", "DeepseekV3", [Latent(10, 4), Rope(500.0, "neighbours", 4)], LATENT),
    TorchProof(
        "other",
        lambda mha, x: mha(x, OTHER.to(x), OTHER.to(x))[0],
        lambda x: [OtherSequence(OTHER.to(x))],
    ),
    TorchProof(
        "other padding",
        lambda mha, x: mha(x, OTHER.to(x), OTHER.to(x), key_padding_mask=OTHER_PADDING)[0],
        lambda x: [OtherSequence(OTHER.to(x)), Padding(OTHER_PADDING)],
    ),
    TorchProof(
        "padding right",
        lambda mha, x: mha(x, x, x, key_padding_mask=RIGHT, attn_mask=future_mask(TOKENS))[0],
        lambda x: [Padding(RIGHT)],
        ~RIGHT,
    ),
    TorchProof(
        "padding left",
        lambda mha, x: mha(x, x, x, key_padding_mask=LEFT, attn_mask=future_mask(TOKENS))[0],
        lambda x: [Padding(LEFT)],
        ~LEFT,
    ),
    Proof("padding left", "Llama", groups(), GQA, 6, LEFT),
    Proof("padding right", "Llama", groups(), GQA, 6, RIGHT),
    Proof("padding left", "Bloom", [Alibi()], padding=LEFT),
    Proof("cache", "GPT2", cache=Cache),
    Proof("cache", "Llama", groups(), GQA, 6, cache=Cache),
    Proof(
        "cache window", "Mistral", groups(Window(4)), GQA | {"sliding_window": 4}, 6, None, Cache
    ),
    Proof("cache alibi", "Bloom", [Alibi()], cache=Cache),
    Proof("cache padding", "Llama", groups(), GQA, 6, LEFT, Cache),
    Proof(
        "cache latent",
        "DeepseekV3",
        [Latent(10, 4), Rope(500.0, "neighbours", 4)],
        LATENT,
        cache=LatentCache,
    ),
]
