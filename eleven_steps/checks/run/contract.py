"""What a class with a change since the lecture gets besides, and how it is called.

A learner's class knows no parts: it gets whole numbers and tensors, after those of the lecture's
class and by name. All else is as check_attention says.

- gqa: built with num_kv_heads, which neighbouring heads share; W_key and W_value are narrower.
- norm: layers query_norm and key_norm, weights (head_dim,); 1e-6 is added under the root.
- rope: feature p turns with p + head_dim / 2, at base 10,000.
- alibi: built with slopes (num_heads,); slope * distance is taken from the scaled scores.
- cap: built with limit, of the scaled scores.
- full: nothing is hidden, as in an encoder.
- window: built with window, the tokens seen, the token itself counted.
- padding: forward(x, is_padding), (b, num_tokens), True for filling. What comes out at filling is
  not compared, and must be finite.
- topk: built with top_keys, index_heads, index_dim; layers W_index_query, W_index_key and
  W_index_weight without biases, and index_norm, a LayerNorm (1e-6). A key is rated by the sum over
  index_heads of weight times relu(query times key); of the keys that it may see, a query sees the
  best top_keys.
- other: forward(x, other), (b, num_keys, d_in): keys and values come from it, nothing is hidden.
- sinks: a parameter sinks (num_heads,), scores beside the scaled ones.
- gate: a layer W_gate, d_in to d_out; its sigmoid multiplies the combined context.
- latent: built with latent_dim and rope_dim; layers W_down, d_in to latent_dim + rope_dim, and
  latent_norm (1e-6). W_key and W_value read the normed latent. W_query makes head_dim + rope_dim
  features a head; the last rope_dim of them, and the last of W_down, which all heads share, turn as
  in rope.
- cache: rope, and forward(x, past=None), which returns (out, past). The first call gets x alone,
  each other the past that came of the one before of the same text, whatever it is.
- linear: built with decays (num_heads,); a layer context_norm, an RMSNorm (1e-6) of the combined
  context. Queries, keys and values go through SiLU; a weight is query times key times
  exp(-decay * distance), without softmax. No dropout is asked for: a table has no weights.
"""

from typing import Any

import torch
from torch import nn

from eleven_steps.beyond.variants import alibi_slopes
from eleven_steps.checks.run.cases import Case, known
from eleven_steps.checks.run.isolate import type_name

# What the constructor of each gets besides, by name.
VARIANTS: dict[str, tuple[str, ...]] = {
    "gqa": ("num_kv_heads",),
    "norm": (),
    "rope": (),
    "alibi": ("slopes",),
    "cap": ("limit",),
    "full": (),
    "window": ("window",),
    "padding": (),
    "topk": ("top_keys", "index_heads", "index_dim"),
    "other": (),
    "sinks": (),
    "gate": (),
    "latent": ("latent_dim", "rope_dim"),
    "cache": (),
    "linear": ("decays",),
}


def signature(variant: str) -> str:
    """How a constructor is called."""
    lecture = "d_in, d_out, context_length, dropout, num_heads, qkv_bias=False"
    return ", ".join((lecture, *VARIANTS.get(variant, ())))


def sizes(case: Case) -> dict[str, Any]:
    """What a constructor gets besides, by name."""
    heads = case.num_heads
    every = {
        "num_kv_heads": max((n for n in range(1, heads // 2 + 1) if heads % n == 0), default=1),
        "slopes": alibi_slopes(heads),  # (num_heads,)
        "limit": 2 / heads,
        "window": 3,
        "top_keys": 3,
        "index_heads": 16,
        "index_dim": 8,
        "latent_dim": 11,
        "rope_dim": 2,
        "decays": alibi_slopes(heads),
    }
    return {name: every[name] for name in VARIANTS.get(case.variant, ())}


def beside(case: Case, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """What forward gets after x (b, num_tokens, d_in)."""
    if case.variant == "padding":
        return (is_padding(*x.shape[:2]).to(x.device),)
    if case.variant == "other":
        num_keys = max(1, x.shape[1] - 2)
        return (known(f"other{case.seed}", (len(x), num_keys, x.shape[2])).to(x),)
    return ()


def is_padding(b: int, num_tokens: int) -> torch.Tensor:
    """(b, num_tokens): the first sequence is filled up at the left, the last at the right."""
    filled = torch.zeros(b, num_tokens, dtype=torch.bool)
    many = max(num_tokens // 3, 1) if num_tokens > 1 else 0
    filled[0, :many] = True
    if b > 1:
        filled[-1, num_tokens - many :] = True
    return filled


def called(
    module: nn.Module, case: Case, x: torch.Tensor, in_turn: bool = False, **options: Any
) -> Any:
    """Call a module as its variant wants it, and return what it returns for x.

    Args:
        module: built for the case.
        case: names the variant.
        x: (b, num_tokens, d_in); with a cache it comes in pieces, whose outputs are put together.
        in_turn: whether a second text is read between these pieces.
        options: handed on to forward.
    """
    if case.variant == "cache":
        return _in_pieces(module, x, in_turn, options)
    more = beside(case, x)
    out = module(x, *more, **options)
    if case.variant == "padding" and isinstance(out, torch.Tensor) and out.shape[:2] == x.shape[:2]:
        nobodys = more[0][..., None] & out.isfinite()  # what stands there means nothing
        return out.masked_fill(nobodys, 0)
    return out


class Alone:
    """What was returned where a pair is expected, the output and what is kept."""

    def __init__(self, what: Any):
        self.name = type_name(what)


def _in_pieces(module: nn.Module, x: torch.Tensor, in_turn: bool, options: dict[str, Any]) -> Any:
    half, outs, past, others = x.shape[1] // 2, [], (), ()
    lengths = half, 1, x.shape[1] - half - 1
    for piece in x.split([each for each in lengths if each], dim=1):
        returned = module(piece, *past, **options)
        if not isinstance(returned, tuple | list) or len(returned) != 2:
            return Alone(returned)
        outs.append(returned[0])
        past = returned[1:]
        if in_turn:
            others = module(piece + 1, *others, **options)[1:]
    return torch.cat(outs, dim=1)
