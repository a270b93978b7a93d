"""Judge a constructor: of a class in progress, of a finished one, of one with a variant."""

import functools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from torch import nn

from eleven_steps.checks.judge.say import Finding, letters, say
from eleven_steps.checks.judge.unmade import constructor_raised, step_of
from eleven_steps.checks.know.catalogue import MISTAKES, mistakes_of
from eleven_steps.checks.know.right import play
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.run.ask import Pass, ask, kind_of, once
from eleven_steps.checks.run.cases import (
    ADDED,
    BIASED,
    LAYERS,
    Case,
    cases_of,
    close,
    lecture_parameters,
)
from eleven_steps.checks.run.isolate import Failure
from eleven_steps.checks.run.making import ATTRIBUTES, Built, Facts, Shapes

QKV_BIASES = {f"{name}.bias" for name in LAYERS[:3]}


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
    failed = next(((b, each) for b, each in built.items() if isinstance(each, Failure)), None)
    return constructor_raised(cls, cases_of(variant).main, *failed) if failed else built


def faults(
    built: Built, variant: str = "", begun: bool | None = None, lacks: frozenset[str] = frozenset()
) -> Iterator[Finding]:
    """Yield what is wrong with what a constructor made, or still to come.

    Args:
        built: what it made.
        variant: the change since the lecture that it is to have.
        begun: of a class in progress, whether its forward has begun; None of a finished class.
        lacks: biases that it may lack.
    """
    facts = built[True]
    if facts.listed:
        yield say("layers_in_plain_list")
    elif finding := _absent(facts, variant, begun):
        yield finding
    else:
        yield from _layers(built, lacks)
        if begun is not None:
            alike = next(candidates(facts.shapes), None)
            if finding := misshapen(facts.shapes):
                yield say(alike) if alike and MISTAKES[alike].step <= 2 else finding
            yield from stored(facts)


def absent(built: Built, variant: str = "") -> list[str]:
    """The layers that are not there under their names, those of the variant last."""
    shapes = built[True].shapes
    lost = [name for name in LAYERS if f"{name}.weight" not in shapes]
    return lost + [name for name in _added(variant) if not shapes.keys() & {name, f"{name}.weight"}]


def _added(variant: str) -> list[str]:
    return [layer for change in variant.split(",") for layer in ADDED.get(change, ())]


def _absent(facts: Facts, variant: str, begun: bool | None) -> Finding | None:
    """Say which layers are missing, or still to come."""
    lost, found = absent({True: facts}, variant), ", ".join(facts.parameters[:12]) or "none"
    if not lost:
        return None
    if local := next((name for name in lost if name in facts.unkept), ""):
        return say("kept_nowhere", step_of({local}), name=local)
    if begun is None:
        return _lost(facts, variant, lost, found)
    if len(lost) == len(LAYERS):
        if facts.sizes and not facts.parameters:
            return next(stored(facts), say("sizes_kept"))
        return say("no_layers", found=found) if begun or facts.parameters else say("open")
    if lost != ["out_proj"]:
        return say("layers_to_come", these=" and no ".join(n for n in lost if n != "out_proj"))
    others = [n for n in facts.parameters if n.endswith(".weight") and n not in facts.shapes]
    renamed = others[0].removesuffix(".weight") if others and begun else ""
    return say("layer_renamed", 11, found=renamed) if renamed else None


def _lost(facts: Facts, variant: str, lost: list[str], found: str) -> Finding:
    """Say which layers a finished class has not, the lecture's before a variant's."""
    if not (layers := [name for name in lost if name in LAYERS]):
        added = " and ".join(_added(variant))
        return say("added_lost", lost=" and ".join(lost), layers=added, found=found)
    step = 11 if layers == ["out_proj"] else 2
    finding = say("layers_lost", step, lost=", ".join(layers), found=found)
    return finding if facts.parameters else replace(finding, kind="unfinished")


# What there is, and is not as it should be


def _layers(built: Built, lacks: frozenset[str]) -> Iterator[Finding]:
    """Hold layers that are shared or frozen, and biases against qkv_bias."""
    shapes, facts = {bias: each.shapes.keys() for bias, each in built.items()}, built[True]
    if facts.tied:
        those = " and ".join(facts.tied)
        yield say("weights_shared", those=those) if facts.alone else say("weights_tied")
    for two in (LAYERS[:2], LAYERS[2:]):
        if {*two} <= {*facts.zero}:
            yield say("both_zero", step_of(two[1:]), those=" and ".join(two))
    if facts.frozen:
        step = step_of(each.split(".")[0] for each in facts.frozen)
        yield say("frozen", step, those=", ".join(facts.frozen))
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


def odd_layer(shapes: Shapes, variant: str = "") -> str | None:
    """The first layer of another shape than the right one, the lecture's before others."""
    right = shapes_of(variant)[True]
    return next((each for each in right if shapes.get(each, right[each]) != right[each]), None)


def misshapen(shapes: Shapes, variant: str = "") -> Finding | None:
    """Describe the first layer of another shape than the right one, if there is one."""
    main, right = cases_of(variant).main, shapes_of(variant)[True]
    name = odd_layer(shapes, variant)
    if name is None:
        return None
    shape, step = shapes[name], step_of({name.split(".")[0]})
    if step == 11 and shape[-1] == main.head_dim:
        step = 10
    elif step == 2 and not variant and shape[0] == main.d_out * main.num_heads:
        step = 1
    return say("layer_shape", step, name=name, where=letters(main), shape=shape, right=right[name])


def stored(facts: Facts, case: Case = BIASED) -> Iterator[Finding]:
    """Yield what the constructor stores that is wrong, the first of its sizes first."""
    head_dim = facts.sizes.get("head_dim", case.head_dim)
    sizes = {"d_out": case.d_out, "num_heads": case.num_heads}
    if isinstance(head_dim, float):
        yield say("head_dim_float", size=head_dim)
    elif head_dim == case.d_out:
        yield say("head_dim_not_divided")
    elif head_dim == case.d_in // case.num_heads:
        yield say("head_dim_from_d_in")
    for name in (*reversed(ATTRIBUTES), "dropout"):
        size, right = facts.sizes.get(name), getattr(case, name, 0.0)
        if size not in (None, right):
            other = "head_dim_other" if name == "head_dim" else "size_other"
            step = 7 if name == "dropout" else None
            yield say(other, step, name=name, size=size, right=right, **sizes)
    if facts.dropout in ("float", "int", "type"):
        what = wording("a_class_alone" if facts.dropout == "type" else "a_number")
        yield say("no_dropout_layer", what=what)


def parts_to_come(facts: Facts) -> Finding | None:
    """Say what the constructor has not yet, where forward is still open; None if it has all."""
    lacking = [name for name in ATTRIBUTES if name not in facts.sizes]
    lacking += [] if "out_proj.weight" in facts.shapes else ["out_proj"]
    lacking += [] if facts.dropout else ["dropout"]
    lacking += [] if facts.mask else ["mask (context_length, context_length)"]
    return say("parts_to_come", these=", no ".join(lacking)) if lacking else None


def missized(cls: Any, facts: Facts, variant: str = "") -> Finding | None:
    """The wrong size that a class stores and computes with, if there is one.

    It is set right, and what comes out has to change: some store a size that they never use.
    """
    case = cases_of(variant).biased
    for name in ATTRIBUTES:
        size, right = facts.sizes.get(name), getattr(case, name)
        if size is None or type(size) is int and size == right:
            continue
        passes = Pass(), Pass(stored={name: right})
        wrong, mended = (once(cls, case, each)[0].out for each in passes)
        if not close(wrong, mended):
            return next(stored(replace(facts, sizes={name: size}), case))
    return None


# Shapes of the catalogue's constructors


def candidates(shapes: Shapes, variant: str = "") -> Iterator[str]:
    """Yield the catalogued mistakes whose layers have these shapes, biases aside."""
    yield from (name for name in mistakes_of(variant) if alike_in_shape(name, shapes, variant))


def alike_in_shape(name: str, shapes: Shapes, variant: str = "") -> bool:
    """Whether the layers of a mistake have these shapes, biases aside.

    A mistake of the biases themselves is seen in the constructor, and is none of them.
    """
    planted, right = shapes_of(variant, name), shapes_of(variant)
    weights = {each: shape for each, shape in shapes.items() if not each.endswith(".bias")}
    same = planted.keys() == right.keys() and all(
        planted[bias].keys() == right[bias].keys() for bias in right
    )
    return same and weights.items() <= planted[True].items()


@functools.cache
def shapes_of(variant: str, *mistakes: str) -> dict[bool, Shapes]:
    """Shapes of the right class's layers by name, or of one with mistakes, by qkv_bias.

    What cannot be built is left out.
    """
    main = cases_of(variant).main
    modules = {bias: play(replace(main, qkv_bias=bias), *mistakes).module for bias in (False, True)}
    return {
        bias: {name: tuple(p.shape) for name, p in lecture_parameters(module, variant).items()}
        for bias, module in modules.items()
        if isinstance(module, nn.Module)
    }
