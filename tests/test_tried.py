"""check_attention: a cause is said only after it was tried, of classes that nobody listed."""

import pytest
import torch
from attention_variants import Base, causal, softmax
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from eleven_steps.checks import check_attention

pytestmark = pytest.mark.usefixtures("one_thread")


def weighing(weigh):
    """An attend with other weights."""
    return {"attend": lambda self, q, k, v: self.drop(weigh(self, q, k)) @ v}


def scoring(score):
    """An attend with other masked scores."""
    return weighing(lambda self, q, k: softmax(score(self, q, k)).to(q.dtype))


def mixing(mix):
    """An attend with another context."""
    return {"attend": lambda self, q, k, v: mix(self.drop(softmax(causal(self, q, k))), v)}


def merging(merge):
    return {"merge": lambda self, y: Base.merge(self, merge(y))}


def swapped(self, y):
    b, h, n, d = y.shape
    return y.transpose(0, 1).reshape(b, h, n, d).transpose(1, 2).reshape(b, n, h * d)


def after_dropout(self, q, k, v):
    weights = self.drop(softmax(causal(self, q, k)))
    return weights / (weights.sum(-1, keepdim=True) + 1e-9) @ v


def ending(most):
    return lambda self, scores: Base.hide(self, scores) if scores.size(-1) <= most else scores


def near(self, scores):
    far = torch.ones_like(scores, dtype=torch.bool).tril(-32)
    return Base.hide(self, scores).masked_fill(far, -torch.inf)


def coarse(self, scores):
    coarse = scores.dtype == torch.bfloat16
    return scores if coarse else Base.hide(self, scores)


def only_without_dropout(self, scores):
    return scores if self.drop.p else Base.hide(self, scores)


def sdpa_of_hidden(self, q, k, v):
    hidden = self.below[0, 0, : q.size(2), : q.size(2)] == 0
    return F.scaled_dot_product_attention(q, k, v, hidden, self.drop.p * self.training)


def off_in_eval(self, q, k, v):
    self.drop.p *= self.training
    return Base.attend(self, q, k, v)


def rolled(which):
    def split_and_rolled(s, x):
        q, k, v = (s.split(each) for each in s.project(x))
        q, k, v = (
            t.roll(1, 2) if name == which else t for t, name in zip((q, k, v), "qkv", strict=True)
        )
        return s.out_proj(s.merge(s.attend(q, k, v)))

    return {"forward": split_and_rolled}


def even(weights):
    return weights.mean(1, keepdim=True).expand_as(weights)


def undropped(self, q, k):
    return softmax(causal(self, q, k))


def in_chunks(self, q, k, v):
    pieces = zip(*(each.split(4, dim=2) for each in (q, k, v)), strict=True)
    return torch.cat([Base.attend(self, *piece) for piece in pieces], dim=2)


def tokens_first(self, x):
    v = self.W_value(x)
    return self.W_query(x), self.W_key(x), v.reshape(x.size(1), len(x), -1).transpose(0, 1)


def without_bias(self, x):
    return F.linear(x, self.W_query.weight), self.W_key(x), self.W_value(x)


def packed_otherwise(self, x):
    laid = torch.cat(Base.project(self, x), -1).unflatten(-1, (self.n_head, 3, -1))
    return (each.flatten(-2) for each in laid.unbind(-2))


def padded(self, x):
    self.filled = (x == 0).all(-1)[:, None, None]
    return Base.forward(self, x)


def hidden_too(self, scores):
    diagonal = torch.eye(scores.size(-1), dtype=torch.bool, device=scores.device)
    return Base.hide(self, scores).masked_fill(self.filled & ~diagonal, -torch.inf)


def forgetting(self, x):
    return checkpoint(Base.forward, self, x, use_reentrant=False, preserve_rng_state=False)


def averaging(self, q, k, v):
    mean = vars(self).setdefault("mean", torch.zeros(()))
    if self.training:
        self.mean = 0.9 * mean + 0.1 * k.detach().mean()
    return Base.attend(self, q, k * (1 + mean), v)


# What is said of them is what was tried.
SAID = [
    (5, "The queries of the tokens have changed places", rolled("q")),
    (5, "The keys of the tokens have changed places", rolled("k")),
    (8, "The values of the tokens have changed places", rolled("v")),
    (5, "serve other sequences too", scoring(lambda s, q, k: causal(s, q, k[:1] + 0 * k))),
    (5, "meet the keys of another head", scoring(lambda s, q, k: causal(s, q, k.flip(1)))),
    (8, "meet the values of another head", mixing(lambda weights, v: weights @ v.flip(1))),
    (6, "keeps where True", {"attend": sdpa_of_hidden}),
    (6, "In a text of 1100 tokens they see their future", {"hide": ending(512)}),
    (6, "up to token 31, counted from 0", {"hide": near}),
    (6, "In bfloat16 the output is another one", {"hide": coarse}),
    (6, "With dropout above 0 tokens see their future", {"hide": only_without_dropout}),
    (6, "comes after the softmax", weighing(lambda s, q, k: s.hide(softmax(q @ k.mT / 8**0.5)))),
    (7, "rounded to torch.float16", scoring(lambda s, q, k: causal(s, q, k).half())),
    (7, "runs over the heads", weighing(lambda s, q, k: causal(s, q, k).clamp(-1e9).softmax(1))),
    (7, "goes through a sigmoid", weighing(lambda s, q, k: s.hide(q @ k.mT).sigmoid())),
    (7, "divided by its sum again", {"attend": after_dropout}),
    (7, "after one call in eval mode it drops none", {"attend": off_in_eval}),
    (8, "`layer_norm(context", merging(lambda y: F.layer_norm(y, y.shape[-1:]))),
    (8, "`context.cumsum(1)`", merging(lambda y: y.cumsum(1))),
    (8, "`weights.mean(1", weighing(lambda s, q, k: even(softmax(causal(s, q, k))))),
    (7, "sums to 0.99", weighing(lambda s, q, k: softmax(causal(s, q, k)) * 0.999)),
    (5, "`keys.sum(1)`", scoring(lambda s, q, k: causal(s, q, k.sum(1, True).expand_as(k)))),
    (5, "`queries.relu()`", scoring(lambda s, q, k: causal(s, q.relu(), k))),
    (5, "some pairs of a query and a key have none", {"attend": in_chunks}),
    (3, "get into other sequences", {"project": tokens_first}),
    (2, "It is right where qkv_bias is False", {"project": without_bias}),
    (2, "meet in the scores", {"project": packed_otherwise}),
    (2, "What comes out is (4, 6, 40) there", {"forward": lambda s, x: Base.forward(s, x[:, 1:])}),
    (6, "Where a row of x is all 0", {"forward": padded, "hide": hidden_too}),
    (7, "Dropout hits the values", {"attend": lambda s, q, k, v: undropped(s, q, k) @ s.drop(v)}),
    (7, "what the scores are made", {"attend": lambda s, q, k, v: undropped(s, s.drop(q), k) @ v}),
    (7, "other dropped weights than the output", {"forward": forgetting}),
    (None, "After two calls in training mode", {"attend": averaging}),
    (8, "`queries` is added", {"attend": lambda s, q, k, v: q + Base.attend(s, q, k, v)}),
    (9, "the context of other sequences", {"merge": swapped}),
    (10, "side by side as 4, 3, 2, 1, 0", merging(lambda y: y.flip(1))),
    (10, "The heads are averaged", merging(lambda y: y.mean(1, True).expand_as(y))),
    (10, "Only 4 of 5 heads", merging(lambda y: F.pad(y[:, :-1], (0, 0, 0, 0, 0, 1)))),
    (6, "keeps it as `self.n_head`", scoring(lambda s, q, k: causal(s, q, k) * n_head)),  # noqa: F821
]  # fmt: skip


@pytest.mark.parametrize(("step", "said", "parts"), SAID, ids=[said for _, said, _ in SAID])
def test_what_is_said_of_it_was_tried(step, said, parts):
    verdict = check_attention(type("Wrong", (Base,), parts))
    assert verdict.step == step and said in verdict.message, verdict


def test_what_is_compiled_or_slow_in_long_texts_is_right():
    def compiled(self, q, k, v):
        return torch.compile(Base.attend, backend="eager")(self, q, k, v)

    assert check_attention(type("Right", (Base,), {"attend": compiled})).passed
