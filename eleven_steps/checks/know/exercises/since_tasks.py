"""What the exercises about changes since the lecture ask: SINCE, as tasks.TASKS."""

from collections.abc import Callable
from dataclasses import replace

import torch

from eleven_steps.beyond.variants import alibi_slopes, distances, rotate
from eleven_steps.checks.know.exercises.kinds import Slip, Task, Write, catalogued
from eleven_steps.checks.know.right import Scene
from eleven_steps.checks.run.cases import Case
from eleven_steps.checks.run.contract import is_padding, sizes
from helpers.attention import future_mask

_NEAR = Case(2, 6, 3, 16, 4, 8, seed=7, called="at 6 tokens and 4 heads of 4 features")
_PLACES = (
    _NEAR,
    replace(_NEAR, b=1, seed=8, called="with one sequence, at 6 tokens and 4 heads of 4 features"),
    Case(5, 7, 10, 48, 6, 9, qkv_bias=True, seed=7),
    Case(3, 4, 8, 12, 2, 12, qkv_bias=True, seed=7),
)


def _places(variant: str) -> tuple[Case, ...]:
    return tuple(replace(each, variant=variant) for each in _PLACES)


def _by_head(name: str) -> Callable[[Scene], torch.Tensor]:
    """Queries, keys or values as step 4 groups them, before a change."""
    return lambda scene: scene["view"][name].transpose(1, 2)


_KEYS, _QUERIES = _by_head("keys"), _by_head("queries")


def _large(s: Scene) -> torch.Tensor:
    """Queries so large that 1e-6 under a root is lost."""
    return 10 * _QUERIES(s)


def _normed(s: Scene, *axes: int, less: float = 0.0) -> torch.Tensor:
    """Queries divided by the root of their mean square over axes, and weighed."""
    queries = _large(s) - less * _large(s).mean(axes, keepdim=True)
    return queries / queries.square().mean(axes, keepdim=True).sqrt() * s.module.query_norm.weight


def _angles(s: Scene) -> torch.Tensor:
    """Of every token and pair, (num_tokens, head_dim / 2)."""
    pairs = s.case.head_dim // 2
    return torch.arange(s.case.num_tokens)[:, None] / 10_000 ** (torch.arange(pairs) / pairs)


def _turned(s: Scene, pairing: str = "neighbours", sign: int = 1) -> torch.Tensor:
    return rotate(_QUERIES(s), sign * torch.arange(s.case.num_tokens), pairing=pairing)


def _in_halves(s: Scene) -> torch.Tensor:
    """Neighbours, turned, and put beside each other with cat."""
    return torch.cat(_turned(s).unflatten(-1, (-1, 2)).unbind(-1), -1)


def _slope(s: Scene) -> float:
    return alibi_slopes(s.case.num_heads)[0].item()


def _apart(s: Scene) -> torch.Tensor:
    """How far each key lies back, (num_tokens, num_tokens)."""
    return distances(s.case.num_tokens, s.case.num_tokens)


def _raw(s: Scene) -> torch.Tensor:
    """Scores before a cap."""
    return s["transpose"]["queries"] @ s["transpose"]["keys"].mT


def _bent(s: Scene, scale: float, limit: float) -> torch.Tensor:
    return limit * torch.tanh(_raw(s) * scale / limit)


def _limit(s: Scene) -> float:
    return sizes(s.case)["limit"]


def _root(s: Scene) -> float:
    return s.case.head_dim**0.5


def _size(s: Scene) -> int:
    """A window: of a token, of a few, and one longer than the text."""
    return s.case.context_length - s.case.num_tokens + 1


def _padding(s: Scene) -> tuple[torch.Tensor, torch.Tensor]:
    tokens = s.case.num_tokens
    return future_mask(tokens), is_padding(s.case.b, tokens)


def _rescued(hidden: torch.Tensor) -> torch.Tensor:
    return hidden & ~hidden.all(-1, keepdim=True)


def _scaled(s: Scene) -> torch.Tensor:
    return s["mask"]["masked"] / _root(s)


def _whole_rows(s: Scene) -> torch.Tensor:
    """Weights with the sink's column."""
    sinks = s.module.sinks.detach().view(-1, 1, 1).expand(*_scaled(s).shape[:-1], 1)
    return torch.cat([_scaled(s), sinks], -1).softmax(-1)


def _gates(s: Scene) -> torch.Tensor:
    """What W_gate makes of x, before the sigmoid."""
    return s.module.W_gate(s["shape"]["x"]).detach()


def _joined(s: Scene) -> torch.Tensor:
    """The combined context before a gate."""
    return s["reformat"]["context"].flatten(2)


def _past(s: Scene) -> int:
    return s.case.context_length - s.case.num_tokens


def _new_rows(s: Scene, diagonal: int) -> torch.Tensor:
    tokens = s.case.num_tokens
    return torch.ones(tokens, _past(s) + tokens, dtype=torch.bool).triu(diagonal)


SINCE: tuple[Task, ...] = (
    Write(
        "since.1",
        lambda s: (_KEYS(s), s.case.num_heads),
        ("keys",),
        (
            "kv_heads_tiled",
            Slip("The keys come back as they are: each head has to serve its group.",
                 lambda s: (_KEYS(s),)),
            Slip("Each head is repeated num_kv_heads times: a group is num_heads // num_kv_heads.",
                 lambda s: (_KEYS(s).repeat_interleave(_KEYS(s).shape[1], dim=1),)),
        ),
        at="transpose",
        places=_places("gqa"),
    ),
    Write(
        "since.2",
        lambda s: (_large(s), s.module.query_norm.weight.detach()),
        ("queries",),
        (
            Slip("The queries are divided by their length: the root of the mean of the squares is "
                 "smaller, by the root of head_dim.",
                 lambda s: (_normed(s, -1) / _root(s),)),
            Slip("The mean runs over all heads: each head's features are normed by themselves.",
                 lambda s: (_normed(s, 1, 3),)),
            Slip("The mean runs over the tokens: each token is normed by itself.",
                 lambda s: (_normed(s, 2),)),
            Slip("The weight is left out: multiply feature by feature at the end.",
                 lambda s: (_normed(s, -1) / s.module.query_norm.weight,)),
            Slip("The mean is subtracted first, as LayerNorm does: RMSNorm leaves it.",
                 lambda s: (_normed(s, -1, less=1.0),)),
            Slip("It is divided by the mean of the squares: take its root.",
                 lambda s: (_normed(s, -1) / _large(s).square().mean(-1, keepdim=True).sqrt(),)),
        ),
        right=lambda s: (s.module.query_norm(_large(s)).detach(),),
        at="transpose",
        places=_places("norm"),
    ),
    Write(
        "since.3",
        lambda s: (_QUERIES(s), _angles(s).cos(), _angles(s).sin()),
        ("queries",),
        (
            catalogued("rope_other_pairing", lambda s: (_turned(s, "halves"),)),
            Slip("The pairs are turned and then not put back beside each other: `cat` lays all "
                 "firsts before all seconds, `stack(..., dim=-1).flatten(-2)` takes them in turn.",
                 lambda s: (_in_halves(s),)),
            Slip("They turn backwards: the minus stands before the second feature's sine, "
                 "first * cos - second * sin.",
                 lambda s: (_turned(s, sign=-1),)),
            Slip("The queries come back as they are.", lambda s: (_QUERIES(s),)),
        ),
        right=lambda s: (_turned(s),),
        at="transpose",
        places=_places("rope"),
    ),
    Write(
        "since.4",
        lambda s: (_slope(s), s.case.num_tokens),
        ("price",),
        (
            Slip("The price falls below 0 for keys that lie back: row minus column is how far, "
                 "not column minus row.",
                 lambda s: (-_slope(s) * _apart(s),)),
            Slip("The distance is squared: the price grows by the slope with each token.",
                 lambda s: (_slope(s) * _apart(s) ** 2,)),
            Slip("The token itself costs something: its distance is 0.",
                 lambda s: (_slope(s) * (_apart(s) + 1),)),
            Slip("That is the distance alone: multiply it by the slope.",
                 lambda s: (_apart(s),)),
        ),
        right=lambda s: (_slope(s) * _apart(s),),
        at="scores",
        shape="(num_tokens, num_tokens)",
        places=_places("alibi"),
        counts=torch.tril,
    ),
    Write(
        "since.5",
        lambda s: (_raw(s), _limit(s), s.case.head_dim),
        ("scores",),
        (
            Slip("The scores come out scaled: step 7 divides again, so multiply by the root.",
                 lambda s: (_bent(s, 1 / _root(s), _limit(s)),)),
            Slip("The scores are cut off at the limit, and lie flat there: `tanh` bends them.",
                 lambda s: (_raw(s).clamp(-_limit(s) * _root(s), _limit(s) * _root(s)),)),
            Slip("The limit is divided by the root where it is multiplied by it: scores that are "
                 "not scaled yet are larger.",
                 lambda s: (_bent(s, 1, _limit(s) / _root(s)),)),
            Slip("The limit is multiplied by head_dim: its square root is meant.",
                 lambda s: (_bent(s, 1, _limit(s) * s.case.head_dim),)),
        ),
        planted="cap_before_scale",
        at="scores",
        places=_places("cap"),
    ),
    Write(
        "since.6",
        lambda s: (s.case.num_tokens, _size(s)),
        ("mask",),
        (
            catalogued("window_one_long", lambda s: ((_apart(s) < 0) | (_apart(s) > _size(s)),)),
            catalogued(
                "window_one_short", lambda s: ((_apart(s) < 0) | (_apart(s) >= _size(s) - 1),)
            ),
            catalogued("window_instead_of_mask", lambda s: (_apart(s) >= _size(s),)),
            Slip("True stands where a token may look: it is expected where it may not.",
                 lambda s: ((_apart(s) >= 0) & (_apart(s) < _size(s)),)),
            Slip("That is the future alone: what lies size tokens back or more is hidden too.",
                 lambda s: (_apart(s) < 0,)),
        ),
        right=lambda s: ((_apart(s) < 0) | (_apart(s) >= _size(s)),),
        at="mask",
        shape="(num_tokens, num_tokens)",
        places=(
            replace(_NEAR, variant="window"),
            Case(1, 6, 3, 16, 4, 6, called="with a window of 1", variant="window"),
            *_places("window")[2:],
        ),
    ),
    Write(
        "since.7",
        _padding,
        ("mask",),
        (
            "padding_polarity",
            "padding_nan",
            catalogued(
                "padding_first_sequence",
                lambda s: (_rescued(_padding(s)[0] | _padding(s)[1][:1, None, None]),),
            ),
            Slip("b stands where num_heads belongs: `is_padding[:, None, None]` leaves an axis for "
                 "the heads.",
                 lambda s: (_rescued(_padding(s)[0] | _padding(s)[1][:, None]),)),
            Slip("Padded queries are hidden, not padded keys: a column of the mask is a key.",
                 lambda s: (_rescued(_padding(s)[0] | _padding(s)[1][:, None, :, None]),)),
            Slip("The future is seen: hide it as well.",
                 lambda s: (_padding(s)[1][:, None, None].expand(
                     -1, 1, s.case.num_tokens, -1).clone(),)),
            Slip("All that is hidden in a row is seen wherever its sequence has padding: only a "
                 "row that is hidden whole is freed.",
                 lambda s: ((_padding(s)[0] | _padding(s)[1][:, None, None])
                            & ~_padding(s)[1][:, None, :, None],)),
        ),
        right=lambda s: ((s["mask"]["masked"] == -torch.inf)[:, :1],),
        at="mask",
        shape="(b, 1, num_tokens, num_tokens)",
        places=_places("padding"),
    ),
    Write(
        "since.9",
        lambda s: (_scaled(s), s.module.sinks.detach()),
        ("weights",),
        (
            "sinks_left_out",
            "sinks_divided",
            "sinks_dropped_first",
            Slip("The sink's weight is still there, as one key more: drop the last column.",
                 lambda s: (_whole_rows(s),)),
            Slip("What is left is divided so that it sums to 1 again: a sink's share is lost.",
                 lambda s: (_whole_rows(s)[..., :-1].softmax(-1),)),
        ),
        at="softmax",
        places=_places("sinks"),
    ),
    Write(
        "since.10",
        lambda s: (_joined(s), s["shape"]["x"], s.module.W_gate),
        ("context",),
        (
            "gate_without_sigmoid",
            "gate_added",
            Slip("A softmax shares 1 among the features: a sigmoid lets each be open or shut.",
                 lambda s: (_joined(s) * _gates(s).softmax(-1),)),
            Slip("That is the gate alone: multiply the context by it.",
                 lambda s: (_gates(s).sigmoid(),)),
            Slip("The context comes back as it is.", lambda s: (_joined(s),)),
        ),
        at="combine",
        places=_places("gate"),
    ),
    Write(
        "since.11",
        lambda s: (_past(s), s.case.num_tokens),
        ("mask",),
        (
            catalogued("cache_mask_top_left", lambda s: (_new_rows(s, 1),)),
            Slip("A query does not see its own key: its future begins one further right.",
                 lambda s: (_new_rows(s, _past(s)),)),
            Slip("A query sees the key after its own: its future begins one further left.",
                 lambda s: (_new_rows(s, _past(s) + 2),)),
            Slip("The kept keys are missing: a row has past + num_tokens keys.",
                 lambda s: (future_mask(s.case.num_tokens),)),
            Slip("The kept tokens ask no more: a row for each new one is enough.",
                 lambda s: (future_mask(s.case.context_length),)),
            Slip("True stands where a token may look: it is expected where it may not.",
                 lambda s: (~_new_rows(s, _past(s) + 1),)),
        ),
        right=lambda s: (_new_rows(s, _past(s) + 1),),
        at="mask",
        shape="(num_tokens, past + num_tokens)",
        places=(
            Case(1, 2, 3, 16, 4, 6, called="with past = 4 and num_tokens = 2", variant="cache"),
            Case(1, 6, 3, 16, 4, 6, called="with past = 0 and num_tokens = 6", variant="cache"),
            Case(1, 7, 3, 16, 4, 12, called="with past = 5 and num_tokens = 7", variant="cache"),
            Case(1, 1, 3, 16, 4, 6, called="with past = 5 and num_tokens = 1", variant="cache"),
        ),
    ),
)  # fmt: skip
