"""Heads worked out with pencil and paper, and the numbers that usual slips give there.

They stand apart from helpers.attention: one head at a time, without a mask, y = x W as on the
sheet. What works each number out, and what is said of it, stands in sheet.toml.
"""

from collections.abc import Mapping, Sequence
from string import Template
from typing import Any

import torch

from eleven_steps.checks.know.exercises.kinds import Explain
from eleven_steps.checks.know.sentences import read

Matrices = Mapping[str, torch.Tensor]


def resolved(value: Any, shared: Mapping[str, str]) -> Any:
    """Put shared sentences into every text of a table, wherever $ names one."""
    if type(value) is str:
        return Template(value).substitute(shared)
    if type(value) is list:
        return [resolved(each, shared) for each in value]
    if type(value) is dict:
        return {name: resolved(each, shared) for name, each in value.items()}
    return value


_SHEET = read("exercises/sheet.toml")
_SHARED = _SHEET.pop("shared")
SAID = resolved(_SHEET, resolved(_SHARED, _SHARED))
CUT = _SHARED["cut"]


def single_head(given: Matrices) -> dict[str, Explain]:
    """Ask for one head without a mask, from X, W_q, W_k, W_v and W_o."""
    seen = _seen("single_head", given)
    parts = {
        name[-1].upper(): numbers("single_head.projected", seen, name=name)
        for name in ("W_q", "W_k", "W_v")
    }
    # Who rounds on the way is right too.
    all_H = [H for some in _rounded(seen["weights"]) for H in _rounded(some @ seen["V"])]
    all_Y = [Y for some in all_H for Y in _rounded(some @ seen["W_o"])]
    scaled, weights = _rounded(seen["scaled"]), _rounded(seen["weights"])
    return parts | {
        "scores": numbers("single_head.scores", seen),
        "scaled": numbers("single_head.scaled", seen, scaled, 0.04),
        "weights": numbers("single_head.weights", seen, weights, 0.006),
        "H": numbers("single_head.H", seen, all_H, 0.04),
        "Y": numbers("single_head.Y", seen, all_Y, 0.1),
    }


def columns(d: int, num_heads: int, given: Matrices) -> dict[str, Explain]:
    """Ask which columns of a wide W each head takes, and for A B piece by piece."""
    width, parts = d // num_heads, {}
    for head in (0, num_heads - 1):
        sizes = {"head": head, "first": head * width, "width": width}
        sizes |= {"d": d, "num_heads": num_heads}
        parts[f"head {head}"] = numbers("columns.head", sizes)
    seen = _seen("columns", given)
    for head in (0, 1):
        one = seen | {"head": head, "other": seen[f"B{1 - head}"]}
        parts[f"A B{head}"] = numbers("columns.piece", one, name=f"B{head}")
    return parts | {"A B": numbers("columns.whole", seen)}


def multi_head(given: Matrices) -> dict[str, Explain]:
    """Ask for the pieces of Q, K and V of two heads; then for H and Y of another input."""
    seen, parts = _seen("multi_head", given), {}
    for name in "QKV":
        halves = seen[name].chunk(2, 1)
        for head, piece in enumerate(halves):
            one = {"wide": seen[name], "head": head, "piece": piece, "other": halves[1 - head]}
            parts[f"{name}{head}"] = numbers("multi_head.piece", one)
    return parts | {name: numbers(f"multi_head.{name}", seen) for name in "HY"}


def _seen(kind: str, given: Matrices) -> dict[str, Any]:
    """What the lines of sheet.toml see: what is given, and what `let` names there."""
    seen = {name: matrix.double() for name, matrix in given.items()} | {"torch": torch}
    for name, line in SAID[kind]["let"].items():
        seen[name] = eval(line, seen)
    return seen


def numbers(
    where: str,
    seen: dict[str, Any],
    also: Sequence[torch.Tensor] = (),
    apart: float = 1e-4,
    **names: str,
) -> Explain:
    """Ask for a matrix. A slip may give the right numbers by chance: then it is none.

    Args:
        where: the table of sheet.toml that says what is right, and something of each slip.
        seen: what its lines see.
        also: what is right as well.
        apart: how far a right answer may be.
        names: what stands in braces there.
    """
    kind, part = where.split(".")
    (_, right), *slips = (
        (line.format(**names), said.format(**names)) for line, said in SAID[kind][part].items()
    )
    told: dict[tuple, str] = {}
    for line, said in slips:
        if line != right:
            told.setdefault(_nested(eval(line, seen)), said)
    every = tuple(dict.fromkeys(map(_nested, also)))
    return Explain("", _nested(eval(right, seen)), told, every, apart)


def _rounded(exact: torch.Tensor) -> list[torch.Tensor]:
    return [exact, *(exact.round(decimals=places) for places in (2, 3, 4))]


def _nested(matrix: Any) -> Any:
    if type(matrix) is not torch.Tensor:
        return matrix
    return tuple(map(_nested, matrix)) if matrix.dim() else matrix.item() + 0.0
