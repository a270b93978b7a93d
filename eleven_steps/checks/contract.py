"""What "right" means: the class gives what ours gives, clause by clause.

A clause is a function of asking/clauses.py, the cases it is asked in, and what counts as equal. The
table of docs/checks.md is made of CONTRACT.
"""

import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from eleven_steps.checks.asking.cases import (
    BIASED,
    BY_DEFAULT,
    CASES,
    FEW,
    LONGER,
    MAIN,
    TOLERANCE,
    Case,
    close,
)
from eleven_steps.checks.asking.clauses import DRAWS, Reply, run_clause
from eleven_steps.checks.asking.isolation import clock_paused
from eleven_steps.checks.asking.questions import ask

SHARE = 0.3  # share of the weights to drop
NOT_TRIED = (
    "Not tried: other sizes and longer texts, half precision, padding and other masks, a KV cache, "
    "compiled code."
)


@dataclass(frozen=True)
class Clause:
    """Hold one line of the contract, asked in one case."""

    promise: str  # what the clause promises, in words
    name: str  # name of the function in asking/clauses.py
    case: Case
    step: int | None = None  # step at fault if this clause is broken, if that is clear
    dropout: float = 0.0
    new: bool = False  # whether to test the module as its constructor leaves it
    agree: Callable[[Any, Any], bool] = lambda one, other: equal(one, other)


def _promise(
    promise: str, name: str, *cases: Case, shares: tuple[float, ...] = (0.0,), **options: Any
) -> list[Clause]:
    each = ((case, share) for case in cases for share in shares)
    return [Clause(promise, name, case, dropout=share, **options) for case, share in each]


def equal(one: Any, other: Any, tolerance: float = TOLERANCE) -> bool:
    """Say whether two answers agree, numbers to rounding."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            equal(one[name], other[name], tolerance) for name in one
        )
    if isinstance(one, list | tuple) and type(one) is type(other):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return close(one, other, tolerance)
    return type(one) is type(other) and one == other


def like_draws(one: Any, other: Any) -> bool:
    """Say whether mean and spread of many draws agree, as far as so many draws can tell."""
    fits = isinstance(one, dict) and one.keys() == other.keys()
    if not fits or any(e.shape != other["mean"].shape for e in one.values()):
        return False
    if one["mean"].isnan().any():  # a whole row was dropped
        return equal(one["mean"].isnan(), other["mean"].isnan())
    off = 8 * other["spread"] / DRAWS**0.5 + 1e-3
    near = (one["spread"] - other["spread"]).abs() <= 0.2 * other["spread"] + 1e-3
    return bool(((one["mean"] - other["mean"]).abs() <= off).all() and near.all())


OUTPUT, DROPPED = "the output in eval mode", "what dropout does in training"
CONTRACT: tuple[Clause, ...] = (
    *_promise(OUTPUT, "output", *CASES),
    *_promise(
        "what learns, by name and shape", "parameters", MAIN, BIASED, BY_DEFAULT, new=True, step=2
    ),
    *_promise("no token sees its future", "past_output", MAIN, step=6),
    *_promise("x is not changed in place", "given_x", MAIN),
    *_promise("the output for x, again after a different text", "second_text", MAIN),
    *_promise("texts of other lengths and back", "other_lengths", LONGER),
    *_promise("another module's state is loaded", "loaded", MAIN),
    *_promise("new weights that can learn", "first_weights", BIASED, new=True, step=2),
    *_promise("the gradients", "gradients", BIASED, LONGER),
    *_promise("the output in training, without dropout", "in_training", MAIN, LONGER),
    *_promise("the gradients in training", "training_gradients", BIASED),
    *_promise("the output in eval mode after training", "after_training", MAIN),
    *_promise("no dropout in eval mode", "output", MAIN, shares=(SHARE,), step=7),
    *_promise(DROPPED, "dropped", FEW, shares=(SHARE, SHARE / 3), step=7, agree=like_draws),
    *_promise(
        *("dropout acts in a new module", "dropped_when_new", FEW),
        **{"shares": (SHARE,), "step": 7, "new": True, "agree": like_draws},
    ),
    *_promise("the output in float64", "in_double", MAIN),
    *_promise("the output on a second device", "on_second_device", MAIN),
)


@dataclass(frozen=True)
class Broken:
    """Hold a clause in which a class differs from the reference."""

    clause: Clause
    reply: Reply
    right: Any


def asked(cls: Any, clause: Clause) -> Reply:
    """Ask a class one clause, in this process or in its own."""
    question = clause.name, clause.case, clause.dropout, clause.new
    reply = ask(cls, "run_clause", *question)
    return reply if isinstance(reply, Reply) else Reply(reply, building=True)


@functools.lru_cache(4096)
def expected(reference: Any, clause: Clause) -> Reply:
    """Return what the reference gives in a clause."""
    with clock_paused():
        return run_clause(reference, clause.name, clause.case, clause.dropout, clause.new)


def broken_clauses(
    cls: Any, reference: Any, fitted: Callable[[Case], Case] = lambda case: case
) -> Iterator[Broken]:
    """Yield the clauses that a class breaks, in the order of the contract.

    Where the reference raises, because it does not exist at these sizes, nothing is asked. A class
    may be a proxy in a sandbox; fitted makes a case one of sizes that the class takes.
    """
    for clause in clauses_at(fitted):
        right = expected(reference, clause)
        if right.raised:
            continue
        reply = asked(cls, clause)
        if reply.raised or reply.building or not clause.agree(reply.value, right.value):
            yield Broken(clause, reply, right.value)


def clauses_at(fitted: Callable[[Case], Case]) -> Iterable[Clause]:
    """Return the contract at the sizes that a class takes, each clause once."""
    return dict.fromkeys(replace(clause, case=fitted(clause.case)) for clause in CONTRACT)
