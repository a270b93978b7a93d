"""List the proofs of bench/prove.py: for each change two modules and their settings."""

import functools
import tomllib
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

import torch
from torch import nn
from torch.nn.attention.flex_attention import flex_attention
from torch.overrides import TorchFunctionMode

from eleven_steps.beyond import variants
from eleven_steps.beyond.variants import Part, VariantAttention
from helpers.attention import future_mask
from helpers.trace import trace

D, HEADS, TOKENS = 24, 3, 9  # d_in = d_out, num_heads, num_tokens: no two alike
CHUNKS = [[1] * TOKENS, [4, 1, 2, 2], [TOKENS]]  # tokens one by one, in chunks, all at once
BIASED = ("GPT2", "Bloom", "GptOss", "GPTNeoX")  # in all four layers; the others have none
COMMON = {"vocab_size": 32, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
COMMON |= {"num_hidden_layers": 1}
THETA = {"rope_type": "default", "rope_theta": 500.0}
TABLE = tomllib.loads(Path(__file__).with_name("changes.toml").read_text("utf-8"))
SETS = TABLE["sets"]


@dataclass(frozen=True)
class Proof:
    """Hold one proof: a change, a model of transformers, and the parts that make ours equal."""

    change: str
    model: str
    parts: list[Part] = field(default_factory=list)
    sizes: dict = field(default_factory=dict)
    heads: int = HEADS
    padding: torch.Tensor | None = None  # which tokens of two sequences are padding
    cache: Callable[[], Part] | None = None  # our cache, compared with transformers' own
    head_dim: int | None = None  # that of ours, if heads * head_dim is not D
    biases: bool = False  # all four layers have one, though the model has none as a rule

    @property
    def module(self) -> str:
        return f"transformers {self.model}Attention"

    @property
    def ways(self) -> list[tuple[list[int], bool]]:
        """Return the sizes of the chunks, and whether there is a cache."""
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
    """Hold a proof for torch's own module: how it is called, and with which other sequence."""

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
    """Hold a proof for a function: compare yields pairs of results for a dtype."""

    change: str
    module: str
    compare: Callable[[torch.dtype], Iterator[tuple[torch.Tensor, torch.Tensor]]]


def delta_pairs(dtype: torch.dtype) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Compare context and table of the delta rule, in chunks of several sizes."""
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
            out, ours = variants.delta_rule(q / 8**0.5, k, v, share, fade, ours)
            given = [piece.transpose(1, 2) for piece in (q, k, v, fade.log(), share)]
            with casts_to(dtype):
                their_out, theirs = rule(*given, theirs, True)
            yield from [(out, their_out.transpose(1, 2)), (ours, theirs)]


def flex_pairs(
    dtype: torch.dtype, parts: list[Part], modify: Callable
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Compare the context of latent keys, wider than values, with torch's flex_attention.

    No model combines a cap or ALiBi with latent keys, so torch's own kernel, which takes any change
    of the scores, is compared instead.
    """
    torch.manual_seed(1)
    ours = VariantAttention(D, D, 16, 0.0, HEADS, parts=[variants.Latent(10, 4), *parts]).to(dtype)
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
    """Replace float32 in casts and new tensors by another dtype while the mode is active."""

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
SIDES = {"RIGHT": RIGHT, "LEFT": LEFT}
OTHER = torch.randn(2, 5, D, generator=torch.Generator().manual_seed(7))
OTHER_PADDING = RIGHT[:, :5] | torch.tensor([[False] * 4 + [True], [False] * 5])


# What a token of distance costs three heads: two of the prices of four heads, and one of eight.
PRICES = 2.0 ** -torch.tensor([4, 8, 2])


def made(value):
    """Build the part or scaling that a table names, with its arguments."""
    if not isinstance(value, list):
        return None if value == "None" else value
    if not isinstance(value[0], str):
        return tuple(map(made, value))
    name, *given = value
    named = given.pop() if given and isinstance(given[-1], dict) else {}
    named = {name: made(each) for name, each in named.items()}
    return getattr(variants, name)(*map(made, given), **named)


def proof(row: dict) -> Proof:
    row = {"parts": [], "sizes": {}, "like": [], "padding": None, "cache": None, **row}
    sizes = functools.reduce(dict.__or__, [SETS[name] for name in row.pop("like")], {})
    row["sizes"] = sizes | {k: None if v == "None" else v for k, v in row["sizes"].items()}
    row["parts"] = [made(part) for part in row["parts"]]
    row["padding"] = SIDES.get(row["padding"])
    return Proof(**row | {"cache": getattr(variants, row["cache"] or "", None)})


CHANGES = [
    *map(proof, TABLE["changes"]["rows"]),
    *(
        FunctionProof(
            f"{part} latent",
            "torch flex_attention",
            functools.partial(flex_pairs, parts=parts, modify=modify),
        )
        for part, parts, modify in (
            ("cap", [variants.Cap(0.5)], lambda score, head, back: 0.5 * (2 * score).tanh()),
            ("alibi", [variants.Alibi()], lambda score, head, back: score - PRICES[head] * back),
        )
    ),
    FunctionProof("delta rule", "torch_recurrent_gated_delta_rule", delta_pairs),
    TorchProof("plain", CAUSAL),
    TorchProof("full", parts=lambda x: [variants.Full()]),
    TorchProof("other", parts=lambda x: [variants.OtherSequence(OTHER.to(x))], other=OTHER),
    TorchProof(
        "other padding",
        {"key_padding_mask": OTHER_PADDING},
        lambda x: [variants.OtherSequence(OTHER.to(x)), variants.Padding(OTHER_PADDING)],
        OTHER,
    ),
    *(
        TorchProof(
            f"padding {side.lower()}",
            CAUSAL | {"key_padding_mask": hidden},
            lambda x, hidden=hidden: [variants.Padding(hidden)],
            real=~hidden,
        )
        for side, hidden in SIDES.items()
    ),
]
