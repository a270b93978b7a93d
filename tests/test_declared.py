"""Classes of any form, declared as docs/checks.md shows: right, wrong at a step, or misdeclared."""

import re
from pathlib import Path

import pytest
import theirs
import torch
from torch import nn

from eleven_steps.checks import check_attention, declare, wrong_class
from eleven_steps.checks.__main__ import loaded
from eleven_steps.checks.propose import proposal
from helpers.attention import MultiHeadAttention

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "checks.md").read_text("utf-8")
SECTION = PAGE.partition("## How do I declare my class?")[2].partition("\n## ")[0]
FIVE = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)
NAMES = ["MultiheadAttention", "CausalSelfAttention", "SelfAttention", "EncoderAttention"]
NAMES += ["GroupedAttention"]
SOURCE = Path(theirs.__file__).read_text("utf-8")


IMPORTED = {"torch": torch, "nn": nn, "check_attention": check_attention, "declare": declare}


def judged(name, classes=theirs):
    """The verdict of a declaration of the page."""
    code = FIVE[NAMES.index(name)].replace("assert check_attention", "verdict = check_attention")
    exec(code, scope := IMPORTED | vars(classes))
    return scope["verdict"]


@pytest.mark.parametrize("name", NAMES)
def test_a_declaration_of_the_page_is_right(name):
    verdict = judged(name)
    assert verdict, verdict
    assert ("d_in = d_out alone" in verdict.note) == (name != "SelfAttention")


WRONG = [
    ("CausalSelfAttention", "-1)) * self.scale", "-1)) * C**-0.5", 7),
    ("CausalSelfAttention", "q, k, v = self.c_attn", "k, q, v = self.c_attn", 2),
    ("CausalSelfAttention", '== 0, float("-inf")', "== 0, 0.0", 6),
    ("SelfAttention", "triu(1)", "triu(0)", 6),
    ("SelfAttention", "value = self.v_proj", "value = self.k_proj", 2),
    ("SelfAttention", "self.dropout(torch.softmax(scores, dim=-1))", "scores.softmax(-1)", 7),
    ("EncoderAttention", "bhij,bhjd->bihd", "bhij,bhjd->bhid", 9),
    ("EncoderAttention", "scores.softmax(dim=-1)", "scores.softmax(dim=1)", 7),
    ("GroupedAttention", "k.repeat_interleave(groups, dim=1)", "k.repeat(1, groups, 1, 1)", 4),
]


def test_a_wrong_class_is_wrong_at_its_step_and_not_by_its_declaration(tmp_path):
    steps = {}
    for number, (name, right, wrong, step) in enumerate(WRONG):
        assert SOURCE.count(right) == 1
        file = tmp_path / f"wrong_{number}.py"
        file.write_text(SOURCE.replace(right, wrong))
        verdict = judged(name, loaded(file))
        assert not verdict and "declaration" not in str(verdict), verdict
        steps[name, wrong] = verdict.step == step
    assert sum(steps.values()) >= len(WRONG) - 1, steps


class ViTAttention(nn.Module):
    """What the README's declaration says of vit-pytorch 0.6.6."""

    def __init__(self, dim, heads, dim_head, dropout):
        super().__init__()
        self.heads = heads
        self.scale = dim**-0.5
        self.to_qkv = nn.Linear(dim, 3 * heads * dim_head, bias=False)
        self.to_out = nn.Sequential(nn.Linear(heads * dim_head, dim), nn.Dropout(dropout))

    def forward(self, x, mask=None):
        q, k, v = self.to_qkv(x).chunk(3, dim=-1)
        q, k, v = (each.unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in (q, k, v))
        weights = (q @ k.mT * self.scale).softmax(dim=-1)
        return self.to_out((weights @ v).transpose(1, 2).flatten(2))


def test_the_declaration_of_the_readme_finds_the_line():
    code = (ROOT / "README.md").read_text("utf-8").partition("import Attention\n")[2]
    exec(code.partition("```")[0], scope := IMPORTED | {"Attention": ViTAttention})
    verdict = check_attention(scope["declared"], causal=False)
    assert (verdict.step, verdict.code) == (7, "self.scale = dim**-0.5")
    assert verdict.mistake == "scale_sqrt_d_out"


def one_layer(mha):
    return {"weight": mha.W_query.weight, "bias": mha.out_proj.bias}


def square(d_in, d_out, *others):
    return nn.Linear(d_out, d_out)


MISDECLARED = {
    "build raises TypeError: ": declare(lambda d_in: nn.Linear(d_in, d_in)),
    "build returns tuple, and an nn.Module": declare(lambda *sizes: sizes),
    "build still has `...`": declare(lambda *sizes: nn.Linear(sizes[0], ...)),
    "state lacks `bias`": declare(square, lambda mha: {"weight": mha.out_proj.weight}),
    "no parameter of that name": declare(
        square, lambda mha: one_layer(mha) | {"c": mha.mask}, one_width=True
    ),
    "add one_width=True": declare(square, one_layer),
    "`weight` as ellipsis, not": declare(square, lambda mha: {"weight": ...}),
    "nothing in state is made of `W_key.weight`": declare(square, one_layer, one_width=True),
    "state raises AttributeError": declare(square, lambda mha: {"weight": mha.query}),
}
CALLED = {
    "call raises TypeError: ": lambda module, x: module(x, x),
    "call returns tuple": lambda module, x: (module(x, x, x), x),
    "call still has `...`": lambda module, x: module(x, x, x, attn_mask=...),
}


@pytest.mark.parametrize("why", [*MISDECLARED, *CALLED])
def test_a_declaration_that_does_not_fit_is_told_what_does_not(why):
    if why in CALLED:
        exec(FIVE[0], scope := {**IMPORTED})
        declared = declare(scope["build"], scope["state"], CALLED[why], one_width=True)
    else:
        declared = MISDECLARED[why]
    verdict = check_attention(declared)
    assert verdict.kind == "unread" and why in verdict.message, verdict
    assert "The declaration does not fit the class" in verdict.message


# What is left of a printed declaration for a person to say.
PRINTED = {
    nn.MultiheadAttention: {"key_padding_mask=..., attn_mask=...": "attn_mask=None"},
    theirs.CausalSelfAttention: {},
    theirs.SelfAttention: {},
    theirs.EncoderAttention: {"x, ...": "x, torch.ones(x.shape[:2], device=x.device)"},
}


@pytest.mark.parametrize("cls", PRINTED)
def test_a_printed_declaration_is_right_once_it_is_complete(cls):
    code = proposal(cls)
    for unclear, clear in PRINTED[cls].items():
        code = code.replace(unclear, clear)
    assert "..." not in code
    exec(code, scope := {cls.__name__: cls})
    verdict = check_attention(scope["declared"], causal=not PRINTED[cls])
    assert verdict, verdict


def test_an_undeclared_class_is_not_judged():
    verdict = check_attention(nn.MultiheadAttention)
    assert verdict.kind == "unread" and verdict.text.endswith(proposal(nn.MultiheadAttention))


def refusing(*_, **__):
    raise ValueError("no sizes fit")


@pytest.mark.parametrize("reference", [5, refusing, lambda d_in: MultiHeadAttention])
def test_nothing_is_right_where_the_reference_gives_nothing(reference):
    verdict = check_attention(wrong_class("no_scale"), reference=reference)
    assert verdict.kind == "unread" and "The reference itself raises" in verdict.message, verdict


@pytest.mark.parametrize("options", [{"causal": "no"}, {"causal": False, "reference": refusing}])
def test_options_that_say_nothing_are_refused(options):
    with pytest.raises(ValueError, match="True, or False without a reference"):
        check_attention(MultiHeadAttention, **options)
