"""check_attention on classes with a change since the lecture: right ones pass, slips are named."""

import json

import judge
import pytest
import served
from since_classes import Plain, of_style, with_slip

from eleven_steps.checks import check_attention, show_lines, wrong_class
from eleven_steps.checks.know.catalogue import MISTAKES, VARIANT_MISTAKES
from eleven_steps.checks.run.contract import VARIANTS

pytestmark = pytest.mark.usefixtures("one_thread")

every = pytest.mark.parametrize


@every("variant", VARIANTS)
@every("style", ["Plain", "Fused"])
def test_a_right_class_passes_in_each_style(style, variant):
    verdict = check_attention(of_style(style)[variant], variant=variant)
    assert verdict.passed and verdict.message.endswith("agree."), verdict


def test_the_catalogue_names_each_mistake_once_in_the_order_of_the_changes():
    assert not VARIANT_MISTAKES.keys() & MISTAKES.keys()
    made_in = [each.variant for each in VARIANT_MISTAKES.values()]
    assert made_in == sorted(made_in, key=list(VARIANTS).index)
    for name, mistake in VARIANT_MISTAKES.items():
        assert name == mistake.identifier and 1 <= mistake.step <= 11
        assert mistake.sentence.endswith(".") and mistake.why.endswith(".")
        assert "+ " in show_lines(name)


# What learners would type, in their own classes.
_K = "k = k[:, :, None].expand(-1, -1, n, -1, -1).flatten(1, 2)"
_V = "v = v[:, :, None].expand(-1, -1, n, -1, -1).flatten(1, 2)"
_FUTURE = ".masked_fill(hidden, -torch.inf)"
_FADE = "            table = table * fade\n"
_ADD = "            table = table + key * value\n"
SLIPS = [
    (
        "kv_heads_tiled",
        "PlainGqa",
        f"{_K}\n        {_V}",
        "k, v = torch.cat([k] * n, 1), torch.cat([v] * n, 1)",
    ),
    (
        "rope_other_pairing",
        "FusedRope",
        "torch.stack([t[..., :half], t[..., half:]], -1)",
        "t.unflatten(-1, (-1, 2))",
    ),
    (
        "cap_before_scale",
        "PlainCap",
        "self.limit * torch.tanh(super().scores(q, k) / self.limit)",
        "self.limit * torch.tanh(q @ k.mT / self.limit) / k.shape[-1] ** 0.5",
    ),
    (
        "full_still_causal",
        "PlainFull",
        "return torch.zeros_like(scores, dtype=torch.bool)",
        "return super().hidden(scores)",
    ),
    ("window_one_long", "FusedWindow", "back < self.window", "back <= self.window"),
    ("window_one_short", "PlainWindow", "tril(-self.window)", "tril(1 - self.window)"),
    (
        "window_instead_of_mask",
        "FusedWindow",
        "(back >= 0) & (back < self.window)",
        "back < self.window",
    ),
    ("padding_polarity", "PlainPadding", "self.filling = is_padding", "self.filling = ~is_padding"),
    (
        "padding_nan",
        "PlainPadding",
        "return hidden & ~hidden.all(-1, keepdim=True)",
        "return hidden",
    ),
    ("padding_first_sequence", "PlainPadding", "| self.filling[:,", "| self.filling[:1,"),
    (
        "padding_after_softmax",
        "PlainPadding",
        "    def forward(self, x, is_padding):\n        self.filling",
        "    def weigh(self, scores):\n"
        "        weights = scores.masked_fill(Plain.hidden(self, scores), "
        "-torch.inf).softmax(-1)\n"
        "        return weights * ~self.filling[:, None, None]\n"
        "\n"
        "    def forward(self, x, is_padding):\n"
        "        self.filling",
    ),
    (
        "sinks_left_out",
        "FusedSinks",
        "whole = torch.logaddexp(scores.logsumexp(-1, keepdim=True), sinks)",
        "whole = scores.logsumexp(-1, keepdim=True)",
    ),
    (
        "sinks_divided",
        "FusedSinks",
        "sinks = self.sinks.view(-1, 1, 1)\n        whole",
        "sinks = self.sinks.view(-1, 1, 1) / self.width**0.5\n        whole",
    ),
    (
        "sinks_dropped_first",
        "PlainSinks",
        "torch.cat([sinks, scores], -1).softmax(-1)",
        "torch.cat([scores, sinks], -1).softmax(-1)",
    ),
    ("gate_without_sigmoid", "PlainGate", "self.W_gate(x).sigmoid()", "self.W_gate(x)"),
    ("gate_added", "PlainGate", "sigmoid() * context", "sigmoid() + context"),
    (
        "rope_positions_restart",
        "PlainCache",
        "start = past[0].shape[-2] if past else 0",
        "start = 0",
    ),
    ("cache_mask_top_left", "PlainCache", "triu(m - n + 1)", "triu(1)"),
    ("topk_before_mask", "PlainTopk", f"self.rated{_FUTURE}", "self.rated"),
    (
        "topk_future_again",
        "PlainTopk",
        "return hidden | torch.ones_like(rates",
        "return torch.ones_like(rates",
    ),
    ("topk_best_hidden", "FusedTopk", "(self.rated < least)", "(self.rated >= least)"),
    (
        "linear_asked_first",
        "FusedLinear",
        f"{_ADD}            context.append(query @ table)\n",
        f"            context.append(query @ table)\n{_ADD}",
    ),
    ("linear_fades_at_once", "FusedLinear", f"{_FADE}{_ADD}", f"{_ADD}{_FADE}"),
    ("linear_no_decay", "FusedLinear", _FADE, ""),
]

NAMED = [slip[0] for slip in SLIPS]


@every(("mistake", "name", "old", "new"), SLIPS, ids=NAMED)
def test_a_slip_in_a_learners_class_is_named(mistake, name, old, new):
    known = VARIANT_MISTAKES[mistake]
    verdict = check_attention(with_slip(name, old, new), variant=known.variant)
    assert (verdict.mistake, verdict.step) == (mistake, known.step), verdict
    assert known.sentence in verdict.message


def test_every_mistake_is_tried_as_learners_would_make_it():
    assert sorted(NAMED) == sorted(VARIANT_MISTAKES)


# The lecture's mistakes in classes with a change, and what no catalogue lists.
_OF_SCORES = "q @ k.mT / k.shape[-1] ** 0.5"
_QKV = "(self.W_query, self.W_key, self.W_value)"


@every(
    ("mistake", "variant", "old", "new"),
    [
        ("no_scale", "gqa", _OF_SCORES, "q @ k.mT"),
        ("scale_head_dim", "norm", _OF_SCORES, "q @ k.mT / k.shape[-1]"),
        ("no_mask", "rope", "scores.masked_fill(self.hidden(scores), -torch.inf)", "scores"),
        ("mask_off_by_one", "cap", "triu(m - n + 1)", "triu(m - n + 2)"),
        ("keys_from_W_query", "alibi", _QKV, "(self.W_query, self.W_query, self.W_value)"),
        ("keys_and_values_swapped", "gate", _QKV, "(self.W_query, self.W_value, self.W_key)"),
        ("no_transpose_back", "window", "out_proj(self.attend(*self.project(x)).transpose(1, 2)",
         "out_proj(self.attend(*self.project(x)).reshape(len(x), x.shape[1], -1, self.width)"),
        ("dropout_missing", "gqa", "self.drop(self.weigh(self.scores(q, k)))",
         "self.weigh(self.scores(q, k))"),
        ("dropout_missing", "window", "self.drop(self.weigh(self.scores(q, k)))",
         "self.weigh(self.scores(q, k))"),
        ("bias_always", "sinks", "self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)",
         "self.W_key = nn.Linear(d_in, d_out)"),
    ],
)  # fmt: skip
def test_a_mistake_of_the_lecture_is_named_in_a_class_with_a_change(mistake, variant, old, new):
    verdict = check_attention(with_slip(f"Plain{variant.title()}", old, new), variant=variant)
    if mistake == "bias_always":
        assert verdict.step == 2 and "W_key.bias" in verdict.message
    else:
        assert (verdict.mistake, verdict.step) == (mistake, MISTAKES[mistake].step), verdict


@every(
    ("name", "old", "new", "step", "said"),
    [
        ("PlainGqa", "return q, k, v\n\n\nclass FusedGqa", "return q + 1, k, v\n\n\nclass FusedGqa",
         5, "Step 5 (scores)"),
        ("FusedNorm", "keepdim=True) + 1e-6)", "keepdim=True))", 4, "add 1e-6 under the root"),
        ("PlainWindow", "tril(-self.window)", "tril(-self.window - 2)", 6, "Step 6 (mask)"),
        ("PlainGate", "out_proj(self.W_gate(x).sigmoid() *", "out_proj(self.W_gate(x).tanh() *",
         10, "gate"),
        ("PlainOther", "self.attend(q, k, v).transpose(1, 2).flatten(2))\n\n\nclass FusedOther",
         "self.attend(q, k, v).transpose(1, 2).flatten(2)) * 2 + 1\n\n\nclass FusedOther",
         11, "What comes out, (4, 7, 48), has other numbers than step 11"),
        ("PlainSinks", "self.sinks = nn.Parameter(torch.zeros(sizes[4]))",
         "self.sink = nn.Parameter(torch.zeros(sizes[4]))", 2, "sinks cannot be found"),
        ("PlainGate", "W_gate = nn.Linear(d_in, d_out,", "W_gate = nn.Linear(d_in, 1,",
         10, "`W_gate.weight` has shape (1, 10)"),
        ("PlainCache", "flatten(2)), (k, v)", "flatten(2))", 4, "return out, past"),
        ("PlainPadding", "(self, x, is_padding)", "(self, x)", 2, "raises TypeError"),
        ("PlainWindow", "qkv_bias=False, window)", "qkv_bias=False, w)", 1, "=False, window)"),
    ],
)  # fmt: skip
def test_what_no_catalogue_lists_is_put_where_it_was_seen(name, old, new, step, said):
    variant = name.removeprefix("Plain").removeprefix("Fused").lower()
    verdict = check_attention(with_slip(name, old, new), variant=variant)
    assert (verdict.mistake, verdict.step) == (None, step), verdict
    assert said in verdict.message


def test_two_mistakes_are_told_apart():
    verdict = check_attention(wrong_class("kv_heads_tiled", "no_scale"), variant="gqa")
    assert verdict.mistakes == ("kv_heads_tiled", "no_scale"), verdict


def test_a_change_that_nobody_knows_is_refused():
    with pytest.raises(ValueError, match="variant is 'moe': one of gqa, norm, rope, .*cache"):
        check_attention(Plain, variant="moe")


@every("variant", ["gqa", "norm", "rope", "padding", "cache"])
def test_the_lectures_class_is_not_one_with_a_change(variant):
    assert not check_attention(Plain, variant=variant).passed


@every("variant", ["gqa", "latent", "gate"])
def test_a_class_with_a_change_is_not_the_lectures(variant):
    assert not check_attention(of_style("Plain")[variant]).passed


class Elsewhere(judge.StandIn):
    def __init__(self, cls):
        super().__init__(
            lambda line: json.dumps(
                {"reply": served.reply(cls, json.loads(line)["question"])}
            ).encode()
        )


@every("variant", ["other", "cache"])
def test_a_class_may_live_in_another_process(variant):
    assert check_attention(Elsewhere(of_style("Plain")[variant]), variant=variant).passed
