"""Say what is wrong with dropout, from weights that were read off a class in training."""

from dataclasses import replace
from typing import Any

import torch

from helpers.checks.cases import Case, close
from helpers.checks.isolate import Failure
from helpers.checks.observe import Pass, ask
from helpers.checks.right import play

SHARE = 0.2
OFFSET = 3.0  # out_proj's bias while weights are read: dropout on the output hits it too
B, TOKENS, HEADS = 32, 6, 2
CASE = Case(B, TOKENS, TOKENS, HEADS * 2 * TOKENS, HEADS, TOKENS)

Looks = tuple[torch.Tensor, ...]


def dropout_looks(cls: Any) -> Looks | Failure:
    """Weights as read off the output: twice in eval mode, twice in training.

    Each is (b, num_heads, num_tokens, 2, num_tokens): every weight is read at two features, which
    dropout on weights leaves alike.
    """
    weights = {
        "W_value.weight": torch.eye(TOKENS).repeat(2 * HEADS, 1),
        "out_proj.weight": torch.eye(CASE.d_out),
        "out_proj.bias": torch.full((CASE.d_out,), OFFSET),
    }
    x = torch.eye(TOKENS).expand(B, TOKENS, TOKENS)
    first = Pass(x, weights=weights)
    modes = (False, 0), (False, 1), (True, 2), (True, 3)
    passes = [replace(first, train=train, seed=seed) for train, seed in modes]
    seen = ask(cls, "run", CASE, SHARE, passes)
    if isinstance(seen, Failure):
        return seen
    outs = [each.out for each in seen]
    if failed := [each for each in outs if isinstance(each, Failure)]:
        return failed[0]
    if any(out.shape != (B, TOKENS, CASE.d_out) for out in outs):
        return Failure("the output has another shape")
    return tuple(_read(out) for out in outs)


def right_weights() -> torch.Tensor:
    """The weights of the right class as dropout_looks reads them, in eval mode."""
    right = play(replace(CASE, qkv_bias=False))
    x = torch.eye(TOKENS).expand(B, TOKENS, TOKENS)
    steps: dict[str, torch.Tensor] = {}
    with torch.no_grad():
        right.module(x, record=lambda name, **t: steps.update(t))
    return steps["weights"][:, :, :, None].expand(B, HEADS, TOKENS, 2, TOKENS)


def judge_dropout(looks: Looks, right: torch.Tensor) -> str:
    """Say what dropout does wrong: a catalogued mistake, a sentence, or nothing.

    Args:
        looks: as dropout_looks gives them.
        right: the weights of the right class in eval mode.
    """
    still, again, first, second = looks
    if not close(still, again):
        return "dropout_in_eval"
    if still.isnan().all():
        return ""
    if close(first, still):
        return "dropout_missing"
    if not close(still, right):
        return (
            "With dropout above 0 the weights are other ones in eval mode too. Look at where "
            "dropout is used: in eval mode it changes nothing."
        )
    if first.isnan().any():  # a dropped -inf is NaN
        return "dropout_on_scores"
    if not close(first[..., 0, :], first[..., 1, :]):
        whole = (first + OFFSET).abs() < 1e-6  # out_proj's bias is gone too
        return "dropout_on_output" if whole.any() else "dropout_on_context"
    return judge_weights(first[..., 0, :], second[..., 0, :], right[..., 0, :])


def judge_weights(weights: torch.Tensor, again: torch.Tensor, right: torch.Tensor) -> str:
    """Judge weights (b, num_heads, num_tokens, num_tokens) in training beside those in eval."""
    allowed, rows = right > 1e-3, weights.sum(-1)
    if close(rows, torch.ones_like(rows)):
        return "dropout_on_scores"
    dropped = (weights.abs() <= 1e-6) & allowed
    factors = (weights / right)[allowed & ~dropped]
    if not len(factors) or factors.max() - factors.min() > 1e-2:
        return (
            "Dropout does not set single weights to 0. Apply it once, to the weights after the "
            "softmax."
        )
    share, factor = float(dropped.sum() / allowed.sum()), float(factors.mean())
    if abs(share - SHARE) < 0.08 and abs(factor - 1) < 1e-2:
        return "dropout_not_scaled_up"
    if abs(share - 1 + SHARE) < 0.08:
        return "dropout_inverted"
    if together := _judge_sharing(dropped, allowed):
        return together
    if abs(share - SHARE) > 0.08 or abs(factor - 1 / (1 - SHARE)) > 2e-2:
        return (
            f"With dropout = {SHARE} a share of {share:.2f} of the weights is dropped and the "
            f"others are multiplied by {factor:.3f}: expected are {SHARE} and "
            f"{1 / (1 - SHARE):.3f}. Look at `nn.Dropout(dropout)` and where it is used."
        )
    if close(weights, again):
        return "Dropout hits the same weights every time: let it draw anew in each forward."
    return ""


def _judge_sharing(dropped: torch.Tensor, allowed: torch.Tensor) -> str:
    """Say whether weights fall together, in (b, num_heads, num_tokens, num_tokens)."""
    axes = "sequences of the batch", "heads", "rows", "columns"
    for axis, name in enumerate(axes):
        length = dropped.shape[axis] - 1
        alike = dropped.narrow(axis, 0, length) == dropped.narrow(axis, 1, length)
        both = allowed.narrow(axis, 0, length) & allowed.narrow(axis, 1, length)
        if alike[both].float().mean() > 0.95:
            return (
                f"Dropout hits the same weights in all {name}: apply `nn.Dropout` to the whole "
                f"weights, (b, num_heads, num_tokens, num_tokens)."
            )
    return ""


def _read(out: torch.Tensor) -> torch.Tensor:
    """(b, num_tokens, d_out) to (b, num_heads, num_tokens, 2, num_tokens)."""
    return (out - OFFSET).view(B, TOKENS, HEADS, 2, TOKENS).transpose(1, 2)
