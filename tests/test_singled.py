"""check_attention: no size that programs single out, and no state, hides a mistake.

Each line of said/singled.toml changes the right class of test_judge.py on one condition, by the
functions below.
"""

import itertools
import time

import torch
from attention_variants import Base
from said import as_read
from sampled import sampled, sampled_answers
from test_judge import edited

from eleven_steps.checks import check_attention
from eleven_steps.checks.run.cases import COUNTS, cases_of

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


@sampled_answers("singled")
def test_no_size_and_no_state_hides_a_mistake(asked):
    verdicts = {edits: check_attention(edited(eval(edits))) for edits in asked}
    assert [edits for edits, verdict in verdicts.items() if verdict.passed] == []
    said = {edits: verdict.message for edits, verdict in verdicts.items()}
    assert said == as_read("singled", said)


def test_what_raises_where_x_is_not_contiguous_is_right_and_told():
    first = "x.view(-1, d_in)[:1]"  # as GPT-2's Conv1D reads x
    verdict = check_attention(edited(before(MASK, first)))
    assert verdict.passed and "`.reshape` takes such an x" in verdict.message, verdict


@sampled("which", ["queries", "keys", "values"])
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


def test_a_class_that_is_slow_in_large_cases_is_right_and_told_what_was_left_out(monkeypatch):
    monkeypatch.setattr("eleven_steps.checks.judge.classes.SECONDS", 2)

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
            if x.shape[1] > 40 and x.shape[1] < 512 or len(x) > 32:
                raise ValueError("too long for it")
            return super().forward(x, x, x, need_weights=False)[0]

    verdict = check_attention(Small, causal=False)
    assert verdict.passed, verdict
