"""Look a class up among the mistakes of the catalogue, alone and in pairs, by its outputs."""

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from eleven_steps.checks.judge.constructor import alike_in_shape, constructor_raised
from eleven_steps.checks.judge.differ import Blame, blamed, holds
from eleven_steps.checks.judge.read import FAMILIES
from eleven_steps.checks.judge.say import Finding, from_notebook, letters, say, together
from eleven_steps.checks.judge.subject import Subject, decided
from eleven_steps.checks.judge.tell import line_of, told
from eleven_steps.checks.know.catalogue import mistakes_of
from eleven_steps.checks.know.right import Scene, planted, play
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.run.ask import Pass, once, used_by
from eleven_steps.checks.run.cases import SAME, TASK_CASES, Case, close
from eleven_steps.checks.run.isolate import Failure, clock_paused
from eleven_steps.checks.run.making import ATTRIBUTES, Built, Facts
from eleven_steps.helpers.trace import STEPS

SIZED = 2  # of the notebooks' cases, the one in which all sizes differ


class Outputs(Subject):
    """The outputs of a class at the cases, each computed once, and what mistakes there can be."""

    def __init__(self, cls: Any, built: Built, variant: str = ""):
        super().__init__(cls, built, variant)
        self.mistakes = mistakes_of(variant)

    def right_output(self, case: Case, *mistakes: str) -> torch.Tensor | Failure:
        """Output of the right class, or of one with these mistakes."""
        return play(self.plain(case), *mistakes).out


def look_up(outputs: Outputs, wrong: Sequence[Case]) -> Iterator[Finding]:
    """Name the mistake that the outputs come to, or two, or the first difference on the way.

    Args:
        outputs: of the class.
        wrong: the cases in which its output is not the right one.
    """
    main = outputs.cases.main
    case = outputs.plain(_told_in(outputs, wrong))
    out = outputs.out(case)
    blame = blamed(outputs.cls, case, out)
    if not isinstance(out, Failure) and (finding := drawn_anew(outputs.cls, case, blame)):
        yield finding
        return
    if blame is None:
        raised = isinstance(out, Failure)
        yield (
            constructor_raised(outputs.cls, case, case.qkv_bias, out)
            if raised
            else say("other_output", where=letters(case))
        )
        return
    found = blame.found
    if found and found.reason == "idle":
        yield told(blame, _error(out))
        return
    if names := _named(outputs, blame, case):
        if names == ("no_mask",) and outputs.leaks(train=True) is False:
            yield say("future_in_eval")
            return
        own_place = found and found.reason in ("other", "early", "size", "exchanged")
        elsewhere = own_place and found.step not in outputs.mistakes[names[0]].steps
        if len(names) == 1 and (elsewhere or found and blame.unspoilt(names[0])):
            yield replace(told(blame, _error(out)), mistake=names[0])
        else:
            every = outputs.mistakes
            yield from (say(name, blame.step_of(every[name]), case=main) for name in names)
        return
    used = used_by(outputs.cls)
    reads = say("forward_reads", what=from_notebook(used)).text if used["names"] else ""
    where = letters(case) if main in wrong else f"b = {case.b}, {letters(case)}"
    finding = told(blame, _error(out)) if found else say("other_output", where=where)
    if found is None and isinstance(out, Failure):
        finding = say("forward_raises", error=out.told, where=where)
    hidden = "" if isinstance(out, Failure) else decided(outputs, wrong, case, where)
    hidden = hidden or _here_alone(outputs, blame, case, wrong)
    hint = self_forgotten(out, outputs.built[True]) if isinstance(out, Failure) else ""
    yield replace(finding, text=together(finding.text, hint, reads, hidden))


def _here_alone(outputs: Outputs, blame: Blame, case: Case, wrong: Sequence[Case]) -> str:
    """Ask for a difference again in another case that is wrong; say so where it is another one."""
    others = (outputs.plain(each) for each in wrong if each.b > 1 and each.num_tokens > 2)
    other = next((each for each in others if each.d_out != case.d_out), None)
    again = other and blamed(outputs.cls, other, outputs.out(other))
    if not again or not again.found or holds(blame, again):
        return ""
    return say("so_here", where=letters(case)).text


def _told_in(outputs: Outputs, wrong: Sequence[Case]) -> Case:
    """The case that a message speaks of: all its sizes differ; a learner can run the notebooks'."""
    if not outputs.variant and TASK_CASES[SIZED] in wrong:
        return TASK_CASES[SIZED]
    return outputs.cases.biased if outputs.cases.biased in wrong else wrong[0]


def _error(out: torch.Tensor | Failure) -> str:
    return out.text.rstrip(".") if isinstance(out, Failure) else ""


def self_forgotten(failure: Failure, facts: Facts) -> str:
    """Say which name wants `self.` before it, in forward or in the constructor, if one does."""
    names = re.findall(r"^(?:Name|Attribute)Error: .*'(\w+)'", failure.text)
    if failure.text.startswith("NameError") and {*names} & {*facts.kept}:
        return wording("self_is_kept", name=names[0])
    lost = failure.text.startswith("AttributeError") and {*names} & {*facts.unkept}
    return wording("self_not_kept", name=names[0]) if lost else ""


def drawn_anew(cls: Any, case: Case, blame: Blame | None) -> Finding | None:
    """Say that the same x gives other numbers each time, and where they are not the right ones."""
    one, other = once(cls, case, Pass(seed=1), Pass(seed=2))
    if close(one.out, other.out, SAME):
        return None
    found = blame and blame.found
    finding = say("random_in_eval", blame.walked.roles[found.op] if found and found.op else 7)
    first = wording("first_in", at=line_of(found.place)) if found and found.place else ""
    return replace(finding, text=together(finding.text, first))


def _named(outputs: Outputs, blame: Blame, case: Case) -> tuple[str, ...]:
    """The mistake, or the two, that the class makes, if the catalogue has them."""
    step = blame.found.step if blame.found else None
    if not blame.raised:
        name = single(outputs, near=step)
        return (name,) if name else _two(outputs, blame, case)
    name = single(outputs, step)
    theirs = _planted(name, case) if name else None
    same = theirs and _situation(theirs) == _situation(blame) and _stored(theirs) <= _stored(blame)
    return (name,) if same and not blame.unspoilt(name) else ()


def _two(outputs: Outputs, blame: Blame, case: Case) -> tuple[str, ...]:
    """The two mistakes that a class makes, as they are seen with biases too."""
    biased = outputs.plain(outputs.cases.biased)
    for each in (blame, None if case.qkv_bias else blamed(outputs.cls, biased)):
        found = each and each.found
        if found and (names := pair(outputs, each, found.step)):
            return names
    return ()


def _stored(blame: Blame) -> set[tuple[str, int]]:
    """The sizes that a class stores under the lecture's names."""
    return {(name, n) for name, n in blame.walked.trace.sizes.items() if name in ATTRIBUTES}


@functools.cache
def _planted(name: str, case: Case) -> Blame | None:
    with clock_paused():
        return blamed(planted(name, variant=case.variant), case)


def _situation(blame: Blame) -> tuple:
    """The step of a difference, and what the call that raised was given."""
    found, walked = blame.found, blame.walked
    ops = walked.trace.ops
    failing = ops[-1] if ops and ops[-1].failed else None
    given = failing.given if failing else ()
    read = [walked.readings[i] for i in given]
    real = {(e.family, e.axes) for e in read if e.family in FAMILIES[1:]}
    return found and found.step, real


def single(outputs: Outputs, step: int | None = None, near: int | None = None) -> str | None:
    """The one catalogued mistake that comes to the same function as a class.

    Args:
        outputs: of the class.
        step: where it fails, if it fails; mistakes made elsewhere then need more than a failure.
        near: the step whose mistakes are tried first, to save time.
    """
    every = outputs.mistakes
    names = sorted(every, key=lambda each: near not in every[each].steps)
    for name in names:
        alike = _agrees(outputs, name)
        usual = alike == "function" or alike and step in (None, *every[name].steps)
        theirs, right = (outputs.right_output(outputs.cases.main, *each) for each in ((name,), ()))
        if usual and _alike(right, theirs) and not close(right, theirs):  # much ends in NaN
            usual = near in (None, *every[name].steps)
        if usual and alike_in_shape(name, outputs.shapes, outputs.variant):
            return name
    return None


def pair(outputs: Outputs, blame: Blame, step: int) -> tuple[str, ...]:
    """Two catalogued mistakes that together come to the same function, the first at step.

    What the first makes must be among the tensors of the forward, up to where the second is made.
    """
    every, shapes = outputs.mistakes, outputs.shapes
    case = blame.walked.right.case
    kept = (each for each in blame.walked.trace.tensors if each.device.type == "cpu")
    made = [each.float() for each in kept if each.is_floating_point()]
    for one in (name for name in every if step in every[name].steps):
        shown = _shown(made, play(case, one), play(case), every[one].step)
        for other in (name for name in every if every[name].step in shown):
            agrees = _conceivable(outputs, one, other) and _agrees(outputs, one, other)
            if agrees == "function" and alike_in_shape(one, shapes, outputs.variant):
                return one, other
    return ()


def _shown(made: list[torch.Tensor], wrong: Scene, right: Scene, step: int) -> range:
    """The steps at which a second mistake may be made, where the first is seen.

    From its step on, a forward has what a wrong class spoils, in place of what is right.
    """
    first = None
    for number in range(step, len(STEPS)):
        theirs, ours = (each.steps.get(STEPS[number - 1], {}) for each in (wrong, right))
        spoilt = [name for name in theirs if not close(theirs[name], ours[name])]
        if not all(_there(made, theirs[name]) for name in spoilt):
            break
        if any(not _there(made, ours[name]) for name in spoilt):
            first = first or number
    else:
        number = len(STEPS)
    return range(first + 1, number + 1) if first else range(0)


def _there(made: list[torch.Tensor], wanted: torch.Tensor) -> bool:
    """Whether a tensor is among others, scaled or not, whatever their shape."""
    flat, finite = wanted.flatten(), wanted.flatten().isfinite()
    some = flat[finite]
    for each in made:
        if each.numel() != wanted.numel():
            continue
        mine = each.flatten()
        factor = float(mine[finite] @ some / some.square().sum())
        if factor > 1e-4 and close(mine / factor, flat):
            return True
    return False


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
    if len(run) == len(together):  # right wherever it was asked: the mistake changes nothing here
        return ""
    same_cases = run and not apart and not outputs.variant  # there, nothing tells where it fails
    return "failure" if same_cases or fails and mine.text == theirs.text else ""


def _alike(mine: torch.Tensor | Failure, theirs: torch.Tensor | Failure) -> bool:
    """Whether two outputs agree where theirs is a number; NaN may be 0 in another style."""
    fails = isinstance(mine, Failure) or isinstance(theirs, Failure)
    if not fails and mine.shape == theirs.shape:
        mine = mine.masked_fill(theirs.isnan(), torch.nan)
    return close(mine, theirs)
