"""What dropout does, from weights that are read off the output."""

import functools
from dataclasses import replace
from typing import Any

import torch

from eleven_steps.checks.know.right import play
from eleven_steps.checks.name.match import Outputs
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


def read_weights(cls: Any, variant: str) -> tuple[torch.Tensor, ...] | Failure:
    """Weights as read off the output: twice in eval mode, twice in training."""
    weights = {
        "W_value.weight": torch.eye(TOKENS).repeat(2 * HEADS, 1),
        "out_proj.weight": torch.eye(DROPPING.d_out),
        "out_proj.bias": torch.full((DROPPING.d_out,), OFFSET),
    }
    x, case = _one_hot(), replace(DROPPING, variant=variant)
    modes = (False, 0), (False, 1), (True, 2), (True, 3)
    passes = [Pass(x, weights=weights, train=train, seed=seed) for train, seed in modes]
    outs = [seen.out for seen in once(cls, case, *passes, dropout=SHARE)]
    if failed := [each for each in outs if isinstance(each, Failure)]:
        return failed[0]
    if any(out.shape != (B, TOKENS, case.d_out) for out in outs):
        return Failure("the output has another shape")
    split = (B, TOKENS, HEADS, 2, TOKENS)  # each weight is read at two features
    return tuple((out - OFFSET).view(split).transpose(1, 2) for out in outs)


def _one_hot() -> torch.Tensor:
    return torch.eye(TOKENS).repeat(B, 1, 1)  # (b, num_tokens, d_in)


@functools.cache
def _right_weights(variant: str) -> torch.Tensor:
    """The weights of the right class as read_weights reads them, in eval mode."""
    steps: dict[str, torch.Tensor] = {}
    module = play(replace(DROPPING, variant=variant)).module
    with torch.no_grad():
        module(_one_hot(), record=lambda name, **tensors: steps.update(tensors))
    return steps["weights"][:, :, :, None].expand(B, HEADS, TOKENS, 2, TOKENS)


def judge_read(weights: tuple[torch.Tensor, ...], variant: str) -> Finding | None:
    """Say what dropout does wrong, from weights as they were read."""
    still, again, first, second = weights
    right = _right_weights(variant)
    if not close(still, again):
        return say("dropout_in_eval")
    if still.isnan().all():
        return None
    if close(first, still):
        return say("dropout_missing")
    if (still[right.abs() < 1e-9].abs() > 1e-5).any():
        return say("future_with_dropout")
    if not close(still, right):
        return say("dropout_changes_eval")
    if finding := _renormed(first[..., 0, :], right[..., 0, :]):
        return finding
    if first.isnan().any():  # a dropped -inf is NaN
        return say("dropout_on_scores")
    if not close(first[..., 0, :], first[..., 1, :]):
        whole = (first + OFFSET).abs() < 1e-6  # out_proj's bias is gone too
        return say("dropout_on_output" if whole.any() else "dropout_on_context")
    return judge_weights(first[..., 0, :], second[..., 0, :], right[..., 0, :])


def judge_acting(outputs: Outputs) -> Finding | None:
    """Say of a class whose weights cannot be read off whether dropout acts, in training alone."""
    passes = Pass(seed=1), Pass(seed=2), Pass(train=True, seed=3)
    seen = once(outputs.cls, outputs.cases.main, *passes, dropout=SHARE)
    still, again, trained = (each.out for each in seen)
    if any(isinstance(each, Failure) for each in (still, again, trained)):
        return None
    if not close(still, again):
        return say("dropout_in_eval")
    return say("dropout_missing") if close(still, trained) else None


def judge_returned(cls: Any, number: int) -> Finding | None:
    """Say what is wrong with dropout in a forward that returns the weights, or a later tensor."""
    modes = (False, 1), (False, 4), (True, 2), (True, 3)
    passes = [Pass(train=train, seed=seed) for train, seed in modes]
    still, again, first, second = (e.out for e in once(cls, DROPPING, *passes, dropout=SHARE))
    if any(isinstance(each, Failure) for each in (first, still)) or first.shape != still.shape:
        return None
    if not close(still, again):
        return say("dropout_in_eval")
    if close(first, still):
        return say("dropout_missing")
    if first.isnan().any():  # a dropped -inf is NaN
        return say("dropout_on_scores")
    return judge_weights(first, second, still) if number == 7 else None


def judge_weights(
    weights: torch.Tensor, again: torch.Tensor, right: torch.Tensor
) -> Finding | None:
    """Judge weights (b, num_heads, num_tokens, num_tokens) in training beside those in eval."""
    allowed, rows = right > 1e-3, weights.sum(-1)
    if finding := _renormed(weights, right):
        return finding
    if close(rows, torch.ones_like(rows)):
        return say("dropout_on_scores")
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


def _renormed(weights: torch.Tensor, right: torch.Tensor) -> Finding | None:
    """Whether single weights are dropped, and what is left of each row sums to 1 again."""
    dropped = (weights.abs() <= 1e-6) & (right > 1e-3)
    left = weights.sum(-1)[dropped.any(-1) & ~dropped.logical_or(right <= 1e-3).all(-1)]
    whole = left[left.isfinite()]
    return say("dropout_renormed") if len(whole) and close(whole, torch.ones_like(whole)) else None


def _shared(dropped: torch.Tensor, allowed: torch.Tensor) -> str:
    """In which of (b, num_heads, num_tokens, num_tokens) weights fall together, if in any."""
    for axis, name in enumerate(("sequences of the batch", "heads", "rows", "columns")):
        length = dropped.shape[axis] - 1
        alike = dropped.narrow(axis, 0, length) == dropped.narrow(axis, 1, length)
        both = allowed.narrow(axis, 0, length) & allowed.narrow(axis, 1, length)
        if alike[both].float().mean() > 0.95:
            return name
    return ""
