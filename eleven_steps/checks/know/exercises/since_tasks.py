"""What the exercises about changes since the lecture ask: SINCE."""

from collections.abc import Callable
from dataclasses import replace

import torch

from eleven_steps.beyond.variants import alibi_slopes, distances, rotate
from eleven_steps.checks.know.exercises.kinds import Task, Write, slip
from eleven_steps.checks.know.right import Scene
from eleven_steps.checks.run.cases import Case, known
from eleven_steps.checks.run.contract import is_padding, sizes
from helpers.attention import future_mask

ALL = slice(None)
_NEAR = Case(2, 6, 3, 16, 4, 8, seed=7, called="at 6 tokens and 4 heads of 4 features")
_CASES = (
    _NEAR,
    replace(_NEAR, b=1, seed=8, called="with one sequence, at 6 tokens and 4 heads of 4 features"),
    Case(5, 7, 10, 48, 6, 9, qkv_bias=True, seed=7),
    Case(3, 4, 8, 12, 2, 12, qkv_bias=True, seed=7),
)


def _cases(variant: str) -> tuple[Case, ...]:
    return tuple(replace(each, variant=variant) for each in _CASES)


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


def _padding(s: Scene) -> torch.Tensor:
    """Which keys are filling, (b, 1, 1, num_tokens)."""
    return is_padding(s.case.b, s.case.num_tokens)[:, None, None]


def _hidden(s: Scene, *axes: slice | None) -> torch.Tensor:
    """The future, and padding put on these axes."""
    padding = is_padding(s.case.b, s.case.num_tokens)
    return future_mask(s.case.num_tokens) | padding[axes or (ALL, None, None)]


def _masked(s: Scene, *axes: slice | None) -> torch.Tensor:
    """The same, but a row that would be hidden whole is seen."""
    return _hidden(s, *axes) & ~_hidden(s, *axes).all(-1, keepdim=True)


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


def _future(s: Scene) -> torch.Tensor:
    return future_mask(s.case.num_tokens)


def _rates(s: Scene) -> torch.Tensor:
    """What an indexer says of every key to every query, (b, 1, num_tokens, num_tokens)."""
    return known("rates", (s.case.b, 1, s.case.num_tokens, s.case.num_tokens))


def _unchosen(s: Scene, rates: torch.Tensor, size: int = 3, dim: int = -1) -> torch.Tensor:
    """True but for the best keys of each query."""
    best = rates.topk(min(size, s.case.num_tokens), dim=dim).indices
    return torch.ones_like(rates, dtype=torch.bool).scatter(dim, best, False)


def _seen(s: Scene) -> torch.Tensor:
    """The rates, those of the future -inf."""
    return _rates(s).masked_fill(_future(s), -torch.inf)


def _chosen(s: Scene, *more: int) -> torch.Tensor:
    return _future(s) | _unchosen(s, _seen(s), *more)


def _token(s: Scene) -> tuple[torch.Tensor, ...]:
    """A table (b, num_heads, head_dim, head_dim), a token's query, key and value, and decays."""
    table = known("table", (s.case.b, s.case.num_heads, s.case.head_dim, s.case.head_dim))
    last = (s["transpose"][name][:, :, -1:] for name in ("queries", "keys", "values"))
    return table, *last, s.case.num_heads * sizes(s.case)["decays"]


def _read(s: Scene, fades: bool = True, late: bool = False, turned: bool = False) -> tuple:
    """The table after a token, and the token's context."""
    table, query, key, value, decays = _token(s)
    fade = torch.exp(-decays).view(-1, 1, 1) if fades else 1.0
    added = value.mT @ key if turned else key.mT @ value
    table = (table + added) * fade if late else table * fade + added
    return table, query @ table


SINCE: tuple[Task, ...] = (
    Write(
        "since.1",
        lambda s: (_KEYS(s), s.case.num_heads),
        ("keys",),
        (
            "kv_heads_tiled",
            slip("keys_as_they_are", lambda s: _KEYS(s)),
            slip(
                "repeated_num_kv_heads_times",
                lambda s: _KEYS(s).repeat_interleave(_KEYS(s).shape[1], dim=1),
            ),
        ),
        at="transpose",
        cases=_cases("gqa"),
    ),
    Write(
        "since.2",
        lambda s: (_large(s), s.module.query_norm.weight.detach()),
        ("queries",),
        (
            slip("divided_by_length", lambda s: _normed(s, -1) / _root(s)),
            slip("mean_over_heads", lambda s: _normed(s, 1, 3)),
            slip("mean_over_tokens", lambda s: _normed(s, 2)),
            slip("weight_left_out", lambda s: _normed(s, -1) / s.module.query_norm.weight),
            slip("mean_subtracted", lambda s: _normed(s, -1, less=1.0)),
            slip(
                "no_root",
                lambda s: _normed(s, -1) / _large(s).square().mean(-1, keepdim=True).sqrt(),
            ),
        ),
        right=lambda s: s.module.query_norm(_large(s)).detach(),
        at="transpose",
        cases=_cases("norm"),
    ),
    Write(
        "since.3",
        lambda s: (_QUERIES(s), _angles(s).cos(), _angles(s).sin()),
        ("queries",),
        (
            slip("rope_other_pairing", lambda s: _turned(s, "halves")),
            slip("pairs_not_put_back", lambda s: _in_halves(s)),
            slip("turned_backwards", lambda s: _turned(s, sign=-1)),
            slip("queries_as_they_are", lambda s: _QUERIES(s)),
        ),
        right=lambda s: _turned(s),
        at="transpose",
        cases=_cases("rope"),
    ),
    Write(
        "since.4",
        lambda s: (_slope(s), s.case.num_tokens),
        ("price",),
        (
            slip("price_below_0", lambda s: -_slope(s) * _apart(s)),
            slip("distance_squared", lambda s: _slope(s) * _apart(s) ** 2),
            slip("token_itself_costs", lambda s: _slope(s) * (_apart(s) + 1)),
            slip("distance_alone", lambda s: _apart(s)),
        ),
        right=lambda s: _slope(s) * _apart(s),
        at="scores",
        shape="(num_tokens, num_tokens)",
        cases=_cases("alibi"),
        counts=torch.tril,
    ),
    Write(
        "since.5",
        lambda s: (_raw(s), _limit(s), s.case.head_dim),
        ("scores",),
        (
            slip("comes_out_scaled", lambda s: _bent(s, 1 / _root(s), _limit(s))),
            slip(
                "cut_off_at_limit",
                lambda s: _raw(s).clamp(-_limit(s) * _root(s), _limit(s) * _root(s)),
            ),
            slip("limit_divided", lambda s: _bent(s, 1, _limit(s) / _root(s))),
            slip("limit_times_head_dim", lambda s: _bent(s, 1, _limit(s) * s.case.head_dim)),
        ),
        planted="cap_before_scale",
        at="scores",
        cases=_cases("cap"),
    ),
    Write(
        "since.6",
        lambda s: (s.case.num_tokens, _size(s)),
        ("mask",),
        (
            slip("window_one_long", lambda s: (_apart(s) < 0) | (_apart(s) > _size(s))),
            slip("window_one_short", lambda s: (_apart(s) < 0) | (_apart(s) >= _size(s) - 1)),
            slip("window_instead_of_mask", lambda s: _apart(s) >= _size(s)),
            slip("true_where_seen", lambda s: (_apart(s) >= 0) & (_apart(s) < _size(s))),
            slip("future_alone", lambda s: _apart(s) < 0),
        ),
        right=lambda s: (_apart(s) < 0) | (_apart(s) >= _size(s)),
        at="mask",
        shape="(num_tokens, num_tokens)",
        cases=(
            replace(_NEAR, variant="window"),
            Case(1, 6, 3, 16, 4, 6, called="with a window of 1", variant="window"),
            *_cases("window")[2:],
        ),
    ),
    Write(
        "since.7",
        lambda s: (future_mask(s.case.num_tokens), is_padding(s.case.b, s.case.num_tokens)),
        ("mask",),
        (
            "padding_polarity",
            "padding_nan",
            slip("padding_first_sequence", lambda s: _masked(s, slice(1), None, None)),
            slip("batch_for_heads", lambda s: _masked(s, ALL, None)),
            slip("padded_queries_hidden", lambda s: _masked(s, ALL, None, ALL, None)),
            slip("future_is_seen", lambda s: _padding(s).repeat(1, 1, s.case.num_tokens, 1)),
            slip("freed_too_often", lambda s: _hidden(s) & ~_padding(s).mT),
        ),
        right=lambda s: (s["mask"]["masked"] == -torch.inf)[:, :1],
        at="mask",
        shape="(b, 1, num_tokens, num_tokens)",
        cases=_cases("padding"),
    ),
    Write(
        "since.9",
        lambda s: (_scaled(s), s.module.sinks.detach()),
        ("weights",),
        (
            "sinks_left_out",
            "sinks_divided",
            "sinks_dropped_first",
            slip("sink_still_there", lambda s: _whole_rows(s)),
            slip("sums_to_1_again", lambda s: _whole_rows(s)[..., :-1].softmax(-1)),
        ),
        at="softmax",
        cases=_cases("sinks"),
    ),
    Write(
        "since.10",
        lambda s: (_joined(s), s["shape"]["x"], s.module.W_gate),
        ("context",),
        (
            "gate_without_sigmoid",
            "gate_added",
            slip("softmax_for_gate", lambda s: _joined(s) * _gates(s).softmax(-1)),
            slip("gate_alone", lambda s: _gates(s).sigmoid()),
            slip("context_as_it_is", lambda s: _joined(s)),
        ),
        at="combine",
        cases=_cases("gate"),
    ),
    Write(
        "since.11",
        lambda s: (_past(s), s.case.num_tokens),
        ("mask",),
        (
            slip("cache_mask_top_left", lambda s: _new_rows(s, 1)),
            slip("own_key_hidden", lambda s: _new_rows(s, _past(s))),
            slip("next_key_seen", lambda s: _new_rows(s, _past(s) + 2)),
            slip("kept_keys_missing", lambda s: future_mask(s.case.num_tokens)),
            slip("kept_tokens_ask", lambda s: future_mask(s.case.context_length)),
            slip("true_where_seen", lambda s: ~_new_rows(s, _past(s) + 1)),
        ),
        right=lambda s: _new_rows(s, _past(s) + 1),
        at="mask",
        shape="(num_tokens, past + num_tokens)",
        cases=(
            Case(1, 2, 3, 16, 4, 6, called="with past = 4 and num_tokens = 2", variant="cache"),
            Case(1, 6, 3, 16, 4, 6, called="with past = 0 and num_tokens = 6", variant="cache"),
            Case(1, 7, 3, 16, 4, 12, called="with past = 5 and num_tokens = 7", variant="cache"),
            Case(1, 1, 3, 16, 4, 6, called="with past = 5 and num_tokens = 1", variant="cache"),
        ),
    ),
    Write(
        "since.13",
        lambda s: (_rates(s), _future(s), 3),
        ("mask",),
        (
            slip("topk_before_mask", lambda s: _future(s) | _unchosen(s, _rates(s))),
            slip("topk_future_again", lambda s: _unchosen(s, _seen(s))),
            slip("topk_best_hidden", lambda s: _future(s) | ~_unchosen(s, _seen(s))),
            slip("one_key_more", lambda s: _chosen(s, 4)),
            slip("best_queries", lambda s: _chosen(s, 3, 2)),
        ),
        right=_chosen,
        at="mask",
        shape="(b, 1, num_tokens, num_tokens)",
        cases=_cases("topk"),
    ),
    Write(
        "since.14",
        _token,
        ("table", "context"),
        (
            slip("linear_no_decay", lambda s: _read(s, fades=False)),
            slip("linear_fades_at_once", lambda s: _read(s, late=True)),
            slip("linear_asked_first", lambda s: (_read(s)[0], _token(s)[1] @ _token(s)[0])),
            slip("value_times_key", lambda s: _read(s, turned=True)),
            slip("table_as_it_was", lambda s: (_token(s)[0], _read(s)[1])),
        ),
        right=_read,
        at="context",
        shape=("(b, num_heads, head_dim, head_dim)", "(b, num_heads, 1, head_dim)"),
        cases=_cases("linear"),
    ),
)
