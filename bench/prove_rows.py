"""What bench/prove.py proves: a row for each change and each module that has it."""

import functools
from collections.abc import Callable

import prove_models
import torch
from prove_kinds import (
    FEW,
    HEADS,
    SHARED,
    THETA,
    TOKENS,
    D,
    FunctionProof,
    ModelProof,
    Proof,
    TorchProof,
    delta_pairs,
    flex_pairs,
)

from eleven_steps.beyond.variants import (
    Alibi,
    Cache,
    Cap,
    Chunks,
    Full,
    Gate,
    GroupedHeads,
    Latent,
    LatentCache,
    Linear,
    LinearScaling,
    Llama3Scaling,
    Norm,
    OtherSequence,
    Padding,
    Part,
    QueryLatent,
    Rope,
    Sinks,
    State,
    Temperature,
    TopKeys,
    Window,
    YarnScaling,
)
from helpers.attention import future_mask

LEFT = torch.tensor([[True] * 3 + [False] * 6, [False] * TOKENS])
RIGHT = LEFT.flip(1)
OTHER = torch.randn(2, 5, D, generator=torch.Generator().manual_seed(7))
OTHER_PADDING = RIGHT[:, :5] | torch.tensor([[False] * 4 + [True], [False] * 5])
GQA = {"num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 4}
LATENT = {"kv_lora_rank": 10, "q_lora_rank": None, "qk_rope_head_dim": 4, "qk_nope_head_dim": 8}
LATENT |= {"v_head_dim": 8, "n_routed_experts": 4, "n_group": 1, "topk_group": 1}
LATENT |= {"num_experts_per_tok": 2, "moe_intermediate_size": 8, "rope_parameters": THETA}
LATENT |= {"num_key_value_heads": HEADS, "head_dim": 4}
SLIDING = {"sliding_window": 4, "layer_types": ["sliding_attention"]}
TURN = Rope(500.0)
SLOPES = tuple(2.0**power * (1 + 1e-5) for power in (-2, -4, -6, -8))  # MiniMax, one layer
LIGHTNING = {"num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 6, "block_size": 4}
LIGHTNING |= {"layer_types": ["linear_attention"]}
SPARSE = LATENT | {"q_lora_rank": 6, "index_topk": 4, "index_n_heads": 4, "index_head_dim": 6}
MLA = [Latent(10, 4), QueryLatent(6), Rope(500.0, "neighbours", 4)]
LONG = {"original_max_position_embeddings": 64}
LOW = {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
HALF, FIRST = {"partial_rotary_factor": 0.5}, Rope(500.0, width=4, first=True)
CHOOSE = TopKeys(4, 4, 6, FIRST)


def scaled(kind: str, **more: float) -> dict:
    """Return the settings of a model whose positions are scaled in one way, by 8."""
    parameters = THETA | {"rope_type": kind, "factor": 8.0, **more}
    return {"rope_parameters": parameters, "max_position_embeddings": 8 * 64}


def long(scaling: Callable) -> Rope:
    """Return how ours turns then."""
    return Rope(500.0, scaling=scaling)


def groups(*more: Part) -> list[Part]:
    """Return the parts of most models of today, and more."""
    return [GroupedHeads(2), TURN, *more]


def alibi_score(score, head, back):
    """Return a scaled score less what its distance costs: 3 heads take 2 and 4 of 4, and 1 of 8."""
    return score - 2.0 ** -torch.tensor([4, 8, 2])[head] * back


BARE, NEIGHBOURS = Norm(1e-5, queries=False, keys=False), Rope(500.0, "neighbours")
COOL = {"floor_scale": 3, "no_rope_layers": [0], "intermediate_size_mlp": 16} | FEW
CHUNKED = {"attention_chunk_size": 4, "no_rope_layers": [1], "intermediate_size_mlp": 16} | FEW
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
    Proof("head_dim", "Llama", [TURN], {"head_dim": 6}, 3, head_dim=6),
    Proof("linear scaling", "Llama", [long(LinearScaling(8))], scaled("linear")),
    Proof("llama3 scaling", "Llama", [long(Llama3Scaling(8, 64))], scaled("llama3", **LONG, **LOW)),
    Proof("yarn", "Llama", [long(YarnScaling(8, 64))], scaled("yarn", **LONG)),
    Proof(  # the last pair in the blend is beyond the last there is
        "yarn, long",
        "Llama",
        [long(YarnScaling(8, 10_000))],
        scaled("yarn", original_max_position_embeddings=10_000)
        | {"max_position_embeddings": 80_000},
    ),
    Proof(
        "yarn, not whole",
        "Llama",
        [long(YarnScaling(8, 64, whole=False))],
        scaled("yarn", truncate=False, **LONG),
    ),
    Proof("first turn", "GPTNeoX", [FIRST], {"rope_parameters": THETA | HALF}),
    Proof("no positions", "SmolLM3", [GroupedHeads(2)], GQA | {"no_rope_layers": [0]}, 6),
    Proof(
        "gate",
        "Qwen3Next",
        groups(Norm(), Gate()),
        GQA | FEW | SHARED | {"layer_types": ["full_attention"], "partial_rotary_factor": 1.0},
        6,
    ),
    Proof(
        "gate, biases",
        "Qwen3Next",
        groups(Norm(), Gate()),
        GQA
        | FEW
        | SHARED
        | {"layer_types": ["full_attention"], "partial_rotary_factor": 1.0, "attention_bias": True},
        6,
        biases=True,
    ),
    FunctionProof(
        "cap latent",
        "torch flex_attention",
        functools.partial(
            flex_pairs, parts=[Cap(0.5)], modify=lambda s, head, back: 0.5 * (2 * s).tanh()
        ),
    ),
    FunctionProof(
        "alibi latent",
        "torch flex_attention",
        functools.partial(flex_pairs, parts=[Alibi()], modify=alibi_score),
    ),
    Proof("latent", "DeepseekV2", [Latent(10, 4), Rope(500.0, "neighbours", 4)], LATENT),
    Proof("latent", "DeepseekV3", [Latent(10, 4), Rope(500.0, "neighbours", 4)], LATENT),
    Proof("query latent", "DeepseekV3", MLA, LATENT | {"q_lora_rank": 6}),
    Proof("top keys", "DeepseekV32", [*MLA, CHOOSE], SPARSE),
    Proof("linear", "MiniMaxLightning", [Linear(SLOPES), Gate()], LIGHTNING, 4),
    Proof("linear state", "MiniMaxLightning", [Linear(SLOPES), Gate()], LIGHTNING, 4, cache=State),
    Proof("temperature", "Llama4Text", [GroupedHeads(2), Temperature(0.1, 3)], GQA | COOL, 6),
    Proof("chunks", "Llama4Text", [GroupedHeads(2), BARE, NEIGHBOURS, Chunks(4)], GQA | CHUNKED, 6),
    FunctionProof("delta rule", "torch_recurrent_gated_delta_rule", delta_pairs),
    TorchProof("full", lambda mha, x: mha(x, x, x)[0], lambda x: [Full()]),
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
    Proof("cache top keys", "DeepseekV32", [*MLA, CHOOSE], SPARSE, cache=LatentCache),
    *(
        ModelProof(
            name,
            prove_models.module_of(name, kind),
            kind=kind,
            cache=prove_models.cache_of(name, kind),
        )
        for name, released in prove_models.RELEASED.items()
        for kind in released.layers
    ),
]
