"""Lay an answer beside another: whether they agree, and if not, how they are related."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch

from eleven_steps.checks.know.right import Parts, Scene
from eleven_steps.checks.name.causes import Given, made_of
from eleven_steps.checks.name.locate.by_weights import weigh
from eleven_steps.checks.name.say import say
from eleven_steps.checks.run.cases import close
from eleven_steps.checks.run.isolate import CPU_STRIDED, Failure
from helpers.trace import SHAPES, STEPS

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
    return len(parts) == len(others) and all(map(_agree, parts, others))


def _agree(one: Any, other: Any) -> bool:
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


def same_tensor(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors agree in shape, dtype and numbers."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    one = one.detach()
    return close(one, other) if one.is_floating_point() else torch.equal(one, other)


def whole(part: Any) -> int | None:
    """A whole number of any kind as an int; None for anything else."""
    scalar = type(part) is torch.Tensor and part.dim() == 0 or issubclass(type(part), np.generic)
    part = part.item() if scalar else part
    return part if type(part) is int else None


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
    if part.dtype != right.dtype or not right.is_floating_point():
        return ""
    part = part.detach()
    for number, other in enumerate(STEPS, start=1):
        if other != step and any(same_tensor(part, each) for each in scene[other].values()):
            return say("of_another_step", number=number, name=other).text
    if part.numel() > MANY:  # an expanded tensor may claim any number
        return ""
    if made := made_of(part, right, given):
        return made
    if part.numel() != right.numel():
        return ""
    softmaxed = plain and step == "softmax"
    if softmaxed and part.shape == right.shape == scene["softmax"]["weights"].shape:
        return _as_weights(part, right, scene)
    rows = part.sum(-1) if part.dim() else part
    if step in ("scores", "mask") and close(rows, torch.ones_like(rows)):
        return say("rows_sum_to_1").text
    if step == "mask" and part.shape == right.shape and (hides := _as_mask(part, right)):
        return hides
    return likeness(part, right) or _right_for_some(part, right, SHAPES[step])


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
    """What is wrong with weights: a scale that fits them, or sums that are not 1."""
    scores, masked = scene["scores"]["scores"], scene["mask"]["masked"]
    finding = weigh(*(each.flatten(0, 1) for each in (part, scores, right)), [masked])
    if finding.step != 7 or finding.name == "not_their_softmax":
        return likeness(part, right) or _right_for_some(part, right, SHAPES["softmax"])
    return finding.text


def _as_mask(part: torch.Tensor, right: torch.Tensor) -> str:
    """What is wrong with masked scores of which only what is hidden differs."""
    wrong = ~torch.isclose(part, right, 1e-4, 1e-5)
    held, hidden = part[wrong], right == -torch.inf
    if (right[wrong] == -torch.inf).all() and len(held.unique()) == 1:
        return say("hidden_hold", number=float(held[0])).text
    mine = part == -torch.inf
    if not torch.isclose(part, right, 1e-4, 1e-5)[~mine & ~hidden].all():
        return ""
    names = [
        name for name, some in (("seen", hidden & ~mine), ("lost", mine & ~hidden)) if some.any()
    ]
    at = {name: (hidden ^ mine).nonzero()[0].tolist()[-2:] for name in names}
    return say(
        "tokens_see" if names == ["seen"] else "tokens_miss",
        token=at[names[-1]][0],
        other=at[names[-1]][1],
    ).text


def likeness(part: torch.Tensor, right: torch.Tensor) -> str:
    """Say whether a tensor holds the right numbers scaled, or in other places; else ""."""
    hidden, same_shape = right == -torch.inf, part.shape == right.shape
    if same_shape and hidden.any() and torch.equal(part == -torch.inf, hidden):
        return likeness(part[~hidden], right[~hidden])
    if part.numel() != right.numel() or not part.isfinite().all() or not right.isfinite().all():
        return ""
    mine, wanted = part.flatten(), right.flatten()
    if not same_shape and close(mine, wanted):
        return say("right_in_order").text
    for order in list(itertools.permutations(range(right.dim())))[1:]:
        turned = right.permute(order)
        if turned.shape == part.shape and close(part, turned):
            return say("axes_in_order", order=order).text
    if same_shape:
        return _beside(part, right)
    same = close(mine.sort().values, wanted.sort().values)
    return say("at_other_places").text if same else ""


def _beside(part: torch.Tensor, right: torch.Tensor) -> str:
    """The same for tensors of one shape."""
    mine, wanted = part.flatten(), right.flatten()
    factor = float(mine @ wanted / wanted.square().sum())
    if close(part, factor * right) and factor:
        return say("times_the_right", factor=factor).text
    for decimals in range(5):
        if (part - right.round(decimals=decimals)).abs().max() < 1e-6:
            return say("rounded", decimals=decimals).text
    if right.dim() > 1:
        rows = (part - right).flatten(0, -2)
        if len(rows) > 1 and close(rows, rows[:1].expand_as(rows)):
            return say("rows_off_alike").text
    if close(mine.sort().values, wanted.sort().values):
        at = (part - right).abs().gt(1e-4).nonzero()[0]
        there = (part - right[tuple(at)]).abs().flatten().argmin()
        there = torch.stack(torch.unravel_index(there, part.shape)).tolist()
        return say("stands_at", at=at.tolist(), there=there).text
    return ""
