"""check_attention: a cause is said only after it was tried, of classes that nobody listed."""

import re

import torch
from attention_variants import Base, causal, mixing, softmax, weighing  # noqa: F401 - said/tried.toml
from said import typed
from sampled import whole
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from eleven_steps.checks import check_attention


def scoring(score):
    """An attend with other masked scores."""
    return weighing(lambda self, q, k: softmax(score(self, q, k)).to(q.dtype))


def root(k):
    return k.size(-1) ** 0.5


def summed(k):
    return k.sum(1, True).expand_as(k)


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


def in_pairs_of_heads(self, q, k, v):
    context = torch.zeros_like(q)
    for h in range(0, q.size(1) - 1, 2):
        context[:, h : h + 2] = F.scaled_dot_product_attention(
            *(each[:, h : h + 2] for each in (q, k, v)), is_causal=True
        )
    return context


def in_whole_chunks(self, q, k, v):
    size = min(128, q.size(2))
    context = Base.attend(self, q, k, v)
    context[:, :, q.size(2) // size * size :] = 0
    return context


def masked_with_grad(self, scores):
    return Base.hide(self, scores) if torch.is_grad_enabled() else scores


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


def said(parts):
    cls = type("Wrong", (Base,), typed(parts, {**globals()}, "eval"))
    return re.sub(r"Line \d\d+, ", "", check_attention(cls).message)  # this file's lines


test_what_is_said_of_it_was_tried = whole("tried", said)


def test_what_is_compiled_or_slow_in_long_texts_is_right():
    def compiled(self, q, k, v):
        return torch.compile(Base.attend, backend="eager")(self, q, k, v)

    assert check_attention(type("Right", (Base,), {"attend": compiled})).passed
