"""What outputs in eval mode do not show: gradients, dropout, state, other dtypes and devices."""

from collections.abc import Iterator
from typing import Any

import torch

from helpers.checks.cases import BIASED, LAYERS, LOOSE, MAIN, Case, close, known
from helpers.checks.dropout import dropout_looks, judge_dropout, right_weights
from helpers.checks.isolate import Failure
from helpers.checks.match import Looks
from helpers.checks.mistakes import MISTAKES
from helpers.checks.observe import FLOATS, Facts, Pass, once
from helpers.checks.outcome import Finding
from helpers.checks.places import exact
from helpers.checks.right import once_right, play

# What is known when just these layers get no gradient.
DETACHED = {
    ("W_query",): "queries_detached",
    ("W_key",): "keys_detached",
    ("W_value",): "values_detached",
    ("W_query", "W_key"): "weights_detached",
    ("W_query", "W_key", "W_value"): "context_detached",
    LAYERS: "no_grad",
}
RANDOM = (
    "The same x gives other numbers each time in eval mode. Look for what is drawn anew in each "
    "forward, and for what is kept from one forward to the next."
)


def judge_gradients(looks: Looks, found: bool) -> Iterator[Finding]:
    """Every weight that changes the output must learn, and as fast as the right one.

    Args:
        looks: the class.
        found: whether something else is wrong already; then only missing gradients are told.
    """
    case = looks.plain(BIASED)
    seen = once(looks.cls, case, Pass(gradients=True))[0]
    mine = seen.gradients if isinstance(seen.gradients, dict) else seen.out
    right = once_right(case, Pass(gradients=True))[0].gradients
    if isinstance(mine, Failure):
        if not found:
            step = 7 if "Softmax" in mine.text else 2
            yield Finding(step, f"backward raises {mine.told}: the weights cannot learn.")
        return
    if not found and mine.get("mask") is not None and mine["mask"].any():
        text = "The mask is a parameter and learns: keep it with `register_buffer`, or unlearned."
        yield Finding(6, text)
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
        yield Finding(
            7,
            "The outputs are right and the gradients are not. Look for `.detach()`, `.data` or "
            "`no_grad` in forward.",
        )


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
    name = DETACHED.get(tuple(each for each in LAYERS if f"{each}.weight" in cut))
    step = MISTAKES[name].step if name else 2
    for number, right in enumerate(play(case).steps.values(), start=1):
        if tensor is not None and any(exact([tensor], each, False) for each in right.values()):
            step = number
            name = name if name and step in MISTAKES[name].steps else None
            break
    advice = MISTAKES[name].sentence if name else "Take away `.detach()`, `.data`, `no_grad`."
    return Finding(step, f"No gradient reaches {', '.join(cut)}. {advice}", name)


def judge_training(looks: Looks, found: bool) -> Iterator[Finding]:
    """Dropout on the weights, at its rate, in training alone; nothing else depends on the mode."""
    mine = dropout_looks(looks.cls)
    if isinstance(mine, Failure):
        return
    told = judge_dropout(mine, right_weights())
    case = looks.plain(BIASED)
    passes = [Pass(seed=1), Pass(seed=2), Pass(train=True), Pass(train=True)]
    still, again, once_, twice = (s.out for s in once(looks.cls, case, *passes))
    if told == "dropout_in_eval" and not close(still, again):
        told = ""  # without dropout it changes too: that is told as what is kept
    if told in MISTAKES:
        yield Finding(MISTAKES[told].step, MISTAKES[told].sentence, told)
        return
    if found:
        return
    if close(once_, twice) and not close(once_, still):
        step = 6 if leaks(looks.cls) else 7
        seen = "Tokens see their future in training. " if step == 6 else ""
        yield Finding(
            step,
            f"{seen}With dropout = 0 the output in training mode differs from that in eval mode. "
            f"Look at what depends on `self.training`.",
        )
    elif told:
        yield Finding(7, told)


def leaks(cls: Any) -> bool | None:
    """Whether in training the last token moves the output of the first; None if it fails."""
    x = MAIN.x
    other = x.clone()
    other[:, -1] += 1
    one, two = once(cls, MAIN, Pass(x, train=True), Pass(other, train=True))
    if isinstance(one.out, Failure) or isinstance(two.out, Failure):
        return None
    return not close(one.out[:, 0], two.out[:, 0])


def judge_state(cls: Any, found: bool) -> Iterator[Finding]:
    """forward leaves x and the weights alone and keeps nothing for the next time."""
    x = MAIN.x
    seen = once(cls, MAIN, Pass(seed=1), Pass(seed=2), Pass(x[:1, :3] + 1), Pass(seed=3))
    fresh = once(cls, MAIN, Pass(x[:1, :3] + 1), Pass())
    if "x" in seen[0].changed:
        yield Finding(1, MISTAKES["input_changed"].sentence, "input_changed")
    if "weights" in seen[0].changed:
        yield Finding(2, "forward changes the weights. Look for operations that end in `_`.")
    first, again, _, later = (each.out for each in seen)
    if found or isinstance(first, Failure):
        return
    if not close(first, again):
        yield Finding(None, RANDOM)
    elif not close(first, later) or not close(first, fresh[1].out):
        yield Finding(
            6,
            "After a shorter text the same x gives something else. Look for what is kept from "
            "one forward to the next, such as a mask.",
        )


def judge_dtypes(cls: Any) -> tuple[list[Finding], str]:
    """Whether the class works once it is converted, and answers in kind: findings, and a remark."""
    double, half = (once(cls, MAIN, Pass(dtype=name))[0] for name in FLOATS)
    if isinstance(double.out, Failure):
        return [
            Finding(
                5,
                f"After `.double()` forward raises {double.out.told}: a tensor is made in another "
                f"dtype and stays there. Look for `.float()` and the like.",
            )
        ], ""
    if double.dtype != "torch.float64":
        return [Finding(11, f"After `.double()` the output still holds {double.dtype}.")], ""
    if not close(double.out, once_right(MAIN, Pass(dtype="float64"))[0].out, 1e-5):
        return [Finding(5, "In float64 the output is another one. Look for conversions.")], ""
    if isinstance(half.out, Failure):
        return [], f"In bfloat16 it would fail, {half.out.told}: give what you make scores.dtype."
    return [], ""


def judge_devices(cls: Any, facts: Facts) -> tuple[list[Finding], str]:
    """Whether everything follows `.to(device)`: what is wrong, and a remark.

    One rule for whatever is kept, as an attribute or moved to a fixed device: it would fail on a
    GPU. What forward makes anew on the default device is only remarked upon.
    """
    here = once(cls, MAIN, Pass(moved="here"))[0]
    if isinstance(here.out, Failure) and not _of_devices(here.out):
        return [], ""
    if not here.met and not isinstance(here.out, Failure):
        return [], ""
    made = once(cls, MAIN, Pass(moved="made"))[0]
    if not made.met and not isinstance(made.out, Failure):
        return [], "On a GPU it would fail: make the mask on x's device, `device=x.device`."
    if facts.mask == "attribute":
        return [Finding(6, MISTAKES["mask_not_registered"].sentence, "mask_not_registered")], ""
    return [
        Finding(
            6,
            "On a GPU it would fail: a tensor stays on the CPU, whatever device x is on. Look for "
            '`.cpu()`, `.to("cpu")`, `device="cpu"`, and tensors that are no buffers.',
        )
    ], ""


def _of_devices(failure: Failure) -> bool:
    return "expected device" in failure.text or "out of meta" in failure.text
