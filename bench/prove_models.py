"""The models of data/since.json as released: their configurations in transformers, made small.

A configuration is the class's own defaults and, where the released model differs from them, what
its config.json says. Both it and the row of the table are shrunk by the same numbers, so that every
ratio and every switch stays; bench/prove.py then proves the two equal.
"""

from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

from prove_rows import CHUNKS, COMMON, FEW, SHARED, TOKENS, Proof

from eleven_steps.beyond.since import Published, load_since
from eleven_steps.beyond.variants import (
    Cache,
    LatentCache,
    Lends,
    VariantAttention,
)

YARN = {"rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 4096}
YARN |= {"rope_theta": 10_000.0, "mscale": 1.0, "mscale_all_dim": 1.0}
OSS = {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False}
OSS |= {"original_max_position_embeddings": 4096, "rope_theta": 150_000.0}
WIDE = {"rope_type": "linear", "factor": 8.0, "rope_theta": 1_000_000.0}
LOCAL = {"rope_type": "default", "rope_theta": 10_000.0}
PARTIAL = {"rope_type": "default", "rope_theta": 10_000_000.0, "partial_rotary_factor": 0.25}
V4_YARN = {"rope_type": "yarn", "factor": 16.0, "original_max_position_embeddings": 65_536}
V4_POOLS = "compressed_sparse_attention", "heavily_compressed_attention"
V4_LAYERS = ["sliding_attention"] * 2 + [V4_POOLS[place % 2] for place in range(41)]
SECTIONS = {"mrope_section": [2, 1, 1]}  # of images; a text has the same position in all three


def default(theta: float) -> dict:
    """Return RoPE's parameters without any scaling."""
    return {"rope_parameters": {"rope_type": "default", "rope_theta": theta}}


@dataclass(frozen=True)
class Released:
    """A model's configuration: transformers' name, what differs from its defaults, how it shrinks.

    Args:
        model: the name before Config and Attention.
        differs: settings that the class has not as defaults.
        heads, features: as in Published.shrunk.
        kinds: the kinds of layer that the released model has, with settings for each alone.
        tiny: settings that are made small by hand, since what they count is no width.
        called: what a kind of layer is called where it is printed, if not so.
    """

    model: str
    differs: dict
    heads: int
    features: int
    kinds: dict[str, dict] = field(default_factory=lambda: {"full": {}})
    tiny: dict = field(default_factory=dict)
    called: dict[str, str] = field(default_factory=dict)

    @property
    def config(self) -> Any:
        """The configuration in its full size, a transformers.PreTrainedConfig."""
        config = getattr(import_module("transformers"), config_of(self.model))(**self.differs)
        config.allow_global_per_layer_attribute_access = True  # Gemma 4's layers differ in width
        return config


def config_of(model: str) -> str:
    """Return the name of the configuration of a model whose attention has a name of its own."""
    text = dict.fromkeys(["Gemma3", "Qwen3_5", "MiniMaxM3VL"], f"{model}Text")
    other = {"MiniMaxLightning": "MiniMax", "KimiLinearDelta": "KimiLinear"}
    other |= {"Glm5NextTextLinear": "Glm5NextText"}
    return (text | other).get(model, model) + "Config"


KIMI = "linear_attention", "full_attention"
FULL, SLIDING = {"layer_types": ["full_attention"]}, {"layer_types": ["sliding_attention"]}
BOTH = {"window": SLIDING | {"sliding_window": 4}, "full": FULL | {"sliding_window": 4}}
NOT_LAST = {"layer_types": ["sliding_attention", "full_attention"], "num_hidden_layers": 2}
ROUTED = {"n_routed_experts": 4, "n_group": 1, "topk_group": 1, "index_topk": 4}
GEMMA_4 = {"sliding_window": 4, "global_head_dim": 16}
GEMMA_4 |= {"hidden_size_per_layer_input": 4, "vocab_size_per_layer_input": 32}
RELEASED = {
    "GPT-2 smallest": Released("GPT2", {}, 4, 8),
    "BLOOM 176B": Released("Bloom", {"hidden_size": 14336, "n_head": 112, "n_layer": 70}, 8, 32),
    "LLaMA 7B": Released("Llama", default(10_000.0), 8, 16),
    "Falcon 7B": Released("Falcon", default(10_000.0), 1, 16),
    "Mistral 7B": Released("Mistral", default(10_000.0), 8, 16, {"window": {"sliding_window": 4}}),
    "Llama 3 8B": Released("Llama", {"num_key_value_heads": 8} | default(500_000.0), 8, 16),
    "Gemma 2 9B": Released(
        "Gemma2",
        {"hidden_size": 3584, "num_hidden_layers": 42, "num_attention_heads": 16}
        | {"num_key_value_heads": 8}
        | default(10_000.0),
        *(4, 32, BOTH),
    ),
    "DeepSeek-V3": Released(
        "DeepseekV3",
        {"rope_parameters": YARN, "max_position_embeddings": 163_840},
        *(16, 8),
        tiny=ROUTED,
    ),
    "Gemma 3 4B": Released(
        "Gemma3",
        {"hidden_size": 2560, "num_hidden_layers": 34, "sliding_window": 1024}
        | {"rope_parameters": {"full_attention": WIDE, "sliding_attention": LOCAL}},
        *(2, 32, BOTH),
    ),
    "Qwen3 8B": Released(
        "Qwen3", {"num_hidden_layers": 36, "num_key_value_heads": 8} | default(1_000_000.0), 8, 16
    ),
    "gpt-oss 20B": Released(
        "GptOss", {"num_hidden_layers": 24, "rope_parameters": OSS}, 8, 4, BOTH
    ),
    "Qwen3-Next 80B": Released("Qwen3Next", {"rope_parameters": PARTIAL}, 2, 16, {"full": FULL}),
    "DeepSeek-V3.2": Released("DeepseekV32", {"rope_parameters": YARN}, 16, 8, tiny=ROUTED),
    "GLM-5.2": Released(
        "GlmMoeDsa",
        default(8_000_000.0) | {"index_topk_freq": 4, "index_skip_topk_offset": 3},
        *(16, 8),
        {"full": {}, "borrowing": {"num_hidden_layers": 2, "indexer_types": ["full", "shared"]}},
        ROUTED,
    ),
    "Qwen3.5 9B": Released(
        "Qwen3_5", {"rope_parameters": PARTIAL | SECTIONS}, 4, 16, {"full": FULL}
    ),
    "DiffLlama": Released("DiffLlama", {}, 8, 16),
    "Llama 4 Maverick": Released(
        "Llama4Text",
        {"use_qk_norm": False},
        *(4, 16),
        {"window": {"no_rope_layers": [1]}, "full": {"no_rope_layers": [0]}},
        {"attention_chunk_size": 4, "floor_scale": 3, "intermediate_size_mlp": 16},
        {"window": "chunks"},
    ),
    "Kimi Linear 48B": Released(
        "KimiLinear",
        {"layer_types": [KIMI[place in (3, 7, 11, 15, 19, 23, 26)] for place in range(27)]},
        *(8, 16),
        {"window": {"layer_types": ["linear_attention"]}, "full": FULL},
        {"n_routed_experts": 4},
        {"window": "delta rule"},
    ),
    "Gemma 4 E2B": Released(
        "Gemma4Text",
        {"hidden_size": 1536, "num_hidden_layers": 35, "num_key_value_heads": 1}
        | {"num_kv_shared_layers": 20}
        | {"layer_types": ([*["sliding_attention"] * 4, "full_attention"] * 7)},
        *(1, 32),
        {
            "window": NOT_LAST,
            "full": FULL,
            "borrowing": {"layer_types": ["full_attention"] * 2}
            | {"num_hidden_layers": 2, "num_kv_shared_layers": 1},
        },
        GEMMA_4,
    ),
    "Gemma 4 12B": Released(
        "Gemma4Text",
        {"hidden_size": 3840, "num_hidden_layers": 48, "num_attention_heads": 16}
        | {"num_key_value_heads": 8, "num_global_key_value_heads": 1, "attention_k_eq_v": True}
        | {"sliding_window": 1024},
        *(1, 32),
        {"window": NOT_LAST, "full": FULL},
        GEMMA_4 | {"num_global_key_value_heads": 1},
    ),
    "DeepSeek-V4 Flash": Released(
        "DeepseekV4",
        {"rope_parameters": V4_YARN, "layer_types": V4_LAYERS},
        *(4, 16),  # 2 groups of heads are left
        {
            "window": SLIDING,
            "full": {"layer_types": ["compressed_sparse_attention"]},
            "large": {"layer_types": ["heavily_compressed_attention"]},
        },
        {"compress_rates": {"compressed_sparse_attention": 2, "heavily_compressed_attention": 3}}
        | {"sliding_window": 4, "index_topk": 2, "n_routed_experts": 2, "hc_mult": 2}
        | {"mlp_layer_types": ["moe"]},
        {"full": "small pools", "large": "large pools"},
    ),
    "MiniMax-M3": Released(
        "MiniMaxM3VL",
        {
            "rope_parameters": {"rope_type": "default", "rope_theta": 5_000_000.0}
            | {"partial_rotary_factor": 0.5},
            "layer_types": [*["full_attention"] * 3, *["minimax_m3_sparse"] * 57],
        },
        *(2, 16),  # two pairs of features are turned: neighbours differ from halves
        {"window": {"layer_types": ["minimax_m3_sparse"]}, "full": FULL},
        {"index_block_size": 2, "index_topk_blocks": 2}
        | {"dense_intermediate_size": 16, "shared_intermediate_size": 16},
        {"window": "blocks"},
    ),
    "GLM-5.3-Flash": Released(
        "Glm5NextText",
        {"index_kpool": 4},
        *(8, 16),
        {
            "window": {"layer_types": ["linear_attention"]},
            "full": {"layer_types": ["indexed_attention"]},
        },
        ROUTED | {"index_kpool": 2, "hc_mult": 2},
        {"window": "delta rule"},
    ),
}
MODELS = {model.name.partition(" (")[0]: model for model in load_since()}
DIVISORS = {
    "heads": ("num_attention_heads", "num_key_value_heads", "index_n_heads", "o_groups")
    + ("linear_num_heads",),
    "features": ("head_dim", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim")
    + ("index_head_dim", "query_pre_attn_scalar", "linear_head_dim", "rotary_dim"),
    "both": ("hidden_size", "kv_lora_rank", "q_lora_rank", "o_lora_rank"),
}


def small_settings(released: Released) -> dict:
    """Return the settings of a released configuration, its sizes divided.

    Raises:
        ValueError: a size cannot be divided.
    """
    config, settings = released.config, dict(released.differs)
    by = {"heads": released.heads, "features": released.features}
    by["both"] = by["heads"] * by["features"]
    for kind, names in DIVISORS.items():
        for name in names:
            size = getattr(config, name, None)
            if size is None or released.model == "Falcon" and name in ("head_dim",):
                continue
            if size % by[kind] and not (name == "num_key_value_heads" and size == 1):
                raise ValueError(f"{released.model}: {name} is {size}, no multiple of {by[kind]}")
            settings[name] = size // by[kind]
    for name in ("n_head", "n_layer", "num_hidden_layers", "layer_types", "num_kv_shared_layers"):
        settings.pop(name, None)
    settings.pop("sliding_window", None)  # SIGHT's is shorter
    return settings | released.tiny


SIGHT = {"window": 4, "top_keys": 4, "chunk": 4, "temperature": 3, "block": 2, "top_blocks": 2}
SIGHT |= {"pool": 2, "large_pool": 3, "top_pools": 2, "index_pool": 2}


def shrunk(name: str) -> Published:
    """Return a row of the table, shrunk as its configuration is, with a shorter sight."""
    released, model = RELEASED[name], MODELS[name]
    small = model.shrunk(released.heads, released.features)
    return replace(small, **{kind: n for kind, n in SIGHT.items() if getattr(small, kind)})


@dataclass(frozen=True)
class ModelProof(Proof):
    """A row of the table of models, as its configuration in transformers says, made small.

    Tokens come all at once without a cache, and in pieces with one, where parts can keep what they
    made. kind: which of the model's layers it is.
    """

    kind: str = "full"

    @property
    def released(self) -> Released:
        """The model's configuration."""
        return RELEASED[self.change]

    @property
    def module(self) -> str:
        """The name of the module, and of the kind of layer where there are several."""
        called = self.released.called.get(self.kind, self.kind)
        return super().module + f", {called}" * (len(self.released.kinds) > 1)

    @property
    def ways(self) -> list[tuple[list[int], bool]]:
        pieces = [(sizes, True) for sizes in CHUNKS] if self.cache else []
        return [([TOKENS], False), *pieces]

    def settings(self) -> dict:
        sizes = COMMON | FEW | SHARED | {"intermediate_size": 16} | small_settings(self.released)
        return sizes | self.released.kinds[self.kind]

    def build(self) -> VariantAttention:
        lender = Lends() if self.kind == "borrowing" else None
        model = shrunk(self.change)
        model = model.of_large_pools() if self.kind == "large" else model
        return model.build(16, self.kind == "window", lender)


def model_proof(name: str, kind: str) -> ModelProof:
    """Return the row of a kind of layer of a model, with the cache that ours has, if any."""
    model, cache = MODELS[name], None
    delta = model.delta_layers > 0 and kind == "window"
    if not (model.pool or kind == "borrowing" or delta):
        cache = LatentCache if model.latent_dim else Cache
    last = ("Linear" if model.eps else "Delta") * delta
    return ModelProof(name, RELEASED[name].model + last, kind=kind, cache=cache)


MODEL_PROOFS = [
    model_proof(name, kind) for name, released in RELEASED.items() for kind in released.kinds
]
