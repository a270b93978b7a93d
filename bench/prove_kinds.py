"""Kinds of proof that bench/prove.py knows: what runs, beside what, with which settings."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module

import prove_models
import torch
from torch import nn
from torch.nn.attention.flex_attention import flex_attention
from torch.overrides import TorchFunctionMode

from eleven_steps.beyond.variants import (
    FusedVariantAttention,
    Latent,
    Lends,
    Part,
    VariantAttention,
    delta_rule,
)
from helpers.attention import future_mask
from helpers.trace import trace

D, HEADS, TOKENS = 24, 3, 9  # d_in = d_out, num_heads, num_tokens: no two alike
CHUNKS = [[1] * TOKENS, [4, 1, 2, 2], [TOKENS]]  # tokens one by one, in chunks, all at once
BIASED = ("GPT2", "Bloom", "GptOss", "GPTNeoX")  # in all four layers; the others have none
COMMON = {"vocab_size": 32, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
COMMON |= {"num_hidden_layers": 1}
THETA = {"rope_type": "default", "rope_theta": 500.0}
FEW = {"num_local_experts": 2, "num_experts_per_tok": 1, "num_experts": 2}
SHARED = {"moe_intermediate_size": 8, "shared_expert_intermediate_size": 8}


@dataclass(frozen=True)
class Proof:
    """What is to be equal: a change, a model of transformers, the parts that make ours the same.

    padding: which tokens of two sequences are filling, if any. cache: a cache for ours, beside
    transformers' own. head_dim: that of ours, if heads * head_dim is not D. biases: all four layers
    have one, though the model has none as a rule.
    """

    change: str
    model: str
    parts: list[Part] = field(default_factory=list)
    sizes: dict = field(default_factory=dict)
    heads: int = HEADS
    padding: torch.Tensor | None = None
    cache: Callable[[], Part] | None = None
    head_dim: int | None = None
    biases: bool = False
    classes = (VariantAttention,)

    @property
    def module(self) -> str:
        """The name of the module."""
        return f"transformers {self.model}Attention"

    @property
    def ways(self) -> list[tuple[list[int], bool]]:
        """In which pieces tokens come, and whether keys and values are kept."""
        return [(sizes, True) for sizes in CHUNKS] if self.cache else [([TOKENS], False)]

    def settings(self) -> dict:
        """Return the settings of the model's configuration."""
        each = D // self.heads
        sizes = COMMON | {"hidden_size": D, "num_attention_heads": self.heads, "head_dim": each}
        sizes |= {"query_pre_attn_scalar": each}
        if self.model not in ("GPT2", "Mpt", "Bloom"):
            sizes |= {"intermediate_size": 16, "rope_parameters": THETA}
        if self.model == "Gemma2":
            sizes["attn_logit_softcapping"] = 0.5
        if self.model == "Gemma3":
            sizes["rope_parameters"] = {"full_attention": THETA, "sliding_attention": THETA}
        return sizes | self.sizes

    def build(self, cls: type[VariantAttention]) -> VariantAttention:
        """Return ours, untrained."""
        biases, more = self.biases or self.model in BIASED, {"head_dim": self.head_dim}
        return cls(D, D, 16, 0.0, self.heads, biases, self.parts, out_bias=biases, **more)


@dataclass(frozen=True)
class ModelProof(Proof):
    """A row of the table of models, as its configuration in transformers says, made small.

    Both classes of ours are compared, tokens all at once without a cache, and in pieces with one,
    where parts can keep what they made. kind: which of the model's layers it is.
    """

    kind: str = "full"
    classes = (VariantAttention, FusedVariantAttention)

    @property
    def released(self) -> prove_models.Released:
        """The model's configuration."""
        return prove_models.RELEASED[self.change]

    @property
    def module(self) -> str:
        """The name of the module, and of the kind of layer where there are several."""
        called = self.released.called.get(self.kind, self.kind)
        return super().module + f", {called}" * (len(self.released.layers) > 1)

    @property
    def ways(self) -> list[tuple[list[int], bool]]:
        pieces = [(sizes, True) for sizes in CHUNKS] if self.cache else []
        return [([TOKENS], False), *pieces]

    def settings(self) -> dict:
        sizes, window = COMMON | FEW | SHARED | {"intermediate_size": 16}, self.kind == "window"
        if self.model in ("DeepseekV3", "DeepseekV32", "GlmMoeDsa"):
            sizes |= {"n_routed_experts": 4, "n_group": 1, "topk_group": 1}
        if self.released.kinds:
            sizes |= self.released.kinds[self.kind]
        elif len(self.released.layers) == 2:
            kind = "sliding_attention" if window else "full_attention"
            sizes |= {"sliding_window": 4, "layer_types": [kind]}
        elif window and self.model == "Mistral":
            sizes["sliding_window"] = 4
        elif self.model in ("Qwen3Next", "Qwen3_5"):
            sizes["layer_types"] = ["full_attention"]
        if self.model in ("DeepseekV32", "GlmMoeDsa"):
            sizes["index_topk"] = 4
        return sizes | {
            name: value
            for name, value in prove_models.small_settings(self.released).items()
            if name not in self.released.kinds.get(self.kind, ())
        }

    def build(self, cls: type[VariantAttention]) -> VariantAttention:
        lender = Lends() if self.kind == "borrowing" else None
        model = prove_models.shrunk(self.change)
        model = model.of_large_pools() if self.kind == "large" else model
        return model.build(16, self.kind == "window", cls, lender)


@dataclass(frozen=True)
class TorchProof:
    """The same for torch's own module, called with what fits the change."""

    change: str
    call: Callable[[nn.MultiheadAttention, torch.Tensor], torch.Tensor]
    parts: Callable[[torch.Tensor], list[Part]] = lambda x: []
    real: torch.Tensor | None = None
    module = "torch nn.MultiheadAttention"


@dataclass(frozen=True)
class FunctionProof:
    """The same for a function: compare yields pairs, of ours and the function's, for a dtype."""

    change: str
    module: str
    compare: Callable[[torch.dtype], Iterator[tuple[torch.Tensor, torch.Tensor]]]


def delta_pairs(dtype: torch.dtype) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Compare context and table of the delta rule, in pieces of several sizes."""
    generator = torch.Generator().manual_seed(1)
    made = [torch.randn(2, HEADS, TOKENS, 8, generator=generator).to(dtype) for _ in range(3)]
    gates = [torch.rand(2, HEADS, TOKENS, generator=generator).to(dtype) for _ in range(2)]
    queries, keys, values = made
    module = import_module("transformers.models.qwen3_next.modeling_qwen3_next")
    rule = module.torch_recurrent_gated_delta_rule
    for sizes in CHUNKS:
        ours, theirs = torch.zeros(2, HEADS, 8, 8, dtype=dtype), None
        for q, k, v, share, fade in zip(
            *(each.split(sizes, dim=2) for each in (queries, keys, values, *gates)), strict=True
        ):
            out, ours = delta_rule(q / 8**0.5, k, v, share, fade, ours)
            given = [each.transpose(1, 2) for each in (q, k, v, fade.log(), share)]
            with casts_to(dtype):
                their_out, theirs = rule(*given, theirs, True)
            yield from [(out, their_out.transpose(1, 2)), (ours, theirs)]


def flex_pairs(
    dtype: torch.dtype, parts: list[Part], modify: Callable
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Compare the context of latent keys, wider than values, with torch's flex_attention.

    No model has a cap or ALiBi beside latents: torch's own kernel takes any change of the scores.
    """
    torch.manual_seed(1)
    ours = VariantAttention(D, D, 16, 0.0, HEADS, parts=[Latent(10, 4), *parts]).to(dtype)
    for weight in ours.parameters():
        nn.init.normal_(weight, std=0.5)
    steps = {step.name: step.tensors for step in trace(ours, torch.randn(2, TOKENS, D).to(dtype))}
    queries, keys, values = (t.clone() for t in steps["transpose"].values())
    hidden = future_mask(TOKENS)

    def score_mod(score, b, head, query, key):
        return torch.where(hidden[query, key], -torch.inf, modify(score, head, query - key))

    yield steps["context"]["context"], flex_attention(queries, keys, values, score_mod=score_mod)


class casts_to(TorchFunctionMode):
    """While it is entered, casts to float32 lead to a dtype instead, and new tensors have it."""

    def __init__(self, dtype: torch.dtype):
        super().__init__()
        self.dtype = dtype

    def __enter__(self):
        self.default = torch.get_default_dtype()
        torch.set_default_dtype(self.dtype)
        return super().__enter__()

    def __exit__(self, *error):
        torch.set_default_dtype(self.default)
        return super().__exit__(*error)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.Tensor.float:
            return args[0].to(self.dtype)
        wider = [self.dtype if value is torch.float32 else value for value in args]
        options = {
            key: self.dtype if value is torch.float32 else value
            for key, value in (kwargs or {}).items()
        }
        return func(*wider, **options)
