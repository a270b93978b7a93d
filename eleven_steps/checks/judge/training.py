"""What training shows: dropout, from weights that are read off the output, and gradients.

What a class returns in eval mode is known before, and what it keeps from call to call."""

import functools
from dataclasses import replace
from typing import Any

import torch

from eleven_steps.checks.judge.say import Finding, say
from eleven_steps.checks.judge.subject import Subject
from eleven_steps.checks.know.catalogue import MISTAKES
from eleven_steps.checks.know.right import once_right, play, right_alone
from eleven_steps.checks.run.ask import Pass, Seen, once
from eleven_steps.checks.run.cases import LAYERS, LOOSE, Case, close, seeded
from eleven_steps.checks.run.isolate import Failure
from eleven_steps.checks.run.variant import LECTURE
from eleven_steps.helpers.trace import trace

# What is known when just these layers get no gradient.
DETACHED = {
    ("W_query",): "queries_detached",
    ("W_key",): "keys_detached",
    ("W_value",): "values_detached",
    ("W_query", "W_key"): "weights_detached",
    ("W_query", "W_key", "W_value"): "context_detached",
    LAYERS: "no_grad",
}
SHARE = 0.2
OFFSET = 3.0  # out_proj's bias while weights are read: dropout on the output hits it too
# Cases of d_in = num_tokens and head_dim = 2 * num_tokens; in the last one half of SHARE falls.
DROPPING = Case(32, 6, 6, 2 * 2 * 6, 2, 6), Case(40, 5, 5, 3 * 2 * 5, 3, 7)
DROPPING += (Case(2, 32, 32, 12 * 2 * 32, 12, 32),)
# Changes that leave values and the context as they are, so that weights can be read off.
READABLE = {"norm", "rope", "alibi", "cap", "full", "window", "sinks", "unscaled"}
AXES = "sequences of the batch", "heads", "rows", "columns"

Four = tuple[torch.Tensor, ...]  # outputs: twice in eval mode, twice in training


def training(subject: Subject, case: Case) -> Finding | None:
    """Without dropout training gives what eval mode gives, and draws nothing."""
    how: dict[str, Any] = {"train": True, "how": "grad"}
    passes = Pass(), Pass(seed=1, **how), Pass(seed=2, **how)
    still, one, two = subject.outs(case, *passes)
    draws = not close(one, two)
    if not draws and close(one, still):
        return None
    if isinstance(one, Failure):
        return say("training_raises", error=one.told)
    finding = _read(subject, case)  # dropout with a rate of its own, or on all that is to be kept
    if finding and finding.name == ("dropout_rate" if draws else "dropout_inverted"):
        return finding
    if draws:
        return say("noise_in_training")
    return say("future_in_training" if subject.leaks(case, **how) else "mode_matters")


def _read(subject: Subject, case: Case) -> Finding | None:
    """What dropping says of its own case, or one of them; of another where that is held."""
    which = _which(subject, case)
    shapes = subject.built.at(which).shapes
    offset = OFFSET if "out_proj.bias" in shapes else 0.0
    return dropping(subject.cls, subject.plain(which), offset)


def _which(subject: Subject, case: Case) -> Case:
    if replace(case, variant=LECTURE) in DROPPING or not {*subject.variant.names} <= READABLE:
        return case
    first = case == subject.cases.biased  # the second holds what is found in it
    return replace(DROPPING[0] if first else DROPPING[1], variant=subject.variant)


def _undropped(subject: Subject, case: Case) -> bool:
    """Whether it is not dropout that makes the output another one, but the sizes."""
    passes = Pass(), Pass(train=True)
    right = once_right(subject.plain(case), *passes)
    return all(map(close, subject.outs(case, *passes), (seen.out for seen in right)))


def dropout(subject: Subject, case: Case) -> Finding | None:
    """Dropout acts on the weights, at its rate, in training alone."""
    if "linear" in subject.variant:  # its table has none to drop
        return None
    finding = _read(subject, case)
    if finding and not _undropped(subject, _which(subject, case)):
        return None
    if finding and finding.name == "dropout_missing":  # or only once it was in eval mode
        passes = Pass(train=True, seed=1), Pass(train=True, seed=2)
        if not close(*subject.outs(case, *passes, dropout=rate_of(case))):
            return say("dropout_off_after_eval")
    bent = "vnorm" in subject.variant  # by a norm, values are not linear in their layer
    if finding or bent or "gradients" in subject.found or _linear_in_values(subject, case):
        return finding
    return say("gradients_of_other_drops")


def _linear_in_values(subject: Subject, case: Case) -> bool:
    """Whether gradients under dropout are those of the output: it is linear in the values' layer.

    From the layer all 0 to the layer as it is, the output changes by the gradient times the layer.
    """
    case = subject.plain(case)
    layer = {f"W_value.{part}": p for part, p in play(case).module.W_value.named_parameters()}
    gone = {name: torch.zeros_like(parameter) for name, parameter in layer.items()}
    same = {"train": True, "seed": 1}
    passes = Pass(gradients=True, **same), Pass(**same), Pass(weights=gone, **same)
    full, again, without = once(subject.cls, case, *passes, dropout=SHARE)
    failed = any(isinstance(seen.out, Failure) for seen in (full, again, without))
    if failed or not close(full.out, again.out):
        return True
    moved = ((full.out - without.out) * seeded("direction", full.out.shape)).sum()
    slopes = ((parameter, full.gradients.get(name)) for name, parameter in layer.items())
    predicted = [(parameter * slope).sum() for parameter, slope in slopes if slope is not None]
    return not predicted or close(moved, sum(predicted), LOOSE)


# What is read


def dropping(cls: Any, case: Case, offset: float = OFFSET) -> Finding | None:
    """What dropout does wrong in a class whose outputs without it are right.

    The case is one of DROPPING, with a variant, or any other where that is none of READABLE;
    offset is what out_proj's bias adds to each output, 0 where it has none.
    """
    if not {*case.variant.names} <= READABLE:
        return _acting(_four_outputs(cls, case))
    tokens, heads = case.num_tokens, case.num_heads
    weights = {"W_value.weight": torch.eye(tokens).repeat(2 * heads, 1)}
    weights["out_proj.weight"] = torch.eye(case.d_out)
    weights["out_proj.bias"] = torch.full((case.d_out,), offset)
    outs = _four_outputs(cls, case, _one_hot(case), weights)
    if not outs or any(out.shape != (case.b, tokens, case.d_out) for out in outs):
        return None
    split = (case.b, tokens, heads, 2, tokens)  # each weight is read at two features
    read = tuple((out - offset).view(split).transpose(1, 2) for out in outs)
    return _acting(read) or _placed(read, case, offset)


def dropping_of_step(cls: Any, number: int) -> Finding | None:
    """The same of a forward that returns the tensor of a step: the weights, 7, or a later one."""
    case = DROPPING[0]
    outs = _four_outputs(cls, case)
    finding = _acting(outs)
    if finding or not outs:
        return finding
    still, _, first, second = outs
    if first.isnan().any():  # a dropped -inf is NaN
        return say("dropout_on_scores")
    if number > 7:
        return None
    return _weights_dropped(first, second, still, SHARE)


def _four_outputs(cls: Any, case: Case, x: torch.Tensor | None = None, weights: Any = None) -> Four:
    """Outputs with dropout, each with other draws; () where one fails or has another shape."""
    modes = (False, 0), (False, 1), (True, 2), (True, 3)
    passes = [Pass(x, train, weights or {}, seed=seed) for train, seed in modes]
    outs = [seen.out for seen in once(cls, case, *passes, dropout=rate_of(case))]
    failed = any(isinstance(out, Failure) or out.shape != outs[0].shape for out in outs)
    return () if failed else tuple(outs)


def rate_of(case: Case) -> float:
    """The share that is to be dropped in a case."""
    return SHARE / 2 if case.num_tokens == DROPPING[2].num_tokens else SHARE


def _one_hot(case: Case) -> torch.Tensor:
    return torch.eye(case.num_tokens).repeat(case.b, 1, 1)  # (b, num_tokens, d_in)


@functools.cache
def _right_weights(case: Case) -> torch.Tensor:
    """The weights of the right class in eval mode where weights are read."""
    steps = {step.name: step.tensors for step in trace(play(case).module, _one_hot(case))}
    return steps["softmax"]["weights"]


def _acting(outs: Four) -> Finding | None:
    """Whether dropout acts in training, and there alone."""
    if not outs or outs[0].isnan().all() or not outs[0].any():
        return None
    still, again, first, _ = outs
    if not close(still, again):
        return say("dropout_in_eval")
    return say("dropout_missing") if close(first, still) else None


def _placed(read: Four, case: Case, offset: float) -> Finding | None:
    still, _, first, second = read
    right = _right_weights(case)
    both = right[:, :, :, None].expand_as(still)
    if (still[both.abs() < 1e-9].abs() > 1e-5).any():
        return say("future_with_dropout")
    if not close(still, both):
        return say("dropout_changes_eval")
    finding = _weights_dropped(first[..., 0, :], second[..., 0, :], right, rate_of(case))
    alike = close(*first.unbind(3))  # both features of each weight: weights were dropped
    if alike or finding and finding.name == "dropout_on_scores":
        return finding
    if offset and ((first + offset).abs() < 1e-6).any():  # out_proj's bias is gone too
        return say("dropout_on_output")
    kept, allowed = first.abs() > 1e-6, both > 1e-3
    factors = (first / both)[kept & allowed]
    if (kept | ~allowed).all() or not len(factors) or factors.max() - factors.min() > 1e-2:
        return say("dropout_not_single")  # what is kept is more than scaled up
    by_key = (kept | ~allowed).all(2) | ~(kept & allowed).any(2)  # for all queries, or for none
    return say("dropout_on_values" if by_key.all() else "dropout_on_context")


def _weights_dropped(
    weights: torch.Tensor, again: torch.Tensor, right: torch.Tensor, rate: float
) -> Finding | None:
    """Judge weights (b, num_heads, num_tokens, num_tokens), again of other draws, beside right."""
    allowed, rows = right > 1e-3, weights.sum(-1)
    if _renormed(weights, right):
        return say("dropout_renormed")
    if weights.isnan().any():  # a dropped -inf is NaN
        return say("dropout_on_scores")
    if close(rows, torch.ones_like(rows)):
        return say("dropout_too_early")
    dropped = (weights.abs() <= 1e-6) & allowed
    factors = (weights / right)[allowed & ~dropped]
    if not len(factors) or factors.max() - factors.min() > 1e-2:
        return say("dropout_not_single")
    share, factor = float(dropped.sum() / allowed.sum()), float(factors.mean())
    if abs(share - rate) < 0.08 and abs(factor - 1) < 1e-2:
        return say("dropout_not_scaled_up")
    if abs(share - 1 + rate) < 0.08:
        return say("dropout_inverted")
    if these := _shared(dropped, allowed):
        return say("dropout_shared", these=these)
    wanted = 1 / (1 - rate)
    if abs(share - rate) > 0.08 or abs(factor - wanted) > 2e-2:
        values = {"rate": rate, "share": share, "factor": factor, "right": wanted}
        return say("dropout_rate", **values)
    return say("dropout_repeated") if close(weights, again) else None


def _renormed(weights: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether single weights are dropped, and what is left of each row sums to 1 again."""
    dropped = (weights.abs() <= 1e-6) & (right > 1e-3)
    left = weights.sum(-1)[dropped.any(-1) & ~dropped.logical_or(right <= 1e-3).all(-1)]
    whole = left[left.isfinite()]
    return len(whole) > 0 and close(whole, torch.ones_like(whole))


def _shared(dropped: torch.Tensor, allowed: torch.Tensor) -> str:
    """In which of (b, num_heads, num_tokens, num_tokens) weights fall together, if in any."""
    for axis, name in enumerate(AXES):
        length = dropped.shape[axis] - 1
        alike = dropped.narrow(axis, 0, length) == dropped.narrow(axis, 1, length)
        both = allowed.narrow(axis, 0, length) & allowed.narrow(axis, 1, length)
        if alike[both].float().mean() > 0.95:
            return name
    return ""


def gradients(subject: Subject, case: Case, train: bool = False) -> Finding | None:
    """Every weight that changes the output must learn, and as fast as the right one."""
    case, wrong = subject.plain(case), "outputs" in subject.found
    seen = once(subject.cls, case, Pass(gradients=True, train=train))[0]
    mine = seen.gradients if isinstance(seen.gradients, dict) else seen.out
    right = right_alone(case, gradients=True)
    if isinstance(mine, Failure):
        step = 7 if "Softmax" in mine.text else 2
        return None if wrong else say("backward_raises", step, error=mine.told)
    names, right = _asked(subject, case, seen, right), right.gradients
    still = [n for n in names if mine[n] is None or not wrong and not mine[n].any()]
    still = [name for name in still if right[name].abs().max() > 1e-4]
    if cut := [name for name in still if _counts(subject, case, name)]:
        return _cut(cut, case, seen.cut)
    learns = [name for name in names if mine[name] is not None]  # others change no output
    return None if wrong or _alike(mine, right, learns) else say("other_gradients")


def same_gradients(subject: Subject, case: Case, mine: Seen, right: Seen) -> bool:
    """Whether a pass gives the parameters that are compared the right gradients."""
    return _alike(mine.gradients, right.gradients, _asked(subject, case, mine, right))


def _alike(mine: Any, right: dict[str, Any], names: list[str]) -> bool:
    return all(mine[n] is not None and close(mine[n], right[n], LOOSE) for n in names)


def _asked(subject: Subject, case: Case, mine: Seen, right: Seen) -> list[str]:
    """The parameters whose gradients are compared; a choice has none."""
    frozen = {*subject.built.biased.frozen, *case.without}
    names = (name for name, gradient in right.gradients.items() if gradient is not None)
    return [name for name in names if name in mine.gradients and name not in frozen]


def _counts(subject: Subject, case: Case, name: str) -> bool:
    """Whether a parameter, or x, changes the output."""
    other = Pass(seeded("other x", case.x.shape))
    if name != "x":
        shape = play(case).module.get_parameter(name).shape
        other = Pass(weights={name: seeded(f"other {name}", shape)})
    return not close(*subject.outs(case, Pass(), other))


def _cut(cut: list[str], case: Case, tensor: torch.Tensor | None) -> Finding:
    """Say which weights get no gradient, and at which step the first tensor is cut off."""
    those = {"cut": ", ".join(cut)}
    name = DETACHED.get(tuple(layer for layer in LAYERS if f"{layer}.weight" in cut), "")
    steps = enumerate(play(case).steps.values(), start=1) if tensor is not None else ()
    made = (n for n, step in steps if any(_is(tensor, right) for right in step.values()))
    step = next(made, None)
    if not name or step not in MISTAKES[name].steps:
        return say("no_gradient", step or name and MISTAKES[name].step, **those)
    finding = say("detached", step, fault=MISTAKES[name].sentence, **those)
    return replace(finding, mistake=name, kind="mistake")


def _is(tensor: torch.Tensor, right: Any) -> bool:
    """Whether a tensor holds the numbers of another one, however they are laid out."""
    if not isinstance(right, torch.Tensor) or right.numel() != tensor.numel():
        return False
    return close(*(one.flatten().sort().values for one in (tensor, right)))


def mask_learns(subject: Subject, case: Case) -> Finding | None:
    """Whether the mask is a parameter, which an optimizer would change."""
    if subject.built.biased.mask != "trained":
        return None
    moved = once(subject.cls, subject.plain(case), Pass(gradients=True))[0].gradients
    learns = isinstance(moved, dict) and moved.get("mask") is not None and moved["mask"].any()
    return say("mask_learns" if learns else "mask_trained")
