"""Say why a constructor makes nothing, or not what forward reads, in the learner's own line."""

import ast
import difflib
import re
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from eleven_steps.checks.judge.say import Finding, say
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.run.ask import ask
from eleven_steps.checks.run.cases import ADDED, LAYERS, Case
from eleven_steps.checks.run.contract import signature
from eleven_steps.checks.run.isolate import Failure
from eleven_steps.checks.run.making import Facts

ORDER = ["d_in", "d_out", "context_length", "dropout", "num_heads"]
# The step of a statement by what it builds: an attribute, or whatever is called for it.
BUILDS = (
    (2, {*LAYERS[:3], "query_norm", "key_norm", "sinks", "W_down", "latent_norm"}),
    (11, {"out_proj"}),
    (10, {"W_gate", "context_norm"}),
    (6, {*ADDED["topk"]}),
    (7, {"Dropout", "dropout"}),
    (6, {"register_buffer", "buffer", "mask", "triu", "tril"}),
    (2, {"Linear"}),
)
NOWHERE = {"builds": [], "lacks": ("", ""), "later": [], "kept": [], "supers": False}
NAMESPACES = {"torch": torch, "torch.nn": nn, "torch.nn.functional": nn.functional}


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


def _near(name: str, names: Iterable[str], before: str = "") -> str:
    """Ask whether another name is meant, if one is like it."""
    like = _like(name, names)
    return wording("meant", name=f"{before}{like}") if like else ""


def _like(name: str, names: Iterable[str]) -> str:
    """The name that is most like another one; "" if none is."""
    lowered = {each.lower(): each for each in reversed([*names])}
    near = difflib.get_close_matches(name.lower(), lowered, 1, 0.7)
    return lowered[near[0]] if near else ""


def _hint(failure: Failure, at: dict[str, Any], names: list[str], case: Case) -> str:
    """What to look at, by what was raised."""
    name, owner = at["lacks"]
    if name and owner in NAMESPACES:
        near = _near(name, dir(NAMESPACES[owner]))
        return wording("no_such_in", name=name, owner=owner, near=near)
    if name and owner in ("self", "") and name in at["later"]:
        return wording("set_later", name=f"self.{name}" if owner == "self" else name)
    if name and owner == "self":
        near = _near(name, at["kept"], "self.")
        return wording("is_parameter" if name in names else "never_set", name=name, near=near)
    if name and owner == "":
        return wording("parameters_are", names=", ".join(names), near=_near(name, names))
    if name or failure.text.startswith("TypeError") and "argument" in failure.text:
        return wording("whole_sizes" if "float" in failure.text else "other_call")
    if already := re.search(r"KeyError.*attribute '(\w+)' already exists", failure.text):
        return wording("set_twice", name=already[1])
    sizes = {"dropout": 0.0, **case.letters}
    return wording("built_from", sizes=", ".join(f"{n} = {sizes[n]}" for n in names if n in sizes))


# An attribute that forward reads


def unset(failure: Failure, facts: Facts) -> Finding | None:
    """Say which attribute forward reads and nothing sets, if that is why it fails."""
    found = re.match(r"AttributeError: '\w+' object has no attribute '(\w+)'", failure.text)
    if not found or not re.search(rf"\bself\.{found[1]}\b", failure.line or f"self.{found[1]}"):
        return None
    name, line = found[1], in_line(failure)
    like = _like(name, facts.kept)
    known = {name, facts.kept[like]} if like else {name}
    step = next((step for step, names in BUILDS if names & known), _used_as(name, failure.line))
    if name in facts.unkept:
        return say("attribute_unkept", step, name=name, line=line)
    kept = wording("keeps", kept=", ".join(each for each in facts.kept if each != "training"))
    hint = wording("meant", name=f"self.{like}") if like else kept
    return say("attribute_unset", step, name=name, line=line, hint=hint)


def _used_as(name: str, line: str) -> int | None:
    """The step of an attribute by what a line does with it, none where that is a call."""
    try:
        tree = [*ast.walk(ast.parse(line))]
    except SyntaxError:
        return None
    calls = [each for each in tree if isinstance(each, ast.Call)]
    given = [arg for each in calls for arg in each.args if _named(each.func) == "masked_fill"]
    if any(name == _named(each.value) for each in tree if isinstance(each, ast.Subscript)):
        return 6
    if any(name == _named(inner) for each in given for inner in ast.walk(each)):
        return 6
    return None if any(name == _named(each.func) for each in calls) else 1


def _named(node: ast.AST) -> str:
    return getattr(node, "attr", "")
