"""Find the first thing that is not right on the way to what came, and whose step it is.

The way is walked back from what is returned, or from the call that raised, to tensors that are
right. The first call on it whose inputs are right and whose output is not is where to look: it got
what another step makes, or skipped one, or makes something else of what its step takes.
"""

import ast
import contextlib
import functools
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from eleven_steps.checks.judge.path import (
    CUT,
    KEEP,
    MASK,
    MEET,
    NORM,
    SCALE,
    TURN,
    Walk,
    around,
    kind,
    named,
    role_of,
)
from eleven_steps.checks.judge.read import FAMILIES, Reading
from eleven_steps.checks.run.trace import Op, Place
from helpers.trace import STEPS

OPENING = {"shape", "size", "append", "range", "list", "zip", "len", "tuple", "enumerate", "int"}
JOINING = "view", "reshape", "flatten", "contiguous", "unflatten", "view_as"
NEEDED = {2: "x", **dict.fromkeys((3, 4, 5), "projected"), 6: "scores", 7: "scores"}
NEEDED |= dict.fromkeys((9, 10, 11), "context")


@dataclass(frozen=True)
class Difference:
    """The first thing that is not right.

    Args:
        step: to look at, 1 to 11.
        reason: idle, skipped, other, projection, size, family, scale, hidden, rows, early, made,
            torch or name; see judge/say.
        op: the call, by its number in the trace; None where none was reached.
        place: where to look in the learner's source.
        index: the tensor that is not what the call takes, or that it makes; None where unknown.
        wanted: the right tensor that is there in its stead and not used; None where there is none.
        values: what else was established.
    """

    step: int
    reason: str
    op: int | None = None
    place: Place | None = None
    index: int | None = None
    wanted: int | None = None
    values: dict[str, Any] = field(default_factory=dict)


def differ(walked: Walk) -> Difference | None:
    """Return the first difference of a trace from the right one; None where none is found."""
    trace = walked.trace
    if trace.stop and not (trace.ops and trace.ops[-1].failed):
        return _unreached(walked)
    last = len(trace.ops) - 1
    start = trace.ops[last].given if trace.stop else trace.returned
    start = [index for index in start if index is not None]
    if not start and not trace.stop:
        return None
    if not trace.stop and walked.fits(start[0]) and walked.readings[start[0]].family == "out":
        came, right = trace.tensors[start[0]], walked.right.scene.out
        if came.shape == right.shape:
            return None
        number = walked.makers[start[0]][0]
        return Difference(11, "shape", number, trace.ops[number].place, start[0])
    wrong = [index for index in start if not walked.fits(index)]
    visited = walked.back(wrong, stop_at_right=True) | ({last} if trace.stop else set())
    if found := _idle(walked, start, last if trace.stop else None):
        return found
    if not visited:
        return _behind(walked, start) or _early(walked, start[0])

    def deviates(op: Op) -> bool:
        made = op.failed or not all(map(walked.known, op.gave))
        return made and kind(op) != "written" and all(map(walked.known, op.given))

    first = next((n for n in sorted(visited) if deviates(trace.ops[n])), max(visited))
    return _blamed(walked, first, start)


def _behind(walked: Walk, start: list[int]) -> Difference | None:
    """Which of several tensors is not as far as the others."""
    stages = {index: walked.readings[index].stage or 0 for index in start}
    most, least = max(stages.values()), min(start, key=lambda index: stages[index])
    if stages[least] == most or walked.readings[least].family != "projected":
        return None
    numbers = walked.makers.get(least, [None])
    place = None if numbers[-1] is None else trace_place(walked, numbers[-1])
    return Difference(most, "behind", None, place, least)


def trace_place(walked: Walk, number: int) -> Place | None:
    """Where a call stands."""
    return walked.trace.ops[number].place


def _early(walked: Walk, index: int) -> Difference:
    """What is right, and comes back before it is out."""
    reading = walked.readings[index]
    stage = _progress(reading, walked)
    numbers = walked.makers.get(index, [None])
    place = None if numbers[-1] is None else walked.trace.ops[numbers[-1]].place
    return Difference(min(stage + 1, 11), "early", numbers[-1], place, index)


def _progress(reading: Reading, walked: Walk) -> int:
    """The last step that a right tensor has behind it."""
    if reading.family == "scores":
        state = reading.state
        if state is None or not state.grown:
            hides = walked.right.hidden is not None and bool(walked.right.hidden.any())
            return 6 if state and state.hidden == "right" and hides else 5
        return 7 if state.whole else 6
    return reading.stage or 0


def _idle(walked: Walk, start: list[int], last: int | None) -> Difference | None:
    """Scores, weights, context or out that are right, and that nothing uses."""
    trace, full = walked.trace, walked.back(start)
    used = {index for number in full for index in trace.ops[number].given} | {*start}
    full |= set() if last is None else {last}

    def progress(index: int) -> int:
        fits = walked.fits(index) and walked.readings[index].family in FAMILIES[3:]
        return _progress(walked.readings[index], walked) if fits else 0

    reached = max(map(progress, used), default=0)
    made = [i for i in range(len(trace.tensors)) if walked.makers.get(i) and i not in used]
    best = max(made, key=progress, default=None)
    if best is None or progress(best) <= reached or _piece(walked, best):
        return None
    maker = walked.makers[best][0]
    following = [number for number in sorted(full) if number > maker]
    if _is_dropped(trace.ops[maker].place):
        step = walked.roles[maker]
        return Difference(step, "idle", maker, trace.ops[maker].place, best, best)
    if not following:  # the last line names something else
        step = max(progress(best), 1)
        return Difference(min(step, 11), "idle", maker, None, start[0], best)
    number = following[0]
    op = trace.ops[number]
    came = next((i for i in op.given if walked.readings[i].family in FAMILIES[1:]), None)
    step = walked.roles[number]
    if walked.readings[best].family == "scores" and kind(op) not in MEET | TURN | CUT | MASK:
        step = 7
    return Difference(step, "idle", number, op.place, came, best)


def _piece(walked: Walk, index: int) -> bool:
    """Whether a tensor is one head's, or one token's, of several."""
    reading = walked.readings[index]
    return bool({*dict(reading.fixed)} - {"w"}) or not reading.right and reading.state is None


def _is_dropped(place: Place | None) -> bool:
    nodes = around(place)
    return bool(nodes) and isinstance(nodes[-1], ast.Expr)


# The call that is blamed


def _blamed(walked: Walk, number: int, start: list[int]) -> Difference:
    op = walked.trace.ops[number]
    step = walked.roles[number]
    if found := _of_another(walked, number, op, step, start):
        return found
    for question in (_size, _skipped, _weighed, _of_another_family):
        if found := question(walked, number, op, step):
            return found
    gave = op.gave[0] if op.gave else None
    first = next((e for e in walked.of(op) if e.family == "projected"), None)
    if step == 7 and first and kind(op) in SCALE and walked.phases[number] < 3:
        step = 8 if first.who == "values" else 5
    if step in (3, 4) and _meets(op.place) and any(_later(walked, i) for i in op.given):
        step = 8 if walked.phases[number] >= 3 else 5
    return Difference(step, "torch" if op.failed else "made", number, op.place, gave)


def _meets(place: Place | None) -> bool:
    return any(named(node) in MEET for node in around(place)[1:])


def _of_another(
    walked: Walk, number: int, op: Op, step: int, start: list[int]
) -> Difference | None:
    """Where two projections meet, one of which is not the one that its step takes."""
    if kind(op) not in MEET or step not in (5, 8):
        return None
    given = [(i, walked.readings[i]) for i in op.given]
    three = [(i, each) for i, each in given if each.family == "projected" and each.who]
    if step == 5 and len(three) != 2 or step == 8 and len(three) != 1:
        return None
    needed = {"queries", "keys"} if step == 5 else {"values"}
    have = {each.who for _, each in three}
    missing = sorted(needed - have)
    if not missing:
        return None
    lost = missing[0]
    if step == 8 and not three:
        return None
    wrong = [i for i, each in three if each.who not in needed]
    wrong = wrong or [three[0 if lost == "queries" else -1][0]]
    path = walked.back([*start, *op.given])
    used = {i for n in path for i in walked.trace.ops[n].given} | {*op.given, *start}
    idle = [
        i
        for i, each in enumerate(walked.readings)
        if each.family == "projected"
        and each.who == lost
        and each.right
        and i not in used
        and not {*dict(each.fixed)} - {"w"}
    ]
    if not idle:
        chain = sorted(n for n in walked.back(wrong) if walked.roles[n] == 2)
        at = chain[-1] if chain else number
        place = walked.trace.ops[at].place
        made = any(each.who == lost and each.right for each in walked.readings)
        reason = "exchanged" if made else "projection"
        return Difference(2, reason, at, place, wrong[0], None, {"who": lost})
    left = max(idle, key=lambda i: (walked.readings[i].stage or 0, i))
    after = walked.makers[left][0] if left in walked.makers else -1
    shared = walked.back(i for i, _ in given if i != wrong[0])
    stage = walked.readings[left].stage

    def takes(number: int) -> bool:
        given = walked.of(walked.trace.ops[number])
        return any(e.family == "projected" and (e.stage or 0) >= stage for e in given)

    own = sorted(n for n in walked.back(wrong) - shared if n > after and takes(n))
    at = own[0] if own else number
    if own:  # what the line at fault takes
        mine = [i for i in walked.trace.ops[at].given if walked.readings[i].family == "projected"]
        wrong = mine[:1] or wrong
    return Difference(
        walked.roles[at], "other", at, walked.trace.ops[at].place, wrong[0], left, {"who": lost}
    )


def _skipped(walked: Walk, number: int, op: Op, step: int) -> Difference | None:
    """An operand that comes from before the step that the call needs."""
    families = {walked.readings[i].family for i in op.given}
    name, phase = kind(op), walked.phases[number]
    operands = [(_unturned(walked, i, step), i) for i in op.given]
    for index, own in operands:
        lost = _lost(walked, op, name, step, phase, families, index, own)
        axes = [a for a in walked.readings[index].axes or () if a]
        if lost == 4 and axes[:2] == ["h", "b"]:
            made = walked.makers.get(index, [number])[0]
            return Difference(4, "order", made, walked.trace.ops[made].place, index)
        if lost and not _later(walked, index):
            return Difference(lost, "skipped", number, op.place, index, None, {"for_step": step})
    return None


def _unturned(walked: Walk, index: int, step: int) -> int:
    """The tensor that another one is with its axes moved on the way into a call of this step."""
    while numbers := walked.makers.get(index):
        op = walked.trace.ops[numbers[-1]]
        if walked.roles[numbers[-1]] != step or kind(op) not in TURN or not op.given:
            break
        index = op.given[0]
    return index


def _lost(walked, op, name, step, phase, families, index, own) -> int:
    """The step that an operand has not been through; 0 if none."""
    reading = walked.readings[index]
    stage, axes = reading.stage, [a for a in reading.axes or () if a]
    projected, context = reading.family == "projected", reading.family == "context"
    others = [walked.readings[i] for i in op.given if i != own]
    if (
        projected
        and step in (6, 7)
        and phase < 3
        and (name in MASK | NORM - {"exp"} or "const" in families and name not in SCALE)
    ):
        return 5
    if step == 8 and "scores" not in families:
        return 0
    if reading.family == "x" and step in (3, 4, 5, 8):
        return 2
    if projected and step in (4, 5, 8) and stage == 2 and (step != 4 or name in TURN):
        return 3
    if projected and stage == 3 and name in ("repeat_interleave", "repeat", "expand"):
        return 4
    if projected and step in (5, 8) and stage == 3 and name != "einsum":
        return 4
    heads_first = bool(axes) and axes[0] == "h"
    if projected and name == "scaled_dot_product_attention" and axes[-2:] == ["d", "n"]:
        return 4
    if projected and step == 5 and name in ("matmul", "bmm") and axes:
        alone = heads_first and not all((o.axes or ("h",))[0] == "h" for o in others)
        mine = walked.readings[own]
        twin = mine.axes and others and others[0].axes
        alike = twin and _ends(mine.axes) == _ends(others[0].axes) == ["d", "n"]
        if alone or alike and own == op.given[0]:
            return 4
    if projected and step == 8 and reading.who == "values" and axes:
        weights = next((o for o in others if o.family == "scores"), None)
        alone = heads_first and weights and (weights.axes or ("h",))[0] != "h"
        if alone or axes[-2:] == ["d", "n"] and name in ("matmul", "bmm"):
            return 4
    if projected and name == "einsum" and stage == 3 and _replayed(walked, op, step):
        return 4
    if context and step == 10 and stage == 8 and name in JOINING:
        return 9
    if context and step == 11 and stage in (8, 9) and name == "linear":
        return 10 if stage == 9 else 9
    return 0


def _ends(axes: tuple[str, ...]) -> list[str]:
    return [a for a in axes if a][-2:]


def _replayed(walked: Walk, op: Op, step: int) -> bool:
    """Whether this einsum would be right, were its operands right: heads before tokens."""
    steps = walked.right.scene.steps
    grouped, words = steps["transpose"], [e for e in op.numbers if type(e) is str]
    pair = (
        (grouped["queries"], grouped["keys"])
        if step == 5
        else (steps["softmax"]["weights"], grouped["values"])
    )
    with contextlib.suppress(Exception):
        found = walked.right.find(torch.einsum(words[0], *pair))
        return bool(found and found.right)
    return False


def _later(walked: Walk, index: int) -> bool:
    """Whether what is made of a tensor is right at a later stage: then the wrong name was used."""
    mine = walked.readings[index]
    if not mine.stage:
        return False
    return any(
        each.family == mine.family
        and (each.stage or 0) > mine.stage
        and each.who == mine.who
        and i != index
        and index in {g for n in walked.back([i]) for g in walked.trace.ops[n].given}
        for i, each in enumerate(walked.readings)
    )


def _weighed(walked: Walk, number: int, op: Op, step: int) -> Difference | None:
    """Scores on their way to weights: the scale, what is hidden, the sums of the rows."""
    given = [(i, walked.readings[i]) for i in op.given if walked.readings[i].family == "scores"]
    if not given:
        return None
    index, before = given[0]
    root = walked.right.case.head_dim**-0.5
    hides = walked.right.hidden is not None and bool(walked.right.hidden.any())

    def found(step: int, reason: str, which: int | None = None, **values: Any) -> Difference:
        return Difference(step, reason, number, op.place, which, None, values)

    if step == 8 and kind(op) in MEET and (state := before.state):
        if not state.grown:
            masked = state.hidden == "right" or not hides
            return found(7 if masked else 6, "skipped", index, for_step=8)
        if not state.whole:
            return found(7, "rows", index)
        return None
    if before.part and "j" in before.axes:
        keys = walked.trace.tensors[index].shape[before.axes.index("j")]
        if keys < walked.right.scene["scores"]["scores"].shape[-1]:
            return found(5, "pairs", index)
    if op.failed or not op.gave:
        return None
    after = walked.readings[op.gave[0]]
    if after.family != "scores" or before.state is None:
        return None
    state = after.state
    if state is None:
        unscaled = not before.state.grown and (before.state.hidden == "none" or not hides)
        plain = kind(op) not in NORM | SCALE | MASK | {"pow"} and step == 7
        return found(5, "made", op.gave[0]) if unscaled and plain else None
    if state.hidden == "none" and hides and state.grown:
        return found(6, "skipped", index, for_step=7)
    if state.hidden == "other":
        crossed = after.axes and [a for a in after.axes if a][-2:] == ["j", "i"]
        return found(5 if crossed else 6, "hidden", op.gave[0], crossed=bool(crossed))
    if abs(state.scale / root - 1) > 1e-3 and (state.grown or abs(state.scale - 1) > 1e-3):
        unscaled = state.grown and abs(before.state.scale - state.scale) < 1e-9
        return found(7, "scale", op.gave[0], factor=state.scale, before=unscaled)
    return None


def _of_another_family(walked: Walk, number: int, op: Op, step: int) -> Difference | None:
    """An operand of another kind than the step takes."""
    if kind(op) == "setitem" or step == 11 and kind(op) != "linear":
        return None
    if step == 2 and kind(op) != "linear":  # what is made of a projection is what is wrong
        return None
    if step == 7 and kind(op) in SCALE:  # of queries or keys, before they meet
        return None
    if (
        step == 8
        and kind(op) in MEET
        and {"scores"} == {walked.readings[i].family for i in op.given}
    ):
        values = {"needs": "values"}
        return Difference(8, "family", number, op.place, op.given[-1], None, values)
    for index in op.given:
        reading = walked.readings[index]
        if reading.family in ("const", "layer"):
            continue
        if step == 8 and reading.family == "projected" and kind(op) not in MEET:
            continue
        wanted = NEEDED.get(step)
        if step == 8 and kind(op) in MEET and len(op.given) > 1:
            both = {walked.readings[i].family for i in op.given}
            if "scores" in both or reading.family != "projected":
                continue
            wanted = "scores"
        if wanted and reading.family != wanted and reading.family in FAMILIES:
            return Difference(step, "family", number, op.place, index, None, {"needs": wanted})
    return None


def _size(walked: Walk, number: int, op: Op, step: int) -> Difference | None:
    """A size that is none of the case, or that is read off x and is not one that is needed."""
    nodes = around(op.place)
    if not nodes:
        return _typed(walked, number, op)
    case, stop = walked.right.case, walked.trace.stop
    sizes, known = case.letters, stop.numbers if stop else {}
    b, n, h, d = case.b, case.num_tokens, case.num_heads, case.head_dim
    four = {b, n, h, d, case.d_out, b * h}
    needed = {3: four, 4: four, 6: {n}, 9: four, 10: four}.get(step, {*sizes.values()})
    kept = walked.trace.sizes
    todo, seen, tensors = [nodes[-1]], set(), stop.tensors if stop else {}
    tree = parsed(walked.trace.source)
    while todo:
        for node in ast.walk(todo.pop()):
            own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
            if own and node.value.id == "self" and node.attr in kept:
                size = kept[node.attr]
                usual = {*sizes.values(), 2 * size if size in (0, 1) else -1}
                fused = any(t.shape[:1] == (3 * case.d_out,) for t in walked.trace.tensors[:9])
                usual |= {b * h, 3 * case.d_out if fused else b * h}
                if size not in usual and size > 1:
                    text = f"self.{node.attr}"
                    return Difference(
                        1,
                        "size",
                        number,
                        _set_at(walked, text) or op.place,
                        None,
                        None,
                        {"name": text, "size": size, "for_step": step},
                    )
            if not isinstance(node, ast.Name) or node.id in {*seen, *tensors}:
                continue
            seen.add(node.id)
            for line, value in set_in(tree, node.id):
                read = any(named(each) in ("shape", "size") for each in ast.walk(value))
                size = known.get(node.id, 0)
                if node.id in known and read and step != 5 and size not in needed and op.failed:
                    place = Place(
                        line + walked.trace.first - 1, ast.unparse(value), ast.unparse(value)
                    )
                    return Difference(
                        1,
                        "size",
                        number,
                        place,
                        None,
                        None,
                        {"name": node.id, "size": size, "for_step": step},
                    )
                if not read and (node.id in known or isinstance(value, ast.Tuple)):
                    todo.append(value)
    return None


def _typed(walked: Walk, number: int, op: Op) -> Difference | None:
    """The same of a view that raises, where there is no source: a size that nothing here has."""
    case = walked.right.case
    there = {case.b, case.num_tokens, case.num_heads, case.head_dim, case.d_out, -1}
    odd = [n for n in op.numbers if type(n) is int and n not in there]
    if not op.failed or not odd or kind(op) not in ("view", "reshape"):
        return None
    return Difference(1, "size", number, None, None, None, {"name": str(odd[0]), "size": odd[0]})


@functools.lru_cache(64)
def parsed(source: str) -> ast.AST:
    """The tree of a source, which may be indented; an empty one where it is none."""
    try:
        return ast.parse(textwrap.dedent(source))
    except SyntaxError:
        return ast.Module([], [])


def set_in(tree: ast.AST, name: str):
    """The lines at which a name is set, and what it is set to."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(
            isinstance(each, ast.Name) and each.id == name for each in ast.walk(node.targets[0])
        ):
            yield node.lineno, node.value


def _set_at(walked: Walk, text: str) -> Place | None:
    """Where an attribute is set."""
    for node in ast.walk(parsed(walked.trace.source)):
        if isinstance(node, ast.Assign):
            targets = [ast.unparse(e) for t in node.targets for e in getattr(t, "elts", [t])]
            if text in targets:
                line = ast.unparse(node)
                return Place(node.lineno + walked.trace.first - 1, line, line, line)
    return None


# Where no torch call was reached: a name, an attribute, a number of values


def _unreached(walked: Walk) -> Difference:
    """A line that raised by itself: the step is what the line was to do."""
    stop = walked.trace.stop
    if stop.place is None or stop.place.text.startswith("raise "):  # no line of a step
        todo = (n for n, name in enumerate(STEPS, start=1) if not walked.reached(name))
        return Difference(next(todo, len(STEPS)), "name", None, stop.place)
    return Difference(_stands(walked, stop.place), "name", None, stop.place)


def _stands(walked: Walk, place: Place, depth: int = 0) -> int:
    """The step of a place in the source where no torch call was reached."""
    stop, trace = walked.trace.stop, walked.trace
    path = list(around(place))
    names = {e.id for node in path[:1] for e in ast.walk(node) if isinstance(e, ast.Name)}
    for name, several in stop.several.items():  # a tuple where a tensor belongs
        if name in names and several and (numbers := walked.makers.get(several[-1])):
            return walked.roles[numbers[0]]
    if not path:
        with contextlib.suppress(SyntaxError):
            path = ast.parse(place.statement).body[:1]
    if not path:
        return 1
    readings = {name: walked.readings[i] for name, i in stop.tensors.items()}
    phase = max(walked.phases[-1:] + [1])
    for op in trace.ops:
        for index in op.gave:
            family = walked.readings[index].family
            phase = max(phase, FAMILIES.index(family) if family in FAMILIES else 0)
    broad = isinstance(path[-1], ast.FunctionDef | ast.For | ast.With | ast.If)
    for node in [*path, *([] if broad else ast.walk(path[-1]))]:
        if (step := _node_step(walked, node, path, readings, phase)) is not None:
            return step
    if isinstance(path[-1], ast.For):
        return 3
    return _used_later(walked, path, place, depth)


def _node_step(walked, node, path, readings, phase) -> int | None:
    """The step that a node of the source is for, if it tells."""
    trace = walked.trace
    name = _called(node, trace)
    usual = TURN | CUT | MEET | MASK | NORM | SCALE | KEEP
    arithmetic = {"mul", "div", "add", "sub", "pow", "mult"}
    if not name or name in OPENING or name not in usual | arithmetic | {"linear", "own"}:
        return None
    inside = [e.id for e in _outside_calls(node) if isinstance(e, ast.Name)]
    given = [readings[each] for each in inside if each in readings]
    for each in ast.walk(node):
        own = isinstance(each, ast.Attribute) and ast.unparse(each.value) == "self"
        if own and (f"self.{each.attr}" in readings or each is path[0] and name not in arithmetic):
            given.append(Reading("const"))
    real = [each for each in given if each.family in FAMILIES[1:]]
    masks = any(_called(each, trace) in MASK for each in path)
    if name in TURN | CUT and masks and not real:
        return 6
    if name in ("mul", "div") and not given and isinstance(path[0], ast.Name):
        return 7
    if name in arithmetic and not given:
        return None
    if name == "linear" and (called := _attribute(node)):
        if called.startswith(("W_query", "W_key", "W_value")):
            return 2
        if called.startswith("out_proj"):
            return 11
    unmade = phase == 2 and name in MASK | NORM and node in path[1:]
    if unmade and all(each.family == "const" for each in given):
        op = Op(name, (), ())
        return 5 if not isinstance(path[0], ast.Name) else role_of(op, given, phase, False)
    if name == "own":
        inner = _first_inside(walked, node)
        if inner:
            return role_of(Op(inner, (), ()), [], phase, False)
        name = "dropout" if any(e.family == "scores" for e in given) else "linear"
    if name == "getitem" and given and not real:
        return 6
    place = Place(
        0,
        "",
        ast.unparse(path[-1]) if isinstance(path[-1], ast.stmt) else "",
        ast.unparse(node) if isinstance(node, ast.expr) else "",
    )
    return role_of(Op(name, (), (), place), given, phase, phase > 3)


def _outside_calls(node: ast.AST) -> Iterator[ast.AST]:
    """A node and what is in it, but for what stands in other calls."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.Call):
            yield child
            yield from _outside_calls(child)


def _attribute(node: ast.AST) -> str:
    function = getattr(node, "func", None)
    own = isinstance(function, ast.Attribute) and ast.unparse(function.value) == "self"
    return function.attr if own else ""


def _called(node: ast.AST, trace) -> str:
    """The call that a node stands for: of a module of the answer's own, what it is."""
    if name := _attribute(node):
        part = trace.parts.get(name, "")
        known = {"Linear": "linear", "Dropout": "dropout", "Softmax": "softmax"}
        return known.get(part, "linear" if f"{name}.weight" in trace.layers.values() else "own")
    return named(node)


def _first_inside(walked: Walk, node: ast.Call) -> str:
    """The first torch call in a function of the learner's own."""
    called = getattr(node.func, "attr", getattr(node.func, "id", ""))
    for each in ast.walk(parsed(walked.trace.source)):
        if isinstance(each, ast.FunctionDef) and each.name == called != "forward":
            inner = (named(e) for part in each.body for e in ast.walk(part))
            return next((n for n in inner if n in TURN | CUT | MEET | MASK | NORM), "")
    return ""


def _used_later(walked: Walk, path: list, place: Place, depth: int) -> int:
    """The step that a size is used for which the line was to make; step 1 where it is not clear."""
    last = path[-1]
    sized = any(named(each) in ("shape", "size") for each in ast.walk(last))
    single = isinstance(last, ast.Assign) and not isinstance(last.targets[0], ast.Tuple)
    if not single or sized or depth > 2:
        return 1
    names = {e.id for e in ast.walk(last.targets[0]) if isinstance(e, ast.Name)}
    tree, first = parsed(walked.trace.source), walked.trace.first
    uses = [
        (node.lineno, node)
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt)
        and not hasattr(node, "body")
        and node.lineno + first - 1 > place.line
        and any(isinstance(e, ast.Name) and e.id in names for e in ast.walk(node))
    ]
    for line, node in sorted(uses, key=lambda each: each[0]):
        text = ast.unparse(node)
        name = next(e for e in ast.walk(node) if isinstance(e, ast.Name) and e.id in names)
        return _stands(walked, Place(line + first - 1, text, text, ast.unparse(name)), depth + 1)
    return 1


def as_step(difference: Difference, step: int) -> Difference:
    """The same at another step."""
    return replace(difference, step=step)
