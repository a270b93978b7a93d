"""Judge a finished class that has the lecture's constructor: everything that is wrong is found.

Of a class from elsewhere only what it cannot have is known here.
"""

import ast
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from eleven_steps.checks.adapt.adapted import is_adapted, takes
from eleven_steps.checks.judge import constructor, naming
from eleven_steps.checks.judge.at_fault import set_at
from eleven_steps.checks.judge.differ import Blame, blamed
from eleven_steps.checks.judge.path import Difference, Walk
from eleven_steps.checks.judge.probes import PROBES, RARER, STRESSED, probed, stressed
from eleven_steps.checks.judge.say import Finding, Outcome, letters_of, outcome_of, say, together
from eleven_steps.checks.judge.subject import Subject, decided, heads_left_out
from eleven_steps.checks.judge.syntax import parsed
from eleven_steps.checks.judge.tell import tell
from eleven_steps.checks.judge.training import DROPPING
from eleven_steps.checks.know.catalogue import mistakes_of
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.run.ask import Pass, is_remote
from eleven_steps.checks.run.cases import LAYERS, SIZED, TASK_CASES, Case, cases_of, close, unseen
from eleven_steps.checks.run.isolate import Failure, TimeUp, isolated
from eleven_steps.checks.run.making import ATTRIBUTES
from eleven_steps.checks.run.variant import LECTURE, Variant

SIZES = "head_dim", "num_heads", "d_out"  # that a class may keep
SECONDS = 5.0  # of an answer's own, for all that it is asked


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
    lacks = cls.lacks if is_adapted(cls) else frozenset()
    yield from constructor.faults(built, variant, lacks=lacks)
    if lost := constructor.absent(built.biased, variant):
        blame = blamed(cls, cases_of(variant).main) if lost == ["out_proj"] else None
        if blame and blame.found and blame.found.step < 11 and not blame.raised:
            yield tell(blame)  # it goes wrong before the out_proj that is not there
        return
    subject = Subject(cls, built, variant)
    out = subject.out(subject.cases.main)
    if isinstance(out, Failure) and (finding := unset(subject.cls, out, built)):
        yield finding
        return
    odd = constructor.misshapen(subject.shapes, variant)
    if not odd and (finding := _missized(subject)):
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


def unset(cls: Any, out: Failure, built: constructor.Built) -> Finding | None:
    """Say which attribute forward reads and nothing sets, at the step where it goes wrong."""
    finding = constructor.unset(out, built.biased)
    unclear = finding and finding.step in (None, 1)  # what is read is no layer and no mask
    blame = blamed(cls, TASK_CASES[SIZED]) if unclear else None
    step = blame.found.step if blame and blame.found else 1
    size = step in (3, 4, 9, 10) and out.text.split("'")[-2] + "(" not in out.line
    return replace(finding, step=1 if size else step) if blame else finding


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
    blame = _sized_otherwise(subject, blamed(subject.cls, case, out), case)
    where = letters_of(case, "b" if main in wrong else "")
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


def _missized(subject: Subject) -> Finding | None:
    """The wrong size that a class stores and computes with; some store one that they never use."""
    case, facts = subject.cases.biased, subject.built.biased
    for name in filter(facts.sizes.__contains__, ATTRIBUTES):
        size, right = facts.sizes[name], getattr(case, name)
        wrong = type(size) is not int or size != right
        if wrong and not close(subject.out(case), subject.with_sizes(case, {name: right})):
            return next(constructor.stored(replace(facts, sizes={name: size}), case))
    return None


def _sized_otherwise(subject: Subject, blame: Blame | None, case: Case) -> Blame | None:
    """The same, or a size of the class's own name that is wrong: with another one all is right.

    Two may stand for each other; then the heads are not all that they decide.
    """
    walked, letters, cases = blame and blame.walked, case.letters, (case, subject.cases.main)
    sizes = walked.trace.sizes if walked else {}
    named = any(sizes.get(name, letters[name]) != letters[name] for name in SIZES)
    often = [name for name in sizes if named or _often(walked.trace.source, name)]
    tries = [{n: letter} for n in often for letter in SIZES if sizes[n] != letters[letter]]
    heads, size = ([n for n in sizes if sizes[n] == letters[letter]] for letter in SIZES[1::-1])
    pairs = [two for two in itertools.product(heads, size) if _stand_for_each_other(walked, *two)]
    for names in [*tries, *(dict(zip(pair, SIZES, strict=False)) for pair in pairs)]:
        own = ({n: each.letters[letter] for n, letter in names.items()} for each in cases)
        outs = itertools.starmap(subject.with_sizes, zip(cases, own, strict=True))
        if all(map(close, outs, map(subject.right, cases))):
            name, letter = next(iter(names.items()))
            values = {"name": f"self.{name}", "size": sizes[name], "needs": letter}
            place = set_at(walked, values["name"])
            return replace(blame, found=Difference(1, "size", None, place, values=values))
    return blame


def _often(source: str, name: str) -> bool:
    """Whether a size has another name, or is used twice, beside the line that sets it."""
    *_, last = re.findall(r"\w+", name)
    again = re.search(rf"\w = self\.{last}$", source, re.M)
    return again or len(re.findall(rf"[.'\"]{last}\b", source)) > 1 + ("." not in name)


def _stand_for_each_other(walked: Walk, one: str, other: str) -> bool:
    """Whether of two sizes more is made than heads, and no line gives one the other's name."""
    ops = (e for e, step in zip(walked.ops, walked.steps, strict=False) if step not in (3, 10))
    text = " ".join(op.place.expression for op in ops if op.place)
    first, last = (re.findall(r"\w+", name)[-1] for name in (one, other))
    crossed = {(last, f"self.{one}"), (first, f"self.{other}")}
    for node in ast.walk(parsed(walked.trace.source)):
        if isinstance(node, ast.Assign):
            two = [getattr(e, "elts", [e]) for e in (node.targets[0], node.value)]
            if crossed & {(ast.unparse(a), ast.unparse(b)) for a, b in zip(*two, strict=False)}:
                return False
    return first in text or last in text


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
    again = _sized_otherwise(subject, again, other) if blame and again else None
    if not again or not again.found or blame.found and blame.found.step == again.found.step:
        return ""
    return say("so_here", where=letters_of(case)).text


def _at_other_sizes(subject: Subject) -> Iterator[Finding]:
    """What is found at sizes that programs single out; it comes last: a slow class may leave it."""
    cases = subject.cases
    read = (replace(case, variant=subject.variant) for case in DROPPING)
    more = (case for case in (*read, *subject.named[0]) if takes(subject.cls, case))
    every = [*cases.sized, *cases.rare, *more]
    # A class from elsewhere may have a limit of its own, such as that of a cache's sequences.
    limited = is_adapted(subject.cls)
    fails = [e for e in every if limited and isinstance(subject.out(e), Failure)]
    if fails:
        yield say("raises_there", error=subject.out(fails[0]).text, where=letters_of(fails[0], ""))
    subject.cases = replace(cases, sized=tuple(e for e in cases.sized if e not in fails))
    tried = (case for case in every if case not in fails)
    other = [case for case in tried if not close(subject.out(case), subject.right(case))]
    if other:
        subject.found.add("outputs")
        far = stressed(subject, STRESSED[0])
        yield from [far] if far and far.kind != "remark" else _why(subject, other)
    yield from probed(subject, RARER)
