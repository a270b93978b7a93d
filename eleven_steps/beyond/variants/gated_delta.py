"""The gated delta rule: linear attention whose state is corrected, not only added to."""

from dataclasses import dataclass

import torch
from torch import nn

from eleven_steps.beyond.variants.module import Call, Part

LAYERS = ("query", "key", "value")


@dataclass(frozen=True)
class Delta(Part):
    """Compute attention by the gated delta rule, with one decay per feature: steps 2 to 10.

    What delta_rule computes token by token is computed here with weights, so that all eleven steps
    remain: scores decay feature by feature in step 5, and step 7 subtracts from the weight of each
    key what later keys have corrected. A weight may be negative. Step 2 also convolves each feature
    over four tokens, and step 10 normalises and gates each head.

    Source: Kimi Delta Attention, KDA, of "Kimi Linear" (2025), as transformers'
    KimiLinearDeltaAttention; "Gated Delta Networks" (2024).
    """

    reason, excludes = "replaces steps 2 to 10 and needs all of x at once", "Part"

    def learn(self, mha):  # noqa: D102
        d_in, width, head_dim = mha.d_in, mha.d_out, mha.head_dim
        for name in LAYERS:
            convolution = nn.Conv1d(width, width, 4, padding=3, groups=width, bias=False)
            setattr(mha, f"{name}_mix", convolution)
        mha.W_share = nn.Linear(d_in, mha.num_heads, bias=False)
        for name in ("fade", "gate"):
            low = nn.Linear(d_in, head_dim, bias=False), nn.Linear(head_dim, width, bias=False)
            setattr(mha, f"W_{name}", nn.Sequential(*low))
        mha.fade_bias = nn.Parameter(torch.zeros(width))
        mha.fade_log = nn.Parameter(torch.zeros(mha.num_heads))
        mha.head_norm = nn.RMSNorm(head_dim, eps=1e-5)

    def project(self, call: Call):
        """Convolve queries, keys and values over four tokens, and apply SiLU."""
        made = []
        for name in LAYERS:
            plain = getattr(call.mha, f"W_{name}")(call.x).transpose(1, 2)
            mixed = getattr(call.mha, f"{name}_mix")(plain)[..., : call.x.shape[1]]
            made.append(nn.functional.silu(mixed).transpose(1, 2))
        return made

    def transpose(self, call: Call, queries, keys, values):
        """Scale queries and keys (b, num_heads, num_tokens, head_dim) to length 1."""
        lengths = [(t.square().sum(-1, keepdim=True) + 1e-6).sqrt() for t in (queries, keys)]
        call.notes[self] = queries / lengths[0], keys / lengths[1]
        return *call.notes[self], values

    def scores(self, call: Call, scores):
        """Let scores (b, num_heads, num_tokens, num_tokens) decay with distance, by feature."""
        queries, keys = call.notes[self]
        return (faded(queries, keys, self.fades(call)),)

    def softmax(self, call: Call, scaled):
        """Subtract from scores (b, num_heads, num_tokens, num_tokens) what later keys correct."""
        _, keys = call.notes[self]
        shares = torch.sigmoid(call.mha.W_share(call.x)).transpose(1, 2)  # (b, num_heads, tokens)
        corrections = faded(keys, keys, self.fades(call)).tril(-1) * shares.unsqueeze(-1)
        corrections = corrections + torch.eye(keys.shape[2]).to(keys)
        solved = torch.linalg.solve_triangular(corrections, shares.diag_embed(), upper=False)
        # scores (I + corrections) ** -1, and a share for each
        return scaled.masked_fill(scaled == -torch.inf, 0) @ solved

    def combine(self, call: Call, context):
        """Normalise each head of context (b, num_tokens, d_out), and gate each feature."""
        normed = call.mha.head_norm(context.unflatten(-1, (call.mha.num_heads, -1)))
        return (normed.flatten(2) * torch.sigmoid(call.mha.W_gate(call.x)),)

    def fades(self, call: Call) -> torch.Tensor:
        """Return the logarithm of each feature's decay, (b, num_heads, tokens, head_dim)."""
        mha = call.mha
        asked = (mha.W_fade(call.x) + mha.fade_bias).unflatten(-1, (mha.num_heads, -1))
        speed = mha.fade_log.exp()[:, None, None]
        return -speed * nn.functional.softplus(asked.transpose(1, 2))


def faded(one: torch.Tensor, other: torch.Tensor, fades: torch.Tensor) -> torch.Tensor:
    """Return products of each token of `one` with the earlier tokens of `other`, decayed.

    All three are (b, num_heads, tokens, head_dim). Logarithms are subtracted, because quotients of
    products could overflow.
    """
    total = fades.cumsum(dim=2)
    between = total.unsqueeze(3) - total.unsqueeze(2)  # (b, num_heads, tokens, tokens, head_dim)
    future = torch.ones(between.shape[2:4], dtype=torch.bool, device=one.device).triu(1)
    between = between.masked_fill(future[..., None], -torch.inf).exp()
    return (one.unsqueeze(3) * other.unsqueeze(2) * between).sum(dim=-1)


def delta_rule(queries, keys, values, shares, fades, state):
    """Compute linear attention token by token, with a table for each head that is corrected.

    For each key the table returns its old value. The difference from the new value is written, or
    only a share of it. So a later value can replace an earlier one.

    Args:
        queries, keys, values: (b, num_heads, num_tokens, head_dim), queries scaled.
        shares, fades: (b, num_heads, num_tokens), from 0 to 1: what of a correction is written,
            and what of the table stays. Fades may differ for each feature of a key, (b, num_heads,
            num_tokens, head_dim), as in Kimi Linear.
        state: the table of the tokens before, (b, num_heads, head_dim, head_dim).

    Returns:
        The context (b, num_heads, num_tokens, head_dim), and the table after the last token.

    Source: "Gated Delta Networks: Improving Mamba2 with Delta Rule" (2024), as transformers'
    torch_recurrent_gated_delta_rule, in three of four layers of Qwen3-Next and Qwen3.5.
    """
    context = []
    if fades.dim() == 3:
        fades = fades.unsqueeze(-1)  # one decay for all features
    for token in range(queries.shape[2]):
        query, key, value = (t[:, :, token, None] for t in (queries, keys, values))
        state = state * fades[:, :, token, :, None]
        wrong_by = value - key @ state  # (b, num_heads, 1, head_dim)
        state = state + key.transpose(2, 3) @ (wrong_by * shares[:, :, token, None, None])
        context.append(query @ state)
    return torch.cat(context, dim=2), state
