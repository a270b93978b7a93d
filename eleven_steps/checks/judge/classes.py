"""Judge a class that has the lecture's constructor: a finished one, and one in progress.

Of a finished one everything that is wrong is found, by examine. The forward of one in progress
returns whatever its last line so far computes: that is looked up among what the eleven steps of the
right class record, and among what the classes of the catalogue record; once it returns the output
it is examined. Of a class from elsewhere only what it cannot have is known here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from eleven_steps.checks.adapt.adapted import is_adapted, lacking, takes
from eleven_steps.checks.judge import constructor, naming
from eleven_steps.checks.judge.at_fault import set_at
from eleven_steps.checks.judge.differ import Blame, blamed
from eleven_steps.checks.judge.likeness import hidden_by, reordered, same_everywhere, same_parts
from eleven_steps.checks.judge.path import Difference
from eleven_steps.checks.judge.probes import PROBES, RARER, STRESSED, probed, stressed
from eleven_steps.checks.judge.say import (
    Finding,
    Outcome,
    in_order,
    letters_of,
    outcome_of,
    say,
    step_named,
    together,
)
from eleven_steps.checks.judge.subject import Subject, decided, heads_left_out
from eleven_steps.checks.judge.tell import tell
from eleven_steps.checks.judge.training import DROPPING, dropping_of_step
from eleven_steps.checks.know.catalogue import MISTAKES, mistakes_of
from eleven_steps.checks.know.right import Parts, Scene, play
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.run.ask import Pass, Seen, is_remote, once
from eleven_steps.checks.run.cases import LAYERS, SIZED, TASK_CASES, Case, cases_of, close, unseen
from eleven_steps.checks.run.isolate import Failure, TimeUp, isolated
from eleven_steps.checks.run.making import Facts
from eleven_steps.checks.run.variant import LECTURE, Variant
from eleven_steps.helpers.trace import SHAPES, STEPS

SECONDS = 5.0  # of an answer's own, for all that it is asked
NUMBERED = list(enumerate(STEPS, start=1))[1:]  # x itself is no answer
# How a mask is kept otherwise than as a buffer, and what is said of it.
KEPT = {"attribute": "mask_not_registered", "trained": "mask_trained"}
KEPT["parameter"] = "mask_parameter"


def judged(cls: Any, variant: Variant = LECTURE, seconds: float | None = None) -> Outcome:
    """Say of a class what check_attention says, the clock running: SECONDS, unless it is told."""
    findings: list[Finding] = []
    seconds = SECONDS if seconds is None else seconds
    with isolated(seconds):
        try:
            for finding in examine(cls, variant):
                findings.append(finding)
        except TimeUp:
            findings.append(say("too_slow", seconds=seconds))
        return outcome_of(findings)


def examine(cls: Any, variant: Variant = LECTURE) -> Iterator[Finding]:
    """Yield everything that is wrong with a class, and remarks on one that is right."""
    built = constructor.constructed(cls, variant)
    if isinstance(built, Finding):
        yield built
        return
    yield from constructor.faults(built, variant, lacks=lacking(cls))
    if lost := constructor.absent(built.biased, variant):
        blame = blamed(cls, cases_of(variant).main) if lost == ["out_proj"] else None
        if blame and blame.found and blame.found.step < 11 and not blame.raised:
            yield tell(blame)  # it goes wrong before the out_proj that is not there
        return
    subject = Subject(cls, built, variant)
    out = subject.out(subject.cases.main)
    if isinstance(out, Failure) and (finding := _unset(subject.cls, out, built)):
        yield finding
        return
    odd = constructor.misshapen(subject.shapes, variant)
    if not odd and (finding := constructor.missized(cls, built.biased, variant)):
        yield finding
        return
    wrong = list(_shapes(subject) if odd else _outputs(subject))
    yield from wrong
    if wrong:
        subject.found.add("outputs")
    yield from probed(subject, PROBES)
    if not subject.found:
        try:
            yield from _at_other_sizes(subject)
        except TimeUp:
            yield say("not_all_tried")


def _unset(cls: Any, out: Failure, built: constructor.Built) -> Finding | None:
    finding = constructor.unset(out, built.biased)
    unclear = finding and finding.step in (None, 1)  # what is read is no layer and no mask
    blame = blamed(cls, TASK_CASES[SIZED]) if unclear else None
    step = blame.found.step if blame and blame.found else 1
    return replace(finding, step=1 if step in (3, 4, 9, 10) else step) if blame else finding


def _shapes(subject: Subject) -> Iterator[Finding]:
    names = []
    if constructor.odd_layer(subject.shapes, subject.variant).startswith(LAYERS):
        names = list(constructor.candidates(subject.shapes, subject.variant))
    name = names and (naming.one_mistake(_played(subject)) or (names[0] if len(names) == 1 else ""))
    yield say(name) if name else constructor.misshapen(subject.shapes, subject.variant)


# What forward returns in eval mode


def _outputs(subject: Subject) -> Iterator[Finding]:
    every, main, simple = subject.cases.every, subject.cases.main, subject.cases.simpler[0]
    second = TASK_CASES[SIZED]  # its weights are drawn anew, also a bias that is not there
    if not subject.variant and not subject.plain(second).without:
        every = (*every, second)
    returned = subject.seen(main)
    if returned.kind == "none":
        yield naming.nothing_returned(blamed(subject.cls, main))
        return
    if returned.kind in ("other", "open", "single"):
        name = "no_pair_returned" if returned.kind == "single" else "no_tensor_returned"
        yield say(name, came=returned.out.text)
        return
    if returned.kind == "tuple":
        yield say("tuple_returned")
    elif not isinstance(returned.out, Failure) and returned.dtype != "torch.float32":
        yield say("other_dtype_returned", dtype=returned.dtype)
    cases = (*every, unseen(main)[0]) if is_remote(subject.cls) else every
    other = [case for case in cases if not close(subject.out(case), subject.right(case))]
    if other:
        yield from _why(subject, other)
    elif not close(out := subject.out(simple), subject.right(simple)):
        normed = {"norm", "linear"} & {*subject.variant.names}
        divided = normed and isinstance(out, torch.Tensor) and out.isnan().any()
        yield say("norm_of_zero" if divided else "zero_scores")


def _why(subject: Subject, wrong: Sequence[Case]) -> Iterator[Finding]:
    case = subject.plain(_told_in(subject, wrong))
    with_grad = close(subject.outs(case, Pass(how="grad"))[0], subject.right(case))
    first, *others = _reasons(subject, wrong, case)
    if with_grad:
        text = together(wording("right_with_grad"), first.text)
        first = replace(first, text=text, claim="beyond")
    yield from (first, *others)


def _reasons(subject: Subject, wrong: Sequence[Case], case: Case) -> Iterator[Finding]:
    """Name the mistake that the outputs come to, or two, or the first difference on the way."""
    main, out = subject.cases.main, subject.out(case)
    raised = isinstance(out, Failure)
    blame = _missized(subject, blamed(subject.cls, case, out), case)
    where = letters_of(case) if main in wrong else f"b = {case.b}, {letters_of(case)}"
    if not raised and (finding := naming.drawn_anew(subject.cls, case, blame)):
        yield finding
    elif blame is None and raised:
        yield constructor.constructor_raised(subject.cls, case, case.qkv_bias, out)
    elif blame and blame.found and blame.found.reason == "idle":
        finding = tell(blame, naming.error_of(out))
        yield replace(finding, text=together(finding.text, naming.result_dropped(blame)))
    elif names := _mistakes_of_outputs(subject, blame, case):
        if names == ("no_mask",) and subject.leaks(train=True) is False:
            yield say("future_in_eval")
        else:
            yield from naming.of_names(names, blame, partial(say, case=main), naming.error_of(out))
    elif not raised and _within(blame) and (lost := heads_left_out(subject, case)):
        yield lost
    else:
        otherwise = say("other_output", where=where)
        if raised:
            otherwise = say("forward_raises", error=out.told, where=where)
        more = "" if raised else decided(subject, wrong, case, where)
        more = more or _here_alone(subject, blame, case, wrong)
        more = together(naming.result_dropped(blame), more)
        yield naming.unknown(subject.cls, blame, out, subject.built.biased, otherwise, more)


def _missized(subject: Subject, blame: Blame | None, case: Case) -> Blame | None:
    """The same, or a size of the class's own name that is wrong: with another one all is right."""
    trace, cases = blame and blame.walked.trace, (case, subject.cases.main)
    for name, size in trace.sizes.items() if trace else ():
        if trace.source.count(f"self.{name}") < 3:  # where it is set, and two where it is used
            continue
        for letter in ("head_dim", "num_heads", "d_out"):
            if size == case.letters[letter]:
                continue
            passes = ((each, Pass(stored={name: each.letters[letter]})) for each in cases)
            if all(close(subject.outs(*asked)[0], subject.right(asked[0])) for asked in passes):
                values = {"name": f"self.{name}", "size": size, "needs": letter}
                place = set_at(blame.walked, values["name"])
                return replace(blame, found=Difference(1, "size", None, place, values=values))
    return blame


def _within(blame: Blame | None) -> bool:
    """Whether no line is at fault, or one that torch takes together."""
    if blame is None or blame.found is None:
        return True
    return blame.found.op is not None and blame.walked.inside(blame.found.op)


def _told_in(subject: Subject, wrong: Sequence[Case]) -> Case:
    """The case that a message speaks of: all its sizes differ; a learner can run the notebooks'."""
    if not subject.variant and TASK_CASES[SIZED] in wrong:
        return TASK_CASES[SIZED]
    return subject.cases.biased if subject.cases.biased in wrong else wrong[0]


def _played(subject: Subject) -> naming.Played:
    every, simpler = subject.cases.every, subject.cases.simpler
    return naming.Played(
        every + simpler,
        lambda case: (subject.out(case),),
        lambda case, _, *names: (subject.right(case, *names),),
        mistakes_of(subject.variant),
        partial(constructor.alike_in_shape, shapes=subject.shapes, variant=subject.variant),
        simpler=simpler,
    )


def _mistakes_of_outputs(subject: Subject, blame: Blame | None, case: Case) -> tuple[str, ...]:
    played = _played(subject)
    if name := naming.one_mistake(played, blame):
        return (name,)
    if blame is None or blame.raised:
        return ()
    again = None if case.qkv_bias else blamed(subject.cls, subject.plain(subject.cases.biased))
    found = (naming.two_mistakes(played, followed) for followed in (blame, again) if followed)
    return next(filter(None, found), ())


def _here_alone(subject: Subject, blame: Blame | None, case: Case, wrong: Sequence[Case]) -> str:
    """Ask for a difference again in another case that is wrong; say so where it is another one."""
    others = (subject.plain(e) for e in wrong if e.b > 1 and e.num_tokens > 2)
    other = next((elsewhere for elsewhere in others if elsewhere.d_out != case.d_out), None)
    again = other and blamed(subject.cls, other, subject.out(other))
    again = _missized(subject, again, other) if blame and again else None
    if not again or not again.found or blame.found and blame.found.step == again.found.step:
        return ""
    return say("so_here", where=letters_of(case)).text


# What comes last, since a slow class may leave it out


def _at_other_sizes(subject: Subject) -> Iterator[Finding]:
    cases = subject.cases
    read = (replace(case, variant=subject.variant) for case in DROPPING)
    more = (case for case in (*read, *subject.named[0]) if takes(subject.cls, case))
    every = [*cases.sized, *cases.rare, *more]
    # A class from elsewhere may have a limit of its own, such as that of a cache's sequences.
    limited = is_adapted(subject.cls)
    fails = [e for e in every if limited and isinstance(subject.out(e), Failure)]
    if fails:
        where = f"b = {fails[0].b}, {letters_of(fails[0])}"
        yield say("raises_there", error=subject.out(fails[0]).text, where=where)
    subject.cases = replace(cases, sized=tuple(e for e in cases.sized if e not in fails))
    tried = (case for case in every if case not in fails)
    other = [case for case in tried if not close(subject.out(case), subject.right(case))]
    if other:
        subject.found.add("outputs")
        far = stressed(subject, STRESSED[0])
        yield from [far] if far and far.kind != "remark" else _why(subject, other)
    yield from probed(subject, RARER)


# A class in progress


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
    if failed and (finding := _unset(cls, failed, built)):
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


# What forward returns


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
