"""Judge a function that an exercise asks for: what it returns, case by case, and why."""

import itertools
import re
from dataclasses import replace
from typing import Any

import torch

from eleven_steps.checks.judge import naming
from eleven_steps.checks.judge.constructor import in_line
from eleven_steps.checks.judge.differ import Blame, followed, plainly
from eleven_steps.checks.judge.likeness import (
    Pair,
    agree,
    blank,
    failed,
    given_of,
    is_tensor,
    nan_cause,
    related,
    reordered,
    same_everywhere,
    whole_number,
)
from eleven_steps.checks.judge.path import stage_of
from eleven_steps.checks.judge.read import reference_of
from eleven_steps.checks.judge.say import Finding, came, listed, say, together
from eleven_steps.checks.judge.tell import nan_first, tell
from eleven_steps.checks.judge.written import products
from eleven_steps.checks.know.catalogue import mistakes_of
from eleven_steps.checks.know.exercises.tasks import Slip, Write
from eleven_steps.checks.know.right import Parts, Scene, play
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.run.ask import ask, is_remote, kind_of, used_by
from eleven_steps.checks.run.cases import FIRST, SIZED, Case, other_numbers, unseen
from eleven_steps.checks.run.isolate import Failure, type_name
from eleven_steps.checks.run.recording import Trace


def judge_function(task: Write, answer: Any) -> Finding:
    """Run a function in every case and compare what it returns."""
    sort, name = kind_of(answer)
    if sort not in ("callable", "class", "module class", "module"):
        return say("no_function", name=name)
    more = unseen(task.cases[1]) if is_remote(answer) else ()
    scenes = [play(case) for case in (*task.cases, *more)]
    *returned, again = _returned(task, answer, [*scenes, scenes[FIRST]])
    if any(part is ... for parts in returned for part in parts):
        both = zip(task.names, returned[FIRST], strict=False)
        left = [name for name, part in both if part is ...]
        some = 0 < len(left) < len(returned[FIRST])
        return say("open_in_part", names=listed(left)) if some else say("open")
    faults = [fault(task, *pair) for pair in zip(scenes, returned, strict=True)]
    changed = faults[0] is None and fault(task, scenes[FIRST], again)
    both = zip(returned[FIRST], again, strict=False)
    if changed or any(all(map(is_tensor, two)) and not agree(*two) for two in both):
        return say("other_each_time")
    if not any(faults):
        board = scenes[FIRST].case.example == "whiteboard"
        right = say("right_everywhere" if board else "right_wherever")
        return _with_side_effect(right, task, answer, scenes[SIZED])
    return _why(task, answer, scenes, returned, faults)


def _returned(task: Write, answer: Any, scenes: list[Scene], constants: Any = None) -> list[Parts]:
    """What the function returns in each scene, one part for each name if there are as many."""
    replies = ask(answer, "call", [task.gets(scene) for scene in scenes], constants)
    if isinstance(replies, Failure):
        return [(replies,)] * len(scenes)
    return [task.counted(_parts(task, reply)) for reply in replies]


def _with_side_effect(right: Finding, task: Write, answer: Any, scene: Scene) -> Finding:
    trace = ask(answer, "traced_call", task.gets(scene))
    changed = trace.changed if isinstance(trace, Trace) else {}
    note = wording("changes_given", name=next(iter(changed))) if changed else ""
    return _turned(changed) or replace(right, text=together(right.text, note))


def _turned(changed: dict[str, tuple]) -> Finding | None:
    turned = ((name, *shapes) for name, shapes in changed.items() if shapes[0] != shapes[1])
    name, before, after = next(turned, ("", (), ()))
    return say("turns_given", name=name, before=before, after=after) if name else None


def _parts(task: Write, reply: Any) -> Parts:
    parts = reply if len(task.names) > 1 and type(reply) in (list, tuple) else (reply,)
    double = [is_tensor(part) and part.dtype == torch.float64 for part in parts]
    # What is double is as right as float32.
    return tuple(p.float() if wide else p for p, wide in zip(parts, double, strict=True))


# What is wrong in one case


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
    rows = zip(task.names, parts, task.answer(scene), task.letters, strict=True)
    for name, part, right, letters in rows:
        judge = _whole_fault if isinstance(right, int) else _tensor_fault
        if finding := judge(name, part, right, scene, letters):
            return finding
    return None


def _whole_fault(name: str, part: Any, right: int, scene: Scene, letters: str) -> Finding | None:
    number = whole_number(part)
    if number is None:
        hint = wording("as_whole_division") if type(part) is float else ""
        return say("no_whole_number", name=name, type=type_name(part), hint=hint)
    if number == right:
        return None
    return say("other_whole", name=name, number=number, where=scene.case.where)


def _tensor_fault(
    name: str, part: Any, right: torch.Tensor, scene: Scene, letters: str
) -> Finding | None:
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
        at = part.isnan().nonzero()[0].tolist()
        cause = nan_cause(part, scene) or wording("nan_comes_of")
        return say("holds_nan", at=at, cause=cause, **values)
    wrong = part != right if right.dtype == torch.bool else ~torch.isclose(part, right, 1e-4, 1e-5)
    if not wrong.any():
        return None
    at = wrong.nonzero()[0].tolist()
    number, wanted = _told_apart(*(tensor.detach()[tuple(at)] for tensor in (part, right)))
    return say("other_numbers", at=at, number=number, right=wanted, **values)


def _told_apart(*numbers: torch.Tensor) -> list[str]:
    """Numbers as they are printed, with as many digits as it takes to tell them apart."""
    if not numbers[0].is_floating_point():
        return [str(number.item()) for number in numbers]
    shown = ([f"{number:.{digits}f}" for number in numbers] for digits in range(4, 12))
    return next((texts for texts in shown if len({*texts}) > 1), [f"{e:g}" for e in numbers])


def _spoken_of(faults: list[Finding | None], likes: dict[int, str], texts: list[str]) -> int:
    """The case that a message speaks of: the first wrong one, unless the second example tells more.

    An error, a whole number and a shape tell more where all sizes differ, and so does a case in
    which it is known how what came is related to what is right.
    """
    first = next(index for index, finding in enumerate(faults) if finding)
    one, other = faults[first], faults[SIZED]
    if first < SIZED and other:
        louder = other.kind in ("error", "shape") and one.kind in ("value", "shape", other.kind)
        if other.kind == one.kind == "error":  # the same one is told where a learner sees it
            louder = texts[first] != texts[SIZED]
        like, there = (re.sub(r"[-\d.]+", "", likes[index]) for index in (first, SIZED))
        if louder or other.name == one.name == "other_whole" or there and like != there:
            return SIZED
    return first


def _why(
    task: Write, answer: Any, scenes: list[Scene], returned: list[Parts], faults: list
) -> Finding:
    used = used_by(answer)
    first = next(index for index, finding in enumerate(faults) if finding)
    back = {i: _given_back(task, returned[i], scenes[i]) for i in (first, SIZED)}
    blame = _followed(task, answer, scenes[SIZED], returned[SIZED])
    if blame and (finding := _turned(blame.walked.trace.changed)):
        return finding
    if finding := _slip(task, blame, scenes, returned):
        at = SIZED
    elif finding := _from_outside(task, answer, used, scenes, faults):
        return finding
    else:
        one = _ignored(task, answer, scenes[FIRST], returned[FIRST])
        likes = {i: back[i] or one or _like(task, returned, scenes, i) for i in back}
        at = _spoken_of(faults, likes, [naming.error_of(parts and parts[0]) for parts in returned])
        text = together(faults[at].text, likes[at])
        raised = faults[at].kind == "error"
        look = raised or not likes[at] and faults[at].kind != "type"
        if look and at != SIZED:
            blame = _followed(task, answer, scenes[at], returned[at])
        if look and (said := _in_its_line(task, blame, returned[at], faults[at].kind)):
            text = said if raised else together(text, said)
        elif look and not raised:
            text = together(text, _like(task, returned, scenes, at, last=True))
        rights = task.answer(scenes[at])  # how many places of a mask are wrong tells little
        mask = is_tensor(rights[0]) and rights[0].dtype == torch.bool
        if faults[at].kind in ("value", "shape") and (mask or text == faults[at].text):
            text = together(text, task.look)
        if raised and "positional argument" in text and not returned[at][0].line:  # its own call
            text = together(text, wording("is_handed", names=", ".join(task.given)))
        if faults[FIRST] is None:
            text = say("not_everywhere", first=scenes[FIRST].case.label, fault=text).text
        elif faults[at].kind != faults[FIRST].kind == "value":
            text = say("hidden_by_sizes", first=scenes[FIRST].case.label, fault=text).text
        finding = replace(faults[at], text=text, case=scenes[at].case)
    if finding.kind == "unfinished":
        return finding
    # What returns nothing has a result to return, not one to keep.
    lost, back = "" if finding.name == "nothing" else naming.result_dropped(blame), back.get(at, "")
    # Where that is why all comes back as it was, nothing else is said.
    return replace(finding, text=together(back if back and lost else finding.text, lost))


def _followed(task: Write, answer: Any, scene: Scene, parts: Parts) -> Blame | None:
    """Follow a function in a case; None where it cannot be, or does otherwise than before."""
    reference = reference_of(scene.case)
    trace = ask(answer, "traced_call", task.gets(reference.scene))
    return naming.under_way(followed(trace, reference, failed(parts)))


def _in_its_line(task: Write, blame: Blame | None, parts: Parts, kind: str) -> str:
    """Say what is wrong in the line where it is, or what it raises; kind is that of the fault."""
    if blame is None:
        return ""
    found, walked, error = blame.found, blame.walked, naming.error_of(parts and parts[0])
    before = max((stage_of(walked.readings[i], walked) for i in walked.trace.inputs), default=0)
    outside = found and not before < found.step <= task.number
    if error:  # which may come before the last block of keys
        stop = walked.trace.stop
        ends = [stop and stop.place, found and found.op is not None and walked.ops[found.op].place]
        here = found and found.reason == "made" and all(ends) and ends[0].line == ends[1].line
        useful = found and not task.right and found.reason != "pairs" and not outside and not here
        return tell(blame if useful else plainly(blame), error).text
    if kind == "nan" and (found is None or found.reason in ("made", "blocks")):
        return nan_first(blame)
    useful = found and found.op is not None and not task.right
    if not useful or found.reason in ("torch", "pairs"):
        return ""
    if outside and (kind == "value" and task.variant or found.reason != "made"):
        return ""  # the step that a call alone looks like is no part of the exercise
    step = task.number if outside else found.step
    return tell(replace(blame, found=replace(found, step=step))).text


def _slip(
    task: Write, blame: Blame | None, scenes: list[Scene], returned: list[Parts]
) -> Finding | None:
    source, blame = blame.walked.trace.source if blame else "", None if task.right else blame
    by_case = {scene.case: scene for scene in scenes}
    gave = dict(zip(by_case, returned, strict=True))

    def made(case: Case, _: str, *slips: Slip) -> Parts:
        return task.slipped(*slips, by_case[case]) if slips else task.answer(by_case[case])

    main = scenes[SIZED].case
    cases = main, *(case for case in by_case if case != main)
    played = naming.Played(cases, gave.__getitem__, made)
    for index, slip in enumerate([] if blank(returned[SIZED]) else _slips(task)):
        name, theirs = slip.mistake, (task.slipped(slip, scene) for scene in scenes)
        how = naming.makes(played, slip) if name else same_everywhere(returned, theirs)
        if name and how:
            how = naming.proven(how, name, blame) and not naming.contradicted(blame, name)
        if not how:
            continue
        if task.ships and index == 0:
            dropped = naming.result_dropped(blame)
            if source and blame and not dropped and blame.found and blame.found.reason == "idle":
                return replace(tell(blame), step=None)
            same = re.search(rf"^\s*{re.escape(task.ships)}\s*(#.*)?$", source, re.M)
            why = dropped if task.ships.startswith("return") else ""
            why = slip.sentence if source and not same else why
            return replace(say("not_repaired"), text=together(say("not_repaired").text, why))
        return Finding(None, slip.sentence, name, "mistake")
    return reordered(task.names, returned, map(task.answer, scenes))


def _slips(task: Write) -> list[Slip]:
    """The usual wrong answers, those of the exercise before those of its step."""
    own = [slip.mistake for slip in task.slips]
    every = {} if task.right else mistakes_of(task.variant)  # where it is part of a step, none
    # What is made of x is given, and right: no mistake of steps 2 and 3 is blamed later.
    steps = {1, task.number, *range(4, 12)}
    others = [n for n, e in every.items() if task.number in e.steps and e.step in steps]
    return [*task.slips, *(Slip(every[n].told, None, n) for n in others if n not in own)]


def _from_outside(
    task: Write, answer: Any, used: dict, scenes: list[Scene], faults: list
) -> Finding | None:
    if used["names"]:
        return say("function_reads", names=listed(used["names"]))
    # Where it is right, a size may be typed in; it is one if with it the answer is right anywhere.
    at = SIZED if faults[SIZED] else next(i for i, found in enumerate(faults) if found)
    rights = (scene.case for scene, found in zip(scenes, faults, strict=True) if not found)
    if not (here := next(rights, None)):
        return None
    for typed, (letter, size) in itertools.product(used["constants"], here.letters.items()):

        def wanted(scene: Scene, typed: int = typed, letter: str = letter) -> bool:
            (parts,) = _returned(task, answer, [scene], {typed: scene.case.letters[letter]})
            return fault(task, scene, parts) is None

        if typed == size > 1 and all(map(wanted, scenes)):  # 1 is an axis or a step more often
            other = scenes[at].case
            values = {"first": here.where, "other": other.letters[letter], "where": other.where}
            return replace(say("typed_in", letter=letter, size=size, **values), case=other)
    return None


def _like(
    task: Write, returned: list[Parts], scenes: list[Scene], at: int, last: bool = False
) -> str:
    """How the first wrong tensor of a case is related to what is right, and to what was given."""
    pairs = [_pair(task, *both) for both in zip(returned, scenes, strict=False)]
    others = tuple(pair for i, pair in enumerate(pairs) if pair and i != at)
    if not pairs[at]:
        return _like_whole(task, returned, scenes, at)
    return related(replace(pairs[at], others=others), last)


def _like_whole(task: Write, returned: list[Parts], scenes: list[Scene], at: int) -> str:
    """Which sizes make the first wrong whole number, if the same make it in every case."""
    both = [*zip(returned[at], task.answer(scenes[at]), strict=False)]
    i = next((i for i, two in enumerate(both) if not agree(*two)), None)
    if i is None or type(both[i][1]) is not int or whole_number(both[i][0]) is None:
        return ""
    if len({*map(len, returned)}) > 1:
        return ""
    numbers = [whole_number(parts[i]) for parts in returned]
    each = [[*products({"2": 2, **scene.case.letters, "1": 1})] for scene in scenes]
    fits = [
        (ways[0][0], ways[0][2].replace("/", "//"))
        for ways in zip(*each, strict=True)
        if [value // 1 for _, value, _ in ways] == numbers
    ]
    least = min(fits, default=(0, ""))[0]
    shortest = [code for cost, code in fits if cost == least] or [*map(str, {*numbers})]
    made = say("whole_is", code=shortest[0]).text if len(shortest) == 1 else ""
    return together(made, task.look)


def _pair(task: Write, parts: Parts, scene: Scene) -> Pair | None:
    every = zip(parts, task.answer(scene), task.letters, strict=False)
    wrong = (e for e in every if all(map(is_tensor, e[:2])) and not agree(*e[:2]))
    part, right, letters = next(wrong, (None, None, ""))
    if part is None:
        return None
    given = given_of(task.gets(scene), scene)
    return Pair(task.step, part.detach(), right, scene, given, letters)


def _ignored(task: Write, answer: Any, scene: Scene, parts: Parts) -> str:
    given, own = task.gets(scene), [part for part in parts if is_tensor(part)]
    whole = not any(map(is_tensor, task.answer(scene)))  # of sizes alone
    same = any(e.isnan().all() or e.dtype == torch.bool and len(e.unique()) < 2 for e in own)
    if whole or len(given) == 1 or len(own) < len(parts) or same:
        return ""  # where all is NaN, or hidden, nothing can change it
    for index, (name, argument) in enumerate(zip(task.given, given, strict=False)):
        if not isinstance(argument, torch.Tensor | torch.nn.Linear):
            continue
        others = [*given]
        others[index] = other_numbers(argument)
        replies = ask(answer, "call", [others])
        changed = _parts(task, replies[0]) if type(replies) is list and replies else ()
        pairs = [pair for pair in zip(own, changed, strict=False) if is_tensor(pair[1])]
        same = [torch.equal(*(tensor.nan_to_num() for tensor in pair)) for pair in pairs]
        if len(same) == len(own) and all(same):
            return say("unused", name=name).text
    return ""


def _given_back(task: Write, parts: Parts, scene: Scene) -> str:
    """Say which argument the first wrong tensor is, if it is one."""
    rows = zip(task.names, parts, task.answer(scene), strict=False)
    rows = ((name, two) for name, *two in rows if all(map(is_tensor, two)))
    own, (part, _) = next((row for row in rows if not agree(*row[1])), ("", (None, None)))
    if part is None or not any(agree(part, e) for e in task.gets(scene) if is_tensor(e)):
        return ""
    tensors = (pair for step in scene.steps.values() for pair in step.items())
    name = next((f"`{name}`" for name, tensor in tensors if agree(part, tensor)), "It")
    sentence = "as_given" if name in ("It", f"`{own}`") else "other_given"
    return say(sentence, name=name, part=own).text
