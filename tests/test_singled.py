"""check_attention: no size that programs single out, and no state, hides a mistake.

Each class here is the right one of test_judge.py but for one condition. RENEW_SAID=1 writes down
what is said of it, whole.
"""

import itertools
import time

import pytest
import torch
from attention_variants import Base
from said import as_read
from test_judge import edited

from eleven_steps.checks import check_attention
from eleven_steps.checks.run.cases import COUNTS, cases_of

pytestmark = pytest.mark.usefixtures("one_thread")

BEGIN = "b, num_tokens, d_in = x.shape"
SCORES = "scores = queries @"
MASK = "hidden = self.mask[:num_tokens, :num_tokens]"
WEIGHTS = "weights = scores.softmax(-1)"
LAYER = "self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)"


def before(line, *new):
    """Further lines above one."""
    return [(line, "\n        ".join((*new, line)))]


def unmasked(where):
    return [(MASK, f"{MASK} & (not ({where}))")]


def scaled(where):
    return [("/ self.head_dim**0.5", f"/ (x.shape[-1] if {where} else self.head_dim)**0.5")]


def keys(new):
    return [("self.W_key(x)", f"({new})")]


SIZES = {
    "heads beyond the 8th": before(
        SCORES, "keys = torch.cat([keys[:, :8], keys[:, :1].expand_as(keys)[:, 8:]], 1)"
    ),
    "scale above 16": scaled("self.head_dim > 16"),
    "scale from 96": scaled("self.head_dim >= 96"),
    "scale at 64": scaled("self.head_dim == 64"),
    "scale of 768": scaled("self.out_proj.in_features == 768"),
    "scale of 12 heads": scaled("self.num_heads == 12"),
    "no mask for 2 tokens": unmasked("num_tokens == 2"),
    "no mask at multiples of 16": unmasked("num_tokens % 16 == 0"),
    "no mask at 128 tokens": unmasked("num_tokens == 128"),
    "no mask at 512 tokens": unmasked("num_tokens == 512"),
    "no mask above 8 heads": unmasked("self.num_heads > 8"),
    "no mask in a full text": unmasked("num_tokens == len(self.mask) > 9"),
    "no mask of 1024": unmasked("len(self.mask) == 1024"),
    "no mask for one long sequence": unmasked("b == 1 and 1000 > num_tokens > 8"),
    "no mask where b is num_heads": unmasked("b == self.num_heads > 3"),
    "no mask where head_dim is num_heads": unmasked("self.head_dim == self.num_heads"),
    "residual where widths agree": [("return out", "return out + x if d_in == 768 else out")],
    "residual with biases": [
        (
            "return out",
            "return out + x if x.shape == out.shape and self.W_key.bias is not None else out",
        )
    ],
    "b beyond 32": before(SCORES, "keys = torch.cat([keys[:32], keys[:1].expand_as(keys)[32:]])"),
    "values beyond 64": before(SCORES, "values = values * (torch.arange(self.head_dim) < 64)"),
    "16 heads the other way": before(SCORES, "keys = keys.flip(1) if len(keys[0]) == 16 else keys"),
    "sequences the other way": before(
        SCORES, "keys = keys.flip(0) if b > num_tokens > 4 else keys"
    ),
    "x cut to d_out": before(
        BEGIN, "x = x * (torch.arange(x.shape[2]) < self.out_proj.in_features)"
    ),
    "queries for keys": keys("self.W_query(x) if d_in == 512 else self.W_key(x)"),
    "x overwritten": [
        (
            "return out",
            "return x.copy_(out) if d_in == out.shape[2] >= 64 and not x.requires_grad else out",
        )
    ],
}
STATES = {
    "detached in long texts": keys("self.W_key(x).detach() if num_tokens > 16 else self.W_key(x)"),
    "detached in training": keys("self.W_key(x).detach() if self.training else self.W_key(x)"),
    "no mask in training": unmasked("self.training and num_tokens > 8"),
    "no mask in training, many sequences": unmasked("self.training and b > 16"),
    "no mask in autocast": unmasked("torch.is_autocast_enabled('cpu')"),
    "inference, one sequence": unmasked("torch.is_inference_mode_enabled() and b == 1"),
    "third call": before(
        BEGIN, "self.calls = getattr(self, 'calls', 0) + 1", "x = x if self.calls < 3 else x / 2"
    ),
    "x with a gradient": scaled("x.requires_grad"),
    "no weight with a gradient": scaled("not self.out_proj.weight.requires_grad"),
    "x in a longer one": before(BEGIN, "x = x.as_strided(x.shape, x.stride(), 0)"),
    "kept in float32": before(
        MASK,
        "kept = self.__dict__.setdefault('kept', {}).setdefault(num_tokens, scores[0, 0].detach())",
        "scores = scores + (0 if kept.dtype == scores.dtype else torch.arange(num_tokens))",
    ),
    "kept for all of the class": keys(
        "type(self).__dict__['kept'].setdefault((x.shape, float(x.sum())), self.W_key(x))"
        " if not torch.is_grad_enabled() else self.W_key(x)"
    )
    + [("    def forward", "    kept = {}\n\n    def forward")],
    "one token at a time": before(
        SCORES,
        "if num_tokens == 1 and not torch.is_grad_enabled():",
        "    values = self.__dict__.setdefault('kept', {}).setdefault(values.shape, values)",
    ),
    "no dropout in long texts": [
        ("self.dropout(weights)", "self.dropout(weights) if num_tokens <= 16 else weights")
    ],
    "no dropout at 0.1": [
        ("self.dropout(weights)", "self.dropout(weights) if self.dropout.p > 0.15 else weights")
    ],
}


def in_blocks(*, values="* fix", total="* fix"):
    """A softmax over blocks of two keys, with its sums as they are multiplied."""
    return [
        ("        scores = scores.masked_fill(hidden, -torch.inf) / self.head_dim**0.5\n", ""),
        (
            f"        {SCORES} keys.transpose(2, 3)\n        {MASK}\n",
            "        top, total, context = -torch.inf, 0, 0\n"
            "        for j in range(0, num_tokens, 2):\n"
            "            scores = queries @ keys[:, :, j : j + 2].transpose(2, 3)\n"
            "            hidden = self.mask[:num_tokens, j : min(j + 2, num_tokens)]\n"
            "            scores = scores.masked_fill(hidden, -torch.inf) / self.head_dim**0.5\n"
            "            new = torch.maximum(torch.as_tensor(top), scores.amax(-1, keepdim=True))\n"
            "            fix, weights = (top - new).exp(), (scores - new).exp()\n"
            f"            total = total {total} + weights.sum(-1, keepdim=True)\n"
            f"            context = context {values} + weights @ values[:, :, j : j + 2]\n"
            "            top = new\n",
        ),
        (f"        {WEIGHTS}\n        weights = self.dropout(weights)\n", ""),
        ("(weights @ values)", "(context / total)"),
    ]


SAID = {  # of which something false was said once
    "noise in training": before(MASK, "scores = scores + self.training * torch.rand_like(scores)"),
    "weights tied": [(LAYER, f"{LAYER}; self.W_key.weight = self.W_query.weight")],
    "keys frozen": [(LAYER, f"{LAYER}; self.W_key.requires_grad_(False)")],
    "a square weight as stored": keys(
        "F.linear(x, self.W_key.weight.T, self.W_key.bias)"
        " if d_in == len(self.W_key.weight) else self.W_key(x)"
    ),
    "blocks, values not rescaled": in_blocks(values=""),
    "blocks, sums not rescaled": in_blocks(total=""),
    "blocks, nothing rescaled": in_blocks(values="", total=""),
    "blocks without dropout": in_blocks(),
    "x normed": keys("self.W_key(F.layer_norm(x, x.shape[-1:]))"),
    "scale with biases": scaled("self.W_key.bias is not None"),
    "mask without biases": unmasked("self.W_key.bias is not None"),
    "rounded at 128": before(
        MASK, "scores = (scores.half() if self.head_dim == 128 else scores).to(scores.dtype)"
    ),
}
WRONG = SIZES | STATES | SAID


def test_no_size_and_no_state_hides_a_mistake():
    verdicts = {name: check_attention(edited(edits)) for name, edits in WRONG.items()}
    assert [name for name, verdict in verdicts.items() if verdict.passed] == []
    said = {name: verdict.message for name, verdict in verdicts.items()}
    assert said == as_read("singled", said)


def test_what_raises_where_x_is_not_contiguous_is_right_and_told():
    first = "x.view(-1, d_in)[:1]"  # as GPT-2's Conv1D reads x
    verdict = check_attention(edited(before(MASK, first)))
    assert verdict.passed and "`.reshape` takes such an x" in verdict.message, verdict


@pytest.mark.parametrize("which", ["queries", "keys", "values"])
def test_in_an_encoder_what_was_not_swapped_is_named(which):
    line = f"{which} = self.W_{which.removesuffix('s').replace('querie', 'query')}(x).view(split)"
    full = [(f"        {MASK}\n", ""), (".masked_fill(hidden, -torch.inf)", "")]
    verdict = check_attention(edited([*full, (f"{line}.transpose(1, 2)", line)]), causal=False)
    assert verdict.step == 4 and f"`{which}` is (4, 7, 6, 8)" in verdict.message


def test_scores_from_distances_are_right():
    """They lose digits where scores are large, as (a + b) - a does, and no mistake is made."""
    distance = "(queries[:, :, :, None] - keys[:, :, None]).square().sum(-1)"
    squares = "keys.square().sum(-1)[:, :, None] + queries.square().sum(-1)[..., None]"
    product = "scores = queries @ keys.transpose(2, 3)"
    verdict = check_attention(edited([(product, f"scores = ({squares} - {distance}) / 2")]))
    assert verdict.passed, verdict


# The rule


def test_the_cases_have_what_programs_single_out_and_stay_cheap():
    cases = cases_of("")
    sized, every = cases.sized, (*cases.sized, *cases.rare)
    assert {each.num_tokens for each in sized} == {each.b for each in sized} == {*COUNTS}
    assert {1, 2, 8, 12, 16, 32} <= {each.num_heads for each in sized}
    assert {2, 4, 8, 16, 32, 64, 96, 128} <= {each.head_dim for each in sized if each.num_heads > 1}
    assert {512, 768} <= {each.d_out for each in every if each.d_in == each.d_out}
    signs = {(each.d_in > each.d_out) - (each.d_in < each.d_out) for each in sized}
    assert signs == {-1, 0, 1} and {each.qkv_bias for each in sized} == {False, True}
    assert max(each.b * each.num_tokens * max(each.d_in, each.d_out) for each in sized) < 50_000
    for one, other in itertools.combinations(sized[0].letters, 2):
        assert any(each.letters[one] == each.letters[other] for each in every), (one, other)


def test_a_class_that_is_slow_in_large_cases_is_right_and_told_what_was_left_out():
    def slow(self, q, k, v):
        time.sleep(0.3 * (k.shape[1] > 8))
        return Base.attend(self, q, k, v)

    verdict = check_attention(type("Slow", (Base,), {"attend": slow}))
    assert verdict.passed and "were not tried" in verdict.message


def test_what_a_class_elsewhere_cannot_have_is_not_held_against_it():
    class Small(torch.nn.MultiheadAttention):
        def __init__(self, embed_dim, num_heads):
            if embed_dim > 64 or num_heads > 8:
                raise ValueError("too wide for it")
            super().__init__(embed_dim, num_heads, batch_first=True)

        def forward(self, x):
            if x.shape[1] > 40 and x.shape[1] < 512:
                raise ValueError("too long for it")
            return super().forward(x, x, x, need_weights=False)[0]

    verdict = check_attention(Small, causal=False)
    assert verdict.passed, verdict
