"""Say of the constructor of a class in progress what is wrong with it, or not there yet."""

from eleven_steps.checks.know.catalogue import MISTAKES
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.name.classes import layer_findings, misshapen
from eleven_steps.checks.name.match import candidates
from eleven_steps.checks.name.say import Finding, say
from eleven_steps.checks.run.cases import BIASED, LAYERS
from eleven_steps.checks.run.facts import ATTRIBUTES, Built, Facts


def constructor_fault(built: Built, begun: bool, local: list[str]) -> Finding | None:
    """What is wrong with the layers, or what is not there yet."""
    facts = built[True]
    have = [name for name in LAYERS if f"{name}.weight" in facts.shapes]
    if facts.listed:
        return say("layers_in_plain_list")
    if forgotten := [name for name in local if name not in have]:
        return say("kept_nowhere", name=forgotten[0])
    if not have:
        if not begun and not facts.parameters and not facts.sizes:
            return say("open")
        if facts.sizes and not facts.parameters:
            return _misbuilt(facts) or say("sizes_kept")
        return say("no_layers", found=", ".join(facts.parameters[:6]) or "none")
    if lacking := [name for name in LAYERS[:3] if name not in have]:
        return say("layers_to_come", these=" and no ".join(lacking))
    others = [n for n in facts.parameters if n.endswith(".weight") and n not in facts.shapes]
    if len(have) == 3 and others and begun:
        return say("layer_renamed", 11, found=others[0].removesuffix(".weight"))
    if finding := next(layer_findings(built), None):
        return finding
    if finding := misshapen(facts.shapes):
        alike = next(candidates(facts.shapes), None)
        return say(alike) if alike and MISTAKES[alike].step <= 2 else finding
    return _misbuilt(facts)


def _misbuilt(facts: Facts) -> Finding | None:
    """What the constructor stores that is wrong."""
    case, head_dim = BIASED, facts.sizes.get("head_dim", BIASED.head_dim)
    if isinstance(head_dim, float):
        return say("head_dim_float", size=head_dim)
    if head_dim == case.d_out:
        return say("head_dim_not_divided")
    if head_dim == case.d_in // case.num_heads:
        return say("head_dim_from_d_in")
    for name in (*reversed(ATTRIBUTES), "dropout"):
        size, right = facts.sizes.get(name), getattr(case, name, 0.0)
        if size not in (None, right):
            other = "head_dim_other" if name == "head_dim" else "size_other"
            sizes = {"d_out": case.d_out, "num_heads": case.num_heads}
            step = 7 if name == "dropout" else None
            return say(other, step, name=name, size=size, right=right, **sizes)
    if facts.dropout in ("float", "int", "type"):
        what = wording("a_class_alone" if facts.dropout == "type" else "a_number")
        return say("no_dropout_layer", what=what)
    return None


def parts_to_come(facts: Facts) -> Finding | None:
    """Say what the constructor has not yet, where forward is still open; None if it has all."""
    lacking = [name for name in ATTRIBUTES if name not in facts.sizes]
    lacking += [] if "out_proj.weight" in facts.shapes else ["out_proj"]
    lacking += [] if facts.dropout else ["dropout"]
    lacking += [] if facts.mask else ["mask (context_length, context_length)"]
    return say("parts_to_come", these=", no ".join(lacking)) if lacking else None
