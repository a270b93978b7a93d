"""Say how far a class comes that is filled in step by step, and what is wrong with it.

Its forward returns whatever its last line so far computes. That is looked up among what the eleven
steps of the right class record, and then among what the classes of the catalogue record. A class
that returns the output is judged as check_attention judges it.
"""

from collections.abc import Iterator
from typing import Any

import torch

from helpers.checks.cases import BIASED, LAYERS, PLACES, close
from helpers.checks.classes import (
    examine,
    layer_findings,
    named,
    no_module_class,
    not_constructed,
    shape_finding,
)
from helpers.checks.dropout import CASE, SHARE, judge_weights
from helpers.checks.failing import failing_step
from helpers.checks.follow import Followed, follow
from helpers.checks.isolate import Failure
from helpers.checks.match import candidates
from helpers.checks.mistakes import MISTAKES
from helpers.checks.observe import Facts, Pass, Record, Seen, ask, once
from helpers.checks.outcome import Finding, Outcome
from helpers.checks.related import related
from helpers.checks.right import Scene, play
from helpers.checks.sentences import dropped, from_notebook, legend
from helpers.trace import SHAPES, STEPS

Said = tuple[str, str, str | None]
PARTS = ("d_out", "num_heads", "head_dim")


def judge_class(identifier: str, cls: Any) -> Outcome:
    """Return what check says of a class in progress."""
    kind, message, mistake = _how_far(cls)
    return Outcome(identifier, kind, message, mistakes=(mistake,) if mistake else ())


def _how_far(cls: Any) -> Said:
    """Return the kind of outcome, its message and the known mistake, if it is one."""
    if odd := no_module_class(cls):
        return "type", f"{odd.text} A class built on `nn.Module` is expected.", None
    built = {bias: ask(cls, "facts", bias) for bias in (True, False, None)}
    if failed := next((each for each in built.values() if isinstance(each, Failure)), None):
        return _told(not_constructed(failed), "error")
    facts = built[True]
    seen = [once(cls, case, Pass())[0] for case in PLACES]
    if said := _constructor(facts, built, seen[0]):
        return said
    if all(each.kind == "open" for each in seen):
        return _begun(facts)
    return _returned(cls, facts, seen)


def _told(found: Finding, kind: str = "mistake") -> Said:
    step = f"step {found.step}: " if found.step else ""
    return "mistake" if found.mistake else kind, f"{step}{found.text}", found.mistake


# The constructor


def _constructor(facts: Facts, built: dict, seen: Seen) -> Said | None:
    """Return what is wrong with the layers, or what is not there yet."""
    have = [name for name in LAYERS if f"{name}.weight" in facts.shapes]
    if facts.listed:
        return _told(named("layers_in_plain_list"))
    if not have:
        if seen.kind == "open" and not facts.parameters:
            return "unfinished", "not answered yet.", None
        found = ", ".join(facts.parameters[:6]) or "none"
        text = f"the layers are expected under the names {', '.join(LAYERS)}; found are: {found}."
        return "so far", text, None
    if lacking := [name for name in LAYERS[:3] if name not in have]:
        return "so far", f"the constructor has no layer {' and no '.join(lacking)} yet.", None
    if found := next(layer_findings(built), None):
        return _told(found, "value")
    module = play(BIASED).module
    right = {name: tuple(each.shape) for name, each in module.named_parameters()}
    right = {name: shape for name, shape in right.items() if name in facts.shapes}
    if facts.shapes != right:
        alike = candidates(facts.shapes)
        if alike:
            return _told(named(alike[0]))
        said = _told(shape_finding(facts.shapes, right), "shape")
        return said[0], said[1].replace("W_", "`W_", 1).replace(".weight", ".weight`", 1), said[2]
    return next(_misbuilt(facts), None)


def _misbuilt(facts: Facts) -> Iterator[Said]:
    """What the constructor stores that is wrong."""
    case, sizes = BIASED, facts.sizes
    if isinstance(sizes.get("head_dim"), float):
        text = f"self.head_dim is {sizes['head_dim']}, a float: `d_out // num_heads` is whole."
        yield "value", f"step 1: {text}", None
    elif sizes.get("head_dim", case.head_dim) != case.head_dim:
        known = {
            case.d_out: "head_dim_not_divided",
            case.d_in // case.num_heads: "head_dim_from_d_in",
        }
        if name := known.get(sizes["head_dim"]):
            yield _told(named(name))
        else:
            text = f"self.head_dim is {sizes['head_dim']} where d_out = {case.d_out} and num_heads"
            yield "value", f"step 1: {text} = {case.num_heads}: {case.head_dim} is expected.", None
    for name in ("d_out", "num_heads"):
        if sizes.get(name, getattr(case, name)) != getattr(case, name):
            text = f"step 1: self.{name} is {sizes[name]}: {getattr(case, name)} was handed over."
            yield "value", text, None
    if facts.dropout in ("float", "int"):
        text = "self.dropout is a number: keep a layer, `nn.Dropout(dropout)`, that knows when the "
        yield "value", f"step 7: {text}module is in training.", None
    if facts.mask == "attribute":
        yield _told(named("mask_not_registered"))
    if facts.mask == "trained":
        text = "step 6: the mask is a parameter and would learn: use `self.register_buffer`."
        yield "value", text, None


def _begun(facts: Facts) -> Said:
    """Say what the constructor has, where forward is still open."""
    lacking = [name for name in PARTS if name not in facts.sizes]
    lacking += [] if "out_proj.weight" in facts.shapes else ["out_proj"]
    lacking += [] if facts.dropout else ["dropout"]
    lacking += [] if facts.mask else ["mask (context_length, context_length)"]
    if lacking:
        return (
            "so far",
            f"the layers are right. The constructor has no {', no '.join(lacking)} yet.",
            None,
        )
    return _reached(1)


def _reached(number: int) -> Said:
    """Say that the steps up to number are right, and what comes next."""
    so_far = f"steps 1 to {number} are right" if number > 1 else "the constructor is right"
    name = STEPS[number]
    return "so far", f"{so_far}. Next is step {number + 1}, {name}: {SHAPES[name]}.", None


# What forward returns


def _returned(cls: Any, facts: Facts, seen: list[Seen]) -> Said:
    scenes = [play(case) for case in PLACES]
    used = ask(cls, "readings")
    used = {} if isinstance(used, Failure) else used
    advice = dropped(used)
    if all(each.kind == "none" for each in seen):
        return _nothing(cls, advice)
    for number, step in reversed(list(enumerate(STEPS[1:], start=2))):
        if all(_same(*each) for each in zip(seen, scenes, [step] * len(seen), strict=True)):
            if number == len(STEPS):
                return _finished(cls)
            if number >= 7 and (fault := _dropout(cls, number)):
                return fault
            kind, text, mistake = _reached(number)
            return kind, text + advice, mistake
    kind, text, mistake = _known(seen) or _followed(cls, facts, seen, scenes)
    if used.get("names") and not mistake:
        advice += f" forward reads {from_notebook(used)}: work with self and x."
    return kind, text + advice, mistake


def _same(seen: Seen, scene: Scene, step: str) -> bool:
    """Whether the parts are the tensors of a step; a failure, what stopped the scene's class."""
    if isinstance(seen.out, Failure) and not seen.parts:
        return (
            step not in scene.steps
            and scene.failure is not None
            and (scene.failure.text == seen.out.text)
        )
    right = tuple(scene.steps.get(step, {}).values())
    return len(seen.parts) == len(right) and all(
        isinstance(one, torch.Tensor)
        and one.dtype == two.dtype
        and close(one, two)
        and not two.isnan().all()
        for one, two in zip(seen.parts, right, strict=True)
    )


def _nothing(cls: Any, advice: str) -> Said:
    """forward returns None: say so, and how far what it computes is right."""
    text = "your forward returns nothing: end it with `return`."
    record = ask(cls, "record", BIASED)
    way = Followed(record, BIASED) if isinstance(record, Record) else None
    number = 1
    while (
        way
        and number < len(STEPS)
        and all(way.reached(STEPS[number], name) for name in way.right[STEPS[number]])
    ):
        number += 1
    if number > 1:
        text += f" What it computes is right up to step {number}, {STEPS[number - 1]}."
    return "type", text + advice, None


def _finished(cls: Any) -> Said:
    """All eleven steps are there: what check_attention says."""
    found = [each for each in examine(cls) if isinstance(each, Finding)]
    if not found:
        return "right", "all eleven steps are right, in training and on other devices too.", None
    first = min(found, key=lambda each: each.step or len(STEPS) + 1)
    return _told(first, "value")


def _dropout(cls: Any, number: int) -> Said | None:
    """What training shows of step 7 in what a later step returns."""
    passes = [Pass(train=train, seed=seed) for train, seed in ((False, 1), (True, 2), (True, 3))]
    still, first, second = once(cls, CASE, *passes, dropout=SHARE)
    if isinstance(first.out, Failure) or first.out.shape != still.out.shape:
        return None
    if close(first.out, still.out):
        return _told(named("dropout_missing"))
    if first.out.isnan().any():  # a dropped -inf is NaN
        return _told(named("dropout_on_scores"))
    if number > 7:
        return None
    told = judge_weights(first.out, second.out, still.out)
    return _told(named(told) if told in MISTAKES else Finding(7, told), "value") if told else None


def _known(seen: list[Seen]) -> Said | None:
    """Return the first mistake whose class records, at some step, what was returned everywhere."""
    found = []
    for identifier in MISTAKES:
        scenes = [play(case, identifier) for case in PLACES]
        for step in STEPS:
            if all(_same(*each) for each in zip(seen, scenes, [step] * len(seen), strict=True)):
                found.append(identifier)
                break
    # Several mistakes may raise the same error; equal numbers are no such accident.
    raised = any(isinstance(each.out, Failure) for each in seen)
    sure = len(found) == 1 or found and not raised
    if not sure:
        return None
    known = MISTAKES[found[0]]
    return "mistake", f"step {known.step}: {known.told}", found[0]


def _followed(cls: Any, facts: Facts, seen: list[Seen], scenes: list[Scene]) -> Said:
    """Describe what was returned where no class of the catalogue returns it."""
    right = [
        any(_same(one, scene, step) for step in STEPS)
        for one, scene in zip(seen, scenes, strict=True)
    ]
    at = right.index(False) if False in right else 0
    if isinstance(seen[at].out, Failure) and isinstance(seen[2].out, Failure):
        at = 2  # where all sizes differ
    here, where = seen[at], scenes[at].case.where
    record = ask(cls, "record", BIASED)
    way = Followed(record, BIASED) if isinstance(record, Record) else None
    if isinstance(here.out, Failure) and not here.parts:
        step = f"step {failing_step(way, here.out)}: " if way and way.record.failing else ""
        line = f", in the line `{here.out.line}`" if here.out.line else ""
        told = legend(here.out.text, scenes[at].case)
        return "error", f"{step}your forward raises {here.out.text} {where}{line}.{told}", None
    if not here.parts or not all(isinstance(part, torch.Tensor) for part in here.parts):
        came = ", ".join(p if isinstance(p, str) else "a tensor" for p in here.parts)
        return "type", f"your forward returns {came}: the tensors of a step are expected.", None
    came = [tuple(part.shape) for part in here.parts]
    steps = scenes[at].steps.items()
    alike = [STEPS.index(s) + 1 for s, t in steps if came == [tuple(e.shape) for e in t.values()]]
    said = f"your forward returns {', '.join(map(str, came))} {where}"
    if not alike:
        said += ", and no step does. Steps 2 to 4 end with `return queries, keys, values`, the "
        return "shape", said + "later ones with one tensor.", None
    if any(part.isnan().any() for part in here.parts):
        return "nan", f"what your forward returns holds NaN {where}.", None
    found = follow(way) if way else None
    if found and found.step and found.step <= max(alike):
        return _told(found, "value")
    if len(here.parts) == 1:
        for number in alike:
            (wanted,) = scenes[at][STEPS[number - 1]].values()
            if like := related(STEPS[number - 1], here.parts[0], wanted, scenes[at]):
                step = f"step {number}: what forward returns is not yet {STEPS[number - 1]}."
                return "value", step + like, None
    shaped = " or ".join(f"{number} ({STEPS[number - 1]})" for number in alike)
    said += f", as step {shaped} does, but other numbers. Return an earlier step's "
    return "value", said + "tensors to see how far they are right.", None
