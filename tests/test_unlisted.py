"""check_attention: right classes, mistakes that nobody listed, and what is said of others."""

import pytest
import torch
from attention_variants import RIGHT, Base, LoopOverHeads, Sdpa, causal, softmax
from said import as_read
from torch import nn
from torch.nn import functional as F

from eleven_steps.checks import check_attention
from eleven_steps.checks.judge.say import Outcome

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("cls", RIGHT, ids=lambda cls: cls.__name__)
def test_right_classes_pass_and_one_that_makes_its_mask_on_the_cpu_with_a_remark(cls):
    verdict = check_attention(cls)
    assert verdict.passed, verdict
    assert (verdict.step, verdict.mistakes) == (None, ())
    assert ("GPU" in verdict.message) == (cls.__name__ == "MaskOnTheCpu")


def weighing(weigh):
    """An attend with other weights."""
    return {"attend": lambda self, q, k, v: self.drop(weigh(self, q, k)) @ v}


def mixing(mix):
    """An attend with another context."""
    return {"attend": lambda self, q, k, v: mix(self.drop(softmax(causal(self, q, k))), v)}


def projecting(project):
    return {"project": project}


def hiding(hide):
    return {"hide": lambda self, scores: hide(scores, torch.ones_like(scores[0, 0]).tril())}


def one_head_twice(self, x):
    y = Base.split(self, x)
    return y[:, :1].expand_as(y)


# Where nobody listed the mistake, the step has to follow from the probes.
UNLISTED = [
    (2, Base, projecting(lambda s, x: (s.W_query(x).relu(), s.W_key(x), s.W_value(x)))),
    (2, Base, projecting(lambda s, x: (s.W_query(x), s.W_key(x).tanh(), s.W_value(x)))),
    (2, Base, projecting(lambda s, x: (s.W_query(x), s.W_key(x), F.gelu(s.W_value(x))))),
    (2, Base, projecting(lambda s, x: Base.project(s, F.layer_norm(x, x.shape[-1:])))),
    (2, Base, projecting(lambda s, x: (s.W_query(x), s.W_key(x.roll(1, 1)), s.W_value(x)))),
    (2, Base, projecting(lambda s, x: (s.W_value(x), s.W_query(x), s.W_key(x)))),
    (2, Sdpa, projecting(lambda s, x: (s.W_query(x), s.W_key(x), s.W_query(x) + s.W_value(x)))),
    (3, Base, {"split": lambda s, x: Base.split(s, x.unflatten(2, (-1, s.n_head)).mT.flatten(2))}),
    (3, Base, {"split": one_head_twice}),
    (5, Base, weighing(lambda s, q, k: softmax(s.hide((q @ k.mT).abs() / k.size(-1) ** 0.5)))),
    (5, Base, weighing(lambda s, q, k: softmax(s.hide(-(torch.cdist(q, k) ** 2) / 2)))),
    (5, Base, weighing(lambda s, q, k: softmax(causal(s, q[..., :-1], k[..., :-1])))),
    (5, Base, weighing(lambda s, q, k: softmax(causal(s, q.sum(1, keepdim=True), k)))),
    (6, Base, hiding(lambda scores, keep: scores.masked_fill(keep == 0, -3.0))),
    (6, Base, hiding(lambda scores, keep: scores.masked_fill(keep == 0, 1e-6))),
    (6, Base, hiding(lambda scores, keep: scores.masked_fill(keep.tril(-1) > 0, -torch.inf))),
    (6, Base, hiding(lambda scores, keep: scores.masked_fill(keep.triu(-2) == 0, -torch.inf))),
    (6, Base, hiding(lambda scores, keep: scores * keep)),
    (6, Base, hiding(lambda scores, keep: scores.masked_fill(keep == 0, -90.0))),
    (6, LoopOverHeads, hiding(lambda scores, keep: scores.masked_fill(keep > 0, -1e9))),
    (7, Base, weighing(lambda s, q, k: softmax(causal(s, q, k) * 1.1))),
    (7, Base, weighing(lambda s, q, k: softmax(s.hide(q @ k.mT / k.size(-1) ** (1 / 3))))),
    (7, Base, weighing(lambda s, q, k: 2 * softmax(causal(s, q, k)))),
    (7, Base, weighing(lambda s, q, k: F.normalize(softmax(causal(s, q, k)), dim=-1))),
    (7, Base, weighing(lambda s, q, k: causal(s, q, k).relu().nan_to_num())),
    (7, Base, weighing(lambda s, q, k: F.one_hot(causal(s, q, k).argmax(-1), q.size(2)).float())),
    (8, Base, mixing(lambda weights, v: weights @ v.cumsum(2))),
    (8, Base, mixing(lambda weights, v: weights @ v - v)),
    (8, Base, mixing(lambda weights, v: weights.roll(1, 1) @ v)),
    (8, Base, mixing(lambda weights, v: torch.tanh(weights @ v))),
    (9, Base, {"merge": lambda s, y: y.permute(2, 0, 1, 3).reshape(len(y), -1, s.n_embd)}),
    (9, Base, {"merge": lambda s, y: y.reshape(len(y), -1, s.n_embd)}),
    (10, Base, {"merge": lambda s, y: Base.merge(s, y.flip(1))}),
    (10, Base, {"merge": lambda s, y: y.mean(1).repeat(1, 1, s.n_head)}),
    (10, Sdpa, {"merge": lambda s, y: F.pad(y[:, 0], (0, s.n_embd - y.size(-1)))}),
    (11, Base, {"forward": lambda s, x: Base.forward(s, x).relu()}),
    (11, Base, {"forward": lambda s, x: F.layer_norm(Base.forward(s, x), (s.n_embd,))}),
    (11, Base, {"forward": lambda s, x: Base.forward(s, x) + s.out_proj.bias}),
    (11, Base, {"forward": lambda s, x: Base.forward(s, x) / s.n_head}),
    (11, Base, {"forward": lambda s, x: Base.forward(s, x).double()}),
    (11, Base, {"forward": lambda s, x: Base.forward(s, x).unsqueeze(0)}),
    (11, Base, {"forward": lambda s, x: {"out": Base.forward(s, x)}}),
]


def test_a_mistake_that_nobody_listed_is_put_at_its_step():
    verdicts = [check_attention(type("Wrong", (base,), parts)) for _, base, parts in UNLISTED]
    assert [verdict.step for verdict in verdicts] == [step for step, *_ in UNLISTED]
    said = {f"{index}, step {v.step}": v.message for index, v in enumerate(verdicts)}
    assert said == as_read("unlisted", said)


# Dropout gone wrong in ways that a plain forward pass never shows.
DROPOUTS = {
    "dropped twice": nn.Sequential,
    "whole heads": nn.Dropout2d,
    "other values than 0": nn.AlphaDropout,
}


@pytest.mark.parametrize("kind", DROPOUTS)
def test_dropout_of_another_kind_is_step_7(kind):
    class Wrong(Base):
        def __init__(self, d_in, d_out, block_size, dropout, num_heads, qkv_bias=False):
            super().__init__(d_in, d_out, block_size, dropout, num_heads, qkv_bias)
            made = DROPOUTS[kind]
            twice = made is nn.Sequential
            self.drop = made(self.drop, self.drop) if twice else made(dropout)

    verdict = check_attention(Wrong)
    assert (verdict.passed, verdict.step) == (False, 7), verdict


def keep_always(seed):
    def attend(self, q, k, v):
        weights = softmax(causal(self, q, k))
        if self.training:
            shape = weights.shape if seed is not None else (1, 1, *weights.shape[2:])
            source = None if seed is None else torch.Generator().manual_seed(seed)
            keep = torch.rand(shape, generator=source) >= self.drop.p
            weights = weights * keep / (1 - self.drop.p)
        return weights @ v

    return attend


@pytest.mark.parametrize("seed", [None, 5])
def test_dropout_that_is_shared_or_fixed_is_step_7(seed):
    verdict = check_attention(type("Wrong", (Base,), {"attend": keep_always(seed)}))
    assert (verdict.passed, verdict.step) == (False, 7), verdict
    assert "the same weights" in verdict.message


def test_weights_shrunk_in_eval_mode_are_step_7():
    def attend(self, q, k, v):
        weights = softmax(causal(self, q, k))
        return (self.drop(weights) if self.training else weights * (1 - self.drop.p)) @ v

    verdict = check_attention(type("Wrong", (Base,), {"attend": attend}))
    assert (verdict.passed, verdict.step) == (False, 7)


def test_a_mask_left_out_in_training_is_found():
    class Wrong(Base):
        def hide(self, scores):
            return scores if self.training else super().hide(scores)

    assert check_attention(Wrong).step == 6


def test_an_error_is_told_with_its_line():
    class Wrong(Base):
        def hide(self, scores):
            return scores.masked_fill(self.belov == 0, -torch.inf)

    verdict = check_attention(Wrong)
    assert verdict.message == (
        "Step 6 (mask): forward reads `self.belov`, in the line `return scores.masked_fill("
        "self.belov == 0, -torch.inf)`, and the constructor never sets it. Is `self.below` meant?"
    )


@pytest.mark.parametrize(
    ("renamed", "step"), [({"W_query", "W_key"}, 2), ({"W_value"}, 2), ({"out_proj"}, 11)]
)
def test_missing_names_are_asked_for(renamed, step):
    class Wrong(Base):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            for name in renamed:
                setattr(self, name + "_", getattr(self, name))
                delattr(self, name)

    verdict = check_attention(Wrong)
    assert (verdict.passed, verdict.step) == (False, step)
    assert "W_query, W_key, W_value and out_proj" in verdict.message
    assert all(f"{name}_.weight" in verdict.message for name in renamed)


def test_the_first_step_is_found_where_out_proj_is_not_there():
    class Wrong(Base):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            del self.out_proj

        def forward(self, x):
            q, k, v = (self.split(each) for each in self.project(x))
            return self.merge(self.attend(q * 2, k, v))

    verdict = check_attention(Wrong)
    assert verdict.step == 5
    assert "Step 11 (out_proj)" in verdict.message


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        (None, "hand over a class"),
        (print, "hand over a class"),
        (Base(4, 4, 4, 0.0, 2), "hand over the class itself"),
        (dict, "class dict(nn.Module):"),
        (nn.Linear, "cannot be built from our sizes"),
    ],
)
def test_what_is_no_attention_class_is_answered_politely(thing, words):
    verdict = check_attention(thing)
    assert not verdict.passed
    assert words in verdict.message


def test_a_verdict_is_shown_as_a_box_and_as_text():
    verdict = check_attention(type("Wrong", (Base,), UNLISTED[21][2]))
    bundle = verdict._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    assert bundle["text/plain"].startswith("not yet: Step 7 (softmax):")
    assert "var(--jp-" in bundle["text/html"]
    assert 'aria-label="Verdict: not yet"' in bundle["text/html"]
    assert bundle == check_attention(type("Wrong", (Base,), UNLISTED[21][2]))._repr_mimebundle_()


def test_a_message_is_no_markup():
    verdict = Outcome("", "value", "a < b in `x & y`", 2)
    assert "a &lt; b in <code>x &amp; y</code>" in verdict.display
