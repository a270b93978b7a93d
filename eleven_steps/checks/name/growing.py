"""Say how far a class comes that is filled in step by step, and what is wrong with it.

Its forward returns whatever its last line so far computes. That is looked up among what the eleven
steps of the right class record, and then among what the classes of the catalogue record. A class
that returns the output is judged as check_attention judges it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import torch

from eleven_steps.checks.judge.constructor import constructed, faults, parts_to_come
from eleven_steps.checks.judge.dropping import dropping_of_step
from eleven_steps.checks.know.catalogue import MISTAKES
from eleven_steps.checks.know.right import Parts, Scene, play
from eleven_steps.checks.name.classes import examine
from eleven_steps.checks.name.locate.failing import raises_at
from eleven_steps.checks.name.locate.follow import follow
from eleven_steps.checks.name.locate.recording import NAMES, Recording, exact
from eleven_steps.checks.name.match import drawn_anew
from eleven_steps.checks.name.raised import say_raised
from eleven_steps.checks.name.related import (
    as_mask,
    exchanged,
    hidden_by,
    likeness,
    related,
    same_everywhere,
    same_parts,
)
from eleven_steps.checks.name.say import (
    Finding,
    dropped,
    from_notebook,
    in_order,
    say,
    together,
)
from eleven_steps.checks.run.ask import ask, once, used_by
from eleven_steps.checks.run.cases import BIASED, TASK_CASES, close
from eleven_steps.checks.run.facts import Pass, Record, Seen
from eleven_steps.checks.run.isolate import Failure
from helpers.trace import SHAPES, STEPS

NUMBERED = list(enumerate(STEPS, start=1))[1:]  # x itself is no answer
KEPT = {  # otherwise than as a buffer
    "attribute": "mask_not_registered",
    "trained": "mask_trained",
    "parameter": "mask_parameter",
}
SIZED = 2  # the case in which all sizes differ


def judge_class(cls: Any) -> Finding:
    """Say how far a class in progress is right, or what is wrong with it first."""
    finding = _judged(cls)
    if finding.kind == "right":
        return replace(finding, reached=len(STEPS))
    before = finding.step - 1 if finding.step else finding.reached
    return replace(finding, reached=before)


def _judged(cls: Any) -> Finding:
    built = constructed(cls)
    if isinstance(built, Finding):
        if built.kind != "type":
            return built
        return replace(built, step=None, text=together(built.text, say("class_expected").text))
    seen = [once(cls, case, Pass())[0] for case in TASK_CASES]
    begun = any(each.kind != "open" for each in seen)
    if finding := next(faults(built, begun=seen[0].kind != "open"), None):
        return finding
    finding = _forward(cls, seen) if begun else parts_to_come(built[True]) or _right_up_to(1)
    if finding.kind == "so far":  # of a class that is whole it is seen whether the mask follows it
        return say(KEPT[built[True].mask]) if built[True].mask in KEPT else finding
    if finding.kind == "right" and built[True].mask == "parameter":
        return say("mask_parameter")
    return finding


def _right_up_to(number: int) -> Finding:
    """Say that the steps up to number are right, and what comes next."""
    name, steps = STEPS[number], {"number": number, "next": number + 1}
    sentence = "right_so_far" if number > 1 else "constructor_right"
    return replace(say(sentence, name=name, letters=SHAPES[name], **steps), reached=number)


# What forward returns


def _forward(cls: Any, seen: list[Seen]) -> Finding:
    returned, used, reads = [each.parts or (each.out,) for each in seen], used_by(cls), ""
    right, recording = _steps_like(returned), _recording(cls)
    if right and right[-1] == len(STEPS):
        return _later(_finished(cls), recording)
    if all(each.kind == "none" for each in seen):
        finding = _nothing(recording)
    elif right:
        claim = dropping_of_step(cls, right[-1]) if right[-1] >= 7 else None
        finding = claim.said() if claim else _so_far(right[-1], recording)
    elif drawn_anew(cls, TASK_CASES[SIZED]):
        finding = say("random_in_eval", 7)
    else:
        finding = _one_of(returned) or _known(recording, returned)
        raised = any(isinstance(parts[0], Failure) for parts in returned)
        copied = recording and not raised and _copied(recording)
        copied = copied or recording and _other_sequences(returned)
        finding = copied or finding or _wrong(recording, seen, returned)
        finding = _later(finding, recording)
        if used["names"] and not finding.mistake:
            reads = say("forward_reads", what=from_notebook(used)).text
    return replace(finding, text=together(finding.text, dropped(used), reads))


def _so_far(number: int, recording: Recording | None) -> Finding:
    """Say that the steps up to number are right, and what of the next is there already."""
    finding, more = _right_up_to(number), ""
    if recording and recording.done(STEPS[number]):
        more = say("not_returned", number=number + 1).text
    hidden = hidden_by(recording.of_scores) if recording and number > 5 else ""
    return replace(finding, text=together(finding.text, more, hidden))


def _one_of(returned: Sequence[Parts]) -> Finding | None:
    """The one tensor of steps 2 to 4 that was returned alone."""
    for number, step in NUMBERED[:3]:
        for name in play(TASK_CASES[0])[step]:
            if same_everywhere(returned, ((play(case)[step][name],) for case in TASK_CASES)):
                return say("one_of_three", number, name=name)
    return None


def _copied(recording: Recording) -> Finding | None:
    """The tensor that step 3 or 4 makes of another one, though it was right one step before."""
    if not all(map(recording.made, NAMES.values())):
        return None
    for number, step in NUMBERED[1:3]:
        there = [recording.reached(step, name) for name in NAMES.values()]
        if all(there) or sum(there) < 2:
            continue
        layer, name = list(NAMES.items())[there.index(False)]
        right = recording.right[STEPS[number - 2]][name]
        own = (held.tensor for held in recording.held if held.made_of == {layer})
        if all(each.dim() < 4 or exact([each], right) for each in own):  # it is not used at all
            return say("copied", number, name=name, before=number - 1)
    return None


def _later(finding: Finding, recording: Recording | None) -> Finding:
    """Blame no step that is right: what is wrong there by name is done after it."""
    if not recording or not finding.mistake or finding.step not in (2, 8):
        return finding
    if copied := _copied(recording):
        return copied
    if finding.step == 8 and not recording.made("values"):
        return say("layer_not_called", 2, layer="`W_value`", name="values")
    if finding.step == 2 and all(map(recording.made, NAMES.values())):
        used = follow(recording)
        return (
            used if used and (used.step or 0) > 2 else say("mixed_up_later", 4, said=finding.text)
        )
    return finding


def _recording(cls: Any) -> Recording | None:
    """Its forward, where it can be recorded."""
    record = ask(cls, "record", BIASED)
    return Recording(record, BIASED) if isinstance(record, Record) else None


def _steps_like(returned: Sequence[Parts], *mistakes: str) -> list[int]:
    """The steps, of our class with mistakes, whose tensors are what was returned everywhere."""
    return [
        number
        for number, step in NUMBERED
        if same_everywhere(returned, (play(case, *mistakes).at(step) for case in TASK_CASES))
    ]


def _finished(cls: Any) -> Finding:
    """All eleven steps are there: what check_attention says first."""
    findings, recording = list(examine(cls)), _recording(cls)
    if wrong := in_order(findings):
        return wrong[0]
    right, hidden = say("all_right"), hidden_by(recording.of_scores) if recording else ""
    return replace(right, text=together(right.text, *(each.text for each in findings), hidden))


def _nothing(recording: Recording | None) -> Finding:
    """Say that forward returns None, and how far what it computes is right."""
    finding, number = say("nothing", what="forward"), 1
    while recording and number < len(STEPS) and recording.done(STEPS[number]):
        number += 1
    if number == 1:
        return finding
    up_to = say("right_up_to", number=number, name=STEPS[number - 1]).text
    return replace(finding, text=together(finding.text, up_to), reached=number)


def _known(recording: Recording | None, returned: Sequence[Parts]) -> Finding | None:
    """The first mistake whose class records, at some step, what was returned everywhere."""
    names = [name for name in MISTAKES if _steps_like(returned, name)]
    # Several mistakes may raise the same error; equal numbers are no such accident.
    raised = next((parts[0] for parts in returned if isinstance(parts[0], Failure)), None)
    if not names or raised and len(names) > 1:
        return None
    known = MISTAKES[names[0]]
    if raised and (raises_at(recording, raised) or known.step) < known.step:
        return None  # torch says the same of what comes before it
    return Finding(known.step, known.told, known.identifier, "mistake")


def _wrong(recording: Recording | None, seen: Sequence[Seen], returned: Sequence[Parts]) -> Finding:
    """Describe what was returned where no class of the catalogue returns it."""
    scenes = [play(case) for case in TASK_CASES]
    both = enumerate(zip(returned, scenes, strict=True))
    wrong = (i for i, (p, s) in both if not any(same_parts(p, s.at(step)) for step in STEPS))
    at = next(wrong, 0)
    if isinstance(seen[at].out, Failure) and isinstance(seen[SIZED].out, Failure):
        at = SIZED
    here, scene = seen[at], scenes[at]
    if isinstance(here.out, Failure) and not here.parts:
        return say_raised("forward", here.out, scene.case, raises_at(recording, here.out))
    if not here.parts or not all(isinstance(part, torch.Tensor) for part in here.parts):
        came = ", ".join(p if isinstance(p, str) else "a tensor" for p in here.parts)
        return say("forward_no_tensors", came=came)
    return replace(_other_tensors(recording, here.parts, scene), case=scene.case)


def _other_tensors(recording: Recording | None, parts: Parts, scene: Scene) -> Finding:
    """Describe tensors that are wrong: the step at which they go wrong, or what they look like."""
    shapes = [tuple(part.shape) for part in parts]
    came, where = ", ".join(map(str, shapes)), scene.case.where
    steps = [
        (number, step)
        for number, step in NUMBERED
        if shapes == [tuple(each.shape) for each in scene[step].values()]
    ]
    if not steps:
        name = "exchanged" if {*shapes} <= exchanged(scene.case) else "no_such_shapes"
        return say(name, came=came, where=where)
    if any(part.isnan().any() for part in parts):
        later = _followed(recording, steps)
        return later if later and later.step > 5 else say("forward_nan", where=where)
    if len(parts) > 1:
        finding = _followed(recording, steps) or _other_sequence(parts, steps, scene)
    else:
        rights = [(number, step, next(iter(scene[step].values()))) for number, step in steps]
        masks = [(n, as_mask(parts[0], right)) for n, step, right in rights if step == "mask"]
        finding = (
            _not_yet(masks, where)
            or _not_yet([(n, likeness(parts[0], right)) for n, _, right in rights], where)
            or _followed(recording, steps)
            or _not_yet([(n, related(s, parts[0], right, scene)) for n, s, right in rights], where)
        )
    shown = " or ".join(f"{number} ({step})" for number, step in steps)
    return finding or say("other_numbers_returned", came=came, where=where, steps=shown)


def _followed(recording: Recording | None, steps: Sequence[tuple[int, str]]) -> Finding | None:
    """The first step that is not right, if it is none after those whose shapes were returned."""
    finding = follow(recording) if recording else None
    return finding if finding and finding.step and finding.step <= steps[-1][0] else None


def _other_sequence(parts: Parts, steps: Sequence[tuple[int, str]], scene: Scene) -> Finding | None:
    """Say that the right tensors of a step came in another order, if they did."""
    for number, step in steps:
        wanted = list(scene[step].values())
        which = [[i for i, right in enumerate(wanted) if close(part, right)] for part in parts]
        if sorted(sum(which, [])) == list(range(len(wanted))):
            return say("other_sequence", number, names=", ".join(scene[step]))
    return None


def _other_sequences(returned: Sequence[Parts]) -> Finding | None:
    """Say that the right tensors of a step came in another order everywhere, if they did."""
    if not all(isinstance(each, torch.Tensor) for parts in returned for each in parts):
        return None
    both = zip(returned, TASK_CASES, strict=True)
    found = [_other_sequence(parts, NUMBERED[:3], play(case)) for parts, case in both]
    return found[0] if all(found) else None


def _not_yet(likely: Iterable[tuple[int, str]], where: str) -> Finding | None:
    """The first step, by its number, of which it can be told how what was returned is like it."""
    for number, like in likely:
        if like:
            finding = say("not_yet", number, name=STEPS[number - 1], where=where)
            return replace(finding, text=together(finding.text, like))
    return None
