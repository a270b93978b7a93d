"""Find out whether a class is causal multi-head attention, and if not, what is wrong."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from eleven_steps.checks.adapt.adapted import lacking, takes
from eleven_steps.checks.judge import constructor, naming
from eleven_steps.checks.judge.differ import Blame, blamed
from eleven_steps.checks.judge.dropping import DROPPING
from eleven_steps.checks.judge.probes import PROBES, RARER, STRESSED, probed, stressed
from eleven_steps.checks.judge.say import Finding, Outcome, letters_of, outcome_of, say, together
from eleven_steps.checks.judge.subject import Subject, decided, no_part
from eleven_steps.checks.judge.tell import tell
from eleven_steps.checks.know.catalogue import mistakes_of
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.run.ask import Pass, is_remote
from eleven_steps.checks.run.cases import LAYERS, SIZED, TASK_CASES, Case, cases_of, close, drawn
from eleven_steps.checks.run.isolate import Failure, TimeUp, isolated

SECONDS = 5.0


def judged(cls: Any, variant: str = "", seconds: float | None = None) -> Outcome:
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


def examine(cls: Any, variant: str = "") -> Iterator[Finding]:
    """Yield everything that is wrong with a class, and remarks on one that is right."""
    built = constructor.constructed(cls, variant)
    if isinstance(built, Finding):
        yield built
        return
    yield from constructor.faults(built, variant, lacks=lacking(cls))
    if lost := constructor.absent(built[True], variant):
        blame = blamed(cls, cases_of(variant).main) if lost == ["out_proj"] else None
        if blame and blame.found and blame.found.step < 11 and not blame.raised:
            yield tell(blame)  # it goes wrong before the out_proj that is not there
        return
    subject = Subject(cls, built, variant)
    out = subject.out(subject.cases.main)
    if isinstance(out, Failure) and (finding := constructor.unset(out, built[True])):
        yield finding
        return
    odd = constructor.misshapen(subject.shapes, variant)
    if not odd and (finding := constructor.missized(cls, built[True], variant)):
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
        yield say("nothing_returned")
        return
    if returned.kind in ("other", "open", "single"):
        name = "no_pair_returned" if returned.kind == "single" else "no_tensor_returned"
        yield say(name, came=returned.out.text)
        return
    if returned.kind == "tuple":
        yield say("tuple_returned")
    elif not isinstance(returned.out, Failure) and returned.dtype != "torch.float32":
        yield say("other_dtype_returned", dtype=returned.dtype)
    cases = (*every, drawn(main)[0]) if is_remote(subject.cls) else every
    other = [case for case in cases if not close(subject.out(case), subject.right(case))]
    if other:
        yield from _why(subject, other)
    elif not close(out := subject.out(simple), subject.right(simple)):
        normed = {"norm", "linear"} & {*subject.changes}
        divided = normed and isinstance(out, torch.Tensor) and out.isnan().any()
        yield say("norm_of_zero" if divided else "zero_scores")


def _why(subject: Subject, wrong: Sequence[Case]) -> Iterator[Finding]:
    case = subject.plain(_told_in(subject, wrong))
    with_grad = close(subject.outs(case, Pass(how="grad"))[0], subject.right(case))
    first, *others = _reasons(subject, wrong, case)
    if with_grad:
        text = together(wording("right_with_grad"), first.text)
        first = replace(first, text=text, name="right_with_grad")
    yield from (first, *others)


def _reasons(subject: Subject, wrong: Sequence[Case], case: Case) -> Iterator[Finding]:
    """Name the mistake that the outputs come to, or two, or the first difference on the way."""
    main, out = subject.cases.main, subject.out(case)
    raised = isinstance(out, Failure)
    blame = blamed(subject.cls, case, out)
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
    elif not raised and _within(blame) and (lost := no_part(subject, case)):
        yield lost
    else:
        otherwise = say("other_output", where=where)
        if raised:
            otherwise = say("forward_raises", error=out.told, where=where)
        more = "" if raised else decided(subject, wrong, case, where)
        more = together(
            naming.result_dropped(blame), more or _here_alone(subject, blame, case, wrong)
        )
        yield naming.unknown(subject.cls, blame, out, subject.built[True], otherwise, more)


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
        subject.fits,
        simpler=simpler,
    )


def _mistakes_of_outputs(subject: Subject, blame: Blame | None, case: Case) -> tuple[str, ...]:
    played = _played(subject)
    if name := naming.one_mistake(played, blame):
        return (name,)
    if blame is None or blame.raised:
        return ()
    again = None if case.qkv_bias else blamed(subject.cls, subject.plain(subject.cases.biased))
    return next(
        filter(
            None, (naming.two_mistakes(played, followed) for followed in (blame, again) if followed)
        ),
        (),
    )


def _here_alone(subject: Subject, blame: Blame | None, case: Case, wrong: Sequence[Case]) -> str:
    """Ask for a difference again in another case that is wrong; say so where it is another one."""
    others = (
        subject.plain(failing) for failing in wrong if failing.b > 1 and failing.num_tokens > 2
    )
    other = next((elsewhere for elsewhere in others if elsewhere.d_out != case.d_out), None)
    again = blame and other and blamed(subject.cls, other, subject.out(other))
    if not again or not again.found or blame.found and blame.found.step == again.found.step:
        return ""
    return say("so_here", where=letters_of(case)).text


# What comes last, since a slow class may leave it out


def _at_other_sizes(subject: Subject) -> Iterator[Finding]:
    cases = subject.cases
    read = (replace(case, variant=subject.variant) for case in DROPPING)
    every = [*cases.sized, *cases.rare, *(case for case in read if takes(subject.cls, case))]
    # A class from elsewhere may have a limit of its own, such as that of a cache's sequences.
    limited = hasattr(subject.cls, "places")
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
