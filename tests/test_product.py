"""Every mistake of the catalogue in every change since the lecture, and in every two of them."""

# ruff: noqa: F403, F405 - what the catalogue makes

import dataclasses
import itertools
import re

import pytest
import since_classes as learners
import torch

from eleven_steps.checks.know.catalogue import *
from eleven_steps.checks.know.right import planted, play
from eleven_steps.checks.run.ask import Pass, run
from eleven_steps.checks.run.cases import cases_of, close
from eleven_steps.checks.run.contract import signature
from eleven_steps.checks.run.isolate import Failure, attempt
from eleven_steps.checks.run.making import facts
from eleven_steps.checks.run.variant import LECTURE, VARIANTS, Variant
from helpers.attention import MultiHeadAttention
from helpers.trace import STEPS

every = pytest.mark.parametrize


def together(*changes):
    """The name of a variant, or nothing where its changes do not go together."""
    try:
        return str(Variant.of(",".join(changes)))
    except ValueError:
        return ""


PAIRS = dict.fromkeys(together(*pair) for pair in itertools.combinations(VARIANTS, 2))
PAIRS = [pair for pair in PAIRS if "," in pair]


def looks(cls, variant):
    """One look at a class after the other: the first that differs from the right one's will do."""
    cases = cases_of(variant)
    for case in cases.every:
        yield lambda case=case: run(cls, case, 0.0, [Pass()])
        if case is cases.main:
            yield lambda: run(cls, cases.biased, 0.0, [Pass(gradients=True)])
            yield lambda: run(cls, cases.main, 0.5, [Pass(train=True, seed=1), Pass()])
            yield lambda: run(cls, cases.main, 0.0, [Pass(100 * cases.main.x)])
            yield lambda: run(cls, cases.main, 0.0, [Pass(moved="here")])
            yield lambda: facts(cls, None, variant)


def alike(one, other):
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return close(one.float(), other.float())
    if type(one) is not type(other):
        return False
    if dataclasses.is_dataclass(one) and not isinstance(one, Failure):
        one, other = vars(one), vars(other)
    if isinstance(one, dict):
        one, other = [*one.values()], [*other.values()]
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    return one == other


PUSH = ["gqa", "linear"]  # other layers, and no softmax
NIGHT = [each for each in (*VARIANTS, *PAIRS) if each not in PUSH]


@every("variant", [*PUSH, *(pytest.param(each, marks=pytest.mark.nightly) for each in NIGHT)])
def test_each_mistake_is_another_class_in_a_variant_or_says_why_it_is_none(variant):
    variant = Variant.of(variant)
    right = [attempt(look) for look in looks(planted(variant=variant), variant)]
    scene = play(cases_of(variant).main)
    assert not scene.failure and list(scene.steps) == list(STEPS)
    for name, mistake in (MISTAKES | VARIANT_MISTAKES).items():
        reason = cannot(name, variant)
        assert (name in mistakes_of(variant)) is not bool(reason)
        if reason:
            with pytest.raises(ValueError, match=re.escape(f"{str(variant)!r}: {reason}")):
                wrong_class(name, variant=str(variant))
            continue
        cls = wrong_class(name, variant=str(variant))
        seen = (attempt(look) for look in looks(cls, variant))
        assert not all(map(alike, seen, right)), f"{name} changes nothing in {variant}"
        wrong = play(cases_of(variant).main, name)
        before = STEPS[: min(*mistake.steps, 5) - 1]  # a scale acts on scores where alibi undoes it
        assert wrong.failure or all(alike(wrong.steps[s], scene.steps[s]) for s in before), name


def test_no_two_mistakes_are_the_same_class():
    made = {"right": wrong_class()} | {name: wrong_class(name) for name in MISTAKES}
    seen = {name: [*map(attempt, looks(cls, LECTURE))] for name, cls in made.items()}
    assert all(map(alike, map(attempt, looks(MultiHeadAttention, LECTURE)), seen["right"]))
    for one, other in itertools.combinations(seen, 2):
        assert not all(map(alike, seen[one], seen[other])), f"{one} and {other} come to the same"


# The lecture's mistakes as learners write them, each in a base class, beside changes since.
OUTSIDE = {  # around what the changes do, the others below
    "keys_for_values": {"attend": lambda s, q, k, v: super(s.slip, s).attend(q, k, k)},
    "values_added": {"attend": lambda s, q, k, v: super(s.slip, s).attend(q, k, v) + v},
    "softmax_twice": {"weigh": lambda s, scores: super(s.slip, s).weigh(scores).softmax(-1)},
}
INSIDE = {
    "view_straight": {"split": lambda s, t: t.reshape(len(t), -1, t.shape[1], s.width)},
    "head_dim_before_heads": {
        "split": lambda s, t: t.unflatten(-1, (s.width, -1)).permute(0, 3, 1, 2)
    },
    "no_scale": {"scores": lambda s, q, k: q @ k.mT},
    "scale_head_dim": {"scores": lambda s, q, k: q @ k.mT / k.shape[-1]},
    "mask_off_by_one": {
        "hidden": lambda s, t: torch.ones(t.shape[2:]).triu(t.shape[3] - t.shape[2] + 2) > 0
    },
}
WRITTEN = ["Rope", "Alibi", "Cap", "Full", "Window", "Padding", "Sinks", "Gate", "Cache"]
WRITTEN += ["Gqa", "GqaRope", "GqaFull", "GqaSinks", "GqaPadding", "RopeNorm", "RopeWindow"]
WRITTEN += ["RopeFull", "SinksWindow", "PaddingFull", "GateRope", "RopeCap"]


def written(changes, mistake=""):
    """A learner's class with some changes, and with a slip."""
    bases = [getattr(learners, f"Plain{name}") for name in changes]
    slip = type("Slip", (learners.Plain,), OUTSIDE.get(mistake) or INSIDE.get(mistake) or {})
    slip.slip = slip
    return type("Learners", (slip, *bases) if mistake in OUTSIDE else (*bases, slip), {})


@every("name", WRITTEN)
def test_what_is_planted_is_what_a_learner_would_write(name):
    changes = re.findall("[A-Z][a-z]+", name)
    variant = Variant.of(",".join(changes).lower())
    for case in (cases_of(variant).main, cases_of(variant).every[3]):
        assert close(run(written(changes), case, 0.0, [Pass()])[0].out, play(case).out)
        for mistake in (*OUTSIDE, *INSIDE):
            if not cannot(mistake, variant):
                out = run(written(changes, mistake), case, 0.0, [Pass()])[0].out
                assert close(out, play(case, mistake).out), mistake


@every("name", [name for name in VARIANTS if "," in together(name, "cache")])
def test_pieces_through_a_cache_are_the_whole(name):
    whole, pieces = (cases_of(Variant.of(f"{name},{more}")).main for more in ("rope", "cache"))
    assert close(play(whole).out, play(pieces).out)


def test_changes_are_combined_in_any_order():
    assert Variant.of("rope, gqa") == Variant.of("gqa,rope") == Variant(("gqa", "rope"))
    assert str(Variant.of("window,cache,rope")) == "window,cache"  # a cache keeps what was turned
    assert signature(Variant.of("topk,gqa")).endswith(
        "False, num_kv_heads, top_keys, index_heads, index_dim"
    )


def test_mistakes_of_two_changes_plant_in_both():
    assert issubclass(wrong_class("kv_heads_tiled", "rope_other_pairing"), torch.nn.Module)
    with pytest.raises(
        ValueError, match="window_one_long cannot be made in variant 'gqa': it is a"
    ):
        wrong_class("window_one_long", variant="gqa")
