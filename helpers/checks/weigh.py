"""Tell from the weights that a class uses, beside the right scores, which step makes them wrong."""

import math

import torch

from helpers.checks.cases import LOOSE, close
from helpers.checks.outcome import Finding
from helpers.checks.places import place

HIDDEN = -1e4  # a score below this counts as hidden


def weigh(
    used: torch.Tensor,
    scores: torch.Tensor,
    right: torch.Tensor,
    recorded: list[torch.Tensor],
) -> Finding:
    """Name the first of steps 5 to 8 at which the weights went wrong.

    Args:
        used: the weights that gather the values, (b * num_heads, num_tokens, num_tokens).
        scores: the right scores, of the same shape.
        right: the right weights, of the same shape.
        recorded: every (.., num_tokens, num_tokens) that was made of queries and keys, in order.
    """
    tokens = used.shape[-1]
    future = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
    masked = next((each for each in recorded if (each < HIDDEN).any()), None)
    odd = [each for each in recorded if (each < HIDDEN).any() and not _hides(each, future)]

    def finding(step: int, text: str) -> Finding:
        return Finding(step, text, None, used[0], right[0], "weights of the first head")

    if masked is not None and not _follows(masked, scores):
        return finding(
            5,
            "What is masked is not the scores: something is done to them after the product. Look "
            "at the scores: `queries @ keys.transpose(2, 3)`, nothing else.",
        )
    if odd:
        hidden = odd[0] < HIDDEN
        return finding(6, _hidden_text(hidden, future))
    seen = used.nan_to_num(1.0).abs() > 1e-5
    if masked is None and (seen & future).any():
        return finding(
            6,
            f"Tokens see their future{_in_heads(seen & future)}: weights above the diagonal are "
            f"not 0. Look at the mask: -inf stands above the diagonal, before the softmax.",
        )
    return _softmaxed(used, scores, right, masked is not None, finding)


def _softmaxed(used, scores, right, masked: bool, finding) -> Finding:
    """Step 7, or a mask that comes after it: the support is right, or was when it was masked."""
    tokens = used.shape[-1]
    past = torch.ones(tokens, tokens, dtype=torch.bool).tril()
    factor, wanted = _fit(used, scores, past), _fit(right, scores, past)
    rows = used.sum(-1)
    even = close(rows, torch.ones_like(rows), LOOSE)
    if factor is not None and even:
        return finding(7, _scale_text(factor, wanted))
    if factor is not None and not masked:
        return finding(
            6,
            "The mask comes after the softmax, so the rows of the weights do not sum to 1. Look at "
            "the mask: set future scores to -inf before the softmax.",
        )
    if factor is not None:
        return finding(
            7,
            f"The last row of the weights sums to {float(rows[0, -1]):.3f}, not to 1. Look at the "
            f"softmax: it runs over the keys (`dim=-1`), and nothing scales the weights after it.",
        )
    if used.isnan().any():
        return finding(
            7,
            "Some weights are NaN, though the mask hides the future alone. Look at the softmax: "
            "it runs over the keys, `dim=-1`.",
        )
    columns = used.sum(-2)
    if close(columns, torch.ones_like(columns), LOOSE):
        return finding(
            7,
            "The columns of the weights sum to 1, not the rows: the softmax runs over the queries. "
            "Look at the softmax: `dim=-1`.",
        )
    return finding(
        7,
        f"The masked scores are right and the weights are not their softmax; the last row sums to "
        f"{float(rows[0, -1]):.3f}. Look at the softmax: "
        f"`torch.softmax(masked / head_dim**0.5, dim=-1)`.",
    )


def _hides(tensor: torch.Tensor, future: torch.Tensor) -> bool:
    return bool(((tensor < HIDDEN) == future).all())


def _follows(masked: torch.Tensor, scores: torch.Tensor) -> bool:
    """Whether the scores that are left are the right ones, times one number."""
    left = masked[(masked > HIDDEN) & masked.isfinite()]
    if not len(left):
        return True
    roots = (1.0, 0.5) if masked.shape == scores.shape else (1.0,)
    ratio = float(left.abs().max() / scores.abs().max())
    if masked.shape == scores.shape:
        beside = scores[(masked > HIDDEN) & masked.isfinite()]
        ratio = float((left @ beside) / (beside @ beside))
    return place(left, scores, (ratio, *roots)) is not None


def _fit(weights: torch.Tensor, scores: torch.Tensor, where: torch.Tensor) -> float | None:
    """Factor a for which log weights is a * scores plus a constant for each row, where asked."""
    where = where.expand_as(weights)
    if not (weights[where] > 0).all():
        return None
    logs = torch.where(where, weights.clamp(min=1e-9).log(), torch.nan)
    wanted = torch.where(where, scores, torch.nan)
    logs, wanted = logs - logs.nanmean(-1, True), wanted - wanted.nanmean(-1, True)
    logs, wanted = logs.nan_to_num(), wanted.nan_to_num()
    factor = float((logs * wanted).sum() / (wanted * wanted).sum())
    fits = (logs - factor * wanted).abs().max() < 5e-3 * (1 + abs(factor))
    return factor if fits and abs(factor) > 1e-3 else None


def _scale_text(factor: float, wanted: float | None) -> str:
    if abs(factor - 1) < 5e-3:
        return (
            "The scores are not scaled: divide them by the square root of head_dim. Look at the "
            "line before the softmax."
        )
    head_dim = round((wanted or 1.0) ** -2)
    return (
        f"The scores are divided by {1 / factor:.4g}; it should be the square root of head_dim "
        f"({head_dim}), {math.sqrt(head_dim):.4g}. Look at the line before the softmax."
    )


def _hidden_text(hidden: torch.Tensor, future: torch.Tensor) -> str:
    leak, lost = future & ~hidden, hidden & ~future
    if not leak.any():
        return (
            "Tokens do not see all of their past and themselves. Look at the mask: -inf stands "
            "strictly above the diagonal, `triu(diagonal=1)`, and nowhere else."
        )
    also = ", and some of their past is hidden" if lost.any() else ""
    return (
        f"Tokens see their future{_in_heads(leak)}: not every score above the diagonal is masked"
        f"{also}. Look at the mask: -inf stands strictly above the diagonal, and nowhere else."
    )


def _in_heads(leak: torch.Tensor) -> str:
    some = int(leak.flatten(1).any(-1).sum())
    return "" if some == len(leak) else " in some heads or sequences"
