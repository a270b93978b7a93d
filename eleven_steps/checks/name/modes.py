"""What outputs in eval mode do not show: gradients, dropout, state, other dtypes and devices."""

import functools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from eleven_steps.checks.know.catalogue import MISTAKES
from eleven_steps.checks.know.right import once_right, play
from eleven_steps.checks.name.locate.recording import exact
from eleven_steps.checks.name.match import Outputs
from eleven_steps.checks.name.say import Finding, say
from eleven_steps.checks.run.ask import once
from eleven_steps.checks.run.cases import LAYERS, LOOSE, SAME, Case, close, known
from eleven_steps.checks.run.facts import FLOATS, Pass
from eleven_steps.checks.run.isolate import Failure

# What is known when just these layers get no gradient.
DETACHED = {
    ("W_query",): "queries_detached",
    ("W_key",): "keys_detached",
    ("W_value",): "values_detached",
    ("W_query", "W_key"): "weights_detached",
    ("W_query", "W_key", "W_value"): "context_detached",
    LAYERS: "no_grad",
}

# Where dropout is looked at.
SHARE = 0.2
OFFSET = 3.0  # out_proj's bias while weights are read: dropout on the output hits it too
B, TOKENS, HEADS = 32, 6, 2
DROPPING = Case(B, TOKENS, TOKENS, HEADS * 2 * TOKENS, HEADS, TOKENS)
# Changes that leave values and the context as they are, so that weights can be read off.
READABLE = ("", "norm", "rope", "alibi", "cap", "full", "window", "sinks")


def judge_gradients(outputs: Outputs, wrong: bool) -> Iterator[Finding]:
    """Every weight that changes the output must learn, and as fast as the right one.

    Args:
        outputs: of the class.
        wrong: whether something else is wrong already; then only missing gradients are told.
    """
    case = outputs.plain(outputs.cases.biased)
    seen = once(outputs.cls, case, Pass(gradients=True))[0]
    mine = seen.gradients if isinstance(seen.gradients, dict) else seen.out
    right = once_right(case, Pass(gradients=True))[0].gradients
    if isinstance(mine, Failure):
        if not wrong:
            yield say("backward_raises", 7 if "Softmax" in mine.text else 2, error=mine.told)
        return
    if not wrong and outputs.built[True].mask == "trained":
        learns = mine.get("mask") is not None and mine["mask"].any()
        yield say("mask_learns" if learns else "mask_trained")
    names = [name for name in right if name in mine and name not in case.without]
    cut = [
        name
        for name in names
        if (mine[name] is None or not wrong and not mine[name].any())
        and right[name].abs().max() > 1e-4
        and _counts(outputs.cls, case, name)
    ]
    if cut:
        yield _cut(cut, case, seen.cut)
    elif not wrong and not all(close(mine[name], right[name], LOOSE) for name in names):
        yield say("other_gradients")


def _counts(cls: Any, case: Case, name: str) -> bool:
    """Whether a parameter, or x, changes the output."""
    if name == "x":
        other = Pass(x=case.x + known("other x", case.x.shape))
    else:
        shape = play(case).module.get_parameter(name).shape
        other = Pass(weights={name: known(f"other {name}", shape)})
    before, after = once(cls, case, Pass(), other)
    return not close(before.out, after.out)


def _cut(cut: list[str], case: Case, tensor: torch.Tensor | None) -> Finding:
    """Say which weights get no gradient, and at which step the first tensor is cut off."""
    those = ", ".join(cut)
    name = DETACHED.get(tuple(each for each in LAYERS if f"{each}.weight" in cut))
    steps = enumerate(play(case).steps.values(), start=1) if tensor is not None else ()
    made = (n for n, step in steps if any(exact([tensor], each, False) for each in step.values()))
    finding = say(name or "no_gradient", cut=those)
    step = next(made, finding.step)
    if not name or step not in MISTAKES[name].steps:
        return say("no_gradient", step, cut=those)
    return replace(finding, step=step, text=say("detached", cut=those, fault=finding.text).text)


def judge_training(outputs: Outputs, wrong: bool) -> Iterator[Finding]:
    """Dropout on the weights, at its rate, in training alone; nothing else depends on the mode."""
    readable = outputs.variant in READABLE
    weights = _read_weights(outputs.cls, outputs.variant) if readable else None
    if isinstance(weights, Failure):
        return
    finding = _dropout(weights, outputs.variant) if readable else _acts(outputs)
    case = outputs.plain(outputs.cases.biased)
    passes = [Pass(seed=1), Pass(seed=2), Pass(train=True), Pass(train=True)]
    still, again, trained, repeated = (seen.out for seen in once(outputs.cls, case, *passes))
    if finding and finding.mistake == "dropout_in_eval" and not close(still, again, SAME):
        finding = None  # without dropout it changes too: that is told as what is kept
    if finding and finding.mistake:
        yield finding
    elif not wrong and close(trained, repeated) and not close(trained, still):
        yield say("future_in_training" if outputs.leaks() else "mode_matters")
    elif finding and not wrong:
        yield finding


def judge_state(outputs: Outputs, wrong: bool) -> Iterator[Finding]:
    """forward leaves x and the weights alone and keeps nothing for the next time."""
    main = outputs.cases.main
    shorter = Pass(main.x[:1, :3] + 1)
    seen = once(outputs.cls, main, Pass(seed=1), Pass(seed=2), shorter, Pass(seed=3))
    after_shorter = once(outputs.cls, main, shorter, Pass())[1].out
    if "x" in seen[0].changed:
        yield say("input_changed")
    if "weights" in seen[0].changed:
        yield say("weights_changed")
    first, again, _, later = (each.out for each in seen)
    if wrong or isinstance(first, Failure):
        return
    if not close(first, again, SAME):
        yield say("random_in_eval")
    elif not close(first, later) or not close(first, after_shorter):
        yield say("something_kept")


def judge_dtypes(outputs: Outputs, wrong: bool) -> Iterator[Finding]:
    """Once it is converted, a class that is right works on and answers in kind."""
    if wrong:
        return
    main = outputs.cases.main
    double, half = (once(outputs.cls, main, Pass(dtype=name))[0] for name in FLOATS)
    if isinstance(double.out, Failure):
        yield say("double_raises", error=double.out.told)
    elif double.dtype != "torch.float64":
        yield say("double_not_returned", dtype=double.dtype)
    elif not close(double.out, once_right(main, Pass(dtype="float64"))[0].out, 1e-5):
        yield say("double_differs")
    elif isinstance(half.out, Failure):
        yield say("half_raises", error=half.out.told)


def judge_devices(outputs: Outputs, wrong: bool) -> Iterator[Finding]:
    """Everything follows `.to(device)`.

    One rule for whatever is kept, as an attribute or moved to a fixed device: it would fail on a
    GPU. What forward makes anew on the default device is only remarked upon.
    """
    main = outputs.cases.main
    here = once(outputs.cls, main, Pass(moved="here"))[0]
    raised = isinstance(here.out, Failure) and "expected device" in here.out.text
    if not here.met and not raised:
        return
    made = once(outputs.cls, main, Pass(moved="made"))[0]
    if not made.met and not isinstance(made.out, Failure):
        yield say("made_on_cpu")
    else:
        kept = outputs.built[True].mask == "attribute"
        yield say("mask_not_registered" if kept else "stays_on_cpu")


# Dropout


def _read_weights(cls: Any, variant: str) -> tuple[torch.Tensor, ...] | Failure:
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
    """The weights of the right class as _read_weights reads them, in eval mode."""
    steps: dict[str, torch.Tensor] = {}
    module = play(replace(DROPPING, variant=variant)).module
    with torch.no_grad():
        module(_one_hot(), record=lambda name, **tensors: steps.update(tensors))
    return steps["weights"][:, :, :, None].expand(B, HEADS, TOKENS, 2, TOKENS)


def _dropout(weights: tuple[torch.Tensor, ...], variant: str) -> Finding | None:
    """Say what dropout does wrong, from weights as they were read."""
    still, again, first, second = weights
    right = _right_weights(variant)
    if not close(still, again):
        return say("dropout_in_eval")
    if still.isnan().all():
        return None
    if close(first, still):
        return say("dropout_missing")
    if not close(still, right):
        return say("dropout_changes_eval")
    if first.isnan().any():  # a dropped -inf is NaN
        return say("dropout_on_scores")
    if not close(first[..., 0, :], first[..., 1, :]):
        whole = (first + OFFSET).abs() < 1e-6  # out_proj's bias is gone too
        return say("dropout_on_output" if whole.any() else "dropout_on_context")
    return judge_weights(first[..., 0, :], second[..., 0, :], right[..., 0, :])


def _acts(outputs: Outputs) -> Finding | None:
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


def _shared(dropped: torch.Tensor, allowed: torch.Tensor) -> str:
    """In which of (b, num_heads, num_tokens, num_tokens) weights fall together, if in any."""
    for axis, name in enumerate(("sequences of the batch", "heads", "rows", "columns")):
        length = dropped.shape[axis] - 1
        alike = dropped.narrow(axis, 0, length) == dropped.narrow(axis, 1, length)
        both = allowed.narrow(axis, 0, length) & allowed.narrow(axis, 1, length)
        if alike[both].float().mean() > 0.95:
            return name
    return ""
