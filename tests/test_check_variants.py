"""check_attention on classes with a change since the lecture: right ones pass, slips are named."""

from sampled import sampled, whole
from since_classes import Plain, of_style, with_slip
from test_grade_parts import Elsewhere

from eleven_steps.checks import check_attention, wrong_class
from eleven_steps.checks.run.variant import VARIANTS


@sampled(("style", "variant"), [(style, each) for each in VARIANTS for style in ("Plain", "Fused")])
def test_a_right_class_passes_in_each_style(style, variant):
    verdict = check_attention(of_style(style)[variant], variant=variant)
    assert verdict.passed and verdict.message.endswith("agree."), verdict


def said(answer):
    """What is said of one of our classes with other lines."""
    name, _, edits = answer.partition(", ")
    variant = name.removeprefix("Plain").removeprefix("Fused").lower()
    verdict = check_attention(with_slip(name, eval(edits)), variant=variant)
    return f"{verdict.mistake}: {verdict.message}"


test_a_slip_in_a_learners_class_gets_its_message = whole("since", said)


def test_two_mistakes_are_told_apart():
    verdict = check_attention(wrong_class("kv_heads_tiled", "no_scale"), variant="gqa")
    assert verdict.mistakes == ("kv_heads_tiled", "no_scale"), verdict


@sampled("variant", ["gqa", "norm", "rope", "padding", "cache"])
def test_the_lectures_class_is_not_one_with_a_change(variant):
    assert not check_attention(Plain, variant=variant).passed


@sampled("variant", ["latent", "gate"])
def test_a_class_with_a_change_is_not_the_lectures(variant):
    assert not check_attention(of_style("Plain")[variant]).passed


def test_a_class_that_may_have_fewer_heads_of_keys_is_asked_with_as_many_and_with_fewer():
    assert "with fewer heads of keys" in check_attention(of_style("Plain")["gqa"]).note


@sampled("variant", ["other", "cache"])
def test_a_class_may_live_in_another_process(variant):
    assert check_attention(Elsewhere(of_style("Plain")[variant]), variant=variant).passed
