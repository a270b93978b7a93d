"""What the exercises on trained heads and on many machines ask: LEARN and MANY, as tasks.TASKS.

There are no processes here: what one of them makes is a function of tensors.
"""

from dataclasses import replace

import torch

from eleven_steps.checks.know.exercises.kinds import Slip, Task, Write
from eleven_steps.checks.know.right import Parts, Scene
from eleven_steps.checks.run.cases import Case

_NEAR = Case(2, 8, 10, 12, 4, 8, seed=7, called="with 4 heads of 3 features on 2 processes")
_PLACES = (
    _NEAR,
    Case(2, 8, 10, 12, 4, 8, seed=8, called="with other numbers of the same sizes"),
    Case(5, 7, 10, 48, 6, 9, seed=7, called="with 6 heads of 8 features on 3 processes"),
    Case(1, 6, 12, 16, 8, 7, seed=7, called="with 8 heads of 2 features on 4 processes"),
)
_LARGE = replace(_NEAR, seed=9, scale=6.0, called="where some scores are above 88")


# Heads that learn


def _diagonal(s: Scene, offset: int) -> torch.Tensor:
    """Weights along a diagonal, (b, num_heads, as many as it is long)."""
    return s["softmax"]["weights"].diagonal(offset=offset, dim1=2, dim2=3)


def _before(s: Scene) -> torch.Tensor:
    return _diagonal(s, -1)


LEARN: tuple[Task, ...] = (
    Write(
        "learn.1",
        lambda s: (s["softmax"]["weights"],),
        ("back",),
        (
            Slip("All of it is 0, as it is above the main diagonal, where the token after is "
                 "hidden: `offset=-1` lies below.",
                 lambda s: (_diagonal(s, 1).mean((0, 2)),)),
            Slip("That is how much a token looks at itself: the token before lies one below the "
                 "main diagonal.",
                 lambda s: (_diagonal(s, 0).mean((0, 2)),)),
            Slip("The sum is divided by num_tokens: the first token has no token before it, so "
                 "there is one fewer.",
                 lambda s: (_before(s).sum(2).mean(0) / s.case.num_tokens,)),
            Slip("Each sequence still has a number of its own: the mean runs over b as well.",
                 lambda s: (_before(s).mean(2),)),
            Slip("The heads are averaged too: each head has a number of its own.",
                 lambda s: (_before(s).mean(),)),
        ),
        right=lambda s: (_before(s).mean((0, 2)),),
        at="softmax",
        shape="(num_heads,)",
    ),
)  # fmt: skip


# Heads over processes


def _processes(s: Scene) -> int:
    """Over how many processes the heads are cut: two heads each where that goes, else one."""
    return s.case.num_heads // 2 if s.case.num_heads % 2 == 0 else s.case.num_heads


def _place(s: Scene) -> int:
    """Which of them is asked for: never the first."""
    return _processes(s) // 2


def _share(s: Scene) -> int:
    """Features of the heads of one process."""
    return s.case.d_out // _processes(s)


def _mine(s: Scene, place: int | None = None) -> slice:
    place = _place(s) if place is None else place
    return slice(place * _share(s), (place + 1) * _share(s))


def _cut(s: Scene, features: slice) -> Parts:
    """Rows of W_key and columns of out_proj."""
    return _key(s)[features], _mixing(s)[:, features]


def _key(s: Scene) -> torch.Tensor:
    return s.module.W_key.weight.detach()


def _mixing(s: Scene) -> torch.Tensor:
    return s.module.out_proj.weight.detach()


def _bias(s: Scene) -> torch.Tensor:
    return s.module.out_proj.bias.detach()


def _contexts(s: Scene) -> Parts:
    """What each process has made at step 10, (b, num_tokens, d_out / P)."""
    return s["combine"]["context"].chunk(_processes(s), dim=-1)


def _parts(s: Scene) -> list[torch.Tensor]:
    """What each process hands to the all-reduce, without a bias."""
    return [c @ _mixing(s)[:, _mine(s, place)].T for place, c in enumerate(_contexts(s))]


def _of_rows(s: Scene) -> torch.Tensor:
    """The sum, made with rows of out_proj."""
    return sum(c @ _mixing(s)[_mine(s, place)] for place, c in enumerate(_contexts(s)))


def _backwards(s: Scene) -> torch.Tensor:
    """The sum, the columns dealt out from the last process to the first."""
    columns = [_mixing(s)[:, _mine(s, place)].T for place in range(_processes(s))]
    return sum(c @ each for c, each in zip(_contexts(s), reversed(columns), strict=True))


# Two blocks of keys


def _half(s: Scene) -> int:
    """From which token on keys lie on the second process."""
    return s.case.num_tokens // 2


def _block(s: Scene, keys: slice) -> Parts:
    """What the queries of the later half find in one block of keys: largest, total, context."""
    scaled = s["mask"]["masked"][:, :, _half(s) :, keys] / s.case.head_dim**0.5
    largest = scaled.amax(-1, keepdim=True)
    shares = (scaled - largest).exp()
    return largest, shares.sum(-1, keepdim=True), shares @ s["transpose"]["values"][:, :, keys]


def _blocks(s: Scene) -> tuple[Parts, Parts]:
    return _block(s, slice(0, _half(s))), _block(s, slice(_half(s), None))


def _merged(s: Scene, totals="right", contexts="right", new=torch.maximum) -> torch.Tensor:
    """Both blocks together; totals and contexts rescaled as they are named, to the new largest."""
    (one, total, context), (other, other_total, other_context) = _blocks(s)
    largest = new(one, other)
    ways = {
        "right": ((one - largest).exp(), (other - largest).exp()),
        "not": (1, 1),
        "turned": ((largest - one).exp(), (largest - other).exp()),
        "first": ((one - largest).exp(), 1),
    }
    (a, b), (c, d) = ways[totals], ways[contexts]
    return (c * context + d * other_context) / (a * total + b * other_total)


def _undivided(s: Scene) -> torch.Tensor:
    (one, _, context), (other, _, other_context) = _blocks(s)
    largest = torch.maximum(one, other)
    return (one - largest).exp() * context + (other - largest).exp() * other_context


def _each_divided(s: Scene) -> torch.Tensor:
    return sum(context / total for _, total, context in _blocks(s))


_OVERFLOW = "exp overflows above 88: subtract the maximum of both, exp(largest - new largest)."
_ONE = "That is what one process makes: the all-reduce adds all parts up, and it is missing."

MANY: tuple[Task, ...] = (
    Write(
        "many.1",
        lambda s: (s.module.W_key, s.module.out_proj, _place(s), _processes(s)),
        ("rows", "columns"),
        (
            Slip("Of out_proj these are rows: it reads the heads side by side, so a head's "
                 "features are columns of its weight.",
                 lambda s: (_key(s)[_mine(s)], _mixing(s)[_mine(s)])),
            Slip("Of out_proj these are rows, turned: a head's features are columns of its weight.",
                 lambda s: (_key(s)[_mine(s)], _mixing(s)[_mine(s)].T)),
            Slip("Of W_key these are columns: `.weight` is stored d_out x d_in, so a head's "
                 "features are rows.",
                 lambda s: (_key(s)[:, _mine(s)], _mixing(s)[:, _mine(s)])),
            Slip("The features are dealt out in turns, so that every head is torn apart: the "
                 "features of a head lie side by side.",
                 lambda s: _cut(s, slice(_place(s), None, _processes(s)))),
            Slip("That is an uneven cut, num_processes features a process: each gets "
                 "d_out / num_processes, and with them whole heads.",
                 lambda s: _cut(s, slice(_place(s) * _processes(s),
                                         (_place(s) + 1) * _processes(s)))),
            Slip("That is the share of process 0: begin at place * share.",
                 lambda s: _cut(s, _mine(s, 0))),
            Slip("That is the share of the process before: places are counted from 0.",
                 lambda s: _cut(s, _mine(s, _place(s) - 1))),
        ),
        right=lambda s: _cut(s, _mine(s)),
        at="out_proj",
        shape=("(d_out / num_processes, d_in)", "(d_out, d_out / num_processes)"),
        places=_PLACES,
    ),
    Write(
        "many.2",
        lambda s: (_contexts(s), s.module.out_proj),
        ("out",),
        (
            Slip("The bias is left out: it belongs into the sum once.",
                 lambda s: (sum(_parts(s)),)),
            Slip(_ONE, lambda s: (_parts(s)[0] + _bias(s),)),
            Slip(_ONE, lambda s: (_parts(s)[-1] + _bias(s),)),
            Slip("The sum is summed again: every process has it already, so a second all-reduce "
                 "makes it num_processes times as large.",
                 lambda s: (sum(_parts(s)) * _processes(s) + _bias(s),)),
            Slip("The parts are averaged: the product was cut as a sum, so they are added.",
                 lambda s: (sum(_parts(s)) / _processes(s) + _bias(s),)),
            Slip("The contexts meet rows of out_proj's weight: a head's features are its columns.",
                 lambda s: (_of_rows(s) + _bias(s),)),
            Slip("The blocks of columns come in the wrong order: process 0 has the first ones.",
                 lambda s: (_backwards(s) + _bias(s),)),
            Slip("The parts are laid side by side: each is as wide as out already, so they are "
                 "added.",
                 lambda s: (torch.cat(_parts(s), -1),)),
        ),
        planted=Slip("Every process adds the bias, so that the sum has it num_processes times.",
                     lambda s: (sum(_parts(s)) + _processes(s) * _bias(s),)),
        right=lambda s: (s["out_proj"]["out"],),
        at="out_proj",
        places=_PLACES,
    ),
    Write(
        "many.5",
        _blocks,
        ("context",),
        (
            Slip("The totals are added as they are: rescale them like the contexts, by "
                 "exp(largest - new largest).",
                 lambda s: (_merged(s, totals="not"),)),
            Slip("The contexts are added as they are: rescale them like the totals, by "
                 "exp(largest - new largest).",
                 lambda s: (_merged(s, contexts="not"),)),
            Slip("Nothing is rescaled: each block has measured from a largest score of its own.",
                 lambda s: (_merged(s, "not", "not"),)),
            Slip("They are rescaled the wrong way round: a block whose largest score is lower "
                 "counts for less, exp(largest - new largest).",
                 lambda s: (_merged(s, "turned", "turned"),)),
            Slip("Only the first block is rescaled: the second may have the lower scores as well.",
                 lambda s: (_merged(s, "first", "first"),)),
            Slip(_OVERFLOW, lambda s: (_merged(s, new=lambda one, other: 0 * one),)),
            Slip(_OVERFLOW, lambda s: (_merged(s, new=lambda one, other: one),)),
            Slip(_OVERFLOW, lambda s: (_merged(s, new=lambda one, other: other),)),
            Slip("Divide by the total of both at the end: that is what makes shares of it.",
                 lambda s: (_undivided(s),)),
            Slip("Each block is divided by its own total, so that each gets a weight of 1: divide "
                 "once, at the end.",
                 lambda s: (_each_divided(s),)),
            Slip("Each block is divided by its own total, and the mean is taken: the block with "
                 "the larger scores counts for more.",
                 lambda s: (_each_divided(s) / 2,)),
        ),
        right=lambda s: (s["context"]["context"][:, :, _half(s) :],),
        at="context",
        shape="(b, num_heads, tokens here, head_dim)",
        places=(*_PLACES, _LARGE),
    ),
)  # fmt: skip
