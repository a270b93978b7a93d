"""Classes with a change since the lecture, as learners write them: without parts, in two styles.

PLAIN write the steps out. FUSED hand them to torch, or take another way to the same numbers.
with_slip(name, edits) is a class of these with other lines.
"""

import inspect
import sys

import torch
from torch import nn
from torch.nn import functional as F


class Plain(nn.Module):
    scale = None  # of torch's own function

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.width = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.drop = nn.Dropout(dropout)

    def split(self, t):
        return t.unflatten(-1, (-1, self.width)).transpose(1, 2)

    def project(self, x):
        return (self.split(layer(x)) for layer in (self.W_query, self.W_key, self.W_value))

    def hidden(self, scores):
        n, m = scores.shape[-2:]
        return torch.ones(n, m, dtype=torch.bool, device=scores.device).triu(m - n + 1)

    def scores(self, q, k):
        return q @ k.mT / k.shape[-1] ** 0.5

    def weigh(self, scores):
        return scores.masked_fill(self.hidden(scores), -torch.inf).softmax(-1)

    def attend(self, q, k, v):
        return self.drop(self.weigh(self.scores(q, k))) @ v

    def forward(self, x):
        return self.out_proj(self.attend(*self.project(x)).transpose(1, 2).flatten(2))


class Fused(Plain):
    def seen(self, q, k):
        return ~self.hidden(q.new_zeros(1, 1, q.shape[-2], k.shape[-2]))

    def attend(self, q, k, v):
        p = self.drop.p if self.training else 0.0
        how = {"scale": self.scale, "enable_gqa": True}
        return F.scaled_dot_product_attention(q, k, v, self.seen(q, k), p, **how)


class PlainGqa(Plain):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, bias=False, num_kv_heads=1):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, bias)
        for name in ("W_key", "W_value"):
            setattr(self, name, nn.Linear(d_in, num_kv_heads * self.width, bias=bias))

    def project(self, x):
        q, k, v = super().project(x)
        n = q.shape[1] // k.shape[1]
        k = k[:, :, None].expand(-1, -1, n, -1, -1).flatten(1, 2)
        v = v[:, :, None].expand(-1, -1, n, -1, -1).flatten(1, 2)
        return q, k, v


class PlainNorm(Plain):
    def __init__(self, *sizes, **bias):
        super().__init__(*sizes, **bias)
        self.query_norm, self.key_norm = (nn.RMSNorm(self.width, eps=1e-6) for _ in range(2))

    def project(self, x):
        q, k, v = super().project(x)
        return self.query_norm(q), self.key_norm(k), v


class Scale(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, t):
        return t * torch.rsqrt(t.square().mean(-1, keepdim=True) + 1e-6) * self.weight


class FusedNorm(Fused):
    def __init__(self, *sizes, **bias):
        super().__init__(*sizes, **bias)
        self.query_norm, self.key_norm = Scale(self.width), Scale(self.width)

    def split(self, t):
        return t.unflatten(-1, (-1, self.width))

    def project(self, x):
        q, k, v = super().project(x)
        return (t.transpose(1, 2) for t in (self.query_norm(q), self.key_norm(k), v))


class PlainVnorm(Plain):
    def project(self, x):
        q, k, v = super().project(x)
        return q, k, v * torch.rsqrt(v.square().mean(-1, keepdim=True) + 1e-6)


class FusedVnorm(Fused):
    def project(self, x):
        q, k, v = super().project(x)
        return q, k, F.rms_norm(v, v.shape[-1:], eps=1e-6)


def turned(t, start=0):
    half = t.shape[-1] // 2
    speed = 1 / 10_000 ** (torch.arange(0, t.shape[-1], 2, device=t.device) / t.shape[-1])
    angle = torch.arange(start, start + t.shape[-2], device=t.device)[:, None] * speed
    angle = torch.cat([angle, angle], -1)
    swapped = torch.cat([-t[..., half:], t[..., :half]], -1)
    return t * angle.cos().to(t) + swapped * angle.sin().to(t)


def turned_as_complex(t, start=0):
    half = t.shape[-1] // 2
    speed = 10_000.0 ** (-torch.arange(half, device=t.device) / half)
    angle = torch.arange(start, start + t.shape[-2], device=t.device)[:, None] * speed
    angle = angle.to(t.dtype if t.dtype == torch.float64 else torch.float32)
    pairs = torch.stack([t[..., :half], t[..., half:]], -1).to(angle.dtype).contiguous()
    pairs = torch.view_as_complex(pairs) * torch.polar(torch.ones_like(angle), angle)
    return torch.cat(torch.view_as_real(pairs).unbind(-1), -1).to(t.dtype)


class PlainRope(Plain):
    def project(self, x):
        q, k, v = super().project(x)
        return turned(q), turned(k), v


class FusedRope(Fused):
    def project(self, x):
        q, k, v = super().project(x)
        return turned_as_complex(q), turned_as_complex(k), v


class PlainAlibi(Plain):
    def __init__(self, *sizes, qkv_bias=False, slopes):
        super().__init__(*sizes, qkv_bias)
        self.register_buffer("slopes", slopes.view(-1, 1, 1))

    def scores(self, q, k):
        place = torch.arange(q.shape[-2], device=q.device)
        return super().scores(q, k) - self.slopes * (place[:, None] - place)


class FusedAlibi(Fused, PlainAlibi):
    def seen(self, q, k):
        bias = self.slopes * torch.arange(k.shape[-2], device=q.device)
        hidden = torch.full((q.shape[-2],) * 2, -torch.inf, device=q.device).triu(1)
        return (bias + hidden).to(q)[None]  # a number for each row changes nothing


class PlainCap(Plain):
    def __init__(self, *sizes, qkv_bias=False, limit):
        super().__init__(*sizes, qkv_bias)
        self.limit = limit

    def scores(self, q, k):
        return self.limit * torch.tanh(super().scores(q, k) / self.limit)


class FusedCap(PlainCap):
    def attend(self, q, k, v):
        heads = zip(q.unbind(1), k.unbind(1), v.unbind(1), strict=True)
        return torch.stack([PlainCap.attend(self, *each) for each in heads], 1)

    def scores(self, q, k):
        bent = (torch.einsum("...id,...jd->...ij", q, k) / q.shape[-1] ** 0.5 / self.limit).tanh()
        return bent * self.limit


class PlainWindow(Plain):
    def __init__(self, *sizes, qkv_bias=False, window):
        super().__init__(*sizes, qkv_bias)
        self.window = window

    def hidden(self, scores):
        far = torch.ones_like(scores[0, 0], dtype=torch.bool).tril(-self.window)
        return super().hidden(scores) | far


class FusedWindow(Fused, PlainWindow):
    def seen(self, q, k):
        place = torch.arange(q.shape[-2], device=q.device)
        back = place[:, None] - place
        return (back >= 0) & (back < self.window)


class PlainFull(Plain):
    def hidden(self, scores):
        return torch.zeros_like(scores, dtype=torch.bool)


class PlainPadding(Plain):
    def hidden(self, scores):
        hidden = super().hidden(scores) | self.filling[:, None, None]
        return hidden & ~hidden.all(-1, keepdim=True)

    def forward(self, x, is_padding):
        self.filling = is_padding
        return super().forward(x)


class PlainOther(PlainFull):
    def forward(self, x, other):
        q = self.split(self.W_query(x))
        k, v = self.split(self.W_key(other)), self.split(self.W_value(other))
        return self.out_proj(self.attend(q, k, v).transpose(1, 2).flatten(2))


class PlainSinks(Plain):
    def __init__(self, *sizes, **bias):
        super().__init__(*sizes, **bias)
        self.sinks = nn.Parameter(torch.zeros(sizes[4]))

    def weigh(self, scores):
        scores = scores.masked_fill(self.hidden(scores), -torch.inf)
        sinks = self.sinks.view(-1, 1, 1).expand(len(scores), -1, scores.shape[2], 1)
        return torch.cat([sinks, scores], -1).softmax(-1)[..., 1:]


class FusedSinks(PlainSinks):
    def weigh(self, scores):
        scores = scores.masked_fill(self.hidden(scores), -torch.inf)
        sinks = self.sinks.view(-1, 1, 1)
        whole = torch.logaddexp(scores.logsumexp(-1, keepdim=True), sinks)
        return (scores - whole).exp()


class PlainUnscaled(Plain):
    scale = 1

    def scores(self, q, k):
        return q @ k.mT


class PlainGate(Plain):
    def __init__(self, d_in, d_out, *sizes, **bias):
        super().__init__(d_in, d_out, *sizes, **bias)
        self.W_gate = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        context = self.attend(*self.project(x)).transpose(1, 2).flatten(2)
        return self.out_proj(self.W_gate(x).sigmoid() * context)


class PlainLatent(Plain):
    def __init__(self, d_in, d_out, *sizes, qkv_bias=False, latent_dim, rope_dim):
        super().__init__(d_in, d_out, *sizes, qkv_bias)
        self.heads, self.turning = d_out // self.width, rope_dim
        self.W_query = nn.Linear(d_in, d_out + self.heads * rope_dim, bias=qkv_bias)
        self.W_down = nn.Linear(d_in, latent_dim + rope_dim, bias=qkv_bias)
        self.latent_norm = nn.RMSNorm(latent_dim, eps=1e-6)
        self.W_key = nn.Linear(latent_dim, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(latent_dim, d_out, bias=qkv_bias)

    def project(self, x):
        q = self.W_query(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        down = self.W_down(x)
        latent = self.latent_norm(down[..., : -self.turning])
        shared = turned(down[..., -self.turning :])[:, None].expand(-1, self.heads, -1, -1)
        q = torch.cat([q[..., : self.width], turned(q[..., self.width :])], -1)
        k = torch.cat([self.split(self.W_key(latent)), shared], -1)
        return q, k, self.split(self.W_value(latent))


class PlainCache(Plain):
    def forward(self, x, past=None):
        q, k, v = self.project(x)
        start = past[0].shape[-2] if past else 0
        q, k = turned(q, start), turned(k, start)
        if past:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        out = self.attend(q, k, v)
        return self.out_proj(out.transpose(1, 2).flatten(2)), (k, v)


class FusedCache(Fused):
    def forward(self, x, past=None):
        past = {"k": [], "v": [], "start": 0} if past is None else dict(past)
        q, k, v = self.project(x)
        past["k"] = [*past["k"], turned_as_complex(k, past["start"])]
        past["v"] = [*past["v"], v]
        q = turned_as_complex(q, past["start"])
        past["start"] = past["start"] + x.shape[1]
        out = self.attend(q, torch.cat(past["k"], -2), torch.cat(past["v"], -2))
        return self.out_proj(out.transpose(1, 2).flatten(2)), past


class PlainTopk(Plain):
    def __init__(self, d_in, *sizes, qkv_bias=False, top_keys, index_heads, index_dim):
        super().__init__(d_in, *sizes, qkv_bias)
        self.top_keys = top_keys
        self.W_index_query = nn.Linear(d_in, index_heads * index_dim, bias=False)
        self.W_index_key = nn.Linear(d_in, index_dim, bias=False)
        self.W_index_weight = nn.Linear(d_in, index_heads, bias=False)
        self.index_norm = nn.LayerNorm(index_dim, eps=1e-6)

    def rates(self, x):
        keys = self.index_norm(self.W_index_key(x))
        queries = self.W_index_query(x).unflatten(-1, (-1, keys.shape[-1]))
        products = torch.einsum("nihd,njd->nijh", queries, keys).relu()
        return (products @ self.W_index_weight(x)[..., None]).squeeze(-1)[:, None]

    def hidden(self, scores):
        hidden = super().hidden(scores)
        rates = self.rated.masked_fill(hidden, -torch.inf)
        places = rates.topk(min(self.top_keys, rates.shape[-1]), dim=-1).indices
        return hidden | torch.ones_like(rates, dtype=torch.bool).scatter(-1, places, False)

    def forward(self, x):
        self.rated = self.rates(x)
        return super().forward(x)


class FusedTopk(PlainTopk):
    def hidden(self, scores):
        hidden = Plain.hidden(self, scores)
        ranked = self.rated.masked_fill(hidden, -torch.inf).sort(dim=-1, descending=True).values
        least = ranked[..., : self.top_keys][..., -1:]
        return hidden | (self.rated < least)


class PlainLinear(Plain):
    def __init__(self, d_in, d_out, *sizes, qkv_bias=False, decays):
        super().__init__(d_in, d_out, *sizes, qkv_bias)
        self.register_buffer("decays", decays)
        self.context_norm = nn.RMSNorm(d_out, eps=1e-6)

    def attend(self, q, k, v):
        q, k, v = F.silu(q), F.silu(k), F.silu(v)
        place = torch.arange(q.shape[-2], device=q.device)
        back = (place[:, None] - place).clamp(min=0)
        fade = torch.exp(-self.decays.to(q)[:, None, None] * back).tril()
        return (q @ k.mT * fade) @ v

    def forward(self, x):
        context = self.attend(*self.project(x)).transpose(1, 2).flatten(2)
        return self.out_proj(self.context_norm(context))


class FusedLinear(PlainLinear):
    def attend(self, q, k, v):
        q, k, v = F.silu(q), F.silu(k), F.silu(v)
        fade = torch.exp(-self.decays).to(q)[:, None, None]
        table, context = torch.zeros_like(k[..., :1, :].mT @ v[..., :1, :]), []
        for token in range(q.shape[2]):
            key, value, query = k[:, :, token, :, None], v[:, :, token, None], q[:, :, token, None]
            table = table * fade
            table = table + key * value
            context.append(query @ table)
        return torch.cat(context, 2)


for variant, plain in [*vars().items()]:  # what is not written above
    if variant.startswith("Plain") and (name := variant.replace("Plain", "Fused")) not in vars():
        vars()[name] = type(name, (Fused, plain), {})


def of_style(style):
    """The classes of a style by their variant."""
    found = vars(sys.modules[__name__]).items()
    return {
        n.removeprefix(style).lower(): c for n, c in found if n.startswith(style) and n != style
    }


def with_slip(name, edits):
    """A class of this file with other lines, wherever in the file they stand."""
    source = inspect.getsource(sys.modules[__name__])
    for old, new in edits.items():
        assert old in source, old
        source = source.replace(old, new)
    exec(source, names := {"__name__": "slips"})
    return names[name]
