"""Say what is wrong with dropout, from weights that were read off a class in training."""

import torch

from helpers.checks.looks import close

DROPOUT = 0.2

Looks = tuple[torch.Tensor, ...]


def judge_dropout(looks: Looks, right: Looks) -> str:
    """Say what dropout does wrong: a catalogued mistake, a sentence, or nothing.

    Args:
        looks: weights read twice in eval mode and twice in training, as training_looks gives them.
        right: the same of the right class.
    """
    still, again, first, second = looks
    if not close(still, again):
        return "dropout_in_eval"
    if still.isnan().all():
        return ""
    if close(first, still):
        return "dropout_missing"
    if not close(still, right[0]):
        return (
            "With dropout above 0 the weights are other ones in eval mode too. Look at where "
            "dropout is used: in eval mode it changes nothing."
        )
    if first.isnan().any():  # a dropped -inf is NaN
        return "dropout_on_scores"
    if not close(first[..., 0, :], first[..., 1, :]):
        whole = (first + 3).abs() < 1e-6  # out_proj's bias is gone too
        return "dropout_on_output" if whole.any() else "dropout_on_context"
    weights, allowed = first[..., 0, :], right[0][..., 0, :] > 1e-3
    rows = weights.sum(-1)
    if close(rows, torch.ones_like(rows)):
        return "dropout_on_scores"
    dropped = (weights.abs() <= 1e-6) & allowed
    factors = (weights / right[0][..., 0, :])[allowed & ~dropped]
    if not len(factors) or factors.max() - factors.min() > 1e-2:
        return (
            "Dropout does not set single weights to 0. Apply it once, to the weights after the "
            "softmax."
        )
    share, factor = float(dropped.sum() / allowed.sum()), float(factors.mean())
    if abs(share - DROPOUT) < 0.08 and abs(factor - 1) < 1e-2:
        return "dropout_not_scaled_up"
    if abs(share - 1 + DROPOUT) < 0.08:
        return "dropout_inverted"
    if together := _judge_sharing(dropped, allowed):
        return together
    if abs(share - DROPOUT) > 0.08 or abs(factor - 1 / (1 - DROPOUT)) > 2e-2:
        return (
            f"With dropout = {DROPOUT} a share of {share:.2f} of the weights is dropped and the "
            f"others are multiplied by {factor:.3f}: expected are {DROPOUT} and "
            f"{1 / (1 - DROPOUT):.3f}. Look at `nn.Dropout(dropout)` and where it is used."
        )
    if close(first, second):
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
