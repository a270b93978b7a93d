"""Say how a wrong tensor is related to the right one of its step, or to those of other steps."""

import itertools

import torch

from helpers.checks.cases import close
from helpers.checks.right import Scene
from helpers.checks.weigh import weigh
from helpers.trace import STEPS


def same_tensor(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors agree in shape, dtype and numbers."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    one = one.detach()
    return close(one, other) if one.is_floating_point() else torch.equal(one, other)


def related(step: str, part: torch.Tensor, right: torch.Tensor, scene: Scene) -> str:
    """Say how a wrong tensor of a step is related to what is right, in a sentence or "".

    Args:
        step: the name of the step.
        part: what came.
        right: what should have come.
        scene: the right forward.
    """
    for number, other in enumerate(STEPS, start=1):
        if other != step and any(same_tensor(part, each) for each in scene[other].values()):
            return f" It is what step {number}, {other}, makes."
    if part.shape == right.shape and step == "mask":
        return _masked(part, right)
    if part.shape == right.shape and step == "softmax":
        square = (-1, *right.shape[2:])
        masked = scene["mask"]["masked"].reshape(square)
        found = weigh(
            part.reshape(square),
            scene["scores"]["scores"].reshape(square),
            right.reshape(square),
            [masked],
        )
        return f" {found.text}" if found.step == 7 else ""
    rows = part.sum(-1) if part.dim() else part
    if step in ("scores", "mask") and close(rows, torch.ones_like(rows)):
        return " Its rows sum to 1, as after a softmax: that is for step 7."
    return _moved(part, right)


def _masked(part: torch.Tensor, right: torch.Tensor) -> str:
    wrong = ~torch.isclose(part, right, 1e-4, 1e-5)
    held = part[wrong]
    if (right[wrong] == -torch.inf).all() and len(held.unique()) == 1:
        return f" Only hidden scores differ: they hold {float(held[0]):g}, and -inf is expected."
    return ""


def _moved(part: torch.Tensor, right: torch.Tensor) -> str:
    if part.numel() != right.numel() or not part.isfinite().all() or not right.isfinite().all():
        return ""
    for order in itertools.permutations(range(right.dim())):
        moved = right.permute(order)
        if moved.shape == part.shape and close(part, moved):
            return f" It holds the right numbers with its axes in the order {order}."
    factor = float((part.flatten() @ right.flatten()) / right.flatten().square().sum())
    if part.shape == right.shape and close(part, factor * right):
        return f" Every number is {factor:.4g} times the right one."
    if close(part.flatten().sort().values, right.flatten().sort().values):
        return " It holds the right numbers at other places: `view` and `reshape` keep the order."
    return ""
