"""Attention of today's decoders as people write it: right at once or with one line, slips named."""

from dataclasses import dataclass

import pytest
import torch
from sampled import sampled
from torch import nn

from eleven_steps.checks import check_attention
from eleven_steps.checks.adapt.built import built

pytestmark = pytest.mark.usefixtures("one_thread")
every = pytest.mark.parametrize


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

    def forward(self, x, start_pos, freqs_cis, mask=None):
        q, k, v = (w(x).unflatten(-1, (-1, self.head_dim)) for w in (self.wq, self.wk, self.wv))
        q, k = self.turned(q, freqs_cis), self.turned(k, freqs_cis)
        q, k, v = (each.transpose(1, 2) for each in (q, self.shared(k), self.shared(v)))
        scores = q @ k.transpose(2, 3) / self.head_dim**0.5
        if mask is not None:
            scores = scores + mask
        return self.wo((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Llama3Tiled(Llama3):
    def shared(self, x):
        return x.repeat(1, 1, self.n_heads // self.n_kv_heads, 1)


class Llama3KeysStill(Llama3):
    """The keys are not turned."""

    def turned(self, x, freqs_cis):
        return super().turned(x, freqs_cis) if x.shape[2] == self.n_heads else x


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


class Mistral(nn.Module):
    """Halves turn, by angles of its own; a window; torch's own attention."""

    def __init__(self, config: ModelArgs):
        super().__init__()
        self.heads, self.window = config.n_heads, config.window_size
        self.kv_heads = config.n_kv_heads or config.n_heads
        self.head_dim = config.dim // config.n_heads
        self.q_proj = nn.Linear(config.dim, config.dim, bias=False)
        self.k_proj = nn.Linear(config.dim, self.kv_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(config.dim, self.kv_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(config.dim, config.dim, bias=False)
        self.norms(config)

    def norms(self, config):
        self.q_norm = self.k_norm = None

    def angles(self, n, x):
        powers = torch.arange(0, self.head_dim, 2) / self.head_dim
        angles = torch.arange(n)[:, None] * 10000.0**-powers
        return torch.cat([angles, angles], -1)

    def hidden(self, n):
        return future(n) | (torch.arange(n)[:, None] - torch.arange(n) >= self.window)

    def capped(self, scores):
        return scores

    def forward(self, x):
        q, k, v = (
            w(x).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
            for w in (self.q_proj, self.k_proj, self.v_proj)
        )
        if self.q_norm is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        angles = self.angles(x.shape[1], x)
        cos, sin = angles.cos().to(x), angles.sin().to(x)
        q, k = (each * cos + rotate_half(each) * sin for each in (q, k))
        k, v = (each.repeat_interleave(self.heads // self.kv_heads, 1) for each in (k, v))
        scores = self.capped(q @ k.mT * self.head_dim**-0.5)
        weights = scores.masked_fill(self.hidden(x.shape[1]), -torch.inf).softmax(-1)
        return self.o_proj((weights @ v).transpose(1, 2).flatten(2))


class MistralShort(Mistral):
    def hidden(self, n):
        return future(n) | (torch.arange(n)[:, None] - torch.arange(n) > self.window)


class NoWindow(Mistral):
    def hidden(self, n):
        return future(n)


class WrongBase(NoWindow):
    def angles(self, n, x):
        return super().angles(n, x) ** 1.01


class Qwen3(NoWindow):
    """Queries and keys are normed, head by head."""

    def norms(self, config):
        self.q_norm, self.k_norm = (RMSNorm(self.head_dim, config.norm_eps) for _ in "qk")


class Qwen3OneNorm(Qwen3):
    """The keys go through the queries' norm."""

    def forward(self, x):
        held, self.k_norm = self.k_norm, self.q_norm
        try:
            return super().forward(x)
        finally:
            self.k_norm = held


class Gemma(Mistral):
    """Norms that learn what they multiply by beside 1, a cap on scores, a window."""

    def norms(self, config):
        self.cap = config.softcap
        self.q_norm, self.k_norm = (RMSNorm(self.head_dim, config.norm_eps, True) for _ in "qk")

    def capped(self, scores):
        return self.cap * torch.tanh(scores / self.cap)


class GemmaCapAfter(Gemma):
    def capped(self, scores):
        return torch.tanh(scores / self.cap)


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
        q, k, v = (
            each.unflatten(-1, (self.n_head, -1)).transpose(1, 2)
            for each in self.c_attn(x).split(width, dim=2)
        )
        scores = (q @ k.transpose(-2, -1)) * self.factor / k.shape[-1] ** 0.5
        scores = scores.masked_fill(self.bias[:, :, :n, :n] == 0, -torch.inf)
        out = self.attn_dropout(scores.softmax(-1)) @ v
        return self.c_proj(out.transpose(1, 2).reshape(x.shape))


class Doubled(GPT):
    factor = 2.0


class LikeHF(NoWindow):
    """Cosines and sines handed over, an additive mask, a pair comes back."""

    def __init__(self, config: ModelArgs, layer_idx: int):
        super().__init__(config)
        self.layer_idx = layer_idx

    def forward(self, hidden_states, position_embeddings, attention_mask=None, **kwargs):
        shape = (*hidden_states.shape[:-1], -1, self.head_dim)
        q, k, v = (
            w(hidden_states).view(shape).transpose(1, 2)
            for w in (self.q_proj, self.k_proj, self.v_proj)
        )
        cos, sin = (each.unsqueeze(1) for each in position_embeddings)
        q, k = (each * cos + self.half(each) * sin for each in (q, k))
        k, v = (each.repeat_interleave(self.heads // self.kv_heads, 1) for each in (k, v))
        scores = q @ k.mT * self.head_dim**-0.5
        scores = scores if attention_mask is None else scores + attention_mask
        weights = scores.softmax(-1)
        return self.o_proj((weights @ v).transpose(1, 2).flatten(2)), weights

    def half(self, x):
        return rotate_half(x)


class HalfMillion(NoWindow):
    """Llama 3's base, typed in."""

    base = 500_000.0

    def angles(self, n, x):
        powers = torch.arange(0, self.head_dim, 2) / self.head_dim
        angles = torch.arange(n)[:, None] * self.base**-powers
        return torch.cat([angles, angles], -1)


class HalfMillionRoot(HalfMillion):
    """The root of the base is taken."""

    base = 500_000.0**0.5


class Hundred(HalfMillion):
    """A base that vision uses."""

    base = 100.0


class HundredAsARoot(HalfMillion):
    base, room = 10_000.0, 100

    def angles(self, n, x):
        return torch.arange(n)[:, None] * self.base ** -(
            torch.arange(self.head_dim) % (self.head_dim // 2) / self.head_dim
        )


class HalfMillionUnscaled(HalfMillion):
    def capped(self, scores):
        return scores * self.head_dim**0.5


class Quarter(nn.Module):
    """As GPT-NeoX: a quarter of each head turns; heads lie before queries, keys and values."""

    def __init__(self, config):
        super().__init__()
        self.heads, width = config.num_attention_heads, config.hidden_size
        self.head_dim = width // self.heads
        self.turned = self.head_dim // 4
        self.query_key_value, self.dense = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def turn(self, x, angles):
        one, rest = x[..., : self.turned], x[..., self.turned :]
        return torch.cat([one * angles.cos() + rotate_half(one) * angles.sin(), rest], -1)

    def keys(self, x, angles):
        return self.turn(x, angles)

    def forward(self, x):
        q, k, v = (
            self.query_key_value(x)
            .unflatten(-1, (self.heads, 3 * self.head_dim))
            .transpose(1, 2)
            .chunk(3, -1)
        )
        powers = torch.arange(0, self.turned, 2) / self.turned
        angles = torch.arange(x.shape[1])[:, None] * 10000.0**-powers
        angles = torch.cat([angles, angles], -1).to(x)
        scores = self.turn(q, angles) @ self.keys(k, angles).mT / self.head_dim**0.5
        weights = scores.masked_fill(future(x.shape[1]), -torch.inf).softmax(-1)
        return self.dense((weights @ v).transpose(1, 2).flatten(2))


class QuarterOfQueries(Quarter):
    """The keys are not turned."""

    def keys(self, x, angles):
        return x


class QuarterPairedOtherwise(Quarter):
    """Neighbours turn, by the angles of halves."""

    def turn(self, x, angles):
        one, rest = x[..., : self.turned], x[..., self.turned :]
        other = torch.stack([-one[..., 1::2], one[..., ::2]], -1).flatten(-2)
        return torch.cat([one * angles.cos() + other * angles.sin(), rest], -1)


class LikeHFSignLost(LikeHF):
    def half(self, x):
        return rotate_half(x).abs()


@sampled(
    ("build", "variant"),
    [
        (Llama3, "gqa,rope"),
        (Mistral, "gqa,rope,window"),
        (NoWindow, "rope"),
        (Qwen3, "gqa,rope,norm"),
        (Gemma, "gqa,rope,norm,cap,window"),
        (GPT, ""),
        (LikeHF, ""),
        (LikeHF, "gqa,rope"),
    ],
)
def test_a_decoder_of_today_is_right(build, variant):
    verdict = check_attention(build, variant)
    assert verdict.passed and "In bfloat16" not in verdict.message, verdict


@sampled(
    ("build", "variant"),
    [
        (Llama3Tiled, "rope"),
        (Llama3Tiled, "gqa,rope"),
        (Llama3KeysStill, "gqa,rope"),
        (MistralShort, "gqa,rope,window"),
        (WrongBase, "rope"),
        (Qwen3OneNorm, "gqa,rope,norm"),
        (GemmaCapAfter, "gqa,rope,norm,cap,window"),
        (Doubled, ""),
        (LikeHFSignLost, "gqa,rope"),
        (HalfMillionRoot, "rope"),
        (HundredAsARoot, "rope"),
        (HalfMillionUnscaled, "rope"),
        (QuarterOfQueries, "rope"),
        (QuarterPairedOtherwise, "rope"),
    ],
)
def test_a_slip_in_it_is_found(build, variant):
    verdict = check_attention(build, variant)
    assert not verdict.passed and verdict.step, (verdict.message, verdict.note)
    assert build is not HalfMillionUnscaled or verdict.mistake == "no_scale"


@pytest.mark.nightly
@every(
    ("build", "how"),
    [(NoWindow, '`variant="rope"`'), (Qwen3, '`variant="norm,rope"`')],
)
def test_what_it_is_right_as_is_said(build, how):
    verdict = check_attention(build)
    assert not verdict.passed
    assert verdict.message.startswith("It is right with") and how in verdict.message


@sampled(
    ("build", "as_what", "how"),
    [
        (HalfMillion, "RoPE at base 500,000", "rope:500000"),
        (Hundred, "RoPE at base 100", "rope:100"),
        (Quarter, "RoPE of 0.25 of a head's features", "rope:10000:0.25"),
    ],
)
def test_the_base_and_the_share_that_turns_are_found_out(build, as_what, how):
    asked = check_attention(build, "rope")
    assert asked.passed and asked.message.startswith(f"Right as {as_what}."), asked
    assert check_attention(build, how).passed
    assert (
        f'It is right with {as_what}: ask again with `variant="{how}"`'
        in check_attention(build).message
    )


WIDTHS = """hid_dim h_dim dim_model num_hidden hidden feats features d n_units d_hid dmodel
hidden_channels dim_hidden input_dim d_model embed_dim embed_size emb emb_dim emb_size hidden_size
hidden_dim num_hiddens n_embd dim width channels model_dim units size"""


@every("name", WIDTHS.split())
def test_the_width_is_what_is_left(name):
    made, asked = built(
        eval(f"lambda {name}, num_heads, dropout=0.1: ({name}, num_heads)"),
        {"d_in": 10, "d_out": 40, "num_heads": 5, "head_dim": 8, "dropout": 0.0},
    )
    assert made == (40, 5) and asked == {"d_out", "num_heads", "dropout"}
