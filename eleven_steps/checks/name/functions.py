"""Judge a function that an exercise asks for: what it returns, case by case, and why."""

import itertools
import math
from dataclasses import replace
from typing import Any

import torch

from eleven_steps.checks.know.catalogue import mistakes_of
from eleven_steps.checks.know.exercises.kinds import Write
from eleven_steps.checks.know.exercises.kinds import slip as named_slip
from eleven_steps.checks.know.right import Parts, Scene, play
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.name.related import is_tensor, related, same_everywhere, same_tensor, whole
from eleven_steps.checks.name.say import (
    Finding,
    came,
    dropped,
    from_notebook,
    say,
    say_raised,
    together,
)
from eleven_steps.checks.run.ask import ask, is_remote, kind_of, used_by
from eleven_steps.checks.run.cases import drawn
from eleven_steps.checks.run.isolate import Failure, type_name
from helpers.trace import STEPS

POWERS = {int: (1,), float: (0.5, -0.5)}  # of a size, as it may be typed in
BOARD, SIZED = 0, 2  # cases: the first, which learners have before them; where all sizes differ


def judge_function(task: Write, answer: Any) -> Finding:
    """Run a function in every case and compare what it returns."""
    sort, name = kind_of(answer)
    if sort not in ("callable", "class", "module class"):
        return say("no_function", name=name)
    more = drawn(task.cases[1]) if is_remote(answer) else ()
    scenes = [play(each) for each in (*task.cases, *more)]
    *returned, again = _asked(task, answer, [*scenes, scenes[BOARD]])
    if any(part is ... for parts in returned for part in parts):
        return say("open")
    faults = [fault(task, *each) for each in zip(scenes, returned, strict=True)]
    changed = faults[0] is None and fault(task, scenes[BOARD], again)
    if changed or _differing(returned[BOARD], again):
        return say("other_each_time")
    if not any(faults):
        return say("right_everywhere" if scenes[BOARD].case.whiteboard else "right_wherever")
    return _why(task, answer, scenes, returned, faults)


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
    """Say what is wrong with what was returned in one case, or None if all parts are right."""
    if type(failure := parts[0] if parts else None) is Failure:
        return say_raised("function", failure, scene.case)
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
    sizes = scene.case.letters
    del sizes["context_length"]
    names = [each for each, size in sizes.items() if size == number]
    pairs = itertools.combinations(sizes, 2)
    names += [f"{a} * {b}" for a, b in pairs if sizes[a] * sizes[b] == number]
    called = wording("which_is", name=names[0]) if len(names) == 1 else ""
    return say("other_whole", name=name, number=number, where=scene.case.where, called=called)


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
        return say("holds_nan", at=part.isnan().nonzero()[0].tolist(), **values)
    wrong = part != right if right.dtype == torch.bool else ~torch.isclose(part, right, 1e-4, 1e-5)
    if not wrong.any():
        return None
    at = wrong.nonzero()[0].tolist()
    number, wanted = (_written(each[tuple(at)]) for each in (part, right))
    return say("other_numbers", at=at, number=number, right=wanted, **values)


def _written(number: torch.Tensor) -> str:
    return f"{number:.4f}" if number.is_floating_point() else str(number.item())


def _first(faults: list[Finding | None], scenes: list[Scene]) -> Finding:
    """The first fault; with the one at other sizes beside it where the whiteboard hides much."""
    board = scenes[BOARD].case
    first = next(index for index, finding in enumerate(faults) if finding)
    finding, other = faults[first], faults[SIZED]
    # Sizes that differ tell more of an error, and of a whole number.
    sized = finding.kind == "error" or finding.name == "other_whole"
    if first < SIZED and other and other.kind == finding.kind and sized:
        finding = other
    if first:
        text = say("not_everywhere", first=board.called, fault=finding.text).text
        return replace(finding, text=text)
    louder = (each for each in faults[SIZED:] if each and each.kind in ("error", "shape"))
    if finding.kind == "value" and (hidden := next(louder, None)):
        name = "whiteboard_hides" if board.whiteboard else "sizes_hide"
        hides = say(name, first=board.called, fault=hidden.text).text
        finding = replace(finding, text=together(finding.text, hides))
    return finding


# Why


def _why(
    task: Write, answer: Any, scenes: list[Scene], returned: list[Parts], faults: list
) -> Finding:
    """Say which slip it is, what is read of the notebook, or what came and what it is like."""
    used, telling = used_by(answer), _telling(task, scenes, returned, faults)
    back = _given_back(task, *telling) if telling else ""
    if not faults[SIZED]:  # where it is right no other size repairs it
        used["constants"] = []
    if finding := _slip(task, scenes, returned):
        text = finding.text
    elif finding := _from_outside(task, answer, used, scenes):
        return finding
    else:
        finding = _first(faults, scenes)
        like = back or (related(task.step, *telling) if telling else "")
        text = together(finding.text, like)
    if finding.kind == "unfinished":
        return finding
    lost = dropped(used)  # where that is why all comes back as it was, nothing else is said
    return replace(finding, text=together(back if back and lost else text, lost))


def _slip(task: Write, scenes: list[Scene], returned: list[Parts]) -> Finding | None:
    """The usual wrong answer that explains what is returned everywhere, if there is one."""
    number, usual = STEPS.index(task.step) + 1, task.usual()
    own = [slip.mistake for slip in usual]
    every = {} if task.right else mistakes_of(task.variant)  # where it is part of a step, none
    others = [n for n, each in every.items() if number in each.steps and n not in own]
    for index, slip in enumerate([*usual, *map(named_slip, others)]):
        if same_everywhere(returned, (task.slipped(slip, scene) for scene in scenes)):
            if task.planted and index == 0:
                return say("not_repaired")
            return Finding(None, slip.sentence, slip.mistake, "mistake")
    return None


def _from_outside(task: Write, answer: Any, used: dict, scenes: list[Scene]) -> Finding | None:
    """Say which name of the notebook, or which typed-in size, the function uses."""
    if used["names"]:
        return say("function_reads", what=from_notebook(used))
    board, other = scenes[BOARD].case, scenes[SIZED].case
    for typed, (letter, size) in itertools.product(used["constants"], board.letters.items()):
        for power in POWERS.get(type(typed), ()):
            there = other.letters[letter]
            if not math.isclose(typed, size**power):
                continue
            (swapped,) = _asked(task, answer, [scenes[SIZED]], {typed: there**power})
            if fault(task, scenes[SIZED], swapped) is None:
                values = {"size": size, "first": board.where, "other": there, "where": other.where}
                return say("typed_in", letter=letter, **values)
    return None


def _telling(task: Write, scenes: list[Scene], returned: list[Parts], faults: list) -> tuple:
    """The first wrong tensor where it tells most, what it should be, and its scene, if any."""
    telling = (i for i in (SIZED, 3, 0, 1) if faults[i] and faults[i].kind in ("value", "shape"))
    index = next(telling, None)
    wrong = [] if index is None else _differing(returned[index], task.answer(scenes[index]))
    return (*wrong[0], scenes[index]) if wrong else ()


def _given_back(task: Write, part: torch.Tensor, right: Any, scene: Scene) -> str:
    """Say which argument a wrong tensor is, if it is one."""
    if not any(same_tensor(part, each) for each in task.gets(scene) if is_tensor(each)):
        return ""
    tensors = (pair for step in scene.steps.values() for pair in step.items())
    name = next((f"`{name}`" for name, each in tensors if same_tensor(part, each)), "It")
    return say("as_given", name=name).text
