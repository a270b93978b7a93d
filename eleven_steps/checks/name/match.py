"""Look a class up among the mistakes of the catalogue, alone and in pairs, by its outputs."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from eleven_steps.checks.judge.constructor import alike_in_shape
from eleven_steps.checks.judge.subject import Subject
from eleven_steps.checks.judge.unmade import constructor_raised
from eleven_steps.checks.know.catalogue import mistakes_of
from eleven_steps.checks.know.right import Scene, play
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.name.locate.failing import failing_step
from eleven_steps.checks.name.locate.follow import follow
from eleven_steps.checks.name.locate.recording import NAMES, Recording, exact
from eleven_steps.checks.name.say import Finding, dropped, from_notebook, letters, say, together
from eleven_steps.checks.run.ask import ask, once, used_by
from eleven_steps.checks.run.cases import SAME, Case, close
from eleven_steps.checks.run.facts import Built, Facts, Pass
from eleven_steps.checks.run.isolate import Failure
from helpers.trace import STEPS


class Outputs(Subject):
    """The outputs of a class at the cases, each computed once, and what mistakes there can be."""

    def __init__(self, cls: Any, built: Built, variant: str = ""):
        super().__init__(cls, built, variant)
        self.mistakes = mistakes_of(variant)

    def right_output(self, case: Case, *mistakes: str) -> torch.Tensor | Failure:
        """Output of the right class, or of one with these mistakes."""
        return play(self.plain(case), *mistakes).out


def look_up(outputs: Outputs, wrong: Sequence[Case]) -> Iterator[Finding]:
    """Name the mistake that the outputs come to, or two, or the step to look at.

    Args:
        outputs: of the class.
        wrong: the cases in which its output is not the right one.
    """
    main, biased = outputs.cases.main, outputs.cases.biased
    case = outputs.plain(biased if biased in wrong else wrong[0])
    record = ask(outputs.cls, "record", case)
    if isinstance(record, Failure):
        yield constructor_raised(outputs.cls, case, case.qkv_bias, record)
        return
    recording, out = Recording(record, case), record.seen.out
    where = letters(case) if main in wrong else f"b = {case.b}, {letters(case)}"
    raised = isinstance(out, Failure)
    if raised:
        step = None if outputs.variant else failing_step(recording, out)
        finding = say("forward_raises", step, error=out.told, where=where)
        hint = self_forgotten(out, outputs.built[True])
        finding = replace(finding, text=together(finding.text, hint))
    elif drawn_anew(outputs.cls, case):
        projected = all(map(recording.made, NAMES.values()))
        yield say("random_in_eval", None if projected else 2)
        return
    else:
        finding = follow(recording) or say("other_output", where=where)
    used = used_by(outputs.cls)
    if names := _named(outputs, recording, finding, bool(used["dropped"])):
        if names == ("no_mask",) and outputs.leaks(train=True) is False:
            yield say("future_in_eval")
        else:
            step = None if raised else finding.step  # where it fails is later than its cause
            yield from (say(name, step, case=main) for name in names)
        return
    reads = say("forward_reads", what=from_notebook(used)).text if used["names"] else ""
    shapes = [] if raised else [tuple(each.shape) for each in (out, recording.right.out)]
    odd = len({*shapes}) > 1
    came = say("shape_returned", came=shapes[0], right=shapes[1]).text if odd else ""
    hidden = _hidden(outputs, wrong, where)
    hidden = "" if raised or finding.name == "in_half" else hidden  # which is never quite right
    yield replace(finding, text=together(finding.text, came, dropped(used), reads, hidden))


def _hidden(outputs: Outputs, wrong: Sequence[Case], where: str) -> str:
    """Say in which cases a class is right, where the main one is among them."""
    if outputs.cases.main in wrong:
        return ""
    biased = {case.qkv_bias for case in wrong} == {True}
    unbiased = not any(case.qkv_bias for case in outputs.cases.every if case not in wrong)
    name = "right_without_bias" if biased and unbiased else "right_elsewhere"
    return say(name, where=where).text


def self_forgotten(failure: Failure, facts: Facts) -> str:
    """Say which name wants `self.` before it, in forward or in the constructor, if one does."""
    names = re.findall(r"^(?:Name|Attribute)Error: .*'(\w+)'", failure.text)
    if failure.text.startswith("NameError") and {*names} & {*facts.kept}:
        return wording("self_is_kept", name=names[0])
    lost = failure.text.startswith("AttributeError") and {*names} & {*facts.unkept}
    return wording("self_not_kept", name=names[0]) if lost else ""


def drawn_anew(cls: Any, case: Case) -> bool:
    """Whether the same x gives something else with other random numbers."""
    first, again = once(cls, case, Pass(seed=1), Pass(seed=2))
    return not close(first.out, again.out, SAME)


def _named(
    outputs: Outputs, recording: Recording, finding: Finding, drops: bool
) -> tuple[str, ...]:
    """The mistake, or the two, that the class makes, if the catalogue has them."""
    step = finding.step
    if not isinstance(recording.record.seen.out, Failure):
        if name := single(outputs, near=None if drops else step):
            return (name,)
        return pair(outputs, recording, step) if step else ()
    name = single(outputs, step)
    if not name or not drops and _unspoilt(recording, name):
        return ()
    return (name,)


def _unspoilt(recording: Recording, name: str) -> bool:
    """Whether what a mistake would have spoilt at its step is there."""
    case = recording.case
    step = STEPS[mistakes_of(case.variant)[name].step - 1]
    return step in play(case, name).steps and recording.done(step)


def single(outputs: Outputs, step: int | None = None, near: int | None = None) -> str | None:
    """The one catalogued mistake that comes to the same function as a class.

    Args:
        outputs: of the class.
        step: where it fails, if it fails; mistakes made elsewhere then need more than a failure.
        near: the step whose mistakes are tried first, to save time; of a class with a change they
            alone, the change's own, and those of the projections, which are there under any name.
    """
    every = outputs.mistakes
    names = sorted(every, key=lambda each: near not in every[each].steps)
    if outputs.variant and near:
        names = [n for n in names if every[n].variant or {near, 2} & {*every[n].steps}]
    for name in names:
        alike = _agrees(outputs, name)
        usual = alike == "function" or alike and step in (None, *every[name].steps)
        if usual and alike_in_shape(name, outputs.shapes, outputs.variant):
            return name
    return None


def pair(outputs: Outputs, recording: Recording, step: int) -> tuple[str, ...]:
    """Two catalogued mistakes that together come to the same function, the first at step.

    What the first makes must be among the tensors of the forward, up to where the second is made.
    """
    every, shapes = outputs.mistakes, outputs.shapes
    for one in (name for name in every if step in every[name].steps):
        wrong = play(recording.case, one)
        shown = _shown(recording, wrong, every[one].step)
        for other in (name for name in every if every[name].step in shown):
            agrees = _conceivable(outputs, one, other) and _agrees(outputs, one, other)
            if agrees == "function" and alike_in_shape(one, shapes, outputs.variant):
                return one, other
    return ()


def _shown(recording: Recording, wrong: Scene, step: int) -> range:
    """The steps at which a second mistake may be made, where the first is seen.

    From its step on, a forward has what a wrong class spoils, in place of what is right.
    """
    first = None
    for number in range(step, len(STEPS)):
        made, right = (each.steps.get(STEPS[number - 1], {}) for each in (wrong, recording.right))
        spoilt = [name for name in made if not close(made[name], right[name])]
        if not all(exact(recording.tensors, made[name], False) for name in spoilt):
            break
        if any(not exact(recording.tensors, right[name], False) for name in spoilt):
            first = first or number
    else:
        number = len(STEPS)
    return range(first + 1, number + 1) if first else range(0)


def _conceivable(outputs: Outputs, one: str, other: str) -> bool:
    """Whether wherever one of two mistakes changes nothing, the other is seen alone."""
    right = outputs.right_output
    return all(
        close(right(case, second), outputs.out(case))
        for case in (*outputs.cases.simpler, outputs.cases.main)
        for first, second in ((one, other), (other, one))
        if close(right(case, first), right(case)) or isinstance(right(case, second), Failure)
    )


def _agrees(outputs: Outputs, *mistakes: str) -> str:
    """Whether a class does what mistakes do: as a "function", in "failure", or not at all, ""."""
    main, *others = outputs.cases.every + outputs.cases.simpler
    mine, theirs = outputs.out(main), outputs.right_output(main, *mistakes)
    if not _alike(mine, theirs):  # which two failures are
        return ""
    fails, together, apart = isinstance(mine, Failure), [main], False
    for case in others:
        both = outputs.out(case), outputs.right_output(case, *mistakes)
        if _alike(*both):
            together.append(case)
        elif fails and any(isinstance(each, Failure) for each in both):
            apart = True  # a call in another style may fail in more cases
        else:
            return ""
    run = [case for case in together if not isinstance(outputs.out(case), Failure)]
    right = outputs.right_output
    if any(not _alike(right(case), right(case, *mistakes)) for case in run):
        return "function"
    if any(not close(outputs.out(case), right(case)) for case in run):
        same = all(close(outputs.out(case), right(case, *mistakes)) for case in run)
        return "function" if same else ""  # in what is NaN alone
    same_cases = run and not apart and not outputs.variant  # there, nothing tells where it fails
    return "failure" if same_cases or fails and mine.text == theirs.text else ""


def _alike(mine: torch.Tensor | Failure, theirs: torch.Tensor | Failure) -> bool:
    """Whether two outputs agree where theirs is a number; NaN may be 0 in another style."""
    fails = isinstance(mine, Failure) or isinstance(theirs, Failure)
    if not fails and mine.shape == theirs.shape:
        mine = mine.masked_fill(theirs.isnan(), torch.nan)
    return close(mine, theirs)
