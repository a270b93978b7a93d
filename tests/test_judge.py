"""The judge of constructors and the probes: every message whole, as a person reads it.

Each line of said/judged.toml changes lines of one right class; of one that grows the exercise says
how far it is.
"""

from threading import Lock

import torch
from said import answers, typed
from sampled import sampled, whole
from torch import nn
from torch.nn import functional as F

from eleven_steps.checks import check, check_attention
from eleven_steps.checks.judge import classes, probes
from eleven_steps.checks.judge.say import say

SOURCE = """
class Mine(nn.Module):
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
SCOPE = {"nn": nn, "torch": torch, "F": F, "Lock": Lock}


def edited(edits, filed=True):
    """The class with other lines; filed, tracebacks know its source, as in a notebook."""
    source = SOURCE
    for old, new in edits:
        assert source.count(old) == 1, (old, source.count(old))
        source = source.replace(old, new)
    (typed if filed else exec)(source, scope := SCOPE | {})
    return scope["Mine"]


def said(answer):
    """What is said of the finished class with these edits, or of the class in progress."""
    cls = edited(eval(answer.removeprefix("grows ")))
    grows = answer.startswith("grows ")
    return str(check("your_class.1", cls, record=False) if grows else check_attention(cls))


test_the_whole_message = whole("judged", said, each=3)


RAISING = [edits for edits, told in answers("judged").items() if "The constructor raises" in told]


@sampled("edits", RAISING)
def test_without_its_source_a_constructor_is_put_at_the_same_step(edits):
    edits = eval(edits.removeprefix("grows "))
    bare, known = (check_attention(edited(edits, filed)) for filed in (False, True))
    assert bare.step == known.step
    assert "in the line" not in bare.message


def test_what_is_not_found_again_elsewhere_is_told_as_seen_once(monkeypatch):
    def at_main(subject, case):
        return say("something_kept") if case == subject.cases.biased else None

    monkeypatch.setattr(classes, "PROBES", (probes.Probe("state", at_main),))
    verdict = check_attention(edited([]))
    assert not verdict.passed
    assert "It is so at b = 4" in verdict.message and verdict.step == 6
