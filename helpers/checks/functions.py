"""Judge a function that an exercise asks for: what it returns, place by place, and why."""

import itertools
from typing import Any

import numpy as np
import torch

from helpers.checks.cases import PLACES, drawn
from helpers.checks.isolate import Failure, type_name
from helpers.checks.mistakes import MISTAKES
from helpers.checks.observe import ask, elsewhere, kind_of
from helpers.checks.outcome import Outcome
from helpers.checks.related import related, same_tensor
from helpers.checks.right import Scene, play
from helpers.checks.sentences import dropped, from_notebook, legend
from helpers.checks.tasks import Parts, Write, catalogued
from helpers.trace import STEPS

WHOLE = "another number is expected"
NOTHING = "your function returns nothing: end it with `return`."


def judge_function(task: Write, answer: Any) -> Outcome:
    """Run a function in every place and compare what it returns."""

    def outcome(kind: str, message: str, *mistakes: str) -> Outcome:
        return Outcome(task.identifier, kind, message, mistakes=mistakes)

    sort, name = kind_of(answer)
    if sort not in ("callable", "class", "module class"):
        text = f"a function is expected; this is of type {name}. Hand over the function's name, "
        return outcome("type", text + "without brackets.")
    scenes = [play(each) for each in (*PLACES, *(drawn() if elsewhere(answer) else ()))]
    returned = _asked(task, answer, scenes)
    if any(part is ... for parts in returned for part in parts):
        return outcome("unfinished", "not answered yet.")
    faults = [fault(task, *each) for each in zip(scenes, returned, strict=True)]
    if not any(faults):
        return outcome("right", "right, on the whiteboard and everywhere else it was tried.")
    used = ask(answer, "readings")
    used = {} if isinstance(used, Failure) else used
    lost = dropped(used)
    if found := _slip(task, scenes, returned):
        if found[0] is None:
            return outcome("unfinished", "not repaired yet, it still does what it did.")
        return outcome("mistake", f"{found[0]}{lost}", *found[1])
    if text := _from_outside(task, answer, used, scenes):
        return outcome("value", text)
    kind, message = _first(faults)
    return outcome(kind, f"{message}{_likeness(task, scenes, returned, faults)}{lost}")


def _asked(task: Write, answer: Any, scenes: list[Scene], constants: Any = None) -> list[Parts]:
    """What the function returns in each scene, one part for each name if there are as many."""
    replies = ask(answer, "call", [task.gets(scene) for scene in scenes], constants)
    if isinstance(replies, Failure):
        return [(replies,)] * len(scenes)
    return [_parts(task, reply) for reply in replies]


def _parts(task: Write, reply: Any) -> Parts:
    count = len(task.names)
    if count > 1 and type(reply) in (list, tuple, torch.Size):
        return tuple(reply)
    if count > 1 and type(reply) is torch.Tensor and reply.dim() and len(reply) == count:
        return tuple(reply.unbind())
    return (reply,)


# What is wrong


def fault(task: Write, scene: Scene, parts: Parts) -> tuple[str, str] | None:
    """Return the kind of fault and its sentence, or None if all parts are right."""
    where, names = scene.case.where, ", ".join(task.names)
    if type(failure := parts[0] if parts else None) is Failure:
        line = f", in the line `{failure.line}`" if failure.line else ""
        return (
            "error",
            f"your function raises {failure.text} {where}{line}.{legend(failure.text, scene.case)}",
        )
    if len(parts) == 1 and parts[0] is None:
        return "type", NOTHING
    if len(parts) != len(task.names):
        came = f"one {_described(parts[0])}" if len(parts) == 1 else f"{len(parts)} things"
        return "type", f"your function returns {came}: `return {names}`, all of them, is expected."
    for name, part, right in zip(task.names, parts, task.answer(scene), strict=True):
        judge = _whole_fault if isinstance(right, int) else _tensor_fault
        if found := judge(name, part, right, scene, task.letters):
            return found
    return None


def _described(part: Any) -> str:
    tensor = type(part) in (torch.Tensor, torch.nn.Parameter)
    return f"tensor {tuple(part.shape)}" if tensor else f"thing of type {type_name(part)}"


def whole(part: Any) -> int | None:
    """Return a whole number of any kind as an int; None for anything else."""
    scalar = type(part) is torch.Tensor and part.dim() == 0 or issubclass(type(part), np.generic)
    part = part.item() if scalar else part
    return part if type(part) is int else None


def _whole_fault(name: str, part: Any, right: int, scene: Scene, letters: str):
    """Return the fault of a part that must be a whole number, or None."""
    number = whole(part)
    if number is None:
        hint = ", as `//` gives" if type(part) is float else ""
        return "type", f"`{name}` is of type {type_name(part)}: a whole number{hint} is expected."
    if number == right:
        return None
    sizes = scene.case.letters
    del sizes["context_length"]
    named = [each for each, size in sizes.items() if size == number]
    pairs = itertools.combinations(sizes, 2)
    named += [f"{a} * {b}" for a, b in pairs if sizes[a] * sizes[b] == number]
    called = f", which is {named[0]}" if len(named) == 1 else ""
    return "value", f"`{name}` is {number} {scene.case.where}{called}: {WHOLE}."


def _tensor_fault(name: str, part: Any, right: torch.Tensor, scene: Scene, letters: str):
    """Return the fault of a part that must be a tensor, or None."""
    where = scene.case.where
    if part is None:
        return "type", NOTHING
    if type(part) not in (torch.Tensor, torch.nn.Parameter):
        return "type", f"`{name}` is of type {type_name(part)}: a tensor {letters} is expected."
    if part.shape != right.shape:
        return "shape", (
            f"`{name}` has shape {tuple(part.shape)} {where}: {letters} = {tuple(right.shape)} "
            f"is expected."
        )
    if part.dtype != right.dtype:
        return "type", f"`{name}` holds {part.dtype}: {right.dtype}, as in the input, is expected."
    if part.isnan().any():
        return "nan", f"`{name}` holds NaN {where}, first in {name}{_first_in(part.isnan())}."
    wrong = ~torch.isclose(part, right, 1e-4, 1e-5)
    if not wrong.any():
        return None
    at = _first_in(wrong)
    return "value", (
        f"`{name}` holds other numbers {where}: {name}{at} is {part[tuple(at)]:.4f}, and "
        f"{right[tuple(at)]:.4f} is expected."
    )


def _first_in(wrong: torch.Tensor) -> list[int]:
    """Return the first index where wrong is True."""
    return wrong.nonzero()[0].tolist()


def _first(faults: list[tuple[str, str] | None]) -> tuple[str, str]:
    """The first fault; with the one at other sizes beside it where the whiteboard hides much."""
    first = next(index for index, found in enumerate(faults) if found)
    kind, message = faults[first]
    telling = faults[2] and faults[2][0] == kind and (kind == "error" or WHOLE in message)
    if first < 2 and telling:
        message = faults[2][1]  # where all sizes differ
    if first:
        return kind, f"right on the whiteboard, but not everywhere: {message}"
    louder = next(
        (f for f in faults[2:] if f and f[0] in ("error", "shape") and f[0] != kind), None
    )
    if kind == "value" and louder:
        message += f" The whiteboard hides it, where sizes are equal: {louder[1]}"
    return kind, message


# Why


def _slip(task: Write, scenes: list[Scene], returned: list[Parts]):
    """The usual wrong answer that explains what is returned everywhere: (sentence, mistakes).

    The sentence is None for the one that the exercise ships with. After the exercise's own, every
    mistake of the catalogue is tried that can be made at its step.
    """
    number = STEPS.index(task.step) + 1
    usual = task.usual()
    known = [slip.mistake for slip in usual]
    others = [m for m, each in MISTAKES.items() if number in each.steps and m not in known]
    for index, slip in enumerate([*usual, *map(catalogued, others)]):
        if slip.returns is None and task.right:
            continue  # a mistake of the whole class, where the exercise is about a part of a step
        slipped = (task.slipped(slip, scene) for scene in scenes)
        if all(map(_same, returned, slipped)):
            if task.planted and index == 0:
                return None, ()
            return slip.sentence, (slip.mistake,) if slip.mistake else ()
    return None


def _same(parts: Parts, others: Parts) -> bool:
    """Say whether parts agree, NaN for NaN; failures agree by what they say."""
    return len(parts) == len(others) and all(map(_agree, parts, others))


def _agree(one: Any, other: Any) -> bool:
    if isinstance(other, Failure):
        return type(one) is Failure and one.text == other.text
    if isinstance(other, int):
        return whole(one) == other
    if type(one) not in (torch.Tensor, torch.nn.Parameter):
        return False
    if one.shape != other.shape or one.dtype != other.dtype or other.isnan().all():
        return False  # many mistakes end in NaN everywhere: that names none of them
    return torch.allclose(one.detach(), other, 1e-4, 1e-5, equal_nan=True)


def _from_outside(task: Write, answer: Any, used: dict, scenes: list[Scene]) -> str:
    """Say which name of the notebook, or which typed-in size, the function uses."""
    if used.get("names"):
        return (
            f"your function reads {from_notebook(used)}, whatever it is given. Work with its own "
            f"parameters, the names in the brackets of `def`."
        )
    board, other = scenes[0].case.letters, scenes[2].case.letters
    for constant in used.get("constants", ()):
        for letter in (name for name, size in board.items() if size == constant):
            swapped = _asked(task, answer, scenes[2:3], {constant: other[letter]})
            if fault(task, scenes[2], swapped[0]) is None:
                return (
                    f"{constant} is typed in where {letter} belongs: it is {constant} on the "
                    f"whiteboard and {other[letter]} {scenes[2].case.where}."
                )
    return ""


def _likeness(task: Write, scenes: list[Scene], returned: list[Parts], faults: list) -> str:
    """Say how a wrong tensor is related to the right one or to what the function was given."""
    index = next(
        (i for i in (2, 3, 0, 1) if faults[i] and faults[i][0] in ("value", "shape")), None
    )
    if index is None:
        return ""
    scene, parts = scenes[index], returned[index]
    for part, right in zip(parts, task.answer(scene), strict=False):
        tensors = type(part) in (torch.Tensor, torch.nn.Parameter) and type(right) is torch.Tensor
        if not tensors or same_tensor(part, right):
            continue
        given = [each for each in task.gets(scene) if isinstance(each, torch.Tensor)]
        if any(same_tensor(part, each) for each in given):
            return " It comes back as it was given."
        if part.dtype != right.dtype:
            return ""
        return related(task.step, part.detach(), right, scene)
    return ""
