"""Name what is wrong in an answer: the mistake that it makes, or where it leaves the right way.

A function of one step, a class in progress and a finished class are named here, in one way. They
differ in the tensors that are asked for, those of one step, of any step, the output, and in the
cases.
"""

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from eleven_steps.checks.judge.differ import Blame, blamed
from eleven_steps.checks.judge.likeness import blank, failed, same_parts
from eleven_steps.checks.judge.path import makes_nan
from eleven_steps.checks.judge.read import FAMILIES
from eleven_steps.checks.judge.say import Finding, listed, say, together
from eleven_steps.checks.judge.syntax import MASK, dropped_call, op_name, returning_nothing
from eleven_steps.checks.judge.tell import line_of, tell
from eleven_steps.checks.know.catalogue import Mistake, mistake_named
from eleven_steps.checks.know.right import Parts, Scene, planted, play
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.run.ask import Pass, once, used_by
from eleven_steps.checks.run.cases import SAME, Case, close
from eleven_steps.checks.run.isolate import Failure, clock_paused
from eleven_steps.checks.run.making import ATTRIBUTES, Facts
from eleven_steps.helpers.trace import STEPS

# Differences that are of their own step, whatever mistake ends in the same numbers.
OWN_PLACE = "other", "early", "size", "exchanged", "ordered"


@dataclass(frozen=True)
class Played:
    """What an answer gives, and what is right there or comes of a slip."""

    cases: Sequence[Case]  # where it is asked, first the one in which most is told
    mine: Callable[[Case], Parts]  # what it gives in a case
    # theirs(case, step, *slips): what a step makes, or makes with slips
    theirs: Callable[..., Parts]
    mistakes: Mapping[str, Mistake] = field(default_factory=dict)  # that it may make
    may_be: Callable[[str], bool] = lambda _: True  # whether a mistake can be it, whatever it gives
    steps: tuple[str, ...] = STEPS[-1:]  # whose tensors may be meant
    simpler: Sequence[Case] = ()  # cases in each of which one mistake of two is seen alone


# Whether an answer makes a slip


def makes(played: Played, *slips: Any) -> str:
    """How an answer does what slips do: as a "function", with an "error", in "failure", or ""."""
    return next(filter(None, (_makes(played, step, *slips) for step in played.steps)), "")


def _makes(played: Played, step: str, *slips: Any) -> str:
    def theirs(case: Case, *slips: Any) -> Parts:
        return played.theirs(case, step, *slips)

    mine, (main, *others) = played.mine, played.cases
    if not same_parts(mine(main), theirs(main, *slips), True):  # which two failures are
        return ""
    fails, both, apart = failed(mine(main)), [main], False
    for case in others:
        two = mine(case), theirs(case, *slips)
        if same_parts(*two, True):
            both.append(case)
        elif fails and any(map(failed, two)):
            apart = True  # a call in another style may fail in more cases
        else:
            return ""
    run = [case for case in both if not failed(mine(case))]
    if any(not same_parts(theirs(case), theirs(case, *slips), True) for case in run):
        return "function"
    if any(not same_parts(mine(case), theirs(case)) for case in run):  # in NaN alone
        same = all(same_parts(mine(case), theirs(case, *slips)) for case in run)
        return "function" if same else ""
    if len(run) == len(both):  # right wherever it was asked: the slip changes nothing here
        return ""
    same_cases = run and not apart and not main.variant  # there, nothing tells where it fails
    texts = {parts[0].text for parts in (mine(main), theirs(main, *slips)) if failed(parts)}
    return "error" if fails and len(texts) == 1 else "failure" if same_cases else ""


def one_mistake(played: Played, blame: Blame | None = None) -> str | None:
    """The one mistake that comes to what an answer gives, followed to blame, if it was."""
    step = blame.found.step if blame and blame.found else None
    mistakes, raised = played.mistakes, blame is not None and blame.raised
    passed = () if raised or step is None else range(2, step)
    done = {number for number in passed if blame.walked.reached(STEPS[number - 1])}
    names = [name for name, mistake in mistakes.items() if not done.issuperset(mistake.steps)]
    names.sort(key=lambda mistake: not raised and step not in mistakes[mistake].steps)
    mine = played.mine(played.cases[0])
    dark = any(isinstance(part, torch.Tensor) and part.isnan().any() for part in mine)
    for name in names:
        how, here = makes(played, name), step in (None, *mistakes[name].steps)
        if not how or not played.may_be(name) or dark and not _same_nan(name, blame):
            continue
        if (raised or here or not _nan_alone(played, name)) and proven(how, name, blame):
            return name
    return None


def proven(how: str, name: str, blame: Blame | None) -> bool:
    """Whether what comes of a mistake proves it: what fails, in a call of the same tensors."""
    if blame is None or not blame.raised:
        return True
    here = blame.found is None or blame.found.step in mistake_named(name).steps
    return (here or how != "failure") and _fails_alike(blame, name)


def under_way(blame: Blame | None) -> Blame | None:
    """The same of an answer that may end at any step: what ends early is no difference."""
    early = blame and blame.found and blame.found.reason == "early"
    return replace(blame, found=None) if early else blame


def _nan_alone(played: Played, name: str) -> bool:
    """Whether what a mistake changes is a number no more: much ends in NaN."""
    main, step = played.cases[0], played.steps[-1]
    right, theirs = played.theirs(main, step), played.theirs(main, step, name)
    return same_parts(right, theirs, True) and not same_parts(right, theirs)


def _same_nan(name: str, blame: Blame | None) -> bool:
    """Whether NaN begins at the same step as with a mistake; where all is NaN, no number tells."""
    both = blame and (blame, _planted(name, blame.walked.case))
    walks = [followed.walked for followed in both or () if followed]
    first = [(walked, makes_nan(walked)) for walked in walks]
    endless = [any((t == torch.inf).any() for t in walked.tensors) for walked in walks]
    steps = {walked.steps[number] for walked, number in first if number is not None}
    return len(steps) < 2 and len({*endless}) < 2


def _fails_alike(blame: Blame, name: str) -> bool:
    """Whether a class that raises does so where one with a mistake does, at the same tensors."""
    theirs = _planted(name, blame.walked.case)
    if theirs is None or _situation(theirs) != _situation(blame) or contradicted(blame, name):
        return False
    if not _may_be_same(_sizes(blame), _sizes(theirs)):
        return False
    plain = any(map(str.isidentifier, blame.walked.trace.sizes))
    return not plain or _stored(theirs) <= _stored(blame)


def _stored(blame: Blame) -> set[tuple[str, int]]:
    return {(name, n) for name, n in blame.walked.trace.sizes.items() if name in ATTRIBUTES}


@functools.cache
def _planted(name: str, case: Case) -> Blame | None:
    with clock_paused():
        return blamed(planted(name, variant=case.variant), case)


def _situation(blame: Blame) -> tuple:
    """The step of a difference, and what the call that raised was given, of a mask its sizes."""
    found, walked = blame.found, blame.walked
    ops = walked.ops
    given = ops[-1].given if ops and ops[-1].failed else ()
    read = [walked.readings[i] for i in given]
    real = {(e.family, e.who, e.axes) for e in read if e.family in FAMILIES[1:]}
    masks = given if given and op_name(ops[-1]) in MASK else ()
    masks = {walked.tensors[i].shape[-2:] for i in masks if walked.readings[i].family == "const"}
    return found and found.step, real, masks


def _sizes(blame: Blame) -> list[int]:
    ops = blame.walked.ops
    return [n for n in (ops[-1].numbers if ops else ()) if type(n) is int]


def _may_be_same(sizes: list[int], others: list[int]) -> bool:
    """Whether two calls may be given the same sizes: -1 stands for one that torch fills in."""
    if -1 not in sizes + others:
        return sorted(sizes) == sorted(others)
    both = zip(sizes, others, strict=False)
    return len(sizes) != len(others) or all(a == b or -1 in (a, b) for a, b in both)


def contradicted(blame: Blame | None, name: str) -> bool:
    """Whether the way shows that another line than a mistake's is at fault."""
    found = blame and blame.found
    if not found:
        return False
    stored = found.reason == "size" and found.op is None  # with another one all is right
    elsewhere = found.reason in OWN_PLACE and found.step not in mistake_named(name).steps
    return stored or elsewhere or blame.unspoilt(name)


def two_mistakes(played: Played, blame: Blame) -> tuple[str, ...]:
    """Two mistakes that together come to what an answer gives, the first where it was blamed.

    What the first makes must be among the tensors of the forward, up to where the second is made.
    """
    if not blame.found or blank(played.mine(played.cases[0])):
        return ()
    case, mistakes = blame.walked.case, played.mistakes
    kept = (tensor for tensor in blame.walked.tensors if tensor.device.type == "cpu")
    made = [tensor.float() for tensor in kept if tensor.is_floating_point()]
    step, own = blame.found.step, blame.found.reason in OWN_PLACE
    for one in (name for name, mistake in mistakes.items() if step in mistake.steps):
        if own and mistakes[one].step != step:  # no other line than that of the wrong tensor
            continue
        shown = _shown(made, play(case, one), play(case), mistakes[one].step)
        for other in (name for name in mistakes if mistakes[name].step in shown):
            agrees = _conceivable(played, one, other) and makes(played, one, other)
            if agrees == "function" and played.may_be(one):
                return one, other
    return ()


def _shown(made: list[torch.Tensor], wrong: Scene, right: Scene, step: int) -> range:
    """The steps at which a second mistake may be made, where the first is seen.

    From its step on, a forward has what a wrong class spoils, in place of what is right.
    """
    first = None
    for number in range(step, len(STEPS)):
        theirs, ours = (scene.steps.get(STEPS[number - 1], {}) for scene in (wrong, right))
        spoilt = [name for name in theirs if not close(theirs[name], ours[name])]
        if not all(_among(made, theirs[name]) for name in spoilt):
            break
        if any(not _among(made, ours[name]) for name in spoilt):
            first = first or number
    else:
        number = len(STEPS)
    return range(first + 1, number + 1) if first else range(0)


def _among(made: list[torch.Tensor], wanted: torch.Tensor) -> bool:
    """Whether a tensor is among others, scaled or not, whatever their shape."""
    flat, finite = wanted.flatten(), wanted.flatten().isfinite()
    some = flat[finite]
    for tensor in made:
        if tensor.numel() != wanted.numel():
            continue
        mine = tensor.flatten()
        factor = float(mine[finite] @ some / some.square().sum())
        if factor > 1e-4 and close(mine / factor, flat):
            return True
    return False


def _conceivable(played: Played, one: str, other: str) -> bool:
    """Whether wherever one of two mistakes changes nothing, the other is seen alone."""
    (step,), theirs = played.steps, played.theirs
    return all(
        same_parts(played.mine(case), theirs(case, step, second), True)
        for case in (*played.simpler, played.cases[0])
        for first, second in ((one, other), (other, one))
        if same_parts(theirs(case, step, first), theirs(case, step))
        or failed(theirs(case, step, second))
    )


def of_names(
    names: Sequence[str], blame: Blame | None, say_one: Callable[..., Finding], error: str
) -> Iterator[Finding]:
    """Say mistakes; where the way shows the line of the first elsewhere, that line."""
    if contradicted(blame, names[0]):
        yield replace(tell(blame, error), mistake=names[0])
        return
    for name in names:
        yield say_one(name, blame and blame.step_of(name))


def unknown(
    answer: Any, blame: Blame | None, out: Any, facts: Facts, otherwise: Finding, more: str = ""
) -> Finding:
    """Say where an answer leaves the right way, or otherwise, and what there is to look at."""
    found = blame and blame.found
    finding = tell(blame, error_of(out)) if found else otherwise
    used = used_by(answer)
    reads = say("forward_reads", names=listed(used["names"])).text if used["names"] else ""
    names = re.findall(r"^NameError: .*'(\w+)'", error_of(out))
    sorts = {part.get(names[0], "") for part in facts.attributes.values()} if names else {""}
    known = "self_has" if "method" in sorts else "self_is_kept"
    hint = "" if "" in sorts else wording(known, name=names[0])
    return replace(finding, text=together(finding.text, hint, reads, more))


def result_dropped(blame: Blame | None) -> str:
    """Say which result the code makes and drops, or which function of its own returns none."""
    if blame is None:
        return ""
    walked = blame.walked
    places = [*(op.place for op in walked.ops), blame.found and blame.found.place]
    place = next(filter(dropped_call, places), None)
    nothing = returning_nothing(walked.trace.source)
    at = place and place.line - walked.trace.first + 1
    if place and not any(e.body[-1].lineno <= at <= e.end_lineno for e in nothing):
        return wording("result_dropped", name=dropped_call(place))
    lost = walked.stop and "NoneType" in walked.stop.failure.text
    helper = next((e.name for e in nothing if lost and e.name != "forward"), "")
    return say("helper_returns_nothing", name=helper).text if helper else ""


def nothing_returned(blame: Blame | None) -> Finding:
    """Say that forward returns nothing, or the function of its own whose result it returns."""
    names = [e.name for e in returning_nothing(blame.walked.trace.source)] if blame else []
    own = names and "forward" not in names
    return say("helper_returns_nothing", 11, name=names[0]) if own else say("nothing_returned")


def error_of(out: Any) -> str:
    """What was raised, as a sentence takes it; "" where nothing was."""
    return out.text.rstrip(".") if isinstance(out, Failure) else ""


def drawn_anew(cls: Any, case: Case, blame: Blame | None) -> Finding | None:
    """Say that the same x gives other numbers each time, and where they are not the right ones."""
    one, other = once(cls, case, Pass(seed=1), Pass(seed=2))
    if close(one.out, other.out, SAME):
        return None
    found = blame and blame.found
    if found and found.reason == "unfilled":  # which holds what memory held
        return tell(blame)
    finding = say("random_in_eval", blame.walked.steps[found.op] if found and found.op else 7)
    first = wording("first_in", at=line_of(found.place)) if found and found.place else ""
    return replace(finding, text=together(finding.text, first))
