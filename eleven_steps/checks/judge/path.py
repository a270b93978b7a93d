"""Walk a trace: what each tensor is, which step each call is for, and where what came came from."""

import ast
import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import torch

from eleven_steps.checks.judge.read import FAMILIES, HIDDEN, Reading, Right
from eleven_steps.checks.run.trace import Op, Place, Trace


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# The calls by what they do: move axes, cut and join, multiply two tensors, hide, make weights,
# change the order, keep the numbers, scale.
TURN = _names(
    """
    T adjoint mH mT moveaxis movedim permute swapaxes swapdims t transpose
    """
)
CUT = _names(
    """
    as_strided cat chunk concat concatenate contiguous expand expand_as flatten flip getitem
    hstack index_select narrow pad repeat repeat_interleave reshape roll select setitem
    split squeeze stack tensor_split unbind unflatten unsqueeze view view_as vstack
    """
)
MEET = _names(
    """
    addmm baddbmm bilinear bmm cdist dot einsum inner matmul mm mv rmatmul
    scaled_dot_product_attention tensordot
    """
)
MASK = _names(
    """
    arange bool eq eye full ge gt invert le logical_and logical_not logical_or lt
    masked_fill masked_scatter ne ones ones_like tril triu where zeros zeros_like
    """
)
NORM = _names(
    """
    amax amin dropout exp log_softmax logsumexp max min sigmoid softmax sum
    """
)
SHUFFLE = _names(
    """
    expand flip getitem index_select narrow pad repeat roll
    """
)
KEEP = _names(
    """
    clone contiguous detach double dropout float requires_grad to type written
    """
)
SCALE = _names(
    """
    div divide floor_divide floordiv mul multiply rdiv rmul rtruediv truediv
    """
)


@dataclass(frozen=True)
class Walk:
    """A trace that was read.

    Args:
        trace: what ran.
        right: what is right there.
        readings: of each tensor.
        roles: the step that each call is for.
        phases: the family that forward had come to before each call, by its number in FAMILIES.
    """

    trace: Trace
    right: Right
    readings: list[Reading]
    roles: list[int]
    phases: list[int]

    def of(self, op: Op) -> list[Reading]:
        """What a call was given."""
        return [self.readings[index] for index in op.given]

    @functools.cached_property
    def makers(self) -> dict[int, list[int]]:
        """The calls that made each tensor."""
        return self.trace.makers

    def back(self, start: Iterable[int], stop_at_right: bool = False) -> set[int]:
        """The calls that some tensors came from, as far back as what is right, or all of them."""
        calls, todo = set(), [*start]
        seen = set(todo)
        while todo:
            for number in self.makers.get(todo.pop(), ()):
                if number in calls:
                    continue
                calls.add(number)
                for index in self.trace.ops[number].given:
                    if index not in seen and not (stop_at_right and self.fits(index)):
                        seen.add(index)
                        todo.append(index)
        return calls

    def fits(self, index: int) -> bool:
        """Whether a tensor is what some step makes, or on the right way there."""
        return fits(self.readings[index], self.right)

    def reached(self, step: str) -> bool:
        """Whether all right tensors of a step are there, in their shapes."""
        return all(self.own(right) is not None for right in self.right.scene[step].values())

    def own(self, right: torch.Tensor) -> torch.Tensor | None:
        """The answer's own tensor that is a right one."""
        near = 1e-7 if right.dtype == torch.float64 else 2e-4
        return next((t for t in self.trace.tensors if same(t, right, near)), None)

    def known(self, index: int) -> bool:
        """Whether nothing of x is in a tensor, or what there is is right."""
        reading = self.readings[index]
        return reading.family in ("const", "layer") or reading.part or self.fits(index)


def same(one: torch.Tensor, other: torch.Tensor, near: float) -> bool:
    """Whether two tensors agree in shape and numbers, -inf for any number that hides."""
    if one.shape != other.shape or one.dtype != other.dtype or one.device.type != "cpu":
        return False
    hides = other == -torch.inf
    one = one.masked_fill(hides & (one < HIDDEN), -torch.inf)
    return torch.allclose(one, other, near, near)


def fits(reading: Reading, right: Right) -> bool:
    """See Walk.fits."""
    root = right.case.head_dim**-0.5
    if reading.family == "scores":
        state = reading.state
        if state and "|".join(filter(None, reading.axes)) not in right.stages["scores"]:
            return False
        if state is None:
            return reading.right and reading.scale in (1.0, root)
        usual = abs(state.scale / root - 1) < 1e-6 or abs(state.scale - 1) < 1e-6
        if state.grown:
            return abs(state.scale / root - 1) < 1e-6 and state.hidden == "right"
        return usual and state.hidden in ("none", "right")
    if not reading.right:
        return False
    if reading.family == "projected" and "values" not in reading.who:
        return any(abs(reading.scale / each - 1) < 1e-6 for each in (1.0, root, root**0.5))
    return abs(reading.scale - 1) < 1e-6


def walk(trace: Trace, right: Right) -> Walk:
    """Read every tensor of a trace, in order, and say which step each call is for."""
    made = Walk(trace, right, [], [], [])
    made.readings.extend(
        Reading("layer", name) if (name := trace.layers.get(index)) else Reading("const")
        for index in range(len(trace.tensors))
    )
    for index in trace.inputs:
        given, x = trace.tensors[index], right.scene["shape"]["x"]
        is_x = given.shape == x.shape and torch.equal(given, x.to(given.dtype))
        own = Reading("x", "x", ("b", "n", "e"), 1) if is_x else right.find(given)
        made.readings[index] = own or Reading("const")
    phase = max((FAMILIES.index(made.readings[i].family) for i in trace.inputs), default=1)
    roles: dict[tuple, tuple[int, int]] = {}
    normed = False
    for op in trace.ops:
        readings, name = made.of(op), kind(op)
        nodes = around(op.place)
        if nodes and named(nodes[0]) == name:  # and not inside of what torch takes together
            where = op.place.line, op.place.expression, name
            role, at = roles.setdefault(where, (role_of(op, readings, phase, normed), phase))
        else:
            role, at = role_of(op, readings, phase, normed), phase
        made.roles.append(role)
        made.phases.append(at)
        for index in op.gave:
            if not (index in trace.layers and not op.given):
                made.readings[index] = _made(made, op, name, readings, role, index)
            family = made.readings[index].family
            phase = max(phase, FAMILIES.index(family) if family in FAMILIES else 0)
            normed |= name in NORM and family == "scores"
    return made


def _made(made: Walk, op: Op, name: str, given: list[Reading], role: int, index: int) -> Reading:
    """What a tensor is that a call made."""
    tensor, right = made.trace.tensors[index], made.right
    layers = [each for each in given if each.family == "layer"]
    real = [each for each in given if each.family in FAMILIES[1:]]
    if layers and not real:  # a layer's weight, taken apart or put together
        return Reading("layer", " and ".join(dict.fromkeys(each.who for each in layers)))
    if name.endswith("_like") or name.startswith(("new_", "size")):
        return Reading("const")  # of the shape alone
    found = right.find(tensor) if real or not given or name == "written" else None
    odd = CUT | TURN | MEET | {"linear", "mul", "sum"}
    parts = any(each.part for each in real)
    if found and not found.right and name not in odd and not (found.part and parts):
        found = None  # a part of a tensor, by a maximum or by chance
    made_here = {5: "scores", 8: "context"}.get(role) if name in MEET else ""
    moves = name in TURN | CUT | KEEP and real
    if found and (made_here and found.family != made_here):
        found = None  # by chance, as where weights are summed
    if found and moves and found.family not in {each.family for each in real}:
        found = None
    if found:
        if found.family == "scores" and right.beside(tensor, found):
            state = right.state(tensor, found)
            found = replace(found, state=state, stage=found.stage if state else None)
        if name in MEET and found.axes:
            first = [each.axes[0] for each in real if each.axes]
            if found.axes[0] == "h" and "h" not in first or found.axes[-2:] == ("d", "n"):
                found = replace(found, stage=None, state=None)  # otherwise than what it was given
        if name not in CUT | TURN | MEET | {"linear", "written"} and any(
            not fits(each, right)
            for i, each in zip(op.given, given, strict=True)
            if each.family == found.family
            and made.trace.tensors[i].shape == tensor.shape
            and each.axes
            and each.stage is None
        ):
            found = replace(found, stage=None, state=None)  # number by number no order is mended
        return found
    family = max((each.family for each in real), key=FAMILIES.index, default="const")
    if name in MEET and real:
        family = {5: "scores", 8: "context"}.get(role, family)
    if layers and real:
        family = {2: "projected", 11: "out"}.get(role, family)
    like = next(
        (
            each
            for i, each in zip(op.given, given, strict=True)
            if each.family == family == "scores"
            and each.axes
            and made.trace.tensors[i].shape == tensor.shape
            and name not in CUT | TURN | MEET
        ),
        None,
    )
    who = " and ".join(dict.fromkeys(e.who for e in real if e.family == family and e.who))
    if like:
        return Reading(family, who, like.axes, None, 1.0, right.state(tensor, like), like.fixed)
    return Reading(family, who)


def kind(op: Op) -> str:
    """The plain name of a call: masked_fill for masked_fill_ and getitem for __getitem__."""
    return op.name.strip("_")


def role_of(op: Op, given: list[Reading], phase: int, normed: bool) -> int:
    """The step that a call is for: by what it is, what it gets, and how far forward has come."""
    name, at = kind(op), FAMILIES[phase]
    real = [each for each in given if each.family in FAMILIES[1:]]
    families = [each.family for each in given]
    first = real[0] if real else Reading("none")
    if name == "linear" or "layer" in families and real and name in MEET | {"add", "mul"}:
        layer = next((each.who for each in given if each.family == "layer"), "")
        of_out = layer.startswith("out_proj")
        of_three = layer.startswith(("W_query", "W_key", "W_value"))
        if (of_out or of_three) and (name != "linear" or at != "scores"):
            return 11 if at in ("context", "out") or of_out and first.family != "x" else 2
        if at in ("x", "projected"):
            return 2
        return 11 if at in ("context", "out") or first.family != "x" else 2
    if name in MEET:
        return 8 if any(e.family == "scores" for e in given) or phase >= 3 else 5
    if name in NORM and not (name in ("sum", "max", "min") and phase < 3):
        return 7
    if name == "setitem" and real:
        return _placing_step(real[-1], at)
    if (
        name in MASK
        or given
        and not real
        or "const" in families
        and phase >= 3
        and (name not in CUT | TURN and not _by_number(op, given))
    ):
        return 6
    if name in TURN | CUT:
        return _layout_step(op, name, first, at, phase, normed)
    if normed and first.family == "scores" and name == "mean":
        return 8
    return _elementwise_step(name, first, phase, at)


def _by_number(op: Op, given: list[Reading]) -> bool:
    """Whether a call scales or shifts by single numbers alone."""
    return kind(op) in SCALE and sum(each.family != "const" for each in given) > 1


def _placing_step(what: Reading, at: str) -> int:
    """The step of `out[:, head] = ...`."""
    if what.family == "context":
        return 10 if (what.stage or 8) >= 9 else 8
    return {"scores": 6 if at == "scores" else 8, "out": 11}.get(what.family, 4)


def _layout_step(op: Op, name: str, first: Reading, at: str, phase: int, normed: bool) -> int:
    """The step of a call that moves numbers and makes none."""
    if in_meeting(op.place) and (
        first.family in ("scores", "context")
        or first.family == "projected"
        and (first.stage or 0) >= 4
        or name in TURN
        and first.family == "none"
    ):
        return 8 if phase >= 3 else 5
    if at in ("context", "out"):
        if first.family == "out" or at == "out":
            return 11
        if name in TURN:
            return 8 if first.family == "context" and _turned(first) else 9
        joined = first.family == "context" and first.axes and first.axes[0] in ("bh", "hb")
        return 9 if joined else 10
    if first.stage == 4 and name in SHUFFLE:
        return 8 if first.who == "values" else 5
    if at == "scores" and first.family in ("scores", "none"):
        return 8 if normed else 5 if first.family == "scores" else 6
    if first.family == "x":
        return 2
    into = sum(type(each) is int for each in op.numbers)
    grouped = first.stage == 4 and name in ("view", "reshape", "flatten") and into < 4
    return 4 if name in TURN or grouped else 3


def _turned(reading: Reading) -> bool:
    return bool(reading.axes) and [a for a in reading.axes if a][-2:] == ["d", "n"]


def _elementwise_step(name: str, first: Reading, phase: int, at: str) -> int:
    """The step of a call that changes numbers one by one."""
    stage = first.stage or 0
    if first.family == "projected" and phase < 3:
        if name in SCALE | {"pow"} and "values" not in first.who:
            return 7
        return 2 if stage <= 3 else 8 if first.who == "values" else 5
    if first.family == "projected":
        return 8 if at in ("scores", "context") else 5
    if first.family == "context":
        return 8 if stage <= 8 and name not in ("mean", "sum", "amax") else 10
    return {"x": 2, "out": 11}.get(first.family, 7)


# The source


@functools.lru_cache(4096)
def in_meeting(place: Place | None) -> bool:
    """Whether a call stands inside a product of two tensors."""
    return any(named(each) in MEET for each in around(place)[1:])


@functools.lru_cache(4096)
def around(place: Place | None) -> tuple[ast.AST, ...]:
    """The node of a call, and what stands around it, up to its statement."""
    if place is None:
        return ()
    try:
        statement = ast.parse(place.statement)
    except SyntaxError:
        return ()
    parents = {child: node for node in ast.walk(statement) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(statement):
        stored = isinstance(getattr(node, "ctx", None), ast.Store)
        if isinstance(node, ast.expr) and not stored and ast.unparse(node) == place.expression:
            every = [node]
            while every[-1] in parents:
                every.append(parents[every[-1]])
            return tuple(each for each in every if not isinstance(each, ast.Module))
    return ()


def named(node: ast.AST) -> str:
    """The call that a node of the source stands for, as far as its text says."""
    if isinstance(node, ast.BinOp):
        names = {"Add": "add", "Sub": "sub", "Mult": "mul", "Div": "div", "MatMult": "matmul"}
        return names.get(type(node.op).__name__, type(node.op).__name__.lower())
    if isinstance(node, ast.Subscript):
        return "" if named(node.value) in ("shape", "size") else "getitem"
    if isinstance(node, ast.Attribute) and node.attr in TURN | {"shape"}:
        return node.attr
    if isinstance(node, ast.Call):
        function = node.func
        return (
            function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        ).strip("_")
    return ""


def operands(place: Place | None) -> Iterator[str]:
    """The texts of what a call is given, in order."""
    nodes = around(place)
    node = nodes[0] if nodes else None
    if isinstance(node, ast.BinOp):
        yield from map(ast.unparse, (node.left, node.right))
    elif isinstance(node, ast.Call):
        function = node.func
        if isinstance(function, ast.Attribute):
            whose = ast.unparse(function.value)
            if whose not in ("torch", "F", "nn", "nn.functional", "torch.nn.functional", "self"):
                yield whose
        given = [*node.args, *(each.value for each in node.keywords)]
        for each in given:
            parts = each.elts if isinstance(each, ast.List | ast.Tuple) else [each]
            yield from (ast.unparse(e) for e in parts if not _is_number(e))
    elif isinstance(node, ast.Attribute | ast.Subscript):
        yield ast.unparse(node.value)


def _is_number(node: ast.AST) -> bool:
    """Whether a node is a number or a text as it stands there."""
    node = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(node, ast.Constant)


def own_text(index: int, walked: Walk) -> str:
    """A tensor in the learner's words: the name it was given, else the call that made it."""
    for number in reversed(walked.makers.get(index, [])):
        place = walked.trace.ops[number].place
        nodes = around(place)
        if nodes and isinstance(nodes[-1], ast.Assign) and nodes[-1].value is nodes[0]:
            return ast.unparse(nodes[-1].targets[0])
        if place:
            return place.expression
    return walked.trace.layers.get(index, "x" if index in walked.trace.inputs else "")


def shown(tensor: torch.Tensor) -> str:
    """A shape in numbers."""
    return str(tuple(tensor.shape))
