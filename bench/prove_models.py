"""The models of data/since.json as released: their configurations in transformers, made small.

A configuration is the class's own defaults and, where the released model differs from them, what
its config.json says. Both it and the row of the table are shrunk by the same numbers, so that every
ratio and every switch stays; bench/prove.py then proves the two equal.
"""

from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from eleven_steps.beyond.since import Published, load_since
from eleven_steps.beyond.variants import Cache, LatentCache

YARN = {"rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 4096}
YARN |= {"rope_theta": 10_000.0, "mscale": 1.0, "mscale_all_dim": 1.0}
OSS = {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False}
OSS |= {"original_max_position_embeddings": 4096, "rope_theta": 150_000.0}
WIDE = {"rope_type": "linear", "factor": 8.0, "rope_theta": 1_000_000.0}
LOCAL = {"rope_type": "default", "rope_theta": 10_000.0}
PARTIAL = {"rope_type": "default", "rope_theta": 10_000_000.0, "partial_rotary_factor": 0.25}
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
        layers: kinds of layer that the released model has.
    """

    model: str
    differs: dict
    heads: int
    features: int
    layers: tuple[str, ...] = ("full",)

    @property
    def config(self) -> Any:
        """The configuration in its full size, a transformers.PreTrainedConfig."""
        name = {"Gemma3": "Gemma3Text", "Qwen3_5": "Qwen3_5Text"}.get(self.model, self.model)
        return getattr(import_module("transformers"), f"{name}Config")(**self.differs)


BOTH = "window", "full"
RELEASED = {
    "GPT-2 smallest": Released("GPT2", {}, 4, 8),
    "BLOOM 176B": Released("Bloom", {"hidden_size": 14336, "n_head": 112, "n_layer": 70}, 8, 32),
    "LLaMA 7B": Released("Llama", default(10_000.0), 8, 16),
    "Falcon 7B": Released("Falcon", default(10_000.0), 1, 16),
    "Mistral 7B": Released("Mistral", default(10_000.0), 8, 16, ("window",)),
    "Llama 3 8B": Released("Llama", {"num_key_value_heads": 8} | default(500_000.0), 8, 16),
    "Gemma 2 9B": Released(
        "Gemma2",
        {"hidden_size": 3584, "num_hidden_layers": 42, "num_attention_heads": 16}
        | {"num_key_value_heads": 8}
        | default(10_000.0),
        4,
        32,
        BOTH,
    ),
    "DeepSeek-V3": Released(
        "DeepseekV3", {"rope_parameters": YARN, "max_position_embeddings": 163_840}, 16, 8
    ),
    "Gemma 3 4B": Released(
        "Gemma3",
        {"hidden_size": 2560, "num_hidden_layers": 34, "sliding_window": 1024}
        | {"rope_parameters": {"full_attention": WIDE, "sliding_attention": LOCAL}},
        2,
        32,
        BOTH,
    ),
    "Qwen3 8B": Released(
        "Qwen3",
        {"num_hidden_layers": 36, "num_key_value_heads": 8} | default(1_000_000.0),
        8,
        16,
    ),
    "gpt-oss 20B": Released(
        "GptOss", {"num_hidden_layers": 24, "rope_parameters": OSS}, 8, 4, BOTH
    ),
    "Qwen3-Next 80B": Released("Qwen3Next", {"rope_parameters": PARTIAL}, 2, 16),
    "DeepSeek-V3.2": Released("DeepseekV32", {"rope_parameters": YARN}, 16, 8),
    "GLM-5": Released("GlmMoeDsa", default(1_000_000.0), 16, 8),
    "Qwen3.5 9B": Released("Qwen3_5", {"rope_parameters": PARTIAL | SECTIONS}, 4, 16),
}
MODELS = {model.name.partition(" (")[0]: model for model in load_since()}
DIVISORS = {
    "heads": ("num_attention_heads", "num_key_value_heads", "index_n_heads"),
    "features": ("head_dim", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim")
    + ("index_head_dim", "query_pre_attn_scalar"),
    "both": ("hidden_size", "kv_lora_rank", "q_lora_rank"),
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
    for name in ("n_head", "n_layer"):
        settings.pop(name, None)
    return settings


def shrunk(name: str, window: int, top_keys: int) -> Published:
    """Return a row of the table, shrunk as its configuration is, with a shorter sight."""
    released, model = RELEASED[name], MODELS[name]
    small = model.shrunk(released.heads, released.features)
    return replace(
        small,
        window=window if small.window else 0,
        top_keys=top_keys if small.top_keys else 0,
    )


def cache_of(name: str) -> type[Cache]:
    """Return the kind of cache that a model's own cache is."""
    return LatentCache if MODELS[name].latent_dim else Cache
