"""A line that raises before any torch call: its step is what the line was to do."""

import ast
from collections.abc import Iterator

from eleven_steps.checks.judge.path import Difference, Walk, step_for
from eleven_steps.checks.judge.read import FAMILIES, Reading
from eleven_steps.checks.judge.syntax import (
    CUT,
    KEEP,
    MASK,
    MEET,
    NORM,
    SCALE,
    TURN,
    around,
    call_name,
    of_self,
    parsed,
)
from eleven_steps.checks.run.places import Place
from eleven_steps.checks.run.recording import Op
from eleven_steps.helpers.trace import STEPS


def unreached(walked: Walk) -> Difference:
    """A line that raised by itself: the step is what the line was to do."""
    stop = walked.stop
    if stop.place is None or stop.place.text.startswith("raise "):  # no line of a step
        todo = (n for n, name in enumerate(STEPS, start=1) if not walked.reached(name))
        return Difference(next(todo, len(STEPS)), "name", None, stop.place)
    return Difference(_stands(walked, stop.place), "name", None, stop.place)


def _stands(walked: Walk, place: Place, depth: int = 0) -> int:
    """The step of a place in the source where no torch call was reached."""
    stop, trace = walked.stop, walked.trace
    path = list(around(place))
    names = {e.id for node in path[:1] for e in ast.walk(node) if isinstance(e, ast.Name)}
    for name, several in stop.several.items():  # a tuple where a tensor belongs
        if name in names and several and (numbers := walked.makers.get(several[-1])):
            return walked.steps[numbers[0]]
    if not path:
        return 1
    readings = {name: walked.readings[i] for name, i in stop.tensors.items()}
    families = [walked.readings[index].family for op in trace.ops for index in op.gave]
    phases = (FAMILIES.index(family) for family in families if family in FAMILIES)
    phase = max([1, *walked.phases[-1:], *phases])
    nodes = [*path, *ast.walk(path[-1])]
    for node in sorted(nodes, key=lambda call: call_name(call) == "getitem"):  # which tells least
        if (step := _node_step(walked, node, path, readings, phase)) is not None:
            return step
    return _used_later(walked, path, place, depth)


def _node_step(walked, node, path, readings, phase) -> int | None:
    """The step that a node of the source is for, if it tells."""
    trace = walked.trace
    name = _call_named(node, trace)
    usual = TURN | CUT | MEET | MASK | NORM | SCALE | KEEP
    arithmetic = {"mul", "div", "add", "sub", "pow", "mult"}
    if not name or name not in usual | arithmetic | {"linear"}:
        return None
    inside = [e.id for e in _outside_calls(node) if isinstance(e, ast.Name)]
    given = [readings[part] for part in inside if part in readings]
    for part in ast.walk(node):
        if f"self.{of_self(part)}" in readings:
            given.append(Reading("const"))
    if name in ("mul", "div") and not given and isinstance(path[0], ast.Name):
        return 7
    if name in arithmetic and not given:
        return None
    place = Place(0, "", ast.unparse(path[-1]), ast.unparse(node))
    return step_for(Op(name, (), (), place), given, phase, phase > 3)


def _outside_calls(node: ast.AST) -> Iterator[ast.AST]:
    """A node and what is in it, but for what stands in other calls."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.Call) and call_name(child) != "shape":
            yield child
            yield from _outside_calls(child)


def _call_named(node: ast.AST, trace) -> str:
    """The call that a node stands for: of a module of the answer's own, what it is."""
    if part := trace.parts.get(of_self(getattr(node, "func", None))):
        known = {"Linear": "linear", "Dropout": "dropout", "Softmax": "softmax"}
        return known.get(part, "linear")
    return call_name(node)


def _used_later(walked: Walk, path: list, place: Place, depth: int) -> int:
    """The step that a size is used for which the line was to make; step 1 where it is not clear."""
    last = path[-1]
    sized = any(call_name(part) in ("shape", "size") for part in ast.walk(last))
    sized = sized and not walked.ops  # behind a call a size is read for what comes next
    single = isinstance(last, ast.Assign) and not isinstance(last.targets[0], ast.Tuple)
    if not single or sized or depth > 2:
        return 1
    names = {e.id for e in ast.walk(last.targets[0]) if isinstance(e, ast.Name)}
    tree, first = parsed(walked.trace.source), walked.trace.first
    lines = (e for e in ast.walk(tree) if isinstance(e, ast.stmt) and not hasattr(e, "body"))
    for node in sorted(lines, key=lambda line: line.lineno):
        own = (e.id for e in ast.walk(node) if isinstance(e, ast.Name) and e.id in names)
        line, text, name = node.lineno + first - 1, ast.unparse(node), next(own, "")
        if name and line > place.line:
            return _stands(walked, Place(line, text, text, name), depth + 1)
    return 1
