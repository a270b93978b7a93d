"""Attention as other people write it: the classes that docs/checks.md declares."""

from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Config:
    n_embd: int
    n_head: int
    block_size: int
    dropout: float


class CausalSelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd)
        self.n_head, self.scale = config.n_head, (config.n_embd // config.n_head) ** -0.5
        self.attn_dropout = nn.Dropout(config.dropout)
        self.register_buffer("seen", torch.ones(config.block_size, config.block_size).tril())

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(C, dim=2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * self.scale
        att = att.masked_fill(self.seen[:T, :T] == 0, float("-inf"))
        att = self.attn_dropout(att.softmax(dim=-1))
        y = (att @ v).transpose(1, 2).contiguous().view(B, T, C)
        return self.c_proj(y)


class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden_size, heads, dropout=0.0, bias=False):
        super().__init__()
        self.heads, self.head_size = heads, hidden_size // heads
        self.q_proj = nn.Linear(input_size, hidden_size, bias=bias)
        self.k_proj = nn.Linear(input_size, hidden_size, bias=bias)
        self.v_proj = nn.Linear(input_size, hidden_size, bias=bias)
        self.o_proj = nn.Linear(hidden_size, hidden_size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden_states):
        batch, length, _ = hidden_states.shape
        shape = (batch, length, self.heads, self.head_size)
        query = self.q_proj(hidden_states).view(shape).transpose(1, 2)
        key = self.k_proj(hidden_states).view(shape).transpose(1, 2)
        value = self.v_proj(hidden_states).view(shape).transpose(1, 2)
        scores = torch.matmul(query, key.transpose(2, 3)) / self.head_size**0.5
        later = torch.ones(length, length, dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(later, torch.finfo(scores.dtype).min)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        out = torch.matmul(weights, value).transpose(1, 2).reshape(batch, length, -1)
        return self.o_proj(out)


class EncoderAttention(nn.Module):
    def __init__(self, dim, heads, dropout=0.1):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(dim, dim) for _ in range(3))
        self.out, self.drop = nn.Linear(dim, dim), nn.Dropout(dropout)

    def forward(self, q, k, v, mask):
        q, k, v = self.split(self.query(q)), self.split(self.key(k)), self.split(self.value(v))
        scores = torch.einsum("bhid,bhjd->bhij", q, k) / q.shape[-1] ** 0.5
        scores = scores.masked_fill(mask[:, None, None, :] == 0, -1e9)
        weights = self.drop(scores.softmax(dim=-1))
        joined = torch.einsum("bhij,bhjd->bihd", weights, v).flatten(2)
        return self.out(joined), weights

    def split(self, x):
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)


class GroupedAttention(nn.Module):
    def __init__(self, dim, n_heads, n_kv_heads):
        super().__init__()
        self.n_heads, self.n_kv_heads, self.head_dim = n_heads, n_kv_heads, dim // n_heads
        self.q_proj = nn.Linear(dim, n_heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(n_heads * self.head_dim, dim, bias=False)

    def forward(self, x):
        q = self.q_proj(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        k = self.k_proj(x).unflatten(-1, (self.n_kv_heads, -1)).transpose(1, 2)
        v = self.v_proj(x).unflatten(-1, (self.n_kv_heads, -1)).transpose(1, 2)
        q, k = self.rotate(q), self.rotate(k)
        groups = self.n_heads // self.n_kv_heads
        k, v = k.repeat_interleave(groups, dim=1), v.repeat_interleave(groups, dim=1)
        out = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(out.transpose(1, 2).flatten(2))

    def rotate(self, x):
        half = x.shape[-1] // 2
        rates = 10_000 ** (-torch.arange(half, device=x.device, dtype=x.dtype) / half)
        angles = torch.arange(x.shape[2], device=x.device, dtype=x.dtype)[:, None] * rates
        one, two = x[..., :half], x[..., half:]
        cos, sin = angles.cos(), angles.sin()
        return torch.cat([one * cos - two * sin, two * cos + one * sin], dim=-1)
