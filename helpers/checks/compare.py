"""Compare what a learner's function returned with what is right, or with what a slip returns."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from helpers.checks.guard import Failure, attempt, kept_state
from helpers.checks.scenes import Scene
from helpers.checks.tasks import Parts, Write


def call(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Run a learner's function on copies; return what comes, or the Failure, and undo the rest."""
    with kept_state():
        return attempt(function, *copy.deepcopy(arguments), **options)


def same(parts: Parts, others: Parts) -> bool:
    """Say whether parts agree, NaN for NaN; failures agree by what they say."""
    return len(parts) == len(others) and all(map(agree, parts, others))


def agree(one: Any, other: Any) -> bool:
    """Say whether a part that came is the same as one that is known."""
    if isinstance(other, Failure):
        return isinstance(one, Failure) and one.text == other.text
    if isinstance(other, int):
        return whole(one) == other
    if not isinstance(one, torch.Tensor) or one.shape != other.shape or one.dtype != other.dtype:
        return False
    if other.isnan().all():
        return False  # many mistakes end in NaN everywhere: that names none of them
    return torch.allclose(one.detach(), other, 1e-4, 1e-5, equal_nan=True)


def whole(part: Any) -> int | None:
    """Return a whole number of any kind as an int; None for anything else."""
    scalar = isinstance(part, torch.Tensor) and part.dim() == 0 or isinstance(part, np.generic)
    part = part.item() if scalar else part
    return part if type(part) is int else None


def fault(task: Write, scene: Scene, parts: Parts) -> tuple[str, str] | None:
    """Return the kind of fault and its sentence, or None if all parts are right."""
    where, names = scene.sizes.where, ", ".join(task.names)
    if isinstance(failure := parts[0], Failure):
        line = f", in the line `{failure.line}`" if failure.line else ""
        return "error", f"your function raises {failure.text} {where}{line}."
    if len(parts) != len(task.names):
        return "type", f"your function returns {len(parts)} of `{names}`: return all of them."
    for name, part, right in zip(task.names, parts, task.answer(scene), strict=True):
        judged = whole_fault if isinstance(right, int) else tensor_fault
        if found := judged(name, part, right, where, task.letters):
            return found
    return None


def whole_fault(name, part, right: int, where: str, letters: str) -> tuple[str, str] | None:
    """Return the fault of a part that must be a whole number, or None."""
    number = whole(part)
    if number is None:
        hint = ", as `//` gives" if isinstance(part, float) else ""
        return "type", f"`{name}` is of type {type_name(part)}: a whole number{hint} is expected."
    return None if number == right else ("value", f"`{name}` is another number {where}.")


def tensor_fault(
    name: str, part: Any, right: torch.Tensor, where: str, letters: str
) -> tuple[str, str] | None:
    """Return the fault of a part that must be a tensor, or None."""
    if part is None:
        return "type", "your function returns nothing: end it with `return`."
    if type(part) not in (torch.Tensor, torch.nn.Parameter):
        return "type", f"`{name}` is of type {type_name(part)}: a tensor {letters} is expected."
    part = part.detach()
    if part.shape != right.shape:
        return "shape", (
            f"`{name}` has shape {tuple(part.shape)} {where}: {letters} = {tuple(right.shape)} "
            f"is expected."
        )
    if part.dtype != right.dtype:
        return "type", f"`{name}` holds {part.dtype}: {right.dtype}, as in the input, is expected."
    if part.isnan().any():
        return "nan", f"`{name}` holds NaN {where}, first in {name}{first(part.isnan())}."
    wrong = ~torch.isclose(part, right, 1e-4, 1e-5)
    if not wrong.any():
        return None
    place = first(wrong)
    return "value", (
        f"`{name}` has the right shape {where}, but other numbers: {name}{place} is "
        f"{part[tuple(place)]:.4f}, and {right[tuple(place)]:.4f} is expected."
    )


def first(wrong: torch.Tensor) -> list[int]:
    """Return the first index where wrong is True."""
    return wrong.nonzero()[0].tolist()


def type_name(thing: Any) -> str:
    """Return the name of the type of thing, as short as messages need it."""
    return str(type(thing).__name__)[:40]
