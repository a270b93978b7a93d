"""What a class with a change since the lecture gets besides, and how it is called.

A learner's class knows no parts: it gets whole numbers and tensors, after those of the lecture's
class and by name. All else is as check_attention says.

- gqa: built with num_kv_heads, which neighbouring heads share; W_key and W_value are narrower.
  In gqa:1 all heads share one.
- norm: layers query_norm and key_norm, weights (head_dim,); 1e-6 is added under the root. In
  norm:1 all heads of a token are normed as one, weights as many as they have features together.
- vnorm: values are normed as well, each head by itself and without weights.
- rope: feature p turns with p + head_dim / 2, at base 10,000; rope:500000 at another base, and in
  rope:10000:0.25 the first quarter of a head's features turns, p with p + head_dim / 8.
- alibi: built with slopes (num_heads,); slope * distance is taken from the scaled scores.
- cap: built with limit, of the scaled scores.
- full: nothing is hidden, as in an encoder.
- window: built with window, the tokens seen, the token itself counted.
- padding: forward(x, is_padding), (b, num_tokens), True for filling. What comes out at filling is
  not compared, and must be finite. Beside other it says which of the other's tokens are filling.
- topk: built with top_keys, index_heads, index_dim; layers W_index_query, W_index_key and
  W_index_weight without biases, and index_norm, a LayerNorm (1e-6). A key is rated by the sum over
  index_heads of weight times relu(query times key); of the keys that it may see, a query sees the
  best top_keys.
- other: forward(x, other), (b, num_keys, d_in): keys and values come from it, nothing is hidden.
- sinks: a parameter sinks (num_heads,), scores beside the scaled ones.
- unscaled: the scores are divided by nothing, as in T5.
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

Several changes are joined by commas, in any order, "gqa,rope": the constructor gets what each of
them asks for, and forward gets x, other, is_padding and past, in this order.
"""

from typing import Any

import torch
from torch import nn

from eleven_steps.beyond.variants import alibi_slopes
from eleven_steps.checks.run.cases import Case, known, numbers_of, split
from eleven_steps.checks.run.isolate import type_name

# What the constructor of each gets besides, by name.
CHANGES = "gqa norm vnorm rope alibi cap full window padding topk other sinks unscaled gate latent "
VARIANTS: dict[str, tuple[str, ...]] = dict.fromkeys((*CHANGES.split(), "cache", "linear"), ())
VARIANTS |= {"gqa": ("num_kv_heads",), "alibi": ("slopes",), "cap": ("limit",)}
VARIANTS |= {"window": ("window",), "topk": ("top_keys", "index_heads", "index_dim")}
VARIANTS |= {"latent": ("latent_dim", "rope_dim"), "linear": ("decays",)}
BRINGS = {"cache": "rope"}
APART = (  # which do not go together, and why
    ("gqa", "latent", "a latent makes keys for every head"),
    ("other", "latent", "both say what keys and values are made from"),
    ("other", "full", "of another sequence nothing is hidden anyway"),
    ("other", "rope alibi window topk cache", "tokens of two sequences share no positions"),
    ("full", "window topk", "one hides nothing, and the other hides most"),
    ("full", "cache", "what is kept was made before what comes later was there"),
    ("linear", "full window topk other", "it sums up what was read so far, and all of it"),
    ("linear", "alibi cap sinks unscaled", "it has no softmax for them to act on"),
    ("unscaled", "alibi cap", "they act on scores that are scaled"),
    ("padding", "cache", "it is not agreed whether is_padding comes whole or in pieces"),
)


def combined(variant: str) -> str:
    """Return the name of a variant as cases bear it: its changes in the order of VARIANTS.

    Raises:
        ValueError: there is no such change, or two of them do not go together.
    """
    named = dict(zip(split(variant), filter(str.strip, variant.split(",")), strict=True))
    names, changes = {*named}, {*changes_of(variant)}
    if unknown := sorted(names - VARIANTS.keys()):
        every = f"one of {', '.join(VARIANTS)} is expected, or several joined by commas"
        raise ValueError(f"variant is {unknown[0]!r}: {every}")
    for one, others, reason in APART:
        if one in changes and (beside := changes.intersection(others.split())):
            raise ValueError(f"{one} and {min(beside)} do not go together: {reason}")
    for name in names:
        base, share = (*numbers_of(variant, name), 1.0, 1.0)[:2]
        only = numbers_of(variant, name) in ((), (1.0,) * (name in ("gqa", "norm")))
        if name != "rope" and not only or base <= 0 or not 0 < share <= 1:
            rule = "rope takes numbers, a base and a share of 1, gqa and norm a 1"
            raise ValueError(f"{named[name]!r}: {rule}")
    brought = {BRINGS.get(change) for change in names if not numbers_of(variant, "rope")}
    return ",".join(named[change].strip() for change in VARIANTS if change in names - brought)


def changes_of(variant: str) -> tuple[str, ...]:
    """Return the changes of a variant and those that they bring, in the order of VARIANTS."""
    names = {*split(variant)}
    names |= {BRINGS[name] for name in names & BRINGS.keys()}
    return tuple(name for name in VARIANTS if name in names)


def asked_besides(variant: str) -> tuple[str, ...]:
    """The names of what a constructor gets besides."""
    return tuple(size for change in changes_of(variant) for size in VARIANTS[change])


def signature(variant: str) -> str:
    """How a constructor is called."""
    lecture = "d_in, d_out, context_length, dropout, num_heads, qkv_bias=False"
    return ", ".join((lecture, *asked_besides(variant)))


def sizes_besides(case: Case) -> dict[str, Any]:
    """What a constructor gets besides, by name."""
    heads, asked = case.num_heads, asked_besides(case.variant)
    most = 1 if numbers_of(case.variant, "gqa") else heads // 2
    every = {"limit": 2 / heads, "window": 3, "latent_dim": 11, "rope_dim": 4}
    every |= {"top_keys": 3, "index_heads": 16, "index_dim": 8}
    every |= {name: alibi_slopes(heads) for name in {"slopes", "decays"} & {*asked}}
    every["num_kv_heads"] = max((n for n in range(1, most + 1) if heads % n == 0), default=1)
    return {name: every[name] for name in asked}


def beside_x(case: Case, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """What forward gets after x (b, num_tokens, d_in)."""
    more, answering = [], x
    if "other" in case.changes:
        shape = len(x), max(1, x.shape[1] - 2), x.shape[2]
        answering = known(f"other{case.seed}", shape).to(x)
        more.append(answering)
    if "padding" in case.changes:
        more.append(is_padding(*answering.shape[:2]).to(x.device))
    return tuple(more)


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

    With a cache x (b, num_tokens, d_in) comes in pieces, whose outputs are put together; if
    in_turn, a second text is read between them. Options are handed on to forward.
    """
    if "cache" in case.changes:
        return _in_pieces(module, x, in_turn, options)
    more = beside_x(case, x)
    out = module(x, *more, **options)
    filled = "padding" in case.changes and "other" not in case.changes  # tokens of x
    if filled and isinstance(out, torch.Tensor) and out.shape[:2] == x.shape[:2]:
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
    for piece in x.split([length for length in lengths if length], dim=1):
        returned = module(piece, *past, **options)
        if not isinstance(returned, tuple | list) or len(returned) != 2:
            return Alone(returned)
        outs.append(returned[0])
        past = returned[1:]
        if in_turn:
            others = module(piece + 1, *others, **options)[1:]
    return torch.cat(outs, dim=1)
