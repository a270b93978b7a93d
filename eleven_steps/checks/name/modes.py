"""What outputs in eval mode do not show: gradients, dropout, state, other dtypes and devices."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import torch

from eleven_steps.checks.know.catalogue import MISTAKES
from eleven_steps.checks.know.right import once_right, play
from eleven_steps.checks.name.dropping import SHARE, judge_dropout
from eleven_steps.checks.name.match import _there
from eleven_steps.checks.name.match import Outputs
from eleven_steps.checks.name.say import Finding, say
from eleven_steps.checks.run.ask import once
from eleven_steps.checks.run.cases import LAYERS, LOOSE, SAME, Case, close, known
from eleven_steps.checks.run.facts import FLOATS, Pass
from eleven_steps.checks.run.isolate import Failure

MORE = 4  # times as far off as the right class
# What is known when just these layers get no gradient.
DETACHED = {
    ("W_query",): "queries_detached",
    ("W_key",): "keys_detached",
    ("W_value",): "values_detached",
    ("W_query", "W_key"): "weights_detached",
    ("W_query", "W_key", "W_value"): "context_detached",
    LAYERS: "no_grad",
}


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
        moved = mine.get("mask") is not None and mine["mask"].any()
        yield say("mask_learns" if moved else "mask_trained")
    learns = (name for name in right if right[name] is not None)  # a choice has no gradient
    names = [name for name in learns if name in mine and name not in case.without]
    cut = [
        name
        for name in names
        if (mine[name] is None or not wrong and not mine[name].any())
        and right[name].abs().max() > 1e-4
        and _counts(outputs.cls, case, name)
    ]
    if cut:
        yield _cut(cut, case, seen.cut)
    learns = [name for name in names if mine[name] is not None]  # others change no output
    if not cut and not wrong and not all(close(mine[n], right[n], LOOSE) for n in learns):
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
    made = (n for n, step in steps if any(_there([tensor], each) for each in step.values()))
    finding = say(name or "no_gradient", cut=those)
    step = next(made, finding.step)
    if not name or step not in MISTAKES[name].steps:
        return say("no_gradient", step, cut=those)
    return replace(finding, step=step, text=say("detached", cut=those, fault=finding.text).text)


def judge_training(outputs: Outputs, wrong: bool) -> Iterator[Finding]:
    """Dropout on the weights, at its rate, in training alone; nothing else depends on the mode."""
    no_weights = outputs.variant == "linear"  # its table has none to drop
    finding = None if no_weights else judge_dropout(outputs.cls, outputs.cases.main)
    case = outputs.plain(outputs.cases.biased)
    modes = (False, 1), (False, 2), (True, 1), (True, 2), (False, 1)
    passes = [Pass(train=train, seed=seed) for train, seed in modes]
    still, again, trained, other, after = (e.out for e in once(outputs.cls, case, *passes))
    kept = not close(still, again, SAME) or not close(still, after)  # told by judge_state
    if finding and finding.mistake == "dropout_in_eval" and kept:
        finding = None
    if finding and finding.mistake == "dropout_missing" and _drops_at_first(outputs):
        yield say("dropout_off_after_eval")
    elif finding and finding.mistake:
        yield finding
    elif wrong:
        return
    elif close(trained, other) and not close(trained, still) and not kept:
        yield say("future_in_training" if outputs.leaks(train=True) else "mode_matters")
    elif finding:
        yield finding
    elif not no_weights and not _linear_in_values(outputs.cls, case):
        yield say("gradients_of_other_drops")


def _linear_in_values(cls: Any, case: Case) -> bool:
    """Whether gradients under dropout are those of the output: it is linear in the values' layer.

    From the layer all 0 to the layer as it is, the output changes by the gradient times the layer.
    """
    layer = {f"W_value.{part}": each for part, each in play(case).module.W_value.named_parameters()}
    gone = {name: torch.zeros_like(each) for name, each in layer.items()}
    same = {"train": True, "seed": 1}
    passes = Pass(gradients=True, **same), Pass(**same), Pass(weights=gone, **same)
    full, again, without = once(cls, case, *passes, dropout=SHARE)
    failed = any(isinstance(each.out, Failure) for each in (full, again, without))
    if failed or not close(full.out, again.out):  # something is kept, as judge_state says
        return True
    moved = ((full.out - without.out) * known("direction", full.out.shape)).sum()
    slopes = ((each, full.gradients.get(name)) for name, each in layer.items())
    predicted = sum((each * slope).sum() for each, slope in slopes if slope is not None)
    return close(moved, predicted, LOOSE)


def _drops_at_first(outputs: Outputs) -> bool:
    """Whether a module that was never in eval mode drops something."""
    passes = Pass(train=True, seed=1), Pass(train=True, seed=2)
    one, two = (each.out for each in once(outputs.cls, outputs.cases.main, *passes, dropout=SHARE))
    return not close(one, two)


def judge_state(outputs: Outputs, wrong: bool) -> Iterator[Finding]:
    """forward leaves x and the weights alone and keeps nothing for the next time."""
    main = outputs.cases.main
    shorter, train = Pass(main.x[:1, :3] + 1), Pass(train=True)
    evals = [Pass(seed=seed) for seed in (1, 2, 3, 4)]
    seen = once(outputs.cls, main, *evals[:2], shorter, evals[2], train, train, evals[3])
    after_shorter = once(outputs.cls, main, shorter, Pass())[1].out
    if "x" in seen[0].changed:
        yield say("input_changed")
    if "weights" in seen[0].changed:
        yield say("weights_changed")
    first, again, _, later, _, _, last = (each.out for each in seen)
    if wrong or isinstance(first, Failure):
        return
    if not close(first, again, SAME):
        yield say("random_in_eval")
    elif not close(first, later) or not close(first, after_shorter):
        yield say("something_kept")
    elif not close(later, last, SAME):
        yield say("kept_in_training")
    elif outputs.variant == "cache":
        alone, in_turn = once(outputs.cls, main, Pass(), Pass(in_turn=True))
        if not close(alone.out, in_turn.out):
            yield say("kept_for_all_texts")


def judge_dtypes(outputs: Outputs, wrong: bool) -> Iterator[Finding]:
    """Once it is converted, a class that is right works on and answers in kind."""
    if wrong:
        return
    main = outputs.cases.main
    seen = {name: once(outputs.cls, main, Pass(dtype=name))[0] for name in FLOATS}
    double = seen.pop("float64")
    if isinstance(double.out, Failure):
        yield say("double_raises", error=double.out.told)
    elif double.dtype != "torch.float64":
        yield say("double_not_returned", dtype=double.dtype)
    elif not close(double.out, once_right(main, Pass(dtype="float64"))[0].out, 1e-5):
        yield say("double_differs")
    else:
        halves = (_in_half(outputs, name, half.out, double.out) for name, half in seen.items())
        yield from islice(filter(None, halves), 1)


def _in_half(outputs: Outputs, dtype: str, half: Any, exact: torch.Tensor) -> Finding | None:
    """What goes wrong in half precision: it fails, or rounds more than the right class does."""
    if isinstance(half, Failure):
        name = "half_overflows" if "without overflow" in half.text else "half_raises"
        return say(name, dtype=dtype, error=half.told)
    right = once_right(outputs.cases.main, Pass(dtype=dtype))[0].out
    mine, wanted = ((each - exact).abs().mean() for each in (half, right))
    if mine <= MORE * wanted:  # NaN is far off
        return None
    return say("half_differs", 6 if outputs.leaks(dtype=dtype) else None, dtype=dtype)


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
