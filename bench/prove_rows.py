"""What bench/prove.py proves of each change: what runs, beside what, with which settings."""

import functools
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module

import torch
from torch import nn
from torch.nn.attention.flex_attention import flex_attention
from torch.overrides import TorchFunctionMode

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
    VariantAttention,
    Window,
    YarnScaling,
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

    @property
    def module(self) -> str:
        return f"transformers {self.model}Attention"

    @property
    def ways(self) -> list[tuple[list[int], bool]]:
        """In which pieces tokens come, and whether keys and values are kept."""
        return [(sizes, True) for sizes in CHUNKS] if self.cache else [([TOKENS], False)]

    def settings(self) -> dict:
        width = D // self.heads
        sizes = COMMON | {"hidden_size": D, "num_attention_heads": self.heads, "head_dim": width}
        sizes |= {"query_pre_attn_scalar": width}
        if self.model not in ("GPT2", "Mpt", "Bloom"):
            sizes |= {"intermediate_size": 16, "rope_parameters": THETA}
        if self.model == "Gemma2":
            sizes["attn_logit_softcapping"] = 0.5
        if self.model == "Gemma3":
            sizes["rope_parameters"] = {"full_attention": THETA, "sliding_attention": THETA}
        return sizes | self.sizes

    def build(self) -> VariantAttention:
        biases = self.biases or self.model in BIASED
        sizes = D, D, 16, 0.0, self.heads, biases, self.parts
        return VariantAttention(*sizes, head_dim=self.head_dim, out_bias=biases)


@dataclass(frozen=True)
class TorchProof:
    """The same for torch's own module: how it is called, and with keys of which other sequence."""

    change: str
    how: dict = field(default_factory=dict)
    parts: Callable[[torch.Tensor], list[Part]] = lambda x: []
    other: torch.Tensor | None = None
    real: torch.Tensor | None = None
    module = "torch nn.MultiheadAttention"

    def call(self, mha: nn.MultiheadAttention, x: torch.Tensor) -> torch.Tensor:
        keys = x if self.other is None else self.other.to(x)
        return mha(x, keys, keys, **self.how)[0]


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
        pieces = (whole.split(sizes, dim=2) for whole in (queries, keys, values, *gates))
        for q, k, v, share, fade in zip(*pieces, strict=True):
            out, ours = delta_rule(q / 8**0.5, k, v, share, fade, ours)
            given = [piece.transpose(1, 2) for piece in (q, k, v, fade.log(), share)]
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

    with warnings.catch_warnings():  # that it is slow where it is not compiled
        warnings.filterwarnings("ignore", "flex_attention called without", UserWarning)
        theirs = flex_attention(queries, keys, values, score_mod=score_mod)
    yield steps["context"]["context"], theirs


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


CAUSAL = {"attn_mask": future_mask(TOKENS)}
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
MLA = [Latent(10, 4), Rope(500.0, "neighbours", 4)]
LONG = {"original_max_position_embeddings": 64}
LOW = {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
HALF, FIRST = {"partial_rotary_factor": 0.5}, Rope(500.0, width=4, first=True)
CHOOSE = [QueryLatent(6), TopKeys(4, 4, 6, FIRST)]


def scaled(kind: str, **more: float) -> dict:
    """Return the settings of a model whose positions are scaled in one way, by 8."""
    parameters = THETA | {"rope_type": kind, "factor": 8.0, **more}
    return {"rope_parameters": parameters, "max_position_embeddings": 8 * 64}


def long(scaling: Callable) -> Rope:
    return Rope(500.0, scaling=scaling)


def groups(*more: Part) -> list[Part]:
    return [GroupedHeads(2), TURN, *more]


def alibi_score(score, head, back):
    """Return a scaled score less what its distance costs: 3 heads take 2 and 4 of 4, and 1 of 8."""
    return score - 2.0 ** -torch.tensor([4, 8, 2])[head] * back


BARE, NEIGHBOURS = Norm(1e-5, queries=False, keys=False), Rope(500.0, "neighbours")
GATED = GQA | FEW | SHARED | {"layer_types": ["full_attention"], "partial_rotary_factor": 1.0}
COOL = {"floor_scale": 3, "no_rope_layers": [0], "intermediate_size_mlp": 16} | FEW
CHUNKED = {"attention_chunk_size": 4, "no_rope_layers": [1], "intermediate_size_mlp": 16} | FEW
CHANGES = [
    TorchProof("plain", CAUSAL),
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
    Proof("gate", "Qwen3Next", groups(Norm(), Gate()), GATED, 6),
    Proof(
        *("gate, biases", "Qwen3Next", groups(Norm(), Gate())),
        *(GATED | {"attention_bias": True}, 6),
        biases=True,
    ),
    *(
        FunctionProof(
            f"{part} latent",
            "torch flex_attention",
            functools.partial(flex_pairs, parts=parts, modify=modify),
        )
        for part, parts, modify in (
            ("cap", [Cap(0.5)], lambda score, head, back: 0.5 * (2 * score).tanh()),
            ("alibi", [Alibi()], alibi_score),
        )
    ),
    Proof("latent", "DeepseekV2", MLA, LATENT),
    Proof("latent", "DeepseekV3", MLA, LATENT),
    Proof("query latent", "DeepseekV3", [*MLA, QueryLatent(6)], LATENT | {"q_lora_rank": 6}),
    Proof("top keys", "DeepseekV32", [*MLA, *CHOOSE], SPARSE),
    Proof("linear", "MiniMaxLightning", [Linear(SLOPES), Gate()], LIGHTNING, 4),
    Proof("linear state", "MiniMaxLightning", [Linear(SLOPES), Gate()], LIGHTNING, 4, cache=State),
    Proof("temperature", "Llama4Text", [GroupedHeads(2), Temperature(0.1, 3)], GQA | COOL, 6),
    Proof("chunks", "Llama4Text", [GroupedHeads(2), BARE, NEIGHBOURS, Chunks(4)], GQA | CHUNKED, 6),
    FunctionProof("delta rule", "torch_recurrent_gated_delta_rule", delta_pairs),
    TorchProof("full", parts=lambda x: [Full()]),
    TorchProof("other", parts=lambda x: [OtherSequence(OTHER.to(x))], other=OTHER),
    TorchProof(
        "other padding",
        {"key_padding_mask": OTHER_PADDING},
        lambda x: [OtherSequence(OTHER.to(x)), Padding(OTHER_PADDING)],
        OTHER,
    ),
    *(
        TorchProof(
            f"padding {side}",
            CAUSAL | {"key_padding_mask": hidden},
            lambda x, hidden=hidden: [Padding(hidden)],
            real=~hidden,
        )
        for side, hidden in (("right", RIGHT), ("left", LEFT))
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
    Proof("cache latent", "DeepseekV3", MLA, LATENT, cache=LatentCache),
    Proof("cache top keys", "DeepseekV32", [*MLA, *CHOOSE], SPARSE, cache=LatentCache),
]
