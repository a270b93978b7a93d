"""Say how far a class comes that is filled in step by step, and what is wrong with it.

Its forward returns whatever its last line so far computes. That is looked up among what the eleven
steps of the right class record, and then among what the classes of the catalogue record. A class
that returns the output is judged as check_attention judges it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import torch

from eleven_steps.checks.know.catalogue import MISTAKES
from eleven_steps.checks.know.right import Parts, Scene, play
from eleven_steps.checks.name.classes import constructed, examine, layer_findings, misshapen
from eleven_steps.checks.name.dropping import judge_returned
from eleven_steps.checks.name.locate.failing import failing_step
from eleven_steps.checks.name.locate.follow import follow
from eleven_steps.checks.name.locate.recording import Recording
from eleven_steps.checks.name.match import candidates
from eleven_steps.checks.name.raised import say_raised
from eleven_steps.checks.name.related import likeness, related, same_everywhere, same_parts
from eleven_steps.checks.name.say import (
    Finding,
    dropped,
    from_notebook,
    in_order,
    say,
    together,
)
from eleven_steps.checks.run.ask import ask, once, used_by
from eleven_steps.checks.run.cases import BIASED, LAYERS, TASK_CASES, close
from eleven_steps.checks.run.facts import ATTRIBUTES, Built, Facts, Pass, Record, Seen
from eleven_steps.checks.run.isolate import Failure
from helpers.trace import SHAPES, STEPS

NUMBERED = list(enumerate(STEPS, start=1))[1:]  # x itself is no answer
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
    if finding := _constructor(built, seen[0].kind != "open"):
        return finding
    finding = _forward(cls, seen) if begun else _begun(built[True])
    if finding.kind == "so far":  # of a class that is whole it is seen whether the mask follows it
        kept = {"attribute": "mask_not_registered", "trained": "mask_trained"}
        return say(kept[built[True].mask]) if built[True].mask in kept else finding
    return finding


# The constructor


def _constructor(built: Built, begun: bool) -> Finding | None:
    """What is wrong with the layers, or what is not there yet."""
    facts = built[True]
    have = [name for name in LAYERS if f"{name}.weight" in facts.shapes]
    if facts.listed:
        return say("layers_in_plain_list")
    if not have:
        if not begun and not facts.parameters and not facts.sizes:
            return say("open")
        return say("no_layers", found=", ".join(facts.parameters[:6]) or "none")
    if lacking := [name for name in LAYERS[:3] if name not in have]:
        return say("layers_to_come", these=" and no ".join(lacking))
    if finding := next(layer_findings(built), None):
        return finding
    if finding := misshapen(facts.shapes):
        alike = next(candidates(facts.shapes), None)
        return say(alike) if alike else finding
    return _misbuilt(facts)


def _misbuilt(facts: Facts) -> Finding | None:
    """What the constructor stores that is wrong."""
    case, head_dim = BIASED, facts.sizes.get("head_dim", BIASED.head_dim)
    if isinstance(head_dim, float):
        return say("head_dim_float", size=head_dim)
    if head_dim == case.d_out:
        return say("head_dim_not_divided")
    if head_dim == case.d_in // case.num_heads:
        return say("head_dim_from_d_in")
    for name in (*reversed(ATTRIBUTES), "dropout"):
        size, right = facts.sizes.get(name), getattr(case, name, 0.0)
        if size not in (None, right):
            other = "head_dim_other" if name == "head_dim" else "size_other"
            sizes = {"d_out": case.d_out, "num_heads": case.num_heads}
            step = 7 if name == "dropout" else None
            return say(other, step, name=name, size=size, right=right, **sizes)
    if facts.dropout in ("float", "int"):
        return say("dropout_number")
    return None


def _begun(facts: Facts) -> Finding:
    """Say what the constructor has, where forward is still open."""
    lacking = [name for name in ATTRIBUTES if name not in facts.sizes]
    lacking += [] if "out_proj.weight" in facts.shapes else ["out_proj"]
    lacking += [] if facts.dropout else ["dropout"]
    lacking += [] if facts.mask else ["mask (context_length, context_length)"]
    return say("parts_to_come", these=", no ".join(lacking)) if lacking else _right_up_to(1)


def _right_up_to(number: int) -> Finding:
    """Say that the steps up to number are right, and what comes next."""
    name, steps = STEPS[number], {"number": number, "next": number + 1}
    sentence = "right_so_far" if number > 1 else "constructor_right"
    return replace(say(sentence, name=name, letters=SHAPES[name], **steps), reached=number)


# What forward returns


def _forward(cls: Any, seen: list[Seen]) -> Finding:
    returned, used, reads = [each.parts or (each.out,) for each in seen], used_by(cls), ""
    right = _steps_like(returned)
    if right and right[-1] == len(STEPS):
        return _finished(cls)
    if all(each.kind == "none" for each in seen):
        finding = _nothing(cls)
    elif right:
        dropout = judge_returned(cls, right[-1]) if right[-1] >= 7 else None
        finding = dropout or _right_up_to(right[-1])
    else:
        finding = _known(returned) or _wrong(_recording(cls), seen, returned)
        if used["names"] and not finding.mistake:
            reads = say("forward_reads", what=from_notebook(used)).text
    return replace(finding, text=together(finding.text, dropped(used), reads))


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
    findings = list(examine(cls))
    if wrong := in_order(findings):
        return wrong[0]
    right = say("all_right")
    return replace(right, text=together(right.text, *(each.text for each in findings)))


def _nothing(cls: Any) -> Finding:
    """Say that forward returns None, and how far what it computes is right."""
    finding, recording, number = say("nothing", what="forward"), _recording(cls), 1
    while recording and number < len(STEPS) and recording.done(STEPS[number]):
        number += 1
    if number == 1:
        return finding
    up_to = say("right_up_to", number=number, name=STEPS[number - 1]).text
    return replace(finding, text=together(finding.text, up_to), reached=number)


def _known(returned: Sequence[Parts]) -> Finding | None:
    """The first mistake whose class records, at some step, what was returned everywhere."""
    names = [name for name in MISTAKES if _steps_like(returned, name)]
    # Several mistakes may raise the same error; equal numbers are no such accident.
    raised = any(isinstance(parts[0], Failure) for parts in returned)
    if not names or raised and len(names) > 1:
        return None
    known = MISTAKES[names[0]]
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
        raised = recording and recording.record.failing
        step = failing_step(recording, here.out) if raised else None
        return say_raised("forward", here.out, scene.case, step)
    if not here.parts or not all(isinstance(part, torch.Tensor) for part in here.parts):
        came = ", ".join(p if isinstance(p, str) else "a tensor" for p in here.parts)
        return say("forward_no_tensors", came=came)
    return _other_tensors(recording, here.parts, scene)


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
        return say("no_such_shapes", came=came, where=where)
    if any(part.isnan().any() for part in parts):
        return say("forward_nan", where=where)
    if len(parts) > 1:
        finding = _followed(recording, steps) or _other_sequence(parts, steps, scene)
    else:
        rights = [(number, step, next(iter(scene[step].values()))) for number, step in steps]
        finding = (
            _not_yet((number, likeness(parts[0], right)) for number, _, right in rights)
            or _followed(recording, steps)
            or _not_yet((n, related(step, parts[0], right, scene)) for n, step, right in rights)
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
        if all(any(close(part, right) for right in wanted) for part in parts):
            return say("other_sequence", number, names=", ".join(scene[step]))
    return None


def _not_yet(likely: Iterable[tuple[int, str]]) -> Finding | None:
    """The first step, by its number, of which it can be told how what was returned is like it."""
    for number, like in likely:
        if like:
            finding = say("not_yet", number, name=STEPS[number - 1])
            return replace(finding, text=together(finding.text, like))
    return None
