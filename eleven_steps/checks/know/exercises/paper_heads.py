"""Heads worked out with pencil and paper, and the numbers that usual slips give there.

They stand apart from helpers.attention: one head at a time, without a mask, y = x W as on the
sheet, and each slip is a variant of it. What is said of a slip stands in sheet.toml.
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
CUT = SAID["single_head"]["weights"]["cut"]


def single_head(given: Matrices) -> dict[str, Explain]:
    """Ask for one head without a mask, from X, W_q, W_k, W_v and W_o."""
    X, W_q, W_k, W_v, W_o = (given[name].double() for name in ("X", "W_q", "W_k", "W_v", "W_o"))
    Q, K, V = X @ W_q, X @ W_k, X @ W_v
    parts = _projections(X, {"W_q": W_q, "W_k": W_k, "W_v": W_v})
    return parts | _weighed(Q, K, V) | _mixed(X, Q, K, V, W_o)


def _weighed(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> dict[str, Explain]:
    scores, d_k, root = Q @ K.T, K.shape[1], K.shape[1] ** 0.5
    scaled = scores / root
    weights = scaled.softmax(-1)
    of_scores = {
        "keys_not_transposed": Q @ K,
        "keys_first": K @ Q.T,
        "features": Q.T @ K,
        "not_summed": Q * K,
        "with_values": Q @ V.T,
        "scaled": scaled,
    }
    of_scaled = {
        "not_scaled": scores,
        "by_d_k": scores / d_k,
        "multiplied": scores * root,
        "softmaxed": weights,
    }
    of_weights = {
        "not_scaled": scores.softmax(-1),
        "by_d_k": (scores / d_k).softmax(-1),
        "multiplied": (scores * root).softmax(-1),
        "over_columns": scaled.softmax(0),
        "over_all": scaled.flatten().softmax(0).view_as(scaled),
        "masked": _causal(scaled),
        "transposed": weights.T,
        "no_exp": scaled / scaled.sum(-1, True),
        "not_divided": scaled.exp(),
        "even": torch.full_like(scaled, 1 / len(scaled)),
        "hard": torch.eye(len(scaled), dtype=scaled.dtype),
        "other_row": weights.flip(0),
        "cut": (weights * 100).floor() / 100,
    }
    return {
        "scores": numbers("single_head.scores", scores, of_scores),
        "scaled": numbers("single_head.scaled", scaled, of_scaled, _rounded(scaled), 0.04),
        "weights": numbers("single_head.weights", weights, of_weights, _rounded(weights), 0.006),
    }


def _mixed(X, Q, K, V, W_o: torch.Tensor) -> dict[str, Explain]:
    scores = Q @ K.T
    scaled = scores / K.shape[1] ** 0.5
    weights, masked = scaled.softmax(-1), _causal(scaled)
    H = weights @ V
    of_H = {
        "transposed": weights.T @ V,
        "factors_swapped": V @ weights,
        "masked": masked @ V,
        "over_columns": scaled.softmax(0) @ V,
        "by_scores": scores @ V,
        "by_scaled": scaled @ V,
        "mixes_X": weights @ X,
        "mixes_K": weights @ K,
        "elementwise": weights * V,
    }
    of_Y = {
        "no_W_o": H,
        "transposed": H @ W_o.T,
        "factors_swapped": W_o @ H,
        "X_added": H @ W_o + X,
        "masked": masked @ V @ W_o,
    }
    # Who rounds on the way is right too.
    all_H = [H for some in _rounded(weights) for H in _rounded(some @ V)]
    all_Y = [Y for some in all_H for Y in _rounded(some @ W_o)]
    return {
        "H": numbers("single_head.H", H, of_H, all_H, 0.04),
        "Y": numbers("single_head.Y", H @ W_o, of_Y, all_Y, 0.1),
    }


def _causal(scaled: torch.Tensor) -> torch.Tensor:
    future = torch.ones_like(scaled).triu(1).bool()
    return scaled.masked_fill(future, -torch.inf).softmax(-1)


def _projections(X: torch.Tensor, weights: Matrices) -> dict[str, Explain]:
    parts = {}
    for name, W in weights.items():
        slips = {"transposed": X @ W.T, "factors_swapped": W @ X, "elementwise": X * W}
        slips |= {other: X @ weights[other] for other in weights if other != name}
        parts[name[-1].upper()] = numbers("single_head.projected", X @ W, slips, name=name)
    return parts


def columns(d: int, num_heads: int, given: Matrices) -> dict[str, Explain]:
    """Ask which columns of a wide W each head takes, and for A B piece by piece."""
    A, B = given["A"].double(), given["B"].double()
    width, said, parts = d // num_heads, SAID["columns"]["head"], {}
    for head in (0, num_heads - 1):
        first, name = head * width, f"head {head}"
        slips = {
            (first, first + width): said["one_more"],
            (first + 1, first + width): said["from_one"],
            (head, d - num_heads + head): said["in_turns"],
        }
        parts[name] = Explain(name, (first, first + width - 1), slips)
    halves = B.chunk(2, 1)
    for head, piece in enumerate(halves):
        slips = {
            "other_half": A @ halves[1 - head],
            "all": A @ B,
            "in_turns": A @ B[:, head::2],
            "transposed": A @ piece.T,
            "factors_swapped": piece @ A,
            "elementwise": A * piece,
        }
        name = f"B{head}"
        parts[f"A {name}"] = numbers("columns.piece", A @ piece, slips, name=name)
    one, other = (A @ piece for piece in halves)
    slips = {
        "swapped": torch.cat([other, one], 1),
        "below": torch.cat([one, other]),
        "added": one + other,
    }
    parts["A B"] = numbers("columns.whole", A @ B, slips)
    return parts


def multi_head(given: Matrices) -> dict[str, Explain]:
    """Ask for the pieces of Q, K and V of two heads; then for H and Y of another input."""
    parts = {}
    for name in "QKV":
        wide = given[name].double()
        halves = wide.chunk(2, 1)
        for head, piece in enumerate(halves):
            slips = {
                "other_head": halves[1 - head],
                "row": wide[head],
                "whole_row": wide[head : head + 1],
                "in_turns": wide[:, head::2],
                "cut_rows": wide.reshape(2, 2, -1)[head],
                "transposed": piece.T,
            }
            parts[f"{name}{head}"] = numbers("multi_head.piece", piece, slips)
    H0, H1, W_o = (given[name].double() for name in ("H0", "H1", "W_o"))
    H, swapped = torch.cat([H0, H1], 1), torch.cat([H1, H0], 1)
    in_turns = torch.stack([H0, H1], -1).flatten(1)
    of_H = {
        "swapped": swapped,
        "below": torch.cat([H0, H1]),
        "added": H0 + H1,
        "averaged": (H0 + H1) / 2,
        "in_turns": in_turns,
        "mixed": H @ W_o,
    }
    of_Y = {
        "no_W_o": H,
        "transposed": H @ W_o.T,
        "swapped": swapped @ W_o,
        "in_turns": in_turns @ W_o,
    }
    parts["H"] = numbers("multi_head.H", H, of_H)
    parts["Y"] = numbers("multi_head.Y", H @ W_o, of_Y)
    return parts


def numbers(
    where: str,
    right: torch.Tensor,
    slips: Matrices,
    also: Sequence[torch.Tensor] = (),
    apart: float = 1e-4,
    **names: str,
) -> Explain:
    """Ask for a matrix. A slip may give the right numbers by chance: then it is none.

    Args:
        where: the table of sheet.toml that says something of each slip.
        right: the matrix.
        slips: what usual slips give, by their names there.
        also: what is right as well.
        apart: how far a right answer may be.
        names: what stands in braces there.
    """
    kind, part = where.split(".")
    told: dict[tuple, str] = {}
    for slip, matrix in slips.items():
        told.setdefault(_nested(matrix), SAID[kind][part][slip].format(**names))
    return Explain("", _nested(right), told, tuple(dict.fromkeys(map(_nested, also))), apart)


def _rounded(exact: torch.Tensor) -> list[torch.Tensor]:
    return [exact, *(exact.round(decimals=places) for places in (2, 3, 4))]


def _nested(matrix: torch.Tensor) -> tuple | float:
    return tuple(map(_nested, matrix)) if matrix.dim() else matrix.item() + 0.0
