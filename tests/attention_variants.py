"""Attention classes for trying out check_attention.

RIGHT are right classes written in other ways; said/classes.toml holds more, and wrong ones, as
parts of Base.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

from helpers.attention import MultiHeadAttention

CLASS = """class Mine(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(1).bool())

    def forward(self, x):
        b, num_tokens, d_in = x.shape
        split = b, num_tokens, self.num_heads, self.head_dim
        queries = self.W_query(x).view(split).transpose(1, 2)
        keys = self.W_key(x).view(split).transpose(1, 2)
        values = self.W_value(x).view(split).transpose(1, 2)
        scores = queries @ keys.transpose(2, 3)
        hidden = self.mask[:num_tokens, :num_tokens]
        scores = scores.masked_fill(hidden, -torch.inf) / self.head_dim**0.5
        weights = scores.softmax(-1)
        weights = self.dropout(weights)
        context = (weights @ values).transpose(1, 2).reshape(b, num_tokens, -1)
        out = self.out_proj(context)
        return out
"""


class Base(nn.Module):
    """A right class in parts, for others to replace."""

    def __init__(self, d_in, d_out, block_size, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.n_head, self.n_embd = num_heads, d_out
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.drop = nn.Dropout(dropout)
        self.make_mask(block_size)

    def make_mask(self, block_size):
        below = torch.tril(torch.ones(block_size, block_size))
        self.register_buffer("below", below.view(1, 1, block_size, block_size), persistent=False)

    def project(self, x):
        return self.W_query(x), self.W_key(x), self.W_value(x)

    def split(self, x):
        return x.view(*x.shape[:2], self.n_head, -1).transpose(1, 2)

    def hide(self, scores):
        n = scores.size(-1)
        return scores.masked_fill(self.below[:, :, :n, :n] == 0, float("-inf"))

    def attend(self, q, k, v):
        scores = self.hide(q @ k.transpose(-2, -1) / math.sqrt(k.size(-1)))
        return self.drop(F.softmax(scores, dim=-1)) @ v

    def merge(self, y):
        return y.transpose(1, 2).reshape(y.size(0), -1, self.n_embd)

    def forward(self, x):
        q, k, v = (self.split(each) for each in self.project(x))
        return self.out_proj(self.merge(self.attend(q, k, v)))


def softmax(scores):
    return scores.softmax(-1)


def causal(self, q, k):
    return self.hide(q @ k.mT / math.sqrt(k.size(-1)))


class Sdpa(Base):
    def attend(self, q, k, v):
        p = self.drop.p if self.training else 0.0
        return F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)


class LoopOverHeads(Base):
    def attend(self, q, k, v):
        heads = [Base.attend(self, *(e[:, h, None] for e in (q, k, v))) for h in range(q.size(1))]
        return torch.cat(heads, dim=1)


class LoopOverTokens(Base):
    def attend(self, q, k, v):
        rows = []
        for i in range(q.size(2)):
            scores = (q[:, :, i, None] * k[:, :, : i + 1]).sum(-1) / q.size(-1) ** 0.5
            weights = self.drop(scores.softmax(-1))
            rows.append((weights[..., None] * v[:, :, : i + 1]).sum(2))
        return torch.stack(rows, dim=2)


class FoldedHeads(Base):
    def attend(self, q, k, v):
        b, h, n, d = q.shape
        q, k, v = (each.reshape(b * h, n, d) for each in (q, k, v))
        scores = torch.baddbmm(q.new_zeros(b * h, n, n), q, k.mT, beta=0, alpha=d**-0.5)
        weights = self.drop(torch.softmax(self.hide(scores)[0], dim=2))
        return torch.bmm(weights, v).view(b, h, n, d)


class LazyMask(Base):
    def make_mask(self, block_size):
        self.cached = None

    def hide(self, scores):
        n = scores.size(-1)
        if self.cached is None or len(self.cached) < n or self.cached.device != scores.device:
            self.cached = torch.ones(n, n, device=scores.device).triu(1).bool()
        return scores.masked_fill(self.cached[:n, :n], -torch.inf)


class DropoutByHand(Base):
    def attend(self, q, k, v):
        weights = self.hide(q @ k.mT / k.size(-1) ** 0.5).softmax(-1)
        if self.training and self.drop.p:
            keep = torch.rand_like(weights) >= self.drop.p
            weights = weights * keep / (1 - self.drop.p)
        return weights @ v


class Talkative(Base):
    def __init__(self, *args, qkv_bias=False, verbose=True, **extras):
        super().__init__(*args, qkv_bias=qkv_bias)
        self.seen = []
        print("made", self.n_head, "heads")

    def forward(self, x, mask=None, need_weights=False):
        self.seen.append(tuple(x.shape))
        print(x)
        return super().forward(x)


class Ours(MultiHeadAttention):
    def forward(self, x):
        return super().forward(x)


RIGHT = [MultiHeadAttention, Base, Ours, Sdpa]
RIGHT += [LoopOverHeads, LoopOverTokens, FoldedHeads, LazyMask, DropoutByHand, Talkative]


# Parts of Base written otherwise: type("Mine", (Base,), parts)


def layers(self):
    return self.W_query, self.W_key, self.W_value


def projecting(project):
    return {"project": project}


def weighing(weigh):
    """An attend with other weights."""
    return {"attend": lambda self, q, k, v: self.drop(weigh(self, q, k)) @ v}


def mixing(mix):
    """An attend with another context."""
    return {"attend": lambda self, q, k, v: mix(self.drop(softmax(causal(self, q, k))), v)}


def hiding(hide):
    """A mask of ones and zeros, and what is made of scores with it."""
    return {"hide": lambda self, scores: hide(scores, torch.ones_like(scores[0, 0]).tril())}


def built(change):
    """A constructor after which something is changed."""

    def __init__(self, d_in, d_out, block_size, dropout, num_heads, qkv_bias=False):
        Base.__init__(self, d_in, d_out, block_size, dropout, num_heads, qkv_bias)
        change(self, dropout)

    return {"__init__": __init__}
