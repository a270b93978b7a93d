"""The exercise that asks for a test: ten wrong classes, three right ones, what is said of it."""

import random
from dataclasses import dataclass
from typing import Any

from helpers.checks.findings import say
from helpers.checks.isolate import Failure
from helpers.checks.mistakes import MISTAKES, edited_source
from helpers.checks.observe import ask, kind_of
from helpers.checks.outcome import Finding

WRONG = (
    "keys_from_W_query",
    "view_straight",
    "view_mixes_batch",
    "no_mask",
    "mask_off_by_one",
    "mask_not_cut",
    "scale_sqrt_d_out",
    "dropout_in_eval",
    "no_transpose_back",
    "heads_interleaved",
)

_FUSED = """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.num_heads = num_heads
        self.dropout = nn.Dropout(dropout)
        self.out_proj = nn.Linear(d_out, d_out)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        layers = self.W_query, self.W_key, self.W_value
        heads = (layer(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for layer in layers)
        share = self.dropout.p if self.training else 0.0
        attend = nn.functional.scaled_dot_product_attention
        context = attend(*heads, dropout_p=share, is_causal=True)
        return self.out_proj(context.transpose(1, 2).flatten(2))
"""

_LOOPED = """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.width = d_out // num_heads
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("past", torch.ones(context_length, context_length).tril())

    def forward(self, x):
        hidden = self.past[: x.shape[1], : x.shape[1]] == 0
        cut = (layer(x).split(self.width, -1) for layer in (self.W_query, self.W_key, self.W_value))
        contexts = []
        for queries, keys, values in zip(*cut):
            scores = torch.einsum("bqd,bkd->bqk", queries / self.width**0.5, keys)
            weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
            contexts.append(self.dropout(weights) @ values)
        return self.out_proj(torch.cat(contexts, -1))
"""

RIGHT = {
    "the course's own class": "",
    "a class that stores no mask and lets torch's fused function attend": _FUSED,
    "a class that loops over its heads and draws its weights in another order": _LOOPED,
}


@dataclass(frozen=True)
class Catch:
    """Ask for a function test(cls) that catches wrong classes and lets right ones pass."""

    identifier: str


def source_of(name: str) -> list[str]:
    """Return the lines of one of the classes, by a key of RIGHT or an identifier of a mistake."""
    source = RIGHT[name] if name in RIGHT else edited_source(name)
    return (source or edited_source()).strip().splitlines()


def judge_test(test: Any) -> Finding:
    """Say which wrong classes a test lets through, and which right ones it rejects."""
    sort, name = kind_of(test)
    if sort not in ("callable", "class", "module class"):
        return say("no_function", name=name)
    names = random.SystemRandom().sample([*WRONG, *RIGHT], len(WRONG) + len(RIGHT))
    said = ask(test, "verdicts", [source_of(each) for each in names])
    if isinstance(said, Failure):
        return Finding(None, f"The test cannot be called: {said.told}.", kind="error")
    verdicts = dict(zip(names, said, strict=True))
    if any(each is ... for each in verdicts.values()):
        return say("open")
    rejected = [each for each in RIGHT if verdicts[each] is not True]
    if rejected:
        return _rejects(rejected, verdicts)
    missed = [each for each in WRONG if verdicts[each] is True]
    if missed:
        return _lets_through(missed)
    caught, passed = f"all {len(WRONG)} wrong classes", f"{len(RIGHT)} right ones"
    return Finding(None, f"Your test catches {caught} and lets {passed} pass.", kind="right")


def _rejects(rejected: list[str], verdicts: dict[str, Any]) -> Finding:
    first = verdicts[rejected[0]]
    how = f"raises {first.told}" if isinstance(first, Failure) else "returns something false"
    caught = sum(verdicts[each] is not True for each in WRONG)
    text = (
        f"Your test rejects {len(rejected)} of {len(RIGHT)} right classes: {'; '.join(rejected)}. "
        f"For the first it {how}. "
    )
    if len(rejected) == len(RIGHT) and caught == len(WRONG):
        return Finding(None, text + "It rejects whatever comes.")
    return Finding(None, f"{text}Of {len(WRONG)} wrong ones it rejects {caught}.")


def _lets_through(missed: list[str]) -> Finding:
    listed = ", ".join(f"`{each}` (step {MISTAKES[each].step})" for each in missed)
    text = (
        f"No right class is rejected, and {len(WRONG) - len(missed)} of {len(WRONG)} wrong ones "
        f"are caught. Let through: {listed}. The first: {MISTAKES[missed[0]].told}"
    )
    return Finding(None, text, missed[0], "mistake")
