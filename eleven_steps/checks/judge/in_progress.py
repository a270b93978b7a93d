"""Judge a class in progress: how far it is right, or what is wrong with it first.

Its forward returns whatever its last line so far computes: that is looked up among what the eleven
steps of the right class record, and among what the classes of the catalogue record; once it returns
the output it is examined as a finished one.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from eleven_steps.checks.judge import constructor, naming
from eleven_steps.checks.judge.classes import examine, unset
from eleven_steps.checks.judge.differ import Blame, blamed
from eleven_steps.checks.judge.likeness import hidden_by, reordered, same_everywhere, same_parts
from eleven_steps.checks.judge.say import Finding, in_order, say, step_named, together
from eleven_steps.checks.judge.training import dropping_of_step
from eleven_steps.checks.know.catalogue import MISTAKES
from eleven_steps.checks.know.right import Parts, Scene, play
from eleven_steps.checks.run.ask import Pass, Seen, once
from eleven_steps.checks.run.cases import SIZED, TASK_CASES
from eleven_steps.checks.run.isolate import Failure
from eleven_steps.checks.run.making import Facts
from eleven_steps.helpers.trace import SHAPES, STEPS

NUMBERED = list(enumerate(STEPS, start=1))[1:]  # x itself is no answer
# How a mask is kept otherwise than as a buffer, and what is said of it.
KEPT = {"attribute": "mask_not_registered", "trained": "mask_trained"}
KEPT["parameter"] = "mask_parameter"


def judge_class(cls: Any) -> Finding:
    """Say how far a class in progress is right, or what is wrong with it first."""
    finding = _first_finding(cls)
    if finding.kind == "right":
        return replace(finding, reached=len(STEPS))
    before = finding.step - 1 if finding.step else finding.reached
    return replace(finding, reached=before)


def _first_finding(cls: Any) -> Finding:
    built = constructor.constructed(cls)
    if isinstance(built, Finding):
        if built.kind != "type":
            return built
        return replace(built, step=None, text=together(built.text, say("class_expected").text))
    seen = [once(cls, case, Pass())[0] for case in TASK_CASES]
    begun = any(reply.kind != "open" for reply in seen)
    if finding := next(constructor.faults(built, begun=seen[0].kind != "open"), None):
        return finding
    failed = next((reply.out for reply in seen if isinstance(reply.out, Failure)), None)
    if failed and (finding := unset(cls, failed, built)):
        return finding
    open_yet = None if begun else constructor.parts_to_come(built.biased)
    if not (begun or open_yet):  # it still ends in `...`
        blame = blamed(cls, TASK_CASES[SIZED])
        open_yet = _right_up_to(blame.walked.steps_reached() if blame else 1)
    finding = open_yet or _forward(cls, built.biased, seen)
    if finding.kind == "so far":  # of a class that is whole it is seen whether the mask follows it
        return say(KEPT[built.biased.mask]) if built.biased.mask in KEPT else finding
    if finding.kind == "right" and built.biased.mask == "parameter":
        return say("mask_parameter")
    return finding


def _right_up_to(number: int) -> Finding:
    name, steps = STEPS[number], {"number": number, "next": number + 1}
    sentence = "right_so_far" if number > 1 else "constructor_right"
    return replace(say(sentence, name=name, letters=SHAPES[name], **steps), reached=number)


def _forward(cls: Any, facts: Facts, seen: list[Seen]) -> Finding:
    returned = [reply.parts or (reply.out,) for reply in seen]
    scenes = [play(case) for case in TASK_CASES]
    right = [n for n, e in NUMBERED if same_everywhere(returned, (s.at(e) for s in scenes))]
    blame = blamed(cls, TASK_CASES[SIZED], seen[SIZED].out)
    late = blame and right and right[-1] > 6
    if late and (finite := hidden_by(blame.walked.tensors)):  # mask.1 lets none pass either
        return Finding(6, finite)
    if right and right[-1] == len(STEPS):
        findings = list(examine(cls))
        whole = together(say("all_right").text, *(one.text for one in findings))
        return next(iter(in_order(findings)), replace(say("all_right"), text=whole))
    if all(reply.kind == "none" for reply in seen):
        finding = _nothing(blame)
    elif right:
        drops = dropping_of_step(cls, right[-1]) if right[-1] >= 7 else None
        finding = drops or _right_up_to(right[-1])
    elif not (finding := naming.drawn_anew(cls, TASK_CASES[SIZED], blame)):
        finding = _some_of(returned) or _wrong(cls, facts, blame, seen, returned)
    return replace(finding, text=together(finding.text, naming.result_dropped(blame)))


def _some_of(returned: Sequence[Parts]) -> Finding | None:
    for number, step in NUMBERED[:3]:
        rights = [play(case).at(step) for case in TASK_CASES]
        names = list(play(TASK_CASES[0])[step])
        for index, name in enumerate(names):
            if same_everywhere(returned, ((right[index],) for right in rights)):
                return say("one_of_three", number, name=name)
        if finding := reordered(names, returned, rights):
            return replace(finding, step=number)
    return None


def _nothing(blame: Blame | None) -> Finding:
    finding = say("nothing", what="forward")
    number = blame.walked.steps_reached() if blame else 1
    if number == 1:
        return finding
    up_to = say("right_up_to", number=number, name=STEPS[number - 1]).text
    return replace(finding, text=together(finding.text, up_to), reached=number)


def _wrong(
    cls: Any, facts: Facts, blame: Blame | None, seen: Sequence[Seen], returned: Sequence[Parts]
) -> Finding:
    scenes = [play(case) for case in TASK_CASES]
    both = enumerate(zip(returned, scenes, strict=True))
    wrong = [i for i, (e, s) in both if not any(same_parts(e, s.at(step)) for step in STEPS)]
    at = SIZED if SIZED in wrong else wrong[0]
    scene, here = scenes[at], seen[at]
    if at != SIZED:
        blame = blamed(cls, scene.case, here.out)
    blame = naming.under_way(blame)
    gave = dict(zip(TASK_CASES, returned, strict=True))
    played = naming.Played(
        (scene.case, *(task_case for task_case in TASK_CASES if task_case != scene.case)),
        gave.__getitem__,
        lambda case, step, *names: play(case, *names).at(step),
        MISTAKES,
        partial(constructor.alike_in_shape, shapes=facts.shapes),
        STEPS[1:],
    )
    if name := naming.one_mistake(played, blame):
        for trained in once(cls, scene.case, Pass(train=True)) if name == "no_mask" else ():
            parts = trained.parts or (trained.out,)
            if any(same_parts(parts, scene.at(step)) for step in STEPS):
                return say("future_in_eval")

        def with_why(name: str, step: int | None) -> Finding:
            return replace(say(name, step, case=None), text=MISTAKES[name].told)

        (finding,) = naming.of_names([name], blame, with_why, naming.error_of(here.out))
        return replace(finding, case=None if finding.text == MISTAKES[name].told else scene.case)
    return naming.unknown(cls, blame, here.out, facts, _unlike(here, scene))


def _unlike(here: Seen, scene: Scene) -> Finding:
    """Describe what is wrong where no difference was found on its way."""
    if isinstance(here.out, Failure) and not here.parts:
        return say("raises", error=here.out.told, where=scene.case.where, line="")
    if not here.parts or not all(isinstance(part, torch.Tensor) for part in here.parts):
        came = ", ".join(p if isinstance(p, str) else "a tensor" for p in here.parts)
        return say("forward_no_tensors", came=came)
    return _other_tensors(here.parts, scene)


def _other_tensors(parts: Parts, scene: Scene) -> Finding:
    shapes = [tuple(part.shape) for part in parts]
    came, where = ", ".join(map(str, shapes)), scene.case.where
    every = ((n, [tuple(t.shape) for t in scene[step].values()]) for n, step in NUMBERED)
    steps = [step_named(number) for number, theirs in every if theirs == shapes]
    if not steps:
        return say("no_such_shapes", came=came, where=where)
    if any(part.isnan().any() for part in parts):
        return say("forward_nan", where=where)
    return say("other_numbers_returned", came=came, where=where, steps=" or ".join(steps))
