"""The 108 mistakes of the catalogue: each is refused, and named as no other."""

import pytest
import torch
from said import assert_formed, typed, words
from sampled import sampled

from eleven_steps.checks import check_attention, show_lines, wrong_class
from eleven_steps.checks.asking.isolation import attempt
from eleven_steps.checks.changes import PARTS
from eleven_steps.checks.contract import equal
from eleven_steps.checks.exercises import TASKS, Write
from eleven_steps.checks.mistakes import (
    CHANGE_MISTAKES,
    LINES,
    MISTAKES,
    OTHER_LINES,
    edited_source,
    edits_of,
)
from eleven_steps.checks.reference import run_reference
from helpers.trace import STEPS

every = pytest.mark.parametrize


def named(cls, identifier):
    verdict = check_attention(cls)
    assert (verdict.kind, verdict.mistakes) == ("mistake", (identifier,)), verdict
    assert verdict.step in MISTAKES[identifier].steps, verdict
    assert verdict.reached == verdict.step - 1
    assert_formed(verdict)
    return verdict


def test_there_are_108():
    assert len(MISTAKES) == 108


@every("identifier", MISTAKES)
def test_each_is_refused_and_named_at_its_step(identifier, monkeypatch):
    """So no two are the same class: the second would be named as the first.

    Where it is in the source is looked for in another test: that takes most of the time.
    """
    monkeypatch.setattr("eleven_steps.checks.attention.find", lambda begin: None)
    named(wrong_class(identifier), identifier)


@sampled("identifier", [*MISTAKES])
def test_each_is_named_where_the_line_is_looked_for(identifier):
    verdict = named(wrong_class(identifier), identifier)
    assert words(verdict) <= 45
    if verdict.line:
        wrong = {
            line.partition("  # ")[0].strip() for line in edited_source(identifier).split("\n")
        }
        assert verdict.code.partition("  # ")[0] in wrong


def test_a_mistake_is_named_in_an_encoder_too():
    source = edited_source("scale_sqrt_d_out", causal=False)
    exec(source, scope := vars(torch) | vars(__import__("helpers.attention").attention))
    verdict = check_attention(scope["MultiHeadAttention"], causal=False)
    assert verdict.mistake == "scale_sqrt_d_out", verdict


@every(
    "hides",
    ["masked = scores.where(seen, -torch.inf)", "masked = scores.masked_fill_(~seen, -1e9)"],
)
def test_no_hint_asks_for_a_mask_in_an_encoder(hides):
    seen = "seen = torch.ones(num_tokens, num_tokens).tril().bool()"
    line = next(line for line in edited_source().split("\n") if "masked_fill" in line)
    space = line[: len(line) - len(line.lstrip())]
    source = edited_source().replace(line, f"{space}{seen}\n{space}{hides}")
    typed(source, scope := dict(vars(__import__("helpers.attention").attention)))
    verdict = check_attention(scope["MultiHeadAttention"], causal=False)
    assert (verdict.step, verdict.hint) == (5, "Use `scores` here."), verdict


@every("name", [name for name, task in TASKS.items() if isinstance(task, Write)])
def test_exercises_speak_of_mistakes_that_there_are(name):
    named = {slip.mistake for slip in TASKS[name].slips} - {None}
    assert named <= MISTAKES.keys() | CHANGE_MISTAKES.keys()


# Since the lecture


@every("change", dict.fromkeys(mistake.change for mistake in CHANGE_MISTAKES.values()))
def test_each_mistake_of_a_change_is_another_class_and_right_before_its_step(change):
    cases = [c for t in TASKS.values() for c in getattr(t, "cases", ()) if c.change == change]
    right = run_reference(cases[0])
    assert change in PARTS and not right.failure and list(right.steps) == list(STEPS)
    for name, mistake in CHANGE_MISTAKES.items():
        if mistake.change == change:
            wrong = run_reference(cases[0], name)
            before = STEPS[: min(*mistake.steps, 5) - 1]  # a scale acts on scores
            assert wrong.failure or all(equal(wrong.steps[s], right.steps[s]) for s in before), name
            assert any(run_reference(c, name).failure or not same_out(c, name) for c in cases), name


def same_out(case, name):
    return equal(run_reference(case).steps, run_reference(case, name).steps)


# What they are made of


@every(("lines", "mistakes"), [(LINES, MISTAKES), (OTHER_LINES, CHANGE_MISTAKES)])
def test_every_named_line_is_used_and_every_edit_fits(lines, mistakes):
    text = str([*mistakes.values()])
    assert all(name in text or lines[name] in text for name in lines)
    for name in mistakes:
        edits, shown = edits_of(name), show_lines(name)
        assert all(new != old for old, new in edits.items()), name
        assert attempt(edited_source, name) != edited_source() and "+ " in shown, name
