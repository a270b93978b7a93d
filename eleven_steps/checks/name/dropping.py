"""What dropout does, from weights that are read off the output."""

import functools
from dataclasses import replace
from typing import Any

import torch

from eleven_steps.checks.know.right import play
from eleven_steps.checks.name.say import Finding, say
from eleven_steps.checks.run.ask import once
from eleven_steps.checks.run.cases import Case, close
from eleven_steps.checks.run.facts import Pass
from eleven_steps.checks.run.isolate import Failure

SHARE = 0.2
OFFSET = 3.0  # out_proj's bias while weights are read: dropout on the output hits it too
B, TOKENS, HEADS = 32, 6, 2
DROPPING = Case(B, TOKENS, TOKENS, HEADS * 2 * TOKENS, HEADS, TOKENS)
# Changes that leave values and the context as they are, so that weights can be read off.
READABLE = ("", "norm", "rope", "alibi", "cap", "full", "window", "sinks")
AXES = "sequences of the batch", "heads", "rows", "columns"

Four = tuple[torch.Tensor, ...]  # outputs: twice in eval mode, twice in training


def judge_dropout(cls: Any, case: Case) -> Finding | None:
    """Say what is wrong with dropout in a class: whether it acts, in training alone, and how."""
    if case.variant not in READABLE:
        return _acting(four_outputs(cls, case))
    weights = {
        "W_value.weight": torch.eye(TOKENS).repeat(2 * HEADS, 1),
        "out_proj.weight": torch.eye(DROPPING.d_out),
        "out_proj.bias": torch.full((DROPPING.d_out,), OFFSET),
    }
    outs = four_outputs(cls, replace(DROPPING, variant=case.variant), _one_hot(), weights)
    if any(out.shape != (B, TOKENS, DROPPING.d_out) for out in outs):
        return None
    split = (B, TOKENS, HEADS, 2, TOKENS)  # each weight is read at two features
    read = tuple((out - OFFSET).view(split).transpose(1, 2) for out in outs)
    return read and (_acting(read) or _placed(read, _right_steps(case.variant)))


def judge_returned(cls: Any, number: int) -> Finding | None:
    """The same of a forward that returns the tensor of a step: the weights, 7, or a later one."""
    outs = four_outputs(cls, DROPPING)
    finding = _acting(outs)
    if finding or not outs:
        return finding
    still, _, first, second = outs
    if first.isnan().any():  # a dropped -inf is NaN
        return say("dropout_on_scores")
    if number > 7:
        return None
    scores = play(DROPPING)["scores"]["scores"] / DROPPING.head_dim**0.5
    return _weighed(first, second, still, scores)


def four_outputs(cls: Any, case: Case, x: torch.Tensor | None = None, weights: Any = None) -> Four:
    """Outputs with dropout, each with other draws; () where one fails or has another shape."""
    modes = (False, 0), (False, 1), (True, 2), (True, 3)
    passes = [Pass(x, train, weights or {}, seed=seed) for train, seed in modes]
    outs = [seen.out for seen in once(cls, case, *passes, dropout=SHARE)]
    failed = any(isinstance(each, Failure) or each.shape != outs[0].shape for each in outs)
    return () if failed else tuple(outs)


def _one_hot() -> torch.Tensor:
    return torch.eye(TOKENS).repeat(B, 1, 1)  # (b, num_tokens, d_in)


@functools.cache
def _right_steps(variant: str) -> dict[str, torch.Tensor]:
    """What the right class records in eval mode where weights are read, by its name."""
    steps: dict[str, torch.Tensor] = {}

    def keep(_: str, **tensors: torch.Tensor) -> None:
        steps.update((name, each.clone()) for name, each in tensors.items())

    module = play(replace(DROPPING, variant=variant)).module
    with torch.no_grad():
        module(_one_hot(), record=keep)
    return steps


def _acting(outs: Four) -> Finding | None:
    """Whether dropout acts in training, and there alone."""
    if not outs or outs[0].isnan().all() or not outs[0].any():
        return None
    still, again, first, _ = outs
    if not close(still, again):
        return say("dropout_in_eval")
    return say("dropout_missing") if close(first, still) else None


def _placed(read: Four, steps: dict[str, torch.Tensor]) -> Finding | None:
    """Say what dropout does wrong or hits, from weights as they were read, each at two features."""
    still, _, first, second = read
    right = steps["weights"]
    both = right[:, :, :, None].expand_as(still)
    if (still[both.abs() < 1e-9].abs() > 1e-5).any():
        return say("future_with_dropout")
    if not close(still, both):
        return say("dropout_changes_eval")
    scores = steps["scores"] / DROPPING.head_dim**0.5
    finding = _weighed(first[..., 0, :], second[..., 0, :], right, scores)
    if close(*first.unbind(3)) or finding and finding.mistake == "dropout_on_scores":
        return finding
    if ((first + OFFSET).abs() < 1e-6).any():  # out_proj's bias is gone too
        return say("dropout_on_output")
    kept, allowed = first.abs() > 1e-6, both > 1e-3
    by_key = (kept | ~allowed).all(2) | ~(kept & allowed).any(2)  # for all queries, or for none
    return say("dropout_on_values" if by_key.all() else "dropout_on_context")


def _weighed(
    weights: torch.Tensor, again: torch.Tensor, right: torch.Tensor, scores: torch.Tensor
) -> Finding | None:
    """Judge weights (b, num_heads, num_tokens, num_tokens) in training beside those in eval.

    Args:
        weights, again: in training, with other draws.
        right: in eval mode.
        scores: the scaled ones, before the mask.
    """
    allowed, rows = right > 1e-3, weights.sum(-1)
    if finding := _renormed(weights, right):
        return finding
    if weights.isnan().any():  # a dropped -inf is NaN
        return say("dropout_on_scores")
    if close(rows, torch.ones_like(rows)):
        return say("dropout_on_scores" if _of_scores(weights, scores) else "dropout_too_early")
    dropped = (weights.abs() <= 1e-6) & allowed
    factors = (weights / right)[allowed & ~dropped]
    if not len(factors) or factors.max() - factors.min() > 1e-2:
        return say("dropout_not_single")
    share, factor = float(dropped.sum() / allowed.sum()), float(factors.mean())
    if abs(share - SHARE) < 0.08 and abs(factor - 1) < 1e-2:
        return say("dropout_not_scaled_up")
    if abs(share - 1 + SHARE) < 0.08:
        return say("dropout_inverted")
    if these := _shared(dropped, allowed):
        return say("dropout_shared", these=these)
    wanted = 1 / (1 - SHARE)
    if abs(share - SHARE) > 0.08 or abs(factor - wanted) > 2e-2:
        return say("dropout_rate", rate=SHARE, share=share, factor=factor, right=wanted)
    return say("dropout_repeated") if close(weights, again) else None


def _of_scores(weights: torch.Tensor, scores: torch.Tensor) -> bool:
    """Whether weights are the softmax of scores, of which single ones are 0."""
    logs, told = weights.clamp(min=1e-12).log(), weights > 1e-5
    for factor in (1.0, 1 / (1 - SHARE)):
        fits, mixed = torch.zeros_like(told).any(-1), False
        for first in (torch.zeros_like(scores), factor * scores):
            left = logs - logs[..., :1] + first[..., :1]  # as the first score was dropped, or not
            gone, kept = left.abs() < 1e-3, (left - factor * scores).abs() < 1e-3
            here = (gone | kept | ~told).all(-1)
            fits |= here
            mixed |= bool((here & (gone & told).any(-1) & (kept & ~gone & told).any(-1)).any())
        if mixed and fits.all():
            return True
    return False


def _renormed(weights: torch.Tensor, right: torch.Tensor) -> Finding | None:
    """Whether single weights are dropped, and what is left of each row sums to 1 again."""
    dropped = (weights.abs() <= 1e-6) & (right > 1e-3)
    left = weights.sum(-1)[dropped.any(-1) & ~dropped.logical_or(right <= 1e-3).all(-1)]
    whole = left[left.isfinite()]
    return say("dropout_renormed") if len(whole) and close(whole, torch.ones_like(whole)) else None


def _shared(dropped: torch.Tensor, allowed: torch.Tensor) -> str:
    """In which of (b, num_heads, num_tokens, num_tokens) weights fall together, if in any."""
    for axis, name in enumerate(AXES):
        length = dropped.shape[axis] - 1
        alike = dropped.narrow(axis, 0, length) == dropped.narrow(axis, 1, length)
        both = allowed.narrow(axis, 0, length) & allowed.narrow(axis, 1, length)
        if alike[both].float().mean() > 0.95:
            return name
    return ""
