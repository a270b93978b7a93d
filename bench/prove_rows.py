"""What bench/prove.py proves: a row for each change and each module that has it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import prove_models
import torch
from torch import nn
from transformers.models.qwen3_next.modeling_qwen3_next import torch_recurrent_gated_delta_rule

from eleven_steps.beyond.variants import (
    Alibi,
    Cache,
    Cap,
    FusedVariantAttention,
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
    TopKeys,
    VariantAttention,
    Window,
    YarnScaling,
    delta_rule,
)
from helpers.attention import future_mask

D, HEADS, TOKENS = 24, 3, 9  # d_in = d_out, num_heads, num_tokens: no two alike
CHUNKS = [[1] * TOKENS, [4, 1, 2, 2], [TOKENS]]  # tokens one by one, in chunks, all at once
BIASED = ("GPT2", "Bloom", "GptOss", "GPTNeoX")  # in all four layers; the others have none
COMMON = {"vocab_size": 32, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
COMMON |= {"num_hidden_layers": 1}


@dataclass(frozen=True)
class Proof:
    """What is to be equal: a change, a model of transformers, the parts that make ours the same.

    padding: which tokens of two sequences are filling, if any. cache: a cache for ours, beside
    transformers' own. head_dim: that of ours, if heads * head_dim is not D.
    """

    change: str
    model: str
    parts: list[Part] = field(default_factory=list)
    sizes: dict = field(default_factory=dict)
    heads: int = HEADS
    padding: torch.Tensor | None = None
    cache: Callable[[], Part] | None = None
    head_dim: int | None = None
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
        biases, more = self.model in BIASED, {"head_dim": self.head_dim}
        return cls(D, D, 16, 0.0, self.heads, biases, self.parts, out_bias=biases, **more)


@dataclass(frozen=True)
class ModelProof(Proof):
    """A row of the table of models, as its configuration in transformers says, made small.

    Both classes of ours are compared, tokens all at once without a cache, and in pieces with one.
    """

    in_window: bool = False
    classes = (VariantAttention, FusedVariantAttention)

    @property
    def module(self) -> str:
        """The name of the module, and of the kind of layer where there are two."""
        two = len(prove_models.RELEASED[self.change].layers) == 2
        return super().module + (", window" if self.in_window else ", full") * two

    @property
    def ways(self) -> list[tuple[list[int], bool]]:
        return [([TOKENS], False), *((sizes, True) for sizes in CHUNKS)]

    def settings(self) -> dict:
        sizes = COMMON | FEW | SHARED | {"intermediate_size": 16}
        if self.model in ("DeepseekV3", "DeepseekV32"):
            sizes |= {"n_routed_experts": 4, "n_group": 1, "topk_group": 1}
        if len(prove_models.RELEASED[self.change].layers) == 2:
            kind = "sliding_attention" if self.in_window else "full_attention"
            sizes |= {"sliding_window": 4, "layer_types": [kind]}
        elif self.in_window:
            sizes["sliding_window"] = 4
        elif self.model in ("Qwen3Next", "Qwen3_5"):
            sizes["layer_types"] = ["full_attention"]
        if self.model == "DeepseekV32":
            sizes["index_topk"] = 4
        return prove_models.small_settings(prove_models.RELEASED[self.change]) | sizes

    def build(self, cls: type[VariantAttention]) -> VariantAttention:
        return prove_models.shrunk(self.change, 4, 4).build(16, self.in_window, cls)


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
    for sizes in CHUNKS:
        ours, theirs = torch.zeros(2, HEADS, 8, 8, dtype=dtype), None
        for q, k, v, share, fade in zip(
            *(each.split(sizes, dim=2) for each in (queries, keys, values, *gates)), strict=True
        ):
            out, ours = delta_rule(q / 8**0.5, k, v, share, fade, ours)
            their_out, theirs = torch_recurrent_gated_delta_rule(
                *(each.transpose(1, 2) for each in (q, k, v, fade.log(), share)), theirs, True
            )
            yield from [(out, their_out.transpose(1, 2)), (ours, theirs)]


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
SLOPES = tuple(2.0**power * (1 + 1e-5) for power in (-2, -4, -6, -8))  # MiniMax, one layer
LIGHTNING = {"num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 6, "block_size": 4}
LIGHTNING |= {"layer_types": ["linear_attention"]}
SPARSE = LATENT | {"q_lora_rank": 6, "index_topk": 4, "index_n_heads": 4, "index_head_dim": 6}
CHOOSE = TopKeys(4, 4, 6, Rope(500.0, width=4, first=True))
MLA = [Latent(10, 4), QueryLatent(6), Rope(500.0, "neighbours", 4)]


LONG = {"original_max_position_embeddings": 64}
LOW = {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
HALF, FIRST = {"partial_rotary_factor": 0.5}, Rope(500.0, width=4, first=True)


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
    Proof("latent", "DeepseekV2", [Latent(10, 4), Rope(500.0, "neighbours", 4)], LATENT),
    Proof("latent", "DeepseekV3", [Latent(10, 4), Rope(500.0, "neighbours", 4)], LATENT),
    Proof("query latent", "DeepseekV3", MLA, LATENT | {"q_lora_rank": 6}),
    Proof("top keys", "DeepseekV32", [*MLA, CHOOSE], SPARSE),
    Proof("linear", "MiniMaxLightning", [Linear(SLOPES), Gate()], LIGHTNING, 4),
    Proof("linear state", "MiniMaxLightning", [Linear(SLOPES), Gate()], LIGHTNING, 4, cache=State),
    FunctionProof("delta rule", "torch_recurrent_gated_delta_rule", delta_pairs),
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
        ModelProof(name, released.model, cache=prove_models.cache_of(name), in_window=window)
        for name, released in prove_models.RELEASED.items()
        for window in (layer == "window" for layer in released.layers)
    ),
]
