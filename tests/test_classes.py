"""check_attention: right classes pass; of wrong ones the whole message is read."""

import re
import warnings

import pytest
import torch
from attention_variants import *  # noqa: F403 - said/classes.toml names what is in it
from attention_variants import RIGHT, STYLES, Base, carrier, causal, softmax
from said import answers, typed
from sampled import sampled, whole

from eleven_steps.checks import check, check_attention
from eleven_steps.checks.know.catalogue import MISTAKES, edited_source
from eleven_steps.checks.know.right import play
from eleven_steps.checks.run.cases import MAIN

every = pytest.mark.parametrize


@sampled("cls", RIGHT, ids=lambda cls: cls.__name__)
def test_right_classes_pass(cls):
    verdict = check_attention(cls)
    assert verdict.passed, verdict
    assert (verdict.step, verdict.mistakes) == (None, ()) and "GPU" not in verdict.message


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


def said(cls):
    """What is said of a class, without the places of Base's lines in its file."""
    return re.sub(r"Line \d\d+, ", "", str(check_attention(cls)))


test_what_is_said_of_parts_of_a_class_is_what_was_read = whole(
    "classes", lambda answer: said(typed_class(answer))
)


WRONG = [answer for answer, told in answers("classes").items() if told.startswith("not yet")]


@every("source", WRONG[::12])
def test_the_exercise_passes_no_class_that_check_attention_objects_to(source):
    outcome = check("your_class.1", typed_class(source), record=False)
    assert not outcome.passed and "constructor is right" not in outcome.message, outcome


# Mistakes of the catalogue. Of each pair the second is two steps later or more, and does not hide
# the first.
PAIRS = [
    ("keys_and_values_swapped", "no_scale"),
    ("bias_not_added", "no_mask"),
    ("head_dim_before_heads", "out_proj_twice"),
    ("view_straight", "scale_sqrt_d_out"),
    ("mask_off_by_one", "heads_interleaved"),
    ("mask_not_registered", "dropout_on_context"),
    ("no_scale", "values_added"),
    ("scale_sqrt_d_out", "no_transpose_back"),
    ("dropout_in_eval", "out_proj_without_bias"),
    ("queries_detached", "scale_multiplied"),
]


def named(style, identifier):
    verdict = check_attention(carrier(style, identifier))
    assert not verdict.passed and verdict.message
    assert verdict.mistakes == (identifier,), verdict
    assert verdict.step == MISTAKES[identifier].step, verdict


@sampled("identifier", [*MISTAKES], each=3)
def test_every_known_mistake_is_named_in_classes_that_are_written_otherwise(identifier):
    named("functional", identifier)


@sampled("identifier", [*MISTAKES])
def test_every_known_mistake_is_named_where_other_functions_of_torch_do_it(identifier):
    wrong = set(edited_source(identifier).splitlines()) - set(edited_source().splitlines())
    its_own_line = any(plain in line for line in wrong for plain in STYLES["moved"])
    if its_own_line or play(MAIN, identifier).failure:
        named("moved", identifier)


@sampled("pair", PAIRS, each=4, ids="+".join)
def test_two_mistakes_are_both_named_the_first_first(pair):
    verdict = check_attention(carrier("functional", *pair))
    assert verdict.mistakes == pair, verdict
    assert verdict.step == MISTAKES[pair[0]].step
    assert verdict.message.startswith(f"Step {verdict.step} (")


def test_a_verdict_is_shown_as_a_box_and_as_text():
    wrong = {"attend": lambda s, q, k, v: s.drop(softmax(1.1 * causal(s, q, k))) @ v}
    verdicts = [check_attention(type("Wrong", (Base,), wrong)) for _ in range(2)]
    bundle, again = (verdict._repr_mimebundle_() for verdict in verdicts)
    assert set(bundle) == {"text/plain", "text/html"} and bundle == again
    assert bundle["text/plain"].startswith("not yet: Step 7 (softmax):")
    assert "var(--jp-" in bundle["text/html"]
    assert 'aria-label="Verdict: not yet"' in bundle["text/html"]
