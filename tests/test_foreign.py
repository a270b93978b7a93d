"""check_attention on classes from elsewhere: read, told, not read.

Each line of said/foreign.toml is a class of this file with parts written otherwise, and perhaps
what check_attention is told besides; what is said of it stands there whole.
"""

import pytest
import torch
from said import verdict_on
from sampled import whole
from torch import nn

from eleven_steps.checks import check_attention, wrong_class


def attend(q, k, v, hidden, drop=lambda weights: weights):
    """(b, num_heads, num_tokens, head_dim) each; hidden True where a key must not be seen."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return drop(scores.masked_fill(hidden, -torch.inf).softmax(-1)) @ v


def future(x):
    return torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool, device=x.device).triu(1)


class Fused(nn.Module):
    """One nn.Linear for all three, from a config."""

    layer = nn.Linear

    def __init__(self, config):
        super().__init__()
        self.heads = config.n_head
        self.c_attn = self.layer(config.n_embd, 3 * config.n_embd, bias=config.bias)
        self.c_proj = self.layer(config.n_embd, config.n_embd, bias=config.bias)
        self.drop = nn.Dropout(config.attn_pdrop)

    def three(self, x):
        return tuple(self.cut(self.c_attn(x)))

    def cut(self, qkv):
        return (each.unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in qkv.chunk(3, -1))

    def attend(self, q, k, v, hidden):
        return attend(q, k, v, hidden, self.drop)

    def merged(self, out):
        return self.c_proj(out.transpose(1, 2).flatten(2))

    def forward(self, x):
        return self.merged(self.attend(*self.three(x), future(x)))


def refuse(why, error=ValueError):
    raise error(why)


class Conv1D(nn.Module):
    def __init__(self, inputs, outputs, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return x @ self.weight + self.bias


class Head(nn.Module):
    def __init__(self, dim, head_dim):
        super().__init__()
        self.key, self.query, self.value = (nn.Linear(dim, head_dim, bias=False) for _ in range(3))

    def forward(self, x):
        return attend(self.query(x), self.key(x), self.value(x), future(x))


class ByHead(nn.Module):
    """A weight for each head, no dropout and no biases."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        heads = (Head(embed_dim, embed_dim // num_heads) for _ in range(num_heads))
        self.heads, self.proj = nn.ModuleList(heads), nn.Linear(embed_dim, embed_dim)

    def forward(self, x):
        return self.proj(torch.cat([head(x) for head in self.heads], dim=-1))


class Headed(ByHead):
    """The lecture's constructor, and a module for each head."""

    counted, last = range, nn.Linear

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        nn.Module.__init__(self)
        heads = (Head(d_in, d_out // num_heads) for _ in self.counted(num_heads))
        self.heads, self.proj = nn.ModuleList(heads), self.last(d_out, d_out)


class Tensors(nn.Module):
    """Raw parameters, heads in front, as einsum likes them; x three times; weights returned too."""

    least = -torch.inf

    def __init__(self, d_model, n_heads, d_head, dropout=0.0):
        super().__init__()
        shape = n_heads, d_model, d_head
        self.W_Q, self.W_K, self.W_V = (nn.Parameter(torch.zeros(shape)) for _ in range(3))
        self.W_O = nn.Parameter(torch.zeros(n_heads, d_head, d_model))
        self.b_O = nn.Parameter(torch.zeros(d_model))
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, mask=None):
        pairs = (query, self.W_Q), (key, self.W_K), (value, self.W_V)
        q, k, v = (torch.einsum("bnm,hmd->bhnd", *each) for each in pairs)
        hidden = torch.zeros_like(future(q)) if mask is None else mask == 0
        weights = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(hidden, self.least).softmax(-1)
        out = torch.einsum("bhnd,hdm->bnm", self.dropout(weights) @ v, self.W_O) + self.b_O
        return out, weights


def first(dim, heads, dropout, bias):
    return nn.MultiheadAttention(dim, heads, dropout, bias)


class Listed(Fused):
    """The lecture's constructor, and the three layers in a list."""

    name = "qkv"

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        nn.Module.__init__(self)
        self.heads, self.drop = num_heads, nn.Dropout(dropout)
        three = [nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3)]
        self.add_module(self.name, nn.ModuleList(three))
        self.c_proj = nn.Linear(d_out, d_out)

    def three(self, x):
        three = torch.cat([each(x) for each in getattr(self, self.name)], -1)
        return tuple(self.cut(three))


def mask_dropped(self, q, k, v, hidden):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores.masked_fill(hidden, -torch.inf)
    return self.drop(scores.softmax(-1)) @ v


def one_by_one(weigh):
    """Each query with the keys that it sees, one query at a time."""

    def attend_one(s, q, k, i):
        return weigh(s, q[:, :, i - 1, None] @ k[:, :, :i].mT / q.shape[-1] ** 0.5)

    def looped(s, q, k, v, hidden):
        ends = range(1, q.shape[2] + 1)
        return torch.cat([attend_one(s, q, k, i) @ v[:, :, :i] for i in ends], 2)

    return {"attend": looped}


def summed_up(s, q, k, v, hidden):
    return (q[..., None, :] @ (k[..., None] * v[..., None, :]).cumsum(2)).squeeze(-2)


class Odd(nn.Module):
    """Names, an order and a call that nobody can guess."""

    def __init__(self, size, count):
        super().__init__()
        self.count = count
        self.alpha, self.beta = nn.Linear(size, 3 * size), nn.Linear(size, size)

    def forward(self, text, extra):
        qkv = self.alpha(text).unflatten(-1, (-1, 3, self.count)).permute(3, 1, 4, 0, 2)
        out = attend(*qkv, extra).permute(2, 0, 1, 3).flatten(2)
        return {"out": self.beta(out)}


# What stands around attention elsewhere, and a class may do without


def summed(self, x, residual: torch.Tensor, gates: torch.Tensor | None):
    """What it is added to comes with x, and so does something that may be None."""
    return Fused.forward(self, x) + residual + (0 if gates is None else gates.sum())


class Sizes:
    """It can be made in no size but its own."""

    def __init__(self, n_embd=768, n_head=12, bias=True):
        if n_embd != 768:
            raise ValueError("n_embd is 768")
        self.n_embd, self.n_head, self.bias, self.attn_pdrop = n_embd, n_head, bias, 0.0


class Tower:
    """It refuses widths that differ, one number for several stages, a rate for a flag."""

    def __init__(
        self, n_embd=768, n_head=12, tower=768, num_heads=(1, 12), token_dropout=False, bias=True
    ):
        if tower != n_embd or type(num_heads) is int or type(token_dropout) is float:
            raise ValueError("tower is n_embd, num_heads are several, token_dropout is a flag")
        self.n_embd, self.n_head, self.bias, self.attn_pdrop = n_embd, n_head, bias, 0.0


def of(kind):
    """A constructor that says which config it takes."""

    def __init__(self, config: kind):
        Fused.__init__(self, config)

    return __init__


def packed(self, x, cu_seqlens, alibi: torch.Tensor | None):
    """All texts come one after the other, (1, b * num_tokens, d_in), and where each begins."""
    if alibi is not None or len(x) != 1:
        raise NotImplementedError
    texts = x.split(cu_seqlens.diff().tolist(), 1)
    return torch.cat([Fused.forward(self, each) for each in texts], 1)


class ScaledLinear(nn.Linear):
    def forward(self, x):
        return super().forward(x), 1.0


class ScaledNorm(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x), 1.0


class LayerNormAfter(Fused):
    """A sum with x and a norm around attention, and each layer returns a number besides."""

    def __init__(self, config):
        super().__init__(config)
        self.c_proj = ScaledLinear(config.n_embd, config.n_embd)
        self.norm, self.gain = ScaledNorm(config.n_embd), nn.Parameter(torch.ones(1))

    def forward(self, x):
        q, k, v = self.three(x)
        return self.norm(self.merged(self.attend(q * self.gain, k, v, future(x)))[0] + x), 1.0


def rotated(t):
    """Positions in rows of two: every second row turns a head by half a circle."""
    return t * (1 - 2 * (torch.arange(t.shape[2]) // 2 % 2)[:, None])


class OneKey(Fused):
    """One head of keys for all queries, fused; biases of queries and values stand alone."""

    def __init__(self, config):
        super().__init__(config)
        dim = config.n_embd // config.n_head
        self.c_attn = nn.Linear(config.n_embd, config.n_embd + 2 * dim, bias=False)
        self.q_bias = nn.Parameter(torch.zeros(1, 1, config.n_embd))
        self.v_bias = nn.Parameter(torch.zeros(1, 1, dim))

    def cut(self, qkv):
        dim = self.v_bias.shape[-1]
        q, k, v = qkv.split([qkv.shape[-1] - 2 * dim, dim, dim], -1)
        three = q + self.q_bias, k, v + self.v_bias
        return (each.unflatten(-1, (-1, dim)).transpose(1, 2) for each in three)


def sunk(self, x):
    """Sinks that act on the context; the table that is returned has none."""
    q, k, v = self.three(x)
    scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(future(x), -torch.inf)
    table, kept = scores.softmax(-1), (scores.logsumexp(-1) - self.sinks[:, None]).sigmoid()
    return self.merged(self.drop(table) @ v * kept[..., None]), table


def norm_of_all(width):
    return nn.RMSNorm(width, eps=1e-6)


class NormedTogether(Fused):
    """All heads of queries are normed as one, and so are those of keys, as in OLMo 2."""

    of_queries = of_keys = staticmethod(norm_of_all)

    def __init__(self, config):
        super().__init__(config)
        self.q_norm, self.k_norm = self.of_queries(config.n_embd), self.of_keys(config.n_embd)

    def cut(self, qkv):
        q, k, v = qkv.chunk(3, -1)
        return super().cut(torch.cat([self.q_norm(q), self.k_norm(k), v], -1))


test_what_is_read_and_what_is_said_of_it_is_what_was_read = whole(
    "foreign", lambda answer: verdict_on(answer, globals())
)


def test_a_layer_that_has_no_such_name_is_refused():
    with pytest.raises(ValueError, match="'query'"):
        check_attention(Fused, layers={"query": "c_attn"})


def test_a_failing_assert_shows_the_sentence():
    with pytest.raises(AssertionError, match=r"Step 7 \(softmax\): The scores are not scaled"):
        assert check_attention(wrong_class("no_scale"))
