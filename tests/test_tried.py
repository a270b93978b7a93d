"""check_attention: a cause is said only after it was tried, of classes that nobody listed."""

import pytest
import torch
from attention_variants import Base, causal, softmax
from said import as_read
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


def root(k):
    return k.size(-1) ** 0.5


def summed(k):
    return k.sum(1, True).expand_as(k)


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


WRONG = [
    (5, "queries of tokens rolled", rolled("q")),
    (5, "keys of tokens rolled", rolled("k")),
    (8, "values of tokens rolled", rolled("v")),
    (5, "keys of the first sequence", scoring(lambda s, q, k: causal(s, q, k[:1] + 0 * k))),
    (5, "keys of another head", scoring(lambda s, q, k: causal(s, q, k.flip(1)))),
    (8, "values of another head", mixing(lambda weights, v: weights @ v.flip(1))),
    (6, "sdpa with a mask of what is hidden", {"attend": sdpa_of_hidden}),
    (6, "no mask in long texts", {"hide": ending(512)}),
    (6, "a window of 32", {"hide": near}),
    (6, "no mask in bfloat16", {"hide": coarse}),
    (6, "no mask with dropout", {"hide": only_without_dropout}),
    (6, "mask after softmax", weighing(lambda s, q, k: s.hide(softmax(q @ k.mT / root(k))))),
    (7, "scores in float16", scoring(lambda s, q, k: causal(s, q, k).half())),
    (7, "softmax over the heads", weighing(lambda s, q, k: causal(s, q, k).clamp(-1e9).softmax(1))),
    (7, "sigmoid", weighing(lambda s, q, k: s.hide(q @ k.mT).sigmoid())),
    (7, "divided by the sum after dropout", {"attend": after_dropout}),
    (7, "dropout off for good after eval", {"attend": off_in_eval}),
    (8, "layer_norm of context", merging(lambda y: F.layer_norm(y, y.shape[-1:]))),
    (8, "cumsum over the heads", merging(lambda y: y.cumsum(1))),
    (8, "mean of the weights over heads", weighing(lambda s, q, k: even(softmax(causal(s, q, k))))),
    (7, "weights times 0.999", weighing(lambda s, q, k: softmax(causal(s, q, k)) * 0.999)),
    (5, "sum of the keys over heads", scoring(lambda s, q, k: causal(s, q, summed(k)))),
    (5, "relu of queries", scoring(lambda s, q, k: causal(s, q.relu(), k))),
    (5, "in chunks", {"attend": in_chunks}),
    (3, "values laid out tokens first", {"project": tokens_first}),
    (2, "no bias of queries", {"project": without_bias}),
    (2, "packed otherwise", {"project": packed_otherwise}),
    (2, "first token left out", {"forward": lambda s, x: Base.forward(s, x[:, 1:])}),
    (6, "rows of 0 as padding", {"forward": padded, "hide": hidden_too}),
    (7, "dropout of values", {"attend": lambda s, q, k, v: undropped(s, q, k) @ s.drop(v)}),
    (7, "dropout of queries", {"attend": lambda s, q, k, v: undropped(s, s.drop(q), k) @ v}),
    (7, "checkpoint without the random state", {"forward": forgetting}),
    (None, "a running mean", {"attend": averaging}),
    (8, "queries added", {"attend": lambda s, q, k, v: q + Base.attend(s, q, k, v)}),
    (9, "merged across sequences", {"merge": swapped}),
    (10, "heads in reverse", merging(lambda y: y.flip(1))),
    (10, "heads averaged", merging(lambda y: y.mean(1, True).expand_as(y))),
    (10, "last head left out", merging(lambda y: F.pad(y[:, :-1], (0, 0, 0, 0, 0, 1)))),
    (7, "n_head without self", scoring(lambda s, q, k: causal(s, q, k) * n_head)),  # noqa: F821
]  # fmt: skip


def test_what_is_said_of_it_was_tried():
    verdicts = {name: check_attention(type("Wrong", (Base,), parts)) for _, name, parts in WRONG}
    assert [(verdict.step, name) for name, verdict in verdicts.items()] == [
        (step, name) for step, name, _ in WRONG
    ]
    said = {name: verdict.message for name, verdict in verdicts.items()}
    assert said == as_read("tried", said)


def test_what_is_compiled_or_slow_in_long_texts_is_right():
    def compiled(self, q, k, v):
        return torch.compile(Base.attend, backend="eager")(self, q, k, v)

    assert check_attention(type("Right", (Base,), {"attend": compiled})).passed
