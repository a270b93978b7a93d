"""Find out whether a class is causal multi-head attention, and if not, what is wrong."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from eleven_steps.checks.adapt.adapted import lacking, takes
from eleven_steps.checks.judge.constructor import (
    absent,
    candidates,
    constructed,
    faults,
    misshapen,
    missized,
    odd_layer,
    unset,
)
from eleven_steps.checks.judge.differ import blamed
from eleven_steps.checks.judge.dropping import DROPPING
from eleven_steps.checks.judge.match import SIZED, Outputs, look_up, single
from eleven_steps.checks.judge.probes import PROBES, RARER, STRESSED, probed, stressed
from eleven_steps.checks.judge.say import Finding, Outcome, letters, say, verdict
from eleven_steps.checks.judge.tell import told
from eleven_steps.checks.run.ask import is_remote
from eleven_steps.checks.run.cases import LAYERS, TASK_CASES, cases_of, close, drawn
from eleven_steps.checks.run.isolate import Failure, TimeUp, isolated

SECONDS = 3.0


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
        return verdict(findings)


def examine(cls: Any, variant: str = "") -> Iterator[Finding]:
    """Yield everything that is wrong with a class, and remarks on one that is right."""
    built = constructed(cls, variant)
    if isinstance(built, Finding):
        yield built
        return
    yield from faults(built, variant, lacks=lacking(cls))
    if lost := absent(built, variant):
        yield from _earlier(cls, variant) if lost == ["out_proj"] else ()
        return
    outputs = Outputs(cls, built, variant)
    out = outputs.out(outputs.cases.main)
    if isinstance(out, Failure) and (finding := unset(out, built[True])):
        yield finding
        return
    odd = misshapen(outputs.shapes, variant)
    if not odd and (finding := missized(cls, built[True], variant)):
        yield finding
        return
    wrong = list(_shapes(outputs) if odd else _outputs(outputs))
    yield from wrong
    if wrong:
        outputs.found.add("outputs")
    yield from probed(outputs, PROBES)
    if not outputs.found:
        try:
            yield from _at_other_sizes(outputs)
        except TimeUp:
            yield say("not_all_tried")


def _earlier(cls: Any, variant: str) -> Iterator[Finding]:
    """What goes wrong in a forward before the out_proj that is not there."""
    blame = blamed(cls, cases_of(variant).main)
    if blame and blame.found and blame.found.step < 11 and not blame.raised:
        yield told(blame)


def _shapes(outputs: Outputs) -> Iterator[Finding]:
    """Name the mistake where a layer has another shape."""
    names = []
    if odd_layer(outputs.shapes, outputs.variant).startswith(LAYERS):
        names = list(candidates(outputs.shapes, outputs.variant))
    name = names and (single(outputs) or (names[0] if len(names) == 1 else ""))
    yield say(name) if name else misshapen(outputs.shapes, outputs.variant)


# What forward returns in eval mode


def _outputs(outputs: Outputs) -> Iterator[Finding]:
    """Compare the outputs; name the mistakes or find the step."""
    every, main, simple = outputs.cases.every, outputs.cases.main, outputs.cases.simpler[0]
    second = TASK_CASES[SIZED]  # its weights are drawn anew, also a bias that is not there
    if not outputs.variant and not outputs.plain(second).without:
        every = (*every, second)
    returned = outputs.seen(main)
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
    cases = (*every, drawn(main)[0]) if is_remote(outputs.cls) else every
    other = [each for each in cases if not close(outputs.out(each), outputs.right_output(each))]
    if other:
        yield from look_up(outputs, other)
    elif not close(out := outputs.out(simple), outputs.right_output(simple)):
        normed = {"norm", "linear"} & {*outputs.changes}
        divided = normed and isinstance(out, torch.Tensor) and out.isnan().any()
        yield say("norm_of_zero" if divided else "zero_scores")


# What comes last, since a slow class may leave it out


def _at_other_sizes(outputs: Outputs) -> Iterator[Finding]:
    """Compare outputs at sizes that programs single out, and ask RARER of a class that is right."""
    yield from _left_out(outputs)
    read = (replace(each, variant=outputs.variant) for each in DROPPING)
    cases = [*outputs.cases.sized, *outputs.cases.rare, *(e for e in read if takes(outputs.cls, e))]
    other = [each for each in cases if not close(outputs.out(each), outputs.right_output(each))]
    if other:
        outputs.found.add("outputs")
        far = stressed(outputs, STRESSED[0])
        yield from [far] if far and far.kind != "remark" else look_up(outputs, other)
    yield from probed(outputs, RARER)


def _left_out(outputs: Outputs) -> Iterator[Finding]:
    """Leave out the sizes at which a class from elsewhere raises, and say so."""
    cases = outputs.cases
    if not hasattr(outputs.cls, "places"):
        return
    fails = [e for e in (*cases.sized, *cases.rare) if isinstance(outputs.out(e), Failure)]
    some = (tuple(e for e in each if e not in fails) for each in (cases.sized, cases.rare))
    outputs.cases = replace(cases, **dict(zip(("sized", "rare"), some, strict=True)))
    if fails:
        where = f"b = {fails[0].b}, {letters(fails[0])}"
        yield say("raises_there", error=outputs.out(fails[0]).text, where=where)
