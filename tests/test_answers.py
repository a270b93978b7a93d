"""Answers as learners type them, to every exercise: none is judged wrongly, whatever is said.

In said/answers.toml each has what is right to say of it: "right", the name of a mistake, or how
far a class in progress is; "wrong" where nothing but that is sure.
"""

# ruff: noqa: F401 - an answer may name what is imported
import math
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import torch
from said import answers, assert_formed, typed
from sampled import sampled
from test_exercises import Hostile, cells, run, tried
from test_more_exercises import compare, future, same_seed, shape_alone
from torch import nn
from torch.nn.functional import dropout
from torch.nn.functional import scaled_dot_product_attention as sdpa

from eleven_steps.beyond import variants
from eleven_steps.checks.exercises import TASKS
from helpers.attention import MultiHeadAttention

inf = math.inf

# What the answers may name; of a notebook's, so much is said: they are none of the function's own.
queries, head_dim, mha = torch.ones(1, 2, 3, 3), 3, MultiHeadAttention(6, 6, 6, 0.0, 2)

CLASS = """
class Mine(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.d_out = d_out
        self.num_heads, self.head_dim = num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(1).bool())

    def forward(self, x):
        b, num_tokens, d_in = x.shape
        # 1: ...
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        # 2: queries, keys, values
        split = b, num_tokens, self.num_heads, self.head_dim
        queries, keys, values = queries.view(split), keys.view(split), values.view(split)
        # 3: [queries, keys, values]
        queries, keys, values = (t.transpose(1, 2) for t in (queries, keys, values))
        # 4: queries, keys, values
        scores = queries @ keys.transpose(2, 3)
        # 5: scores
        masked = scores.masked_fill(self.mask[:num_tokens, :num_tokens], -torch.inf)
        # 6: masked
        weights = self.dropout(torch.softmax(masked / self.head_dim**0.5, dim=-1))
        # 7: weights
        context = weights @ values
        # 8: context
        context = context.transpose(1, 2)
        # 9: context
        context = context.reshape(b, num_tokens, -1)
        # 10: context
        return self.out_proj(context)
"""


def edited(source, edits):
    for old, new in edits.items():
        assert old in source, old
        source = source.replace(old, new)
    return source


def grown(upto, edits=()):
    """A class that goes up to a step, with edits of its source."""
    source = re.sub(rf"# {upto}: (.*)\n[^$]*", r"return \1", CLASS)
    typed(edited(source, dict(edits)), scope := {"nn": nn, "torch": torch})
    return scope["Mine"]


def solved(edits):
    """The solution of fast.1 with edits of its source."""
    return run(edited(cells("fast.1")[1].source, edits))


def in_blocks(queries, keys, values, cut):
    token = torch.arange(queries.shape[-2])
    largest, total, context = torch.full_like(queries[..., :1], -inf), 0, 0
    for key in cut(token):
        scaled = queries @ keys[..., key, :].mT / keys.shape[-1] ** 0.5
        scaled = scaled.masked_fill(key > token[:, None], -inf)
        before, largest = largest, torch.maximum(largest, scaled.amax(-1, keepdim=True))
        shrink, powers = torch.exp(before - largest), torch.exp(scaled - largest)
        total = total * shrink + powers.sum(-1, keepdim=True)
        context = context * shrink + powers @ values[..., key, :]
    return context / total


def parts(contexts, out_proj):
    columns = out_proj.weight.chunk(len(contexts), dim=1)
    return [c @ each.T for c, each in zip(contexts, columns, strict=True)]


def logs(one, two):
    """The logarithm of the total of both blocks."""
    return torch.logaddexp(one[0] + one[1].log(), two[0] + two[1].log())


def merged(one, two):
    largest = torch.maximum(one[0], two[0])
    above = sum(c * torch.exp(m - largest) for m, _, c in (one, two))
    return above / sum(t * torch.exp(m - largest) for m, t, _ in (one, two))


def sunk(scaled, sinks):
    """Weights with the sinks' column."""
    column = sinks.view(-1, 1, 1).expand(*scaled.shape[:-1], 1)
    return torch.cat([scaled, column], -1).softmax(-1)


def faded(table, decays):
    return table * torch.exp(-decays).view(-1, 1, 1)


def freed(hidden):
    return hidden & ~hidden.all(-1, keepdim=True)


def cut(mask, scores):
    return mask[: scores.shape[2], : scores.shape[3]]


def upper(scores, diagonal):
    return torch.ones_like(scores[0, 0]).triu(diagonal) > 0


def only(scores, mask, where):
    scores = scores.clone()
    scores[where] = scores[where].masked_fill(cut(mask, scores), -inf)
    return scores


def joined(context):
    return context.transpose(1, 2).flatten(2)


def window(num_tokens, size):
    far = np.arange(num_tokens)[:, None] - np.arange(num_tokens)
    return (far < 0) | (far >= size)


class Scores(nn.Module):
    """A function by another name."""

    def forward(self, queries, keys):
        return queries @ keys.mT


SCOPE = {**globals()}


def judged(answer):
    identifier, _, source = answer.partition(" ")
    scope = dict(SCOPE)
    thing = typed(source, scope, "exec" if source.startswith("def ") else "eval")
    return tried(identifier, scope["answer"] if source.startswith("def ") else thing)


@sampled(("answer", "right"), [*answers("answers").items()])
def test_an_answer_is_judged_as_a_person_would(answer, right):
    verdict = judged(answer)
    assert_formed(verdict)
    if right.startswith("so far"):
        assert verdict.kind == "so far", verdict
        assert right in ("so far", f"so far {verdict.reached}"), verdict
    elif right in ("right", "unfinished", "unknown"):
        assert verdict.kind == right, verdict
    else:
        assert not verdict.passed and verdict.kind not in ("unfinished", "failed"), verdict
        assert verdict.mistake in (right, None), verdict
