"""What the exercises on trained heads and on many machines ask: LEARN and MANY.

There are no processes here: what one of them makes is a function of tensors.
"""

from dataclasses import replace

import torch

from eleven_steps.checks.know.exercises.kinds import Task, Write, slip
from eleven_steps.checks.know.right import Parts, Scene
from eleven_steps.checks.run.cases import Case

_NEAR = Case(2, 8, 10, 12, 4, 8, seed=7, called="with 4 heads of 3 features on 2 processes")
_CASES = (
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
            slip("token_after", lambda s: _diagonal(s, 1).mean((0, 2))),
            slip("token_itself", lambda s: _diagonal(s, 0).mean((0, 2))),
            slip("divided_by_num_tokens", lambda s: _before(s).sum(2).mean(0) / s.case.num_tokens),
            slip("sequences_apart", lambda s: _before(s).mean(2)),
            slip("heads_averaged_too", lambda s: _before(s).mean()),
        ),
        right=lambda s: _before(s).mean((0, 2)),
        at="softmax",
        shape="(num_heads,)",
    ),
)


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


MANY: tuple[Task, ...] = (
    Write(
        "many.1",
        lambda s: (s.module.W_key, s.module.out_proj, _place(s), _processes(s)),
        ("rows", "columns"),
        (
            slip("rows_of_out_proj", lambda s: (_key(s)[_mine(s)], _mixing(s)[_mine(s)])),
            slip("rows_turned", lambda s: (_key(s)[_mine(s)], _mixing(s)[_mine(s)].T)),
            slip("columns_of_W_key", lambda s: (_key(s)[:, _mine(s)], _mixing(s)[:, _mine(s)])),
            slip("dealt_in_turns", lambda s: _cut(s, slice(_place(s), None, _processes(s)))),
            slip(
                "uneven_cut",
                lambda s: _cut(
                    s, slice(_place(s) * _processes(s), (_place(s) + 1) * _processes(s))
                ),
            ),
            slip("share_of_process_0", lambda s: _cut(s, _mine(s, 0))),
            slip("share_before", lambda s: _cut(s, _mine(s, _place(s) - 1))),
        ),
        right=lambda s: _cut(s, _mine(s)),
        at="out_proj",
        shape=("(d_out / num_processes, d_in)", "(d_out, d_out / num_processes)"),
        cases=_CASES,
    ),
    Write(
        "many.2",
        lambda s: (_contexts(s), s.module.out_proj),
        ("out",),
        (
            slip("bias_left_out", lambda s: sum(_parts(s))),
            slip("one_process", lambda s: _parts(s)[0] + _bias(s)),
            slip("one_process", lambda s: _parts(s)[-1] + _bias(s)),
            slip("summed_again", lambda s: sum(_parts(s)) * _processes(s) + _bias(s)),
            slip("parts_averaged", lambda s: sum(_parts(s)) / _processes(s) + _bias(s)),
            slip("rows_for_columns", lambda s: _of_rows(s) + _bias(s)),
            slip("wrong_block_order", lambda s: _backwards(s) + _bias(s)),
            slip("parts_side_by_side", lambda s: torch.cat(_parts(s), -1)),
        ),
        planted=slip(
            "bias_from_every_process", lambda s: sum(_parts(s)) + _processes(s) * _bias(s)
        ),
        right=lambda s: s["out_proj"]["out"],
        at="out_proj",
        cases=_CASES,
    ),
    Write(
        "many.5",
        _blocks,
        ("context",),
        (
            slip("totals_not_rescaled", lambda s: _merged(s, totals="not")),
            slip("contexts_not_rescaled", lambda s: _merged(s, contexts="not")),
            slip("nothing_rescaled", lambda s: _merged(s, "not", "not")),
            slip("rescaled_wrong_way", lambda s: _merged(s, "turned", "turned")),
            slip("first_block_alone", lambda s: _merged(s, "first", "first")),
            slip("overflow", lambda s: _merged(s, new=lambda one, other: 0 * one)),
            slip("overflow", lambda s: _merged(s, new=lambda one, other: one)),
            slip("overflow", lambda s: _merged(s, new=lambda one, other: other)),
            slip("not_divided_at_the_end", lambda s: _undivided(s)),
            slip("each_divided", lambda s: _each_divided(s)),
            slip("each_divided_and_averaged", lambda s: _each_divided(s) / 2),
        ),
        right=lambda s: s["context"]["context"][:, :, _half(s) :],
        at="context",
        shape="(b, num_heads, tokens here, head_dim)",
        cases=(*_CASES, _LARGE),
    ),
)
