"""check_attention: each clause of the contract can fail, right classes pass, wrong ones do not.

said/edits.toml holds classes as edits of CLASS, said/classes.toml as parts of Base, each with the
step that a person would name, "passed" where it is right.
"""

import re
import warnings
from pathlib import Path
from threading import Lock

import pytest
import torch
from attention_variants import *  # noqa: F403 - said/classes.toml names what is in it
from attention_variants import CLASS, RIGHT, causal, softmax
from hypothesis import given, settings
from said import answers, assert_formed, typed
from sampled import sampled
from sizes import legal_sizes
from torch import nn
from torch.nn import functional as F

from eleven_steps.checks import check, check_attention
from eleven_steps.checks.asking.cases import Case
from eleven_steps.checks.contract import (
    CONTRACT,
    NOT_TRIED,
    Clause,
    asked,
    broken_clauses,
    expected,
)
from helpers.attention import MultiHeadAttention

every = pytest.mark.parametrize

SCOPE = {"nn": nn, "torch": torch, "F": F, "Lock": Lock}


def edited(edits, filed=True):
    """The class with other lines; filed, tracebacks know its source, as in a notebook."""
    source = CLASS
    for old, new in edits:
        assert source.count(old) == 1, (old, source.count(old))
        source = source.replace(old, new)
    (typed if filed else exec)(source, scope := SCOPE | {})
    return scope["Mine"]


# The contract

BEGIN, SCORES = "b, num_tokens, d_in = x.shape", "scores = queries @"
MASK, DROPOUT = "hidden = self.mask[:num_tokens, :num_tokens]", "self.dropout = nn.Dropout(dropout)"
KEY = "self.W_key(x)"


def before(line, *new):
    """Further lines above one."""
    return [(line, "\n        ".join((*new, line)))]


# By clause: a class that gives all that is asked before, and breaks this one
ALONE = {
    "output": [("/ self.head_dim**0.5", "")],
    "parameters": before(DROPOUT, "self.spare = nn.Linear(2, 2)"),
    "past_output": before(MASK, "values = values + (b == 4 and x[:, -1].mean() > 0.6)"),
    "given_x": [("return out", "x.add_(1)\n        return out")],
    "second_text": before(BEGIN, "x = self.__dict__.setdefault('x', x)"),
    "other_lengths": [(MASK, f"{MASK}; self.mask = self.mask & (num_tokens != 1)")],
    "loaded": [
        (KEY, "F.linear(x, vars(self).setdefault('w', self.W_key.weight.detach().clone()))")
    ],
    "first_weights": before(
        DROPOUT, "nn.init.zeros_(self.W_query.weight)", "nn.init.zeros_(self.W_key.weight)"
    ),
    "gradients": [(KEY, f"{KEY}.detach()")],
    "in_training": [(MASK, f"{MASK} & (not self.training)")],
    "training_gradients": [(KEY, f"({KEY}.detach() if self.training else {KEY})")],
    "after_training": before(
        BEGIN,
        "self.read = getattr(self, 'read', 0) + self.training",
        "x = x if self.training or self.read < 2 else x / 2",
    ),
    "output, with dropout": [("self.dropout(weights)", "F.dropout(weights, self.dropout.p)")],
    "dropped": [("self.dropout(weights)", "weights")],
    "dropped_when_new": [(DROPOUT, f"{DROPOUT}.eval()")],
    "in_double": [("scores.masked_fill", "scores.float().masked_fill")],
    "on_second_device": [
        (MASK, "hidden = torch.ones(num_tokens, num_tokens, device='cpu').triu(1).bool()")
    ],
}


def name_of(clause):
    return clause.name + ", with dropout" * (clause.name == "output" and clause.dropout > 0)


@every("name", ALONE)
def test_each_clause_is_broken_by_a_class_that_keeps_all_before_it(name):
    cls = edited(ALONE[name])
    assert name_of(next(broken_clauses(cls, MultiHeadAttention)).clause) == name
    verdict = check_attention(cls)
    assert_formed(verdict)
    assert not verdict.passed


def test_every_clause_has_such_a_class():
    assert {*map(name_of, CONTRACT)} == {*ALONE}


def test_the_page_lists_the_contract_and_what_is_not_tried():
    page = Path(__file__).parents[1].joinpath("docs", "checks.md").read_text("utf-8")
    rows = re.findall(r"^\| ([^|]+?) +\|", page, re.MULTILINE)
    promises = dict.fromkeys(clause.promise for clause in CONTRACT)
    assert [promise for promise in promises if promise not in rows] == []
    assert NOT_TRIED.partition(": ")[2] in " ".join(page.split()).replace("Other", "other")


# Classes


def weigh(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    future = torch.ones(q.size(2), q.size(2), dtype=torch.bool, device=q.device).triu(1)
    scores = (q @ k.transpose(2, 3)).masked_fill(future, float("-inf"))
    return torch.softmax(scores / k.size(3) ** 0.5, dim=-1)


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    SCRIPTED = torch.jit.script(weigh)


def keep_always(seed):
    """Dropout that is shared by all heads, or with a seed the same each time."""

    def attend(self, q, k, v):
        weights = softmax(causal(self, q, k))
        if self.training:
            shape = weights.shape if seed is not None else (1, 1, *weights.shape[2:])
            source = None if seed is None else torch.Generator().manual_seed(seed)
            keep = torch.rand(shape, generator=source) >= self.drop.p
            weights = weights * keep / (1 - self.drop.p)
        return weights @ v

    return attend


def typed_class(source):
    """A class of said/classes.toml: parts of Base, or of another, written otherwise."""
    thing = typed(source, {**globals()}, "eval")
    return type("Mine", thing[:1], thing[1]) if isinstance(thing, tuple) else thing


@pytest.mark.nightly
@given(legal_sizes())
@settings(deadline=None, max_examples=60)
def test_right_classes_give_what_ours_gives_at_any_sizes(sizes):
    clause = Clause("the output", "output", Case(*sizes, context_length=sizes[1] + 2))
    right = expected(MultiHeadAttention, clause).value
    for cls in RIGHT:
        assert clause.agree(asked(cls, clause).value, right), (cls.__name__, sizes)


@sampled("cls", RIGHT, ids=lambda cls: cls.__name__)
def test_right_classes_pass(cls):
    verdict = check_attention(cls)
    assert verdict.passed, verdict
    assert (verdict.step, verdict.mistakes, verdict.reached) == (None, (), 11)
    assert verdict.note == NOT_TRIED and NOT_TRIED in str(verdict)
    assert check("your_class.1", cls, record=False).passed


MADE = {("classes", source): typed_class for source in answers("classes")}
MADE |= {("edits", source): lambda edits: edited(eval(edits)) for source in answers("edits")}


@sampled("kept", [*MADE], each=12)
def test_a_class_passes_only_if_it_is_right(kept):
    cls, right = MADE[kept](kept[1]), answers(kept[0])[kept[1]]
    verdict = check_attention(cls)
    assert_formed(verdict)
    assert verdict.passed is right.startswith("passed") and verdict.kind != "failed", verdict
    if not verdict.passed and kept[0] == "classes":
        told = check("your_class.1", cls, record=False)
        assert not told.passed and "constructor is right" not in told.message, told


RAISING = ["d_out // num_heads", "d_out / nun_heads"], ["self.head_dim**", "self.heads_dim**"]


@every("edit", RAISING)
def test_without_its_source_a_class_is_put_at_a_step_and_no_line(edit):
    bare, known = (check_attention(edited([edit], filed)) for filed in (False, True))
    assert not bare.passed and not bare.line and known.line
    assert_formed(bare)
