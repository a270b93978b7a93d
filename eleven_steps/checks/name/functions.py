"""Judge a function that an exercise asks for: what it returns, place by place, and why."""

import itertools
import math
from dataclasses import replace
from typing import Any

import torch

from eleven_steps.checks.know.exercises.kinds import Write, catalogued
from eleven_steps.checks.know.mistakes import mistakes_of
from eleven_steps.checks.know.right import Parts, Scene, play
from eleven_steps.checks.name.outcome import Finding
from eleven_steps.checks.name.related import is_tensor, related, same_everywhere, same_tensor, whole
from eleven_steps.checks.name.say import came, dropped, from_notebook, say, say_raised, together
from eleven_steps.checks.run.ask import ask, is_remote, kind_of, used_by
from eleven_steps.checks.run.cases import drawn
from eleven_steps.checks.run.isolate import Failure, type_name
from helpers.trace import STEPS

POWERS = (1, 0.5, -0.5)  # of a size that may be typed in


def judge_function(task: Write, answer: Any) -> Finding:
    """Run a function in every place and compare what it returns."""
    sort, name = kind_of(answer)
    if sort not in ("callable", "class", "module class"):
        return say("no_function", name=name)
    more = drawn(task.places[1]) if is_remote(answer) else ()
    scenes = [play(each) for each in (*task.places, *more)]
    *returned, again = _asked(task, answer, [*scenes, scenes[0]])
    if any(part is ... for parts in returned for part in parts):
        return say("open")
    faults = [fault(task, *each) for each in zip(scenes, returned, strict=True)]
    if faults[0] is None and fault(task, scenes[0], again) or _differing(returned[0], again):
        return say("other_each_time")
    if not any(faults):
        return say("right_everywhere" if scenes[0].case.whiteboard else "right_wherever")
    telling = _telling(task, scenes, returned, faults)
    used, back = used_by(answer), _given_back(task, *telling)
    if not faults[2]:  # where it is right no other size repairs it
        used["constants"] = []
    if found := _slip(task, scenes, returned):
        told = found.text
    elif found := _from_outside(task, answer, used, scenes):
        return found
    else:
        found = _first(faults, scenes)
        told = together(found.text, back or _likeness(task, *telling))
    if found.kind == "unfinished":
        return found
    lost = dropped(used)  # where that is why all comes back as it was, nothing else is said
    return replace(found, text=together(back if back and lost else told, lost))


def _asked(task: Write, answer: Any, scenes: list[Scene], constants: Any = None) -> list[Parts]:
    """What the function returns in each scene, one part for each name if there are as many."""
    replies = ask(answer, "call", [task.gets(scene) for scene in scenes], constants)
    if isinstance(replies, Failure):
        return [(replies,)] * len(scenes)
    return [task.counted(_parts(task, reply)) for reply in replies]


def _parts(task: Write, reply: Any) -> Parts:
    count = len(task.names)
    stacked = type(reply) is torch.Tensor and reply.dim() and len(reply) == count
    several = stacked or type(reply) in (list, tuple, torch.Size)
    return tuple(reply) if count > 1 and several else (reply,)


def _differing(parts: Parts, others: Parts) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Pairs of tensors, one of each, that do not agree."""
    both = zip(parts, others, strict=False)
    return [pair for pair in both if all(map(is_tensor, pair)) and not same_tensor(*pair)]


# What is wrong


def fault(task: Write, scene: Scene, parts: Parts) -> Finding | None:
    """Say what is wrong with what was returned in one place, or None if all parts are right."""
    if type(failure := parts[0] if parts else None) is Failure:
        return say_raised("function", failure, scene.case)
    if len(parts) == 1 and parts[0] is None:
        return say("nothing", what="function")
    if len(parts) != len(task.names):
        came = f"{len(parts)} things"
        if len(parts) == 1:
            tensor, kind = is_tensor(parts[0]), type_name(parts[0])
            came = f"one tensor {tuple(parts[0].shape)}" if tensor else f"one thing of type {kind}"
        return say("other_parts", came=came, names=", ".join(task.names))
    each = zip(task.names, parts, task.answer(scene), task.letters, strict=True)
    for name, part, right, letters in each:
        judge = _whole_fault if isinstance(right, int) else _tensor_fault
        if found := judge(name, part, right, scene, letters):
            return found
    return None


def _whole_fault(name: str, part: Any, right: int, scene: Scene, letters: str) -> Finding | None:
    """Say what is wrong with a part that must be a whole number."""
    number = whole(part)
    if number is None:
        hint = ", as `//` gives" if type(part) is float else ""
        return say("no_whole_number", name=name, type=type_name(part), hint=hint)
    if number == right:
        return None
    sizes = scene.case.letters
    del sizes["context_length"]
    named = [each for each, size in sizes.items() if size == number]
    pairs = itertools.combinations(sizes, 2)
    named += [f"{a} * {b}" for a, b in pairs if sizes[a] * sizes[b] == number]
    called = f", which is {named[0]}" if len(named) == 1 else ""
    return say("other_whole", name=name, number=number, where=scene.case.where, called=called)


def _tensor_fault(
    name: str, part: Any, right: torch.Tensor, scene: Scene, letters: str
) -> Finding | None:
    """Say what is wrong with a part that must be a tensor."""
    told = {"name": name, "where": scene.case.where, "letters": letters}
    if part is None:
        return say("nothing", what="function")
    if type(part) is torch.Tensor and part.shape != right.shape:
        return say("other_shape", shape=tuple(part.shape), right=tuple(right.shape), **told)
    if not is_tensor(part):
        return say("no_tensor", came=came(part), **told)
    if part.dtype != right.dtype:
        return say("other_dtype", dtype=part.dtype, right=right.dtype, **told)
    if part.isnan().any():
        return say("holds_nan", at=part.isnan().nonzero()[0].tolist(), **told)
    wrong = part != right if right.dtype == torch.bool else ~torch.isclose(part, right, 1e-4, 1e-5)
    if not wrong.any():
        return None
    at = wrong.nonzero()[0].tolist()
    numbers = {"number": _written(part[tuple(at)]), "right": _written(right[tuple(at)])}
    return say("other_numbers", at=at, **numbers, **told)


def _written(number: torch.Tensor) -> str:
    return f"{number:.4f}" if number.is_floating_point() else str(number.item())


def _first(faults: list[Finding | None], scenes: list[Scene]) -> Finding:
    """The first fault; with the one at other sizes beside it where the whiteboard hides much."""
    place = scenes[0].case
    first = next(index for index, found in enumerate(faults) if found)
    found, other = faults[first], faults[2]  # the third place is where all sizes differ
    # Sizes that differ tell more of an error, and of a whole number.
    sized = found.kind == "error" or found.text.endswith("another number is expected.")
    if first < 2 and other and other.kind == found.kind and sized:
        found = other
    if first:
        return replace(found, text=say("not_everywhere", first=place.called, fault=found.text).text)
    louder = (each for each in faults[2:] if each and each.kind in ("error", "shape"))
    if found.kind == "value" and (hidden := next(louder, None)):
        name = "whiteboard_hides" if place.whiteboard else "sizes_hide"
        hides = say(name, first=place.called, fault=hidden.text).text
        found = replace(found, text=together(found.text, hides))
    return found


# Why


def _slip(task: Write, scenes: list[Scene], returned: list[Parts]) -> Finding | None:
    """The usual wrong answer that explains what is returned everywhere, if there is one.

    After the exercise's own, every mistake of the catalogue is tried that can be made at its step.
    """
    number, usual = STEPS.index(task.step) + 1, task.usual()
    known = [slip.mistake for slip in usual]
    every = {} if task.right else mistakes_of(task.variant)  # where it is part of a step, none
    others = [n for n, each in every.items() if number in each.steps and n not in known]
    for index, slip in enumerate([*usual, *map(catalogued, others)]):
        if same_everywhere(returned, (task.slipped(slip, scene) for scene in scenes)):
            if task.planted and index == 0:
                return say("not_repaired")
            return Finding(None, slip.sentence, slip.mistake, "mistake")
    return None


def _from_outside(task: Write, answer: Any, used: dict, scenes: list[Scene]) -> Finding | None:
    """Say which name of the notebook, or which typed-in size, the function uses."""
    if used["names"]:
        return say("function_reads", what=from_notebook(used))
    board, other = scenes[0].case.letters, scenes[2].case
    for typed, (letter, size), power in itertools.product(used["constants"], board.items(), POWERS):
        if not math.isclose(typed, size**power) or (power != 1) == (type(typed) is int):
            continue
        there = other.letters[letter]
        (swapped,) = _asked(task, answer, [scenes[2]], {typed: there**power})
        if fault(task, scenes[2], swapped) is None:
            told = {"letter": letter, "size": size, "first": scenes[0].case.where, "other": there}
            return say("typed_in", where=other.where, **told)
    return None


def _telling(task: Write, scenes: list[Scene], returned: list[Parts], faults: list) -> tuple:
    """The first wrong tensor where it tells most, what it should be, and its scene, if any."""
    for index in (2, 3, 0, 1):
        if faults[index] and faults[index].kind in ("value", "shape"):
            wrong = _differing(returned[index], task.answer(scenes[index]))
            return (*(wrong or [(None, None)])[0], scenes[index])
    return None, None, None


def _given_back(task: Write, part: Any, right: Any, scene: Scene) -> str:
    """Say which argument a wrong tensor is, if it is one."""
    given = [] if part is None else [each for each in task.gets(scene) if is_tensor(each)]
    if not any(same_tensor(part, each) for each in given):
        return ""
    named = (n for step in scene.steps.values() for n, t in step.items() if same_tensor(part, t))
    name = next(named, "")
    return say("as_given", name=f"`{name}`" if name else "It").text


def _likeness(task: Write, part: Any, right: Any, scene: Scene) -> str:
    """Say how a wrong tensor is related to the right one."""
    alike = part is not None and part.dtype == right.dtype and right.is_floating_point()
    return related(task.step, part.detach(), right, scene) if alike else ""
