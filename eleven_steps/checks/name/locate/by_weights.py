"""Tell from the weights that a class uses, beside the right scores, which step makes them wrong."""

import math
from dataclasses import replace

import torch

from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.name.locate.recording import place
from eleven_steps.checks.name.say import Finding, say
from eleven_steps.checks.run.cases import LOOSE, close

HIDDEN = -1e4  # a score below this counts as hidden


def weigh(
    used: torch.Tensor, scores: torch.Tensor, right: torch.Tensor, recorded: list[torch.Tensor]
) -> Finding:
    """Name the first of steps 5 to 8 at which the weights went wrong.

    Args:
        used: the weights that gather the values, (b * num_heads, num_tokens, num_tokens).
        scores: the right scores, of the same shape.
        right: the right weights, of the same shape.
        recorded: every (.., num_tokens, num_tokens) that was made of queries and keys, in order.
    """
    masks = [each for each in recorded if (each < HIDDEN).any()]
    if masks and not _follows(masks[0], scores, fit(right, scores) or 1.0):
        alike = masks[0].shape == scores.shape
        late = alike and fit(masks[0], scores) is not None  # what is masked is a softmax
        finding = say("mask_after_softmax" if late else "scores_changed")
    else:
        finding = _masked(used, masks) or _softmaxed(used, scores, right, masks)
    return replace(finding, theirs=used[0], right=right[0], caption=wording("first_head"))


def _masked(used: torch.Tensor, masks: list[torch.Tensor]) -> Finding | None:
    """Step 6: what the masked scores hide, or what the weights show where nothing was masked."""
    future = torch.ones(used.shape[-2:], dtype=torch.bool).triu(1)
    for hidden in (each < HIDDEN for each in masks):
        leak, lost = future & ~hidden, hidden & ~future
        if leak.any():
            also = wording("past_hidden_too") if lost.any() else ""
            return say("future_not_masked", some=_in_heads(leak), also=also)
        if lost.any():
            return say("past_hidden")
    seen = (used.nan_to_num(1.0).abs() > 1e-5) & future
    return say("future_seen", some=_in_heads(seen)) if not masks and seen.any() else None


def _in_heads(leak: torch.Tensor) -> str:
    some = int(leak.flatten(1).any(-1).sum())
    return "" if some == len(leak) else wording("in_some")


def _softmaxed(used, scores, right, masks: list[torch.Tensor]) -> Finding:
    """Step 7, or a mask that comes after it: the support is right, or was when it was masked."""
    factor, wanted = fit(used, scores), fit(right, scores)
    if factor is None and masks and masks[-1].shape == scores.shape:
        factor = _of_softmax(used, scores, masks[-1])
    if factor is not None and _sums_to_1(used, -1) and abs(factor / (wanted or 1.0) - 1) > 5e-3:
        return _scaled(factor, wanted)
    if factor is not None and not masks:
        return say("mask_after_softmax")
    last = float(used[0, -1].sum())
    if factor is not None and not close(used.sum(-1), torch.ones_like(used.sum(-1))):
        return say("row_sums", sum=last)
    if used.isnan().any():
        return say("weights_nan")
    if _sums_to_1(used, -2):
        return say("softmax_over_queries")
    if any(
        close(used, torch.sigmoid(scores * each).tril(), LOOSE) for each in (1.0, wanted or 1.0)
    ):
        return say("sigmoid_for_softmax")
    return say("not_their_softmax", sum=last)


def _of_softmax(used, scores, masked: torch.Tensor) -> float | None:
    """The factor of the masked scores, where the weights are their softmax."""
    if not close(used, torch.softmax(masked, -1), LOOSE):
        return None
    shown = masked > HIDDEN
    return float(masked[shown] @ scores[shown] / scores[shown].square().sum())


def _sums_to_1(weights: torch.Tensor, dim: int) -> bool:
    sums = weights.sum(dim)
    return close(sums, torch.ones_like(sums), LOOSE)


def _scaled(factor: float, wanted: float | None) -> Finding:
    if abs(factor - 1) < 5e-3:
        return say("no_scale", case=None)
    head_dim = round((wanted or 1.0) ** -2)
    if abs(factor * 2 * head_dim - 1) < 5e-3:
        return say("divided_by_2", head_dim=head_dim)
    return say("scaled_otherwise", divisor=1 / factor, head_dim=head_dim, root=math.sqrt(head_dim))


def _follows(masked: torch.Tensor, scores: torch.Tensor, root: float) -> bool:
    """Whether the scores that are left are the right ones, times one number: root, by rights."""
    shown = (masked > HIDDEN) & masked.isfinite()
    left, factors = masked[shown], [1.0, root]
    if masked.shape == scores.shape:
        beside = scores[shown]
        factors.append(float(left @ beside / (beside @ beside)))
    return not len(left) or place(left, scores, factors) is not None


def fit(weights: torch.Tensor, scores: torch.Tensor) -> float | None:
    """Factor a for which log weights is a * scores plus a constant for each row, in the past."""
    past = torch.ones_like(weights, dtype=torch.bool).tril()
    if not (weights[past] >= 0).all():
        return None
    past &= weights > 1e-9  # what is smaller has lost its digits
    logs = torch.where(past, weights.clamp(min=1e-9).log(), torch.nan)
    wanted = torch.where(past, scores, torch.nan)
    logs, wanted = (each - each.nanmean(-1, True) for each in (logs, wanted))
    logs, wanted = logs.nan_to_num(), wanted.nan_to_num()
    spread = (wanted * wanted).sum()
    factor = float((logs * wanted).sum() / spread) if spread > 0 else 0.0
    fits = (logs - factor * wanted).abs().max() < 5e-3 * (1 + abs(factor))
    return factor if fits and abs(factor) > 1e-3 else None
