"""Lay an answer beside another: whether they agree, and if not, how they are related."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from eleven_steps.checks.judge.causes import Given, made_of, turned, whole
from eleven_steps.checks.judge.say import Finding, say
from eleven_steps.checks.judge.states import state_of
from eleven_steps.checks.know.right import Parts, Scene
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.run.cases import LOOSE, Case, close
from eleven_steps.checks.run.isolate import CPU_STRIDED, Failure
from eleven_steps.helpers.trace import SHAPES, STEPS

MANY = 100_000  # numbers
ONE_OF = {"b": "sequence", "num_heads": "head", "num_tokens": "token", "head_dim": "feature"}


def is_tensor(part: Any) -> bool:
    """Whether something is a plain tensor; a class made of it may do anything."""
    plain = type(part) in (torch.Tensor, torch.nn.Parameter)
    return plain and (part.layout, part.device.type) == CPU_STRIDED


def same_everywhere(returned: Sequence[Parts], others: Iterable[Parts]) -> bool:
    """Whether what was returned in several cases is what others give there."""
    return all(map(same_parts, returned, others))


def same_parts(parts: Parts, others: Parts) -> bool:
    """Whether two answers agree, NaN for NaN; failures agree by what they say."""
    return len(parts) == len(others) and all(map(agree, parts, others))


def agree(one: Any, other: Any) -> bool:
    """Whether one part of an answer is what is expected of it."""
    if isinstance(other, Failure):
        return type(one) is Failure and one.text == other.text
    if isinstance(other, int):
        return whole(one) == other
    if not is_tensor(one) or one.shape != other.shape or one.dtype != other.dtype:
        return False
    if other.numel() and other.isnan().all():
        return False  # many mistakes end in NaN everywhere: that names none of them
    if one.dtype == torch.bool:
        return torch.equal(one, other)
    return torch.allclose(one.detach(), other, 1e-4, 1e-5, equal_nan=True)


def reordered(
    names: Sequence[str], returned: Sequence[Parts], rights: Iterable[Parts]
) -> Finding | None:
    """Say that all parts are right in every case, in one other order than asked for."""
    rights = list(rights)
    for order in list(itertools.permutations(range(len(names))))[1:]:
        if same_everywhere(returned, (tuple(right[i] for i in order) for right in rights)):
            return say("parts_in_order", names=", ".join(names))
    return None


def same_tensor(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors agree in shape, dtype and numbers."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    one = one.detach()
    return close(one, other) if one.is_floating_point() else torch.equal(one, other)


def related(
    step: str,
    part: torch.Tensor,
    right: torch.Tensor,
    scene: Scene,
    given: Given = (),
    plain: bool = True,
) -> str:
    """Say how a wrong tensor of a step is related to what is right, in a sentence or "".

    Args:
        step: its name.
        part, right: the wrong one and the right one.
        scene: of the right class.
        given: what a function was given, by names.
        plain: whether the weights of step 7 are the lecture's.
    """
    if part.dtype == right.dtype == torch.bool:
        return _hides(part, right) if part.shape == right.shape else ""
    if part.dtype != right.dtype or not right.is_floating_point():
        return ""
    part = part.detach()
    for number, other in enumerate(STEPS, start=1):
        if other != step and any(same_tensor(part, each) for each in scene[other].values()):
            return say("of_another_step", number=number, name=other).text
    if part.numel() > MANY:  # an expanded tensor may claim any number
        return ""
    if part.numel() == right.numel() and close(part.flatten(), right.flatten()):
        return _rounded(part, right) if part.shape == right.shape else say("right_in_order").text
    rows = part.sum(-1) if part.dim() else part
    if step in ("scores", "mask") and close(rows, torch.ones_like(rows)):
        return say("rows_sum_to_1").text
    if part.shape == right.shape and part.dim() > 1 and (like := _beside(part, right)):
        return like
    if made := made_of(part, right, given):
        return made
    if part.numel() != right.numel():
        return ""
    softmaxed = plain and step == "softmax"
    if softmaxed and part.shape == right.shape == scene["softmax"]["weights"].shape:
        return _as_weights(part, right, scene)
    if step == "mask" and part.shape == right.shape and (hides := as_mask(part, right)):
        return hides
    return likeness(part, right) or _right_for_some(part, right, SHAPES[step])


def nan_cause(part: torch.Tensor, scene: Scene) -> str:
    """Say what made NaN, by where it stands beside the hidden scores; else all that may."""
    masked = scene.steps.get("mask", {}).get("masked")
    if masked is None or masked.shape != part.shape:
        return wording("nan_comes_of")
    hidden, nan = masked == -torch.inf, part.isnan()
    if torch.equal(nan, hidden):
        for dim in (0, 1):
            sums = part.nan_to_num().sum(dim)
            if close(sums, (~hidden).any(dim).float()):
                return wording("nan_of_other_axis", dim=dim)
        return wording("nan_where_hidden")
    rows = hidden.any(-1, keepdim=True).expand_as(nan)
    return wording("nan_in_hidden_rows" if torch.equal(nan, rows) else "nan_comes_of")


def exchanged(case: Case) -> set[tuple[int, ...]]:
    """The shapes with three axes of the steps where b and num_tokens have changed places."""
    sizes = case.letters | {"b": case.num_tokens, "num_tokens": case.b}
    axes = (each.strip("()").split(", ") for each in SHAPES.values())
    return {tuple(sizes[name] for name in each) for each in axes if len(each) == 3}


def _right_for_some(part: torch.Tensor, right: torch.Tensor, letters: str) -> str:
    """Say for which sequences, heads or tokens a tensor is right, if for some."""
    axes = letters.strip("()").split(", ")
    if part.shape != right.shape or len(axes) != right.dim():
        return ""
    fits = torch.isclose(part, right, 1e-4, 1e-5)
    for axis, name in enumerate(axes[:-1]):
        whole_ones = fits.movedim(axis, 0).flatten(1).all(1)
        if whole_ones.any():
            some = ", ".join(map(str, whole_ones.nonzero().flatten().tolist()))
            return say("right_for_some", letter=ONE_OF[name], some=some).text
    return ""


def _as_weights(part: torch.Tensor, right: torch.Tensor, scene: Scene) -> str:
    """What is wrong with weights: a scale that fits them, what they see, or sums that are not 1."""
    if rounded := _rounded(part, right):
        return rounded
    scores, masked = scene["scores"]["scores"], scene["mask"]["masked"]
    hides, root = masked == -torch.inf, scene.case.head_dim**-0.5
    state = state_of(part.double(), scores.double(), hides, 1e-5)
    if part.isnan().any():  # said already, with what made it
        return ""
    sums = part.sum(-1)
    if part.masked_select(hides).any():
        return say("future_seen", some="").text
    if not close(sums, torch.ones_like(sums), LOOSE):
        off = (sums - 1).abs().argmax()
        return say("row_sums", sum=float(sums.flatten()[off])).text
    if state and state.hidden == "right" and abs(state.scale / root - 1) > 5e-3:
        head_dim = scene.case.head_dim
        values = {"divisor": 1 / state.scale, "head_dim": head_dim, "root": head_dim**0.5}
        return say("no_scale").text if state.scale == 1 else say("scaled_otherwise", **values).text
    return likeness(part, right) or _right_for_some(part, right, SHAPES["softmax"])


def _rounded(part: torch.Tensor, right: torch.Tensor) -> str:
    """Say that a tensor is what is expected, rounded, if it is."""
    exact = (part - right.round(decimals=n) for n in range(6))
    near = (n for n, apart in enumerate(exact) if apart.abs().max() < 1e-6 and part.any())
    decimals = next(near, None)
    return "" if decimals is None else say("rounded_off", decimals=decimals).text


def _hides(part: torch.Tensor, right: torch.Tensor) -> str:
    """How far a mask that is True where something is hidden hides too much, or too little."""
    more, less = int((part & ~right).sum()), int((right & ~part).sum())
    name = "hides_other" if more and less else "hides_more" if more else "hides_less"
    counts = {"more": more, "less": less, "hidden": int(right.sum()), "seen": int((~right).sum())}
    return say(name, **counts).text


def hidden_by(scores: Iterable[torch.Tensor]) -> str:
    """Say which finite number hides the future of some scores, if one does."""
    for each in (t for t in scores if t.dim() > 1 and t.shape[-2] == t.shape[-1] > 1):
        future = each[..., torch.ones(each.shape[-2:]).triu(1).bool()]
        if (future == (number := float(future.flatten()[0]))).all() and -torch.inf < number < -999:
            return say("hides_finite", number=number, infinite=wording("hide_with_infinity")).text
    return ""


def as_mask(part: torch.Tensor, right: torch.Tensor) -> str:
    """What is wrong with masked scores of which only what is hidden differs."""
    hidden, mine = right == -torch.inf, part == -torch.inf
    wrong = ~torch.isclose(part, right, 1e-4, 1e-5)
    held = part[wrong]
    if hidden[wrong].all() and (held.isnan().all() or len(held.unique()) == 1):
        infinite = wording("hide_with_infinity")
        return say("hidden_hold", number=float(held[0]), infinite=infinite).text
    if wrong[~mine & ~hidden].any():
        return ""
    lost = mine & ~hidden
    name, some = ("tokens_miss", lost) if lost.any() else ("tokens_see", hidden & ~mine)
    where = dict(
        zip(("sequence", "head", "token", "other"), some.nonzero()[0].tolist(), strict=True)
    )
    return say(name, **where).text


def likeness(part: torch.Tensor, right: torch.Tensor) -> str:
    """Say whether a tensor holds the right numbers scaled, or in other places; else ""."""
    hidden, same_shape = right == -torch.inf, part.shape == right.shape
    if same_shape and hidden.any() and torch.equal(part == -torch.inf, hidden):
        return likeness(part[~hidden], right[~hidden])
    if part.numel() != right.numel() or not part.isfinite().all() or not right.isfinite().all():
        return ""
    mine, wanted = part.flatten(), right.flatten()
    if order := turned(part, right):
        return say("axes_in_order", order=order).text
    if same_shape and (like := _beside(part, right)):
        return like
    if not close(mine.sort().values, wanted.sort().values):
        return ""
    if not same_shape:
        return say("at_other_places").text
    at = (part - right).abs().gt(1e-4).nonzero()[0]
    there = (part - right[tuple(at)]).abs().flatten().argmin()
    there = torch.stack(torch.unravel_index(there, part.shape)).tolist()
    return say("stands_at", at=at.tolist(), there=there).text


def _beside(part: torch.Tensor, right: torch.Tensor) -> str:
    """Say how the numbers of two tensors of one shape differ, place by place."""
    if rounded := _rounded(part, right):
        return rounded
    shown = right.isfinite() & part.isfinite()
    if not torch.equal(part[~shown], right[~shown]) or not shown.any():
        return ""
    mine, wanted = part[shown], right[shown]
    factor = float(mine @ wanted / wanted.square().sum())
    if abs(factor) > 1e-6 and close(mine, factor * wanted):
        return say("times_the_right", factor=factor).text
    rows = (part - right).reshape(-1, right.shape[-1])
    if shown.all() and len(rows) > 1 and close(rows, rows[:1].expand_as(rows)):
        return say("rows_off_alike").text
    return ""
