"""Build small versions of the models in data/newer_models.toml from transformers' configurations.

A configuration is the class's own defaults and, where the released model differs from them, what
its config.json says. Both it and the row of the table are shrunk by the same numbers, so that every
ratio and every switch stays; bench/prove.py then proves the two equal.
"""

import math
import tomllib
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from prove_rows import CHUNKS, COMMON, SETS, TABLE, TOKENS, Proof

from eleven_steps.beyond.newer_models import Published, load_newer_models
from eleven_steps.beyond.variants import Cache, LatentCache, Lender, VariantAttention


@dataclass(frozen=True)
class Released:
    """Hold a model's configuration, as released.toml describes it."""

    model: str
    fewer: dict[str, int]
    differs: dict = field(default_factory=dict)
    layers: list = field(default_factory=list)
    tiny: dict = field(default_factory=dict)
    kinds: dict[str, dict] = field(default_factory=lambda: {"full": {}})
    called: dict[str, str] = field(default_factory=dict)

    @property
    def config(self) -> Any:
        """Return the configuration in full size, a transformers.PreTrainedConfig."""
        kinds = [kind for times, row in self.layers for kind in times * row]
        differs = self.differs | ({"layer_types": kinds} if kinds else {})
        config = getattr(import_module("transformers"), config_of(self.model))(**differs)
        config.allow_global_per_layer_attribute_access = True  # Gemma 4's layers differ in width
        return config


def config_of(model: str) -> str:
    """Return the name of a model's configuration, if its attention has a different name."""
    return TABLE["configurations"].get(model, model) + "Config"


FILE = Path(__file__).with_name("released.toml")
RELEASED = {name: Released(**each) for name, each in tomllib.loads(FILE.read_text("utf-8")).items()}
MODELS = {model.name.partition(" (")[0]: model for model in load_newer_models()}


def small_settings(released: Released) -> dict:
    """Return the settings of a released configuration; raise unless its sizes can be divided."""
    config, settings = released.config, dict(released.differs)
    by = released.fewer | {"both": math.prod(released.fewer.values())}
    for kind, names in TABLE["divided"].items():
        for name in names:
            size = getattr(config, name, None)
            if size is None or released.model == "Falcon" and name == "head_dim":
                continue
            if size % by[kind] and not (name == "num_key_value_heads" and size == 1):
                raise ValueError(f"{released.model}: {name} is {size}, no multiple of {by[kind]}")
            settings[name] = size // by[kind]
    for name in ("n_head", "n_layer", "num_hidden_layers", "layer_types", "num_kv_shared_layers"):
        settings.pop(name, None)
    settings.pop("sliding_window", None)  # here it is shorter
    return settings | released.tiny


def shrunk(name: str) -> Published:
    """Return a row of the table, as small as its configuration, with shorter windows."""
    released, model = RELEASED[name], MODELS[name]
    small = model.shrunk(**released.fewer)
    return replace(small, **{kind: n for kind, n in TABLE["sight"].items() if getattr(small, kind)})


@dataclass(frozen=True)
class ModelProof(Proof):
    """Hold the proof of one row of the table of models, made small.

    Tokens come all at once without a cache, and in chunks with a cache if the parts allow one.
    """

    kind: str = "full"  # which of the model's layers it is

    @property
    def released(self) -> Released:
        return RELEASED[self.change]

    @property
    def module(self) -> str:
        """Return the name of the module, and of the kind of layer if there are several."""
        called = self.released.called.get(self.kind, self.kind)
        return super().module + f", {called}" * (len(self.released.kinds) > 1)

    @property
    def ways(self) -> list[tuple[list[int], bool]]:
        pieces = [(sizes, True) for sizes in CHUNKS] if self.cache else []
        return [([TOKENS], False), *pieces]

    def settings(self) -> dict:
        sizes = COMMON | SETS["few"] | SETS["shared"] | {"intermediate_size": 16}
        sizes |= small_settings(self.released)
        return sizes | self.released.kinds[self.kind]

    def build(self) -> VariantAttention:
        lender = Lender() if self.kind == "borrowing" else None
        model = shrunk(self.change)
        model = model.of_large_pools() if self.kind == "large" else model
        return model.build(16, self.kind == "window", lender)


def model_proof(name: str, kind: str) -> ModelProof:
    """Return the row of a kind of layer of a model, with the cache that ours has, if any."""
    model, cache = MODELS[name], None
    delta = model.delta_layers > 0 and kind == "window"
    if not (model.pool or kind == "borrowing" or delta):
        cache = LatentCache if model.latent_dim else Cache
    last = "Delta" * delta
    return ModelProof(name, RELEASED[name].model + last, kind=kind, cache=cache)


MODEL_PROOFS = [
    model_proof(name, kind) for name, released in RELEASED.items() for kind in released.kinds
]
