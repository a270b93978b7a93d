"""Attention of today's decoders as people write it: right at once or with one line, slips named.

Each line of said/decoders.toml is a class of this file with parts written otherwise, and the change
since the lecture that it is asked for; what is said of it stands there whole.
"""

from dataclasses import dataclass

import pytest
import torch
from said import verdict_on
from sampled import whole
from torch import nn

from eleven_steps.checks.adapt.built import built


@dataclass
class ModelArgs:
    dim: int = 4096
    n_layers: int = 32
    n_heads: int = 32
    n_kv_heads: int | None = None
    max_seq_len: int = 2048
    rope_theta: float = 500000.0
    norm_eps: float = 1e-5
    softcap: float = 50.0
    window_size: int = 4096


def future(n):
    return torch.ones(n, n, dtype=torch.bool).triu(1)


class Llama3(nn.Module):
    """Neighbouring features turn together, as complex numbers handed over; keys are shared."""

    def __init__(self, args: ModelArgs):
        super().__init__()
        self.n_kv_heads = args.n_heads if args.n_kv_heads is None else args.n_kv_heads
        self.n_heads, self.head_dim = args.n_heads, args.dim // args.n_heads
        self.wq = nn.Linear(args.dim, args.n_heads * self.head_dim, bias=False)
        self.wk = nn.Linear(args.dim, self.n_kv_heads * self.head_dim, bias=False)
        self.wv = nn.Linear(args.dim, self.n_kv_heads * self.head_dim, bias=False)
        self.wo = nn.Linear(args.n_heads * self.head_dim, args.dim, bias=False)

    def turned(self, x, freqs_cis):
        pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)).contiguous())
        return torch.view_as_real(pairs * freqs_cis[None, :, None]).flatten(3).to(x)

    def shared(self, x):
        return x.repeat_interleave(self.n_heads // self.n_kv_heads, dim=2)

    def so_far(self, name, new, start_pos):
        return new

    def forward(self, x, start_pos, freqs_cis, mask=None):
        q, k, v = (w(x).unflatten(-1, (-1, self.head_dim)) for w in (self.wq, self.wk, self.wv))
        q, k = self.turned(q, freqs_cis), self.turned(k, freqs_cis)
        k, v = self.so_far("k", k, start_pos), self.so_far("v", v, start_pos)
        q, k, v = (each.transpose(1, 2) for each in (q, self.shared(k), self.shared(v)))
        scores = q @ k.transpose(2, 3) / self.head_dim**0.5
        if mask is not None:
            scores = scores + mask
        return self.wo((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Cached(Llama3):
    """Keys and values of all batches lie in memory taken once, and keep their graph."""

    def __init__(self, args: ModelArgs):
        super().__init__(args)
        room = 128, args.max_seq_len, self.n_kv_heads, self.head_dim
        self.cache = {"k": torch.zeros(room), "v": torch.zeros(room)}

    def so_far(self, name, new, start_pos):
        self.cache[name] = self.cache[name].to(new)
        self.cache[name][: len(new), start_pos : start_pos + new.shape[1]] = new
        return self.cache[name][: len(new), : start_pos + new.shape[1]]


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6, one=False):
        super().__init__()
        self.eps, self.one = eps, one
        self.weight = nn.Parameter(torch.zeros(dim) if one else torch.ones(dim))

    def forward(self, x):
        normed = x * (x.square().mean(-1, keepdim=True) + self.eps).rsqrt()
        return normed * (1 + self.weight if self.one else self.weight)


def rotate_half(x):
    first, second = x.chunk(2, -1)
    return torch.cat([-second, first], -1)


class Halves(nn.Module):
    """Halves turn, by angles of its own."""

    base = 10_000.0

    def __init__(self, config: ModelArgs):
        super().__init__()
        self.heads, self.window = config.n_heads, config.window_size
        self.kv_heads = config.n_kv_heads or config.n_heads
        self.head_dim = config.dim // config.n_heads
        self.q_proj = nn.Linear(config.dim, config.dim, bias=False)
        self.k_proj = nn.Linear(config.dim, self.kv_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(config.dim, self.kv_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(config.dim, config.dim, bias=False)

    def angles(self, n):
        powers = torch.arange(0, self.head_dim, 2).repeat(2) / self.head_dim
        return torch.arange(n)[:, None] * self.base**-powers

    def hidden(self, n):
        return future(n)

    def normed(self, q, k):
        return q, k

    def half(self, x):
        return rotate_half(x)

    def capped(self, scores):
        return scores

    def gated(self, x, context):
        return context

    def attend(self, x, cos, sin, mask):
        layers = self.q_proj, self.k_proj, self.v_proj
        q, k, v = (w(x).unflatten(-1, (-1, self.head_dim)).transpose(1, 2) for w in layers)
        q, k = (each * cos + self.half(each) * sin for each in self.normed(q, k))
        k, v = (each.repeat_interleave(self.heads // self.kv_heads, 1) for each in (k, v))
        weights = (self.capped(q @ k.mT * self.head_dim**-0.5) + mask).softmax(-1)
        return self.o_proj(self.gated(x, weights @ v).transpose(1, 2).flatten(2)), weights

    def forward(self, x):
        n, angles = x.shape[1], self.angles(x.shape[1])
        mask = torch.zeros(n, n).masked_fill(self.hidden(n), -torch.inf)
        return self.attend(x, *(each.to(x) for each in (angles.cos(), angles.sin(), mask)))[0]


class Mistral(Halves):
    """A window."""

    def hidden(self, n):
        return future(n) | (torch.arange(n)[:, None] - torch.arange(n) >= self.window)


class Qwen3(Halves):
    """Queries and keys are normed, head by head."""

    one = False

    def __init__(self, config: ModelArgs):
        super().__init__(config)
        self.cap = config.softcap
        self.q_norm, self.k_norm = (
            RMSNorm(self.head_dim, config.norm_eps, self.one) for _ in range(2)
        )

    def normed(self, q, k):
        return self.q_norm(q), self.k_norm(k)


class LayerNormed(Qwen3):
    """The norms are LayerNorms."""

    def __init__(self, config: ModelArgs):
        super().__init__(config)
        self.q_norm, self.k_norm = nn.LayerNorm(self.head_dim), nn.LayerNorm(self.head_dim)


class Qwen35(Qwen3):
    """The layer of queries makes a gate for each head besides."""

    def __init__(self, config: ModelArgs):
        super().__init__(config)
        self.q_proj = nn.Linear(config.dim, 2 * config.dim, bias=False)

    def attend(self, x, cos, sin, mask):
        q, gate = self.q_proj(x).unflatten(-1, (-1, 2, self.head_dim)).unbind(-2)
        k, v = (w(x).unflatten(-1, (-1, self.head_dim)) for w in (self.k_proj, self.v_proj))
        k, v = (each.repeat_interleave(self.heads // self.kv_heads, 2) for each in (k, v))
        q, k, v = (each.transpose(1, 2) for each in (q, k, v))
        q, k = (each * cos + self.half(each) * sin for each in self.normed(q, k))
        weights = (q @ k.mT * self.head_dim**-0.5 + mask).softmax(-1)
        return self.o_proj(self.gated(gate, (weights @ v).transpose(1, 2)).flatten(2)), weights

    def gated(self, gate, context):
        return context * gate.sigmoid()


class Gemma(Qwen3, Mistral):
    """Norms that learn what they multiply by beside 1, a cap on scores, a window."""

    one = True

    def capped(self, scores):
        return self.cap * torch.tanh(scores / self.cap)


class Sparing(Halves):
    """Norms have no weights, and a gate is one number for each head."""

    def __init__(self, config: ModelArgs):
        super().__init__(config)
        self.q_norm, self.k_norm = (
            nn.RMSNorm(self.head_dim, eps=1e-6, elementwise_affine=False) for _ in range(2)
        )
        self.gate_proj = nn.Linear(config.dim, self.heads, bias=False)

    def normed(self, q, k):
        return self.q_norm(q), self.k_norm(k)

    def gated(self, x, context):
        return context * self.gate_proj(x).sigmoid().mT[..., None]


class LikeHF(Halves):
    """Cosines and sines handed over, an additive mask, a pair comes back."""

    def __init__(self, config: ModelArgs, layer_idx: int):
        super().__init__(config)
        self.layer_idx = layer_idx

    def forward(self, hidden_states, position_embeddings, attention_mask=None, **kwargs):
        cos, sin = (each.unsqueeze(1) for each in position_embeddings)
        return self.attend(hidden_states, cos, sin, 0 if attention_mask is None else attention_mask)


class GPT(nn.Module):
    """As nanoGPT's, from a config without an annotation."""

    factor = 1.0

    def __init__(self, config):
        super().__init__()
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)
        self.attn_dropout, self.n_head = nn.Dropout(config.dropout), config.n_head
        ones = torch.ones(config.block_size, config.block_size).tril()
        self.register_buffer("bias", ones.view(1, 1, config.block_size, config.block_size))

    def forward(self, x):
        n, width = x.shape[1:]
        three = self.c_attn(x).split(width, dim=2)
        q, k, v = (each.unflatten(-1, (self.n_head, -1)).transpose(1, 2) for each in three)
        scores = (q @ k.transpose(-2, -1)) * self.factor / k.shape[-1] ** 0.5
        scores = scores.masked_fill(self.bias[:, :, :n, :n] == 0, -torch.inf)
        out = self.attn_dropout(scores.softmax(-1)) @ v
        return self.c_proj(out.transpose(1, 2).reshape(x.shape))


class Quarter(nn.Module):
    """As GPT-NeoX: a quarter of each head turns; heads lie before queries, keys and values."""

    def __init__(self, config):
        super().__init__()
        self.heads, width = config.num_attention_heads, config.hidden_size
        self.head_dim = width // self.heads
        self.turned = self.head_dim // 4
        self.query_key_value, self.dense = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def half(self, x):
        return rotate_half(x)

    def turn(self, x, angles):
        one, rest = x[..., : self.turned], x[..., self.turned :]
        return torch.cat([one * angles.cos() + self.half(one) * angles.sin(), rest], -1)

    def keys(self, x, angles):
        return self.turn(x, angles)

    def forward(self, x):
        qkv = self.query_key_value(x).unflatten(-1, (self.heads, 3 * self.head_dim))
        q, k, v = qkv.transpose(1, 2).chunk(3, -1)
        powers = torch.arange(0, self.turned, 2).repeat(2) / self.turned
        angles = (torch.arange(x.shape[1])[:, None] * 10000.0**-powers).to(x)
        scores = self.turn(q, angles) @ self.keys(k, angles).mT / self.head_dim**0.5
        weights = scores.masked_fill(future(x.shape[1]), -torch.inf).softmax(-1)
        return self.dense((weights @ v).transpose(1, 2).flatten(2))


class DeepSeek(nn.Module):
    """Keys and values come from a latent; the last features turn, all heads' keys share theirs."""

    def __init__(self, hidden_size, num_heads, kv_lora_rank=16, qk_rope_head_dim=4):
        super().__init__()
        self.heads, self.widths = num_heads, (hidden_size // num_heads, qk_rope_head_dim)
        self.latents = kv_lora_rank, qk_rope_head_dim
        self.q_proj = nn.Linear(hidden_size, num_heads * sum(self.widths), bias=False)
        self.kv_a_proj_with_mqa = nn.Linear(hidden_size, sum(self.latents), bias=False)
        self.kv_a_layernorm = nn.RMSNorm(kv_lora_rank, eps=1e-6)
        self.kv_b_proj = nn.Linear(kv_lora_rank, 2 * hidden_size, bias=False)
        self.o_proj = nn.Linear(hidden_size, hidden_size, bias=False)

    def turned(self, x):
        pairs = x.shape[-1] // 2
        angles = torch.arange(x.shape[-2])[:, None] * 1e4 ** (-torch.arange(pairs) / pairs)
        (one, two), cos, sin = x.chunk(2, -1), angles.cos().to(x), angles.sin().to(x)
        return torch.cat([one * cos - two * sin, two * cos + one * sin], -1)

    def normed(self, latents):
        return self.kv_a_layernorm(latents)

    def scaled(self, scores):
        return scores / sum(self.widths) ** 0.5

    def forward(self, x):
        q = self.q_proj(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        q, q_turned = q.split(self.widths, -1)
        latents, shared = self.kv_a_proj_with_mqa(x).split(self.latents, -1)
        kv = self.kv_b_proj(self.normed(latents)).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        k, v = kv.chunk(2, -1)
        q = torch.cat([q, self.turned(q_turned)], -1)
        k = torch.cat([k, self.turned(shared)[:, None].expand(-1, self.heads, -1, -1)], -1)
        scores = self.scaled(q @ k.mT).masked_fill(future(x.shape[1]), -torch.inf)
        return self.o_proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


test_a_decoder_of_today_is_right_and_a_slip_in_it_is_found = whole(
    "decoders", lambda answer: verdict_on(answer, globals())
)


WIDTHS = """hid_dim h_dim dim_model num_hidden hidden feats features d n_units d_hid dmodel
hidden_channels dim_hidden input_dim d_model embed_dim embed_size emb emb_dim emb_size hidden_size
hidden_dim num_hiddens n_embd dim width channels model_dim units size"""


@pytest.mark.parametrize("name", WIDTHS.split())
def test_the_width_is_what_is_left(name):
    made, asked = built(
        eval(f"lambda {name}, num_heads, dropout=0.1: ({name}, num_heads)"),
        {"d_in": 10, "d_out": 40, "num_heads": 5, "head_dim": 8, "dropout": 0.0},
    )
    assert made == (40, 5) and asked == {"d_out", "num_heads", "dropout"}
