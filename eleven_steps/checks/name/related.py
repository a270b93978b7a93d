"""Lay an answer beside another: whether they agree, and if not, how they are related."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch

from eleven_steps.checks.know.right import Parts, Scene
from eleven_steps.checks.name.locate.by_weights import weigh
from eleven_steps.checks.name.say import say
from eleven_steps.checks.run.cases import close
from eleven_steps.checks.run.isolate import CPU_STRIDED, Failure
from helpers.trace import STEPS


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


def related(step: str, part: torch.Tensor, right: torch.Tensor, scene: Scene) -> str:
    """Say how a wrong tensor of a step is related to what is right, in a sentence or ""."""
    if part.dtype != right.dtype or not right.is_floating_point():
        return ""
    part = part.detach()
    for number, other in enumerate(STEPS, start=1):
        if other != step and any(same_tensor(part, each) for each in scene[other].values()):
            return say("of_another_step", number=number, name=other).text
    if part.numel() != right.numel():  # an expanded tensor may claim any number
        return ""
    if step == "softmax" and part.shape == right.shape == scene["softmax"]["weights"].shape:
        scores, masked = scene["scores"]["scores"], scene["mask"]["masked"]
        finding = weigh(*(each.flatten(0, 1) for each in (part, scores, right)), [masked])
        return finding.text if finding.step == 7 else ""
    rows = part.sum(-1) if part.dim() else part
    if step in ("scores", "mask") and close(rows, torch.ones_like(rows)):
        return say("rows_sum_to_1").text
    if step == "mask" and part.shape == right.shape:
        wrong = ~torch.isclose(part, right, 1e-4, 1e-5)
        held = part[wrong]
        only_hidden = (right[wrong] == -torch.inf).all() and len(held.unique()) == 1
        return say("hidden_hold", number=float(held[0])).text if only_hidden else ""
    return likeness(part, right)


def likeness(part: torch.Tensor, right: torch.Tensor) -> str:
    """Say whether a tensor holds the right numbers scaled, or in other places; else ""."""
    hidden, same_shape = right == -torch.inf, part.shape == right.shape
    if same_shape and hidden.any() and torch.equal(part == -torch.inf, hidden):
        return likeness(part[~hidden], right[~hidden])
    if part.numel() != right.numel() or not part.isfinite().all() or not right.isfinite().all():
        return ""
    for order in list(itertools.permutations(range(right.dim())))[1:]:
        turned = right.permute(order)
        if turned.shape == part.shape and close(part, turned):
            return say("axes_in_order", order=order).text
    mine, wanted = part.flatten(), right.flatten()
    factor = float(mine @ wanted / wanted.square().sum())
    if same_shape and close(part, factor * right):
        return say("times_the_right", factor=factor).text
    if same_shape and right.dim() > 1:
        rows = (part - right).flatten(0, -2)
        if len(rows) > 1 and close(rows, rows[:1].expand_as(rows)):
            return say("rows_off_alike").text
    same = close(mine.sort().values, wanted.sort().values)
    return say("at_other_places").text if same else ""
