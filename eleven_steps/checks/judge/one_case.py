"""Say what is wrong with what a function returned in one case."""

from dataclasses import replace
from typing import Any

import torch

from eleven_steps.checks.judge.causes import whole
from eleven_steps.checks.judge.related import (
    is_tensor,
    nan_cause,
)
from eleven_steps.checks.judge.say import (
    Finding,
    came,
    say,
)
from eleven_steps.checks.judge.unmade import in_line
from eleven_steps.checks.know.exercises.kinds import Write
from eleven_steps.checks.know.right import Parts, Scene
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.run.isolate import Failure, type_name


def fault(task: Write, scene: Scene, parts: Parts) -> Finding | None:
    """Say what is wrong with what was returned in one case, or None if all parts are right."""
    if type(failure := parts[0] if parts else None) is Failure:
        finding = say("raises", error=failure.text, where=scene.case.where, line=in_line(failure))
        return replace(finding, case=scene.case)
    if len(parts) == 1 and parts[0] is None:
        return say("nothing", what="function")
    if len(parts) != len(task.names):
        things = wording("several_things", count=len(parts))
        if len(parts) == 1:
            tensor, kind = is_tensor(parts[0]), type_name(parts[0])
            shape = tuple(parts[0].shape) if tensor else ()
            things = wording("one_tensor" if tensor else "one_thing", shape=shape, type=kind)
        return say("other_parts", came=things, names=", ".join(task.names))
    each = zip(task.names, parts, task.answer(scene), task.letters, strict=True)
    for name, part, right, letters in each:
        judge = _whole_fault if isinstance(right, int) else _tensor_fault
        if finding := judge(name, part, right, scene, letters):
            return finding
    return None


def _whole_fault(name: str, part: Any, right: int, scene: Scene, letters: str) -> Finding | None:
    """Say what is wrong with a part that must be a whole number."""
    number = whole(part)
    if number is None:
        hint = wording("as_whole_division") if type(part) is float else ""
        return say("no_whole_number", name=name, type=type_name(part), hint=hint)
    if number == right:
        return None
    return say("other_whole", name=name, number=number, where=scene.case.where)


def _tensor_fault(
    name: str, part: Any, right: torch.Tensor, scene: Scene, letters: str
) -> Finding | None:
    """Say what is wrong with a part that must be a tensor."""
    values = {"name": name, "where": scene.case.where, "letters": letters}
    if part is None:
        return say("nothing", what="function")
    if type(part) is torch.Tensor and part.shape != right.shape:
        return say("other_shape", shape=tuple(part.shape), right=tuple(right.shape), **values)
    if not is_tensor(part):
        return say("no_tensor", came=came(part), **values)
    if part.dtype != right.dtype:
        return say("other_dtype", dtype=part.dtype, right=right.dtype, **values)
    if part.isnan().any():
        at, cause = part.isnan().nonzero()[0].tolist(), nan_cause(part, scene)
        return say("holds_nan", at=at, cause=cause, **values)
    wrong = part != right if right.dtype == torch.bool else ~torch.isclose(part, right, 1e-4, 1e-5)
    if not wrong.any():
        return None
    at = wrong.nonzero()[0].tolist()
    number, wanted = _told_apart(*(each.detach()[tuple(at)] for each in (part, right)))
    return say("other_numbers", at=at, number=number, right=wanted, **values)


def _told_apart(*numbers: torch.Tensor) -> list[str]:
    """Numbers as they are printed, with as many digits as it takes to tell them apart."""
    if not numbers[0].is_floating_point():
        return [str(each.item()) for each in numbers]
    shown = ([f"{each:.{digits}f}" for each in numbers] for digits in range(4, 12))
    return next((each for each in shown if len({*each}) > 1), [f"{e:g}" for e in numbers])
