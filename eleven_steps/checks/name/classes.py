"""Find out whether a class is causal multi-head attention, and if not, what is wrong."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from eleven_steps.checks.adapt.adapted import lacking
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.name.extremes import judge_long, stressed
from eleven_steps.checks.name.locate.failing import worded_step
from eleven_steps.checks.name.locate.follow import follow
from eleven_steps.checks.name.locate.recording import Recording
from eleven_steps.checks.name.match import Outputs, candidates, look_up, shapes_of, single
from eleven_steps.checks.name.modes import (
    judge_devices,
    judge_dtypes,
    judge_gradients,
    judge_state,
    judge_training,
)
from eleven_steps.checks.name.say import Finding, Outcome, letters, say, together, verdict
from eleven_steps.checks.run.ask import ask, is_remote, kind_of
from eleven_steps.checks.run.cases import ADDED, LAYERS, cases_of, close, drawn
from eleven_steps.checks.run.contract import signature
from eleven_steps.checks.run.facts import Built, Record, Shapes
from eleven_steps.checks.run.isolate import Failure, TimeUp, isolated

SECONDS = 3.0
ORDER = ["d_in", "d_out", "context_length", "dropout", "num_heads"]
QKV_BIASES = {f"{name}.bias" for name in LAYERS[:3]}


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
    if lost := [name for name in LAYERS if f"{name}.weight" not in built[True].shapes]:
        yield from _lost(cls, built, lost, variant)
        return
    if finding := _added_lost(built, variant):
        yield finding
        return
    wrong = False
    for finding in layer_findings(built, lacking(cls)):
        wrong = True
        yield finding
    outputs = Outputs(cls, built, variant)
    questions = [
        _outputs,
        judge_gradients,
        judge_training,
        judge_state,
        judge_dtypes,
        judge_devices,
        judge_long,
    ]
    if misshapen(outputs.shapes, variant):
        questions = [_shapes, judge_state, judge_devices]
    for question in questions:
        findings = list(question(outputs, wrong))
        wrong = wrong or bool(findings)
        yield from findings


# The constructor


def constructed(cls: Any, variant: str = "") -> Built | Finding:
    """What the constructor makes with qkv_bias on, off and left out, or why it makes nothing."""
    sort, name = kind_of(cls)
    if sort == "module":
        return say("built_already")
    if sort == "class":
        return say("no_module", name=name)
    if sort != "module class":
        return say("no_class", name=name or "NoneType")
    built = {bias: ask(cls, "facts", bias, variant) for bias in (True, False, None)}
    failed = next((each for each in built.values() if isinstance(each, Failure)), None)
    if failed is None:
        return built
    names = ask(cls, "parameters")
    if not isinstance(names, Failure) and names[:5] != ORDER and sorted(names[:5]) == sorted(ORDER):
        return say("other_order", names=", ".join(names[:5]))
    if "Module.__init__()" in failed.text or "_modules" in failed.text:
        return say("no_super_init")
    if failed.text.startswith("TypeError") and "argument" in failed.text:
        return say("other_signature", signature=signature(variant), error=failed.text)
    if "dropout probability" in failed.text:
        return say("other_arguments", signature=signature(variant), error=failed.told)
    return say("constructor_raises", worded_step(failed), error=failed.told)


def _lost(cls: Any, built: Built, lost: list[str], variant: str) -> Iterator[Finding]:
    """Say which layers are missing."""
    if built[True].listed:
        yield say("layers_in_plain_list")
        return
    only_last = lost == ["out_proj"]
    have = ", ".join(built[True].parameters)
    finding = say("layers_lost", 11 if only_last else 2, lost=", ".join(lost), found=have or "none")
    if local := next((name for name in lost if name in built[True].unkept), ""):
        hint = wording("self_not_kept", name=local)
        finding = replace(finding, text=together(finding.text, hint))
    yield finding if have else replace(finding, kind="unfinished")
    main = cases_of(variant).main
    record = ask(cls, "record", main) if only_last else None
    if isinstance(record, Record) and not isinstance(record.seen.out, Failure):
        earlier = follow(Recording(record, main))
        if earlier and earlier.step < 11:
            yield earlier


def _added_lost(built: Built, variant: str) -> Finding | None:
    """Say which layers of a change are missing."""
    facts, added = built[True], ADDED.get(variant, ())
    lost = [name for name in added if not facts.shapes.keys() & {name, f"{name}.weight"}]
    if not lost:
        return None
    layers, have = " and ".join(added), ", ".join(facts.parameters)
    return say("added_lost", lost=" and ".join(lost), layers=layers, found=have)


def layer_findings(built: Built, lacks: frozenset[str] = frozenset()) -> Iterator[Finding]:
    """Hold layers that are shared, and biases against qkv_bias, but those that it may lack."""
    shapes = {bias: facts.shapes.keys() for bias, facts in built.items()}
    if built[True].tied:
        yield say("weights_tied")
    missing, extra = QKV_BIASES - shapes[True] - lacks, QKV_BIASES & shapes[False]
    for biases, every, some in (
        (missing, "bias_missing", "some_biases_missing"),
        (extra, "bias_always", "some_biases_always"),
    ):
        if biases:
            name = every if biases == QKV_BIASES else some
            yield say(name, those=", ".join(sorted(biases)))
    if not extra and QKV_BIASES & shapes[None]:
        yield say("bias_by_default")
    without = [bias for bias in (True, False) if "out_proj.bias" not in shapes[bias]]
    if without and "out_proj.weight" in shapes[True]:
        yield say("out_proj_without_bias" if len(without) == 2 else "out_proj_bias_from_qkv")


def odd_layer(shapes: Shapes, variant: str) -> str | None:
    """The first layer of another shape than the right one, the lecture's before others."""
    right = shapes_of(variant)[True]
    return next((each for each in right if shapes.get(each, right[each]) != right[each]), None)


def misshapen(shapes: Shapes, variant: str = "") -> Finding | None:
    """Describe the first layer of another shape than the right one, if there is one."""
    main, right = cases_of(variant).main, shapes_of(variant)[True]
    name = odd_layer(shapes, variant)
    if name is None:
        return None
    shape, step = shapes[name], 2
    if name.startswith("out_proj"):
        step = 10 if shape[-1] == main.head_dim else 11
    elif name.startswith(("W_gate", "context_norm")):
        step = 10
    elif "index" in name:
        step = 6
    elif not variant and shape[0] == main.d_out * main.num_heads:
        step = 1
    return say("layer_shape", step, name=name, where=letters(main), shape=shape, right=right[name])


def _shapes(outputs: Outputs, wrong: bool) -> Iterator[Finding]:
    """Name the mistake where a layer has another shape."""
    names = []
    if odd_layer(outputs.shapes, outputs.variant).startswith(LAYERS):
        names = list(candidates(outputs.shapes, outputs.variant))
    name = names and (single(outputs) or (names[0] if len(names) == 1 else ""))
    yield say(name) if name else misshapen(outputs.shapes, outputs.variant)


# What forward returns in eval mode


def _outputs(outputs: Outputs, wrong: bool) -> Iterator[Finding]:
    """Compare the outputs; name the mistakes or find the step."""
    every, main, simple = outputs.cases.every, outputs.cases.main, outputs.cases.simpler[0]
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
        normed = outputs.variant in ("norm", "linear")
        divided = normed and isinstance(out, torch.Tensor) and out.isnan().any()
        yield say("norm_of_zero" if divided else "zero_scores")
    elif not outputs.variant:
        yield from stressed(outputs)
