"""How a class with changes since the lecture is built and called: see Variant for what each is."""

from operator import call
from typing import Any

import torch
from torch import nn

from eleven_steps.beyond.variants import alibi_slopes
from eleven_steps.checks.run.cases import Case, seeded
from eleven_steps.checks.run.isolate import type_name
from eleven_steps.checks.run.reached import followed
from eleven_steps.checks.run.variant import Variant


def signature(variant: Variant) -> str:
    """How a constructor is called."""
    lecture = "d_in, d_out, context_length, dropout, num_heads, qkv_bias=False"
    return ", ".join((lecture, *variant.sizes))


def sizes_besides(case: Case) -> dict[str, Any]:
    """What a constructor gets besides, by name."""
    heads, asked = case.num_heads, case.variant.sizes
    most = 1 if case.variant.numbers("gqa") else heads // 2
    every = {"limit": 2 / heads, "window": 3, "latent_dim": 14, "rope_dim": 4}
    every |= {"top_keys": 3, "index_heads": 16, "index_dim": 8}
    every |= {name: alibi_slopes(heads) for name in {"slopes", "decays"} & {*asked}}
    every["num_kv_heads"] = max((n for n in range(1, most + 1) if heads % n == 0), default=1)
    return {name: every[name] for name in asked}


def beside_x(case: Case, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """What forward gets after x (b, num_tokens, d_in)."""
    more, answering = [], x
    if "other" in case.variant:
        shape = len(x), max(1, x.shape[1] - 2), x.shape[2]
        answering = seeded(f"other{case.seed}", shape).to(x)
        more.append(answering)
    if "padding" in case.variant:
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
    if "cache" in case.variant:
        return _in_pieces(module, x, in_turn, options)
    more = beside_x(case, x)
    out = followed(call, module, x, *more, **options)
    filled = "padding" in case.variant and "other" not in case.variant  # tokens of x
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
        returned = followed(call, module, piece, *past, **options)
        if not isinstance(returned, tuple | list) or len(returned) != 2:
            return Alone(returned)
        outs.append(returned[0])
        past = returned[1:]
        if in_turn:
            others = module(piece + 1, *others, **options)[1:]
    return torch.cat(outs, dim=1)
