"""Judge a constructor: of a class in progress, of a finished one, of one with a variant."""

import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from eleven_steps.checks.judge.say import Finding, letters_of, like, meant, say
from eleven_steps.checks.know.catalogue import MISTAKES, mistakes_of
from eleven_steps.checks.know.right import play
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.run.ask import ask, kind_of
from eleven_steps.checks.run.cases import BIASED, LAYERS, Case, cases_of, lecture_parameters
from eleven_steps.checks.run.contract import signature
from eleven_steps.checks.run.isolate import Failure
from eleven_steps.checks.run.making import ATTRIBUTES, Built, Facts, Shapes
from eleven_steps.checks.run.variant import ADDED, LECTURE, Variant

QKV_BIASES = {f"{name}.bias" for name in LAYERS[:3]}
ORDER = ["d_in", "d_out", "context_length", "dropout", "num_heads"]
# The step of a statement by what it builds: an attribute, or whatever is called for it.
BUILDS = (
    (2, {*LAYERS[:3], "query_norm", "key_norm", "sinks", "W_down", "latent_norm"}),
    (11, {"out_proj"}),
    (10, {"W_gate", "context_norm"}),
    (6, {*ADDED["topk"]}),
    (7, {"Dropout", "dropout"}),
    (6, {"register_buffer", "buffer", "mask", "triu", "tril", "ones", "full"}),
    (2, {"Linear"}),
)
NOWHERE = {"builds": [], "lacks": ("", ""), "later": [], "has": [], "supers": False}
NAMESPACES = {"torch": torch, "torch.nn": nn, "torch.nn.functional": nn.functional}


def constructed(cls: Any, variant: Variant = LECTURE) -> Built | Finding:
    """What the constructor makes with qkv_bias on, off and left out, or why it makes nothing."""
    sort, name = kind_of(cls)
    if sort == "module":
        return say("built_already")
    if sort == "class":
        return say("no_module", name=name)
    if sort != "module class":
        return say("no_class", name=name or "NoneType")
    made = {bias: ask(cls, "facts", bias, variant) for bias in (True, False, None)}
    failed = next(((bias, e) for bias, e in made.items() if isinstance(e, Failure)), None)
    main = cases_of(variant).main
    return constructor_raised(cls, main, *failed) if failed else Built(*made.values())


def faults(
    built: Built,
    variant: Variant = LECTURE,
    begun: bool | None = None,
    lacks: frozenset[str] = frozenset(),
) -> Iterator[Finding]:
    """Yield what is wrong with what a constructor made, or still to come.

    begun says of a class in progress whether its forward has begun, and is None of a finished one;
    lacks are biases that it may lack.
    """
    facts = built.biased
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


def absent(facts: Facts, variant: Variant = LECTURE) -> list[str]:
    """The layers that are not there under their names, those of the variant last."""
    shapes = facts.shapes
    lost = [name for name in LAYERS if f"{name}.weight" not in shapes]
    return lost + [name for name in variant.layers if not shapes.keys() & {name, f"{name}.weight"}]


def _absent(facts: Facts, variant: Variant, begun: bool | None) -> Finding | None:
    lost, found = absent(facts, variant), ", ".join(facts.parameters[:12]) or "none"
    if not lost:
        return None
    own = next(iter(facts.local_names.values()), ())  # by the module's own constructor
    if local := next((name for name in lost if name in own), ""):
        return say("kept_nowhere", step_of({local}), name=local)
    if begun is None:
        return _lost(facts, variant, lost, found)
    if len(lost) == len(LAYERS):
        if facts.sizes and not facts.parameters:
            return next(stored(facts), say("sizes_kept"))
        return say("no_layers", found=found) if begun or facts.parameters else say("open")
    these = " and no ".join(name for name in lost if name != "out_proj")
    return say("layers_to_come", these=these) if these else None


def _lost(facts: Facts, variant: Variant, lost: list[str], found: str) -> Finding:
    if not (layers := [name for name in lost if name in LAYERS]):
        layers = " and ".join(variant.layers)
        return say("added_lost", lost=" and ".join(lost), layers=layers, found=found)
    step = 11 if layers == ["out_proj"] else 2
    finding = say("layers_lost", step, lost=", ".join(layers), found=found)
    return finding if facts.parameters else replace(finding, kind="unfinished")


# What there is, and is not as it should be


def _layers(built: Built, lacks: frozenset[str]) -> Iterator[Finding]:
    facts, names = built.biased, Built(*(made.shapes.keys() for made in built))
    if facts.tied:
        those = " and ".join(facts.tied)
        yield say("weights_shared", those=those) if facts.alone else say("weights_tied")
    for two in (LAYERS[:2], LAYERS[2:]):
        if {*two} <= {*facts.zero}:
            yield say("both_zero", step_of(two[1:]), those=" and ".join(two))
    if facts.frozen:
        step = step_of(parameter.split(".")[0] for parameter in facts.frozen)
        yield say("frozen", step, those=", ".join(facts.frozen))
    missing, extra = QKV_BIASES - names.biased - lacks, QKV_BIASES & names.plain
    for biases, every, some in (
        (missing, "bias_missing", "some_biases_missing"),
        (extra, "bias_always", "some_biases_always"),
    ):
        if biases:
            name = every if biases == QKV_BIASES else some
            yield say(name, those=", ".join(sorted(biases)))
    if not extra and QKV_BIASES & names.by_default:
        yield say("bias_by_default")
    has = ["out_proj.bias" in some for some in (names.biased, names.plain)]
    if not all(has) and "out_proj.weight" in names.biased:
        yield say("out_proj_bias_from_qkv" if any(has) else "out_proj_without_bias")


def odd_layer(shapes: Shapes, variant: Variant = LECTURE) -> str | None:
    """The first layer of another shape than the right one, the lecture's before others."""
    right = shapes_of(cases_of(variant).biased)
    return next((name for name in right if shapes.get(name, right[name]) != right[name]), None)


def misshapen(shapes: Shapes, variant: Variant = LECTURE) -> Finding | None:
    """Describe the first layer of another shape than the right one, if there is one."""
    main, right = cases_of(variant).main, shapes_of(cases_of(variant).biased)
    name = odd_layer(shapes, variant)
    if name is None:
        return None
    shape, step = shapes[name], step_of({name.split(".")[0]})
    if step == 11 and shape[-1] == main.head_dim:
        step = 10
    elif step == 2 and not variant and shape[0] == main.d_out * main.num_heads:
        step = 1
    values = {"where": letters_of(main), "shape": shape, "right": right[name]}
    return say("layer_shape", step, name=name, **values)


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


# Shapes of the catalogue's constructors


def candidates(shapes: Shapes, variant: Variant = LECTURE) -> Iterator[str]:
    """Yield the catalogued mistakes whose layers have these shapes, biases aside."""
    yield from (name for name in mistakes_of(variant) if alike_in_shape(name, shapes, variant))


def alike_in_shape(name: str, shapes: Shapes, variant: Variant = LECTURE) -> bool:
    """Whether the layers of a mistake have these shapes, biases aside.

    A mistake of the biases themselves is seen in the constructor, and is none of them.
    """
    for case in (cases_of(variant).main, cases_of(variant).biased):
        planted = shapes_of(case, name)
        if planted.keys() != shapes_of(case).keys():
            return False
    weights = {n: shape for n, shape in shapes.items() if not n.endswith(".bias")}
    return weights.items() <= planted.items()


@functools.cache
def shapes_of(case: Case, *mistakes: str) -> Shapes:
    """Shapes of the right class's layers by name, or of one with mistakes; none if not built."""
    module = play(case, *mistakes).module
    if not isinstance(module, nn.Module):
        return {}
    return {n: tuple(p.shape) for n, p in lecture_parameters(module, case.variant).items()}


# Why it makes nothing, in the learner's own line


def constructor_raised(cls: Any, case: Case, bias: bool | None, failure: Failure) -> Finding:
    """Say what a constructor raises in its own line, at the step of what that line builds."""
    names = ask(cls, "parameters")
    names = [] if isinstance(names, Failure) else names
    if len(names) > 4 and any(n in names and names.index(n) != i for i, n in enumerate(ORDER)):
        return say("other_order", names=", ".join(names[:5]))
    if not failure.number:  # none of its lines had begun
        return say("other_signature", signature=signature(case.variant), error=failure.text)
    at = ask(cls, "statement", case, bias)
    at = NOWHERE if isinstance(at, Failure) else NOWHERE | at
    if "Module.__init__()" in failure.text or "'_modules'" in failure.text:
        return say("super_init_late" if at["supers"] else "no_super_init")
    step = step_of(at["builds"])
    hint = _hint(failure, at, names, case)
    return say("constructor_raises", step, error=failure.text, line=in_line(failure), hint=hint)


def step_of(builds: Iterable[str]) -> int:
    """The step of what a statement builds; the first, of the sizes, where that is no part."""
    builds = {*builds}
    return next((step for step, names in BUILDS if names & builds), 1)


def in_line(failure: Failure) -> str:
    """The line that raised, as a clause; empty where its text is not known."""
    return wording("in_the_line", line=failure.line) if failure.line else ""


def _hint(failure: Failure, at: dict[str, Any], names: list[str], case: Case) -> str:
    name, owner = at["lacks"]
    if name and owner in NAMESPACES:
        near = meant(name, dir(NAMESPACES[owner]))
        return wording("no_such_in", name=name, owner=owner, near=near)
    if name and owner in ("self", "") and name in at["later"]:
        return wording("set_later", name=f"self.{name}" if owner == "self" else name)
    if name and owner == "self":
        near = meant(name, at["has"], "self.")
        return wording("is_parameter" if name in names else "never_set", name=name, near=near)
    if name and owner == "":
        return wording("parameters_are", names=", ".join(names), near=meant(name, names))
    if name or failure.text.startswith("TypeError") and "argument" in failure.text:
        return wording("whole_sizes" if "float" in failure.text else "other_call")
    if already := re.search(r"KeyError.*attribute '(\w+)' already exists", failure.text):
        return wording("set_twice", name=already[1])
    sizes = {"dropout": 0.0, **case.letters}
    return wording("built_from", sizes=", ".join(f"{n} = {sizes[n]}" for n in names if n in sizes))


def unset(failure: Failure, facts: Facts) -> Finding | None:
    """Say which attribute forward reads and nothing sets, if that is why it fails."""
    found = re.match(r"AttributeError: '(\w+)' object has no attribute '(\w+)'", failure.text)
    owner, name = found.groups() if found else ("", "")
    read = re.search(rf"\bself\.{name}\b", failure.line or f"self.{name}")
    if owner not in facts.attributes or not read:
        return None
    kept, line = facts.attributes[owner], in_line(failure)
    near = like(name, kept)
    known = {name, near, kept[near]} if near else {name}
    step = next((step for step, names in BUILDS if names & known), None)
    if name in facts.local_names.get(owner, ()):
        return say("attribute_unkept", step, name=name, line=line)
    stored = (e for e, sort in kept.items() if e != "training" and sort != "method")
    hint = meant(name, kept, "self.") or wording("keeps", kept=", ".join(stored))
    return say("attribute_unset", step, name=name, line=line, hint=hint)
