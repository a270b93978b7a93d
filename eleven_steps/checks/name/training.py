"""What outputs in eval mode do not show: gradients, dropout, state, other dtypes and devices."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from eleven_steps.checks.know.mistakes import MISTAKES
from eleven_steps.checks.know.right import once_right, play
from eleven_steps.checks.name.dropout import (
    READABLE,
    dropout_looks,
    judge_dropout,
    judge_modes,
    right_weights,
)
from eleven_steps.checks.name.locate.places import exact
from eleven_steps.checks.name.match import Looks
from eleven_steps.checks.name.outcome import Finding
from eleven_steps.checks.name.say import say
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


def judge_gradients(looks: Looks, found: bool) -> Iterator[Finding]:
    """Every weight that changes the output must learn, and as fast as the right one.

    Args:
        looks: the class.
        found: whether something else is wrong already; then only missing gradients are told.
    """
    case = looks.plain(looks.cases.biased)
    seen = once(looks.cls, case, Pass(gradients=True))[0]
    mine = seen.gradients if isinstance(seen.gradients, dict) else seen.out
    right = once_right(case, Pass(gradients=True))[0].gradients
    if isinstance(mine, Failure):
        if not found:
            yield say("backward_raises", 7 if "Softmax" in mine.text else 2, error=mine.told)
        return
    if not found and looks.built[True].mask == "trained":
        learns = mine.get("mask") is not None and mine["mask"].any()
        yield say("mask_learns" if learns else "mask_trained")
    names = [name for name in right if name in mine and name not in case.without]
    cut = [
        name
        for name in names
        if (mine[name] is None or not found and not mine[name].any())
        and right[name].abs().max() > 1e-4
        and _counts(looks.cls, case, name)
    ]
    if cut:
        yield _cut(cut, case, seen.cut)
    elif not found and not all(close(mine[name], right[name], LOOSE) for name in names):
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
    found = say(name or "no_gradient", cut=those)
    step = next(made, found.step)
    if not name or step not in MISTAKES[name].steps:
        return say("no_gradient", step, cut=those)
    return replace(found, step=step, text=f"No gradient reaches {those}. {found.text}")


def judge_training(looks: Looks, found: bool) -> Iterator[Finding]:
    """Dropout on the weights, at its rate, in training alone; nothing else depends on the mode."""
    if looks.variant in READABLE:
        mine = dropout_looks(looks.cls, looks.variant)
        if isinstance(mine, Failure):
            return
        told = judge_dropout(mine, right_weights(looks.variant))
    else:
        told = judge_modes(looks.cls, looks.cases.main)
    case = looks.plain(looks.cases.biased)
    passes = [Pass(seed=1), Pass(seed=2), Pass(train=True), Pass(train=True)]
    still, again, once_, twice = (s.out for s in once(looks.cls, case, *passes))
    if told and told.mistake == "dropout_in_eval" and not close(still, again, SAME):
        told = None  # without dropout it changes too: that is told as what is kept
    if told and told.mistake:
        yield told
        return
    if found:
        return
    if close(once_, twice) and not close(once_, still):
        yield say("future_in_training" if looks.leaks() else "mode_matters")
    elif told:
        yield told


def judge_state(looks: Looks, found: bool) -> Iterator[Finding]:
    """forward leaves x and the weights alone and keeps nothing for the next time."""
    main = looks.cases.main
    shorter = Pass(main.x[:1, :3] + 1)
    seen = once(looks.cls, main, Pass(seed=1), Pass(seed=2), shorter, Pass(seed=3))
    after_shorter = once(looks.cls, main, shorter, Pass())[1].out
    if "x" in seen[0].changed:
        yield say("input_changed")
    if "weights" in seen[0].changed:
        yield say("weights_changed")
    first, again, _, later = (each.out for each in seen)
    if found or isinstance(first, Failure):
        return
    if not close(first, again, SAME):
        yield say("random_in_eval")
    elif not close(first, later) or not close(first, after_shorter):
        yield say("something_kept")


def judge_dtypes(looks: Looks, found: bool) -> Iterator[Finding]:
    """Once it is converted, a class that is right works on and answers in kind."""
    if found:
        return
    main = looks.cases.main
    double, half = (once(looks.cls, main, Pass(dtype=name))[0] for name in FLOATS)
    if isinstance(double.out, Failure):
        yield say("double_raises", error=double.out.told)
    elif double.dtype != "torch.float64":
        yield say("double_not_returned", dtype=double.dtype)
    elif not close(double.out, once_right(main, Pass(dtype="float64"))[0].out, 1e-5):
        yield say("double_differs")
    elif isinstance(half.out, Failure):
        yield say("half_raises", error=half.out.told)


def judge_devices(looks: Looks, found: bool) -> Iterator[Finding]:
    """Everything follows `.to(device)`.

    One rule for whatever is kept, as an attribute or moved to a fixed device: it would fail on a
    GPU. What forward makes anew on the default device is only remarked upon.
    """
    here = once(looks.cls, looks.cases.main, Pass(moved="here"))[0]
    if not here.met and not _of_devices(here.out):
        return
    made = once(looks.cls, looks.cases.main, Pass(moved="made"))[0]
    if not made.met and not isinstance(made.out, Failure):
        yield say("made_on_cpu")
    else:
        kept = looks.built[True].mask == "attribute"
        yield say("mask_not_registered" if kept else "stays_on_cpu")


def _of_devices(out: Any) -> bool:
    """Whether a forward raised because tensors of two devices met."""
    raised = isinstance(out, Failure)
    return raised and "expected device" in out.text
