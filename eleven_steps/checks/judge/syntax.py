"""What a call is: what it is called, what its place in the source says, which step it is for.

No tensor is looked at: what one holds is read elsewhere, and comes as a Reading.
"""

import ast
import functools
import textwrap
from collections.abc import Iterator, Sequence

from eleven_steps.checks.judge.read import FAMILIES, Reading
from eleven_steps.checks.know.sentences import read_toml
from eleven_steps.checks.run.cases import LAYERS
from eleven_steps.checks.run.places import Place
from eleven_steps.checks.run.recording import Op

# The calls by what they do.
_CALLS = {what: frozenset(e.split()) for what, e in read_toml("torch.toml")["calls"].items()}
TURN, CUT, MEET, MASK, NORM = (_CALLS[e] for e in ("turn", "cut", "meet", "mask", "norm"))
SHUFFLE, KEEP, SCALE, WHOLE = (_CALLS[e] for e in ("shuffle", "keep", "scale", "whole"))
REGROUPS, LAYERED = {"view", "reshape", "flatten"}, MEET | {"add", "mul"}
TAKES_APART = {"chunk", "split", "tensor_split", "unbind", "getitem"}  # queries, keys and values


@functools.lru_cache(4096)
def in_meeting(place: Place | None) -> bool:
    """Whether a call stands inside a product of two tensors."""
    return any(call_name(call) in MEET for call in around(place)[1:])


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
        stored = isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store)
        call = isinstance(node, ast.expr | ast.AugAssign) and not stored
        if call and ast.unparse(node) == place.expression:
            every = [node]
            while every[-1] in parents:
                every.append(parents[every[-1]])
            return tuple(inside for inside in every if not isinstance(inside, ast.Module))
    return ()


def call_name(node: ast.AST) -> str:
    """The call that a node of the source stands for, as far as its text says."""
    if isinstance(node, ast.BinOp | ast.AugAssign):
        names = {"Add": "add", "Sub": "sub", "Mult": "mul", "Div": "div", "MatMult": "matmul"}
        return names.get(type(node.op).__name__, type(node.op).__name__.lower())
    if isinstance(node, ast.Compare):
        name = type(node.ops[0]).__name__
        return {"GtE": "ge", "LtE": "le", "NotEq": "ne"}.get(name, name.lower())
    if isinstance(node, ast.Subscript):
        return "" if call_name(node.value) in ("shape", "size") else "getitem"
    if isinstance(node, ast.Attribute) and node.attr in TURN | {"shape"}:
        return node.attr
    if isinstance(node, ast.Call):
        function = node.func
        return getattr(function, "attr", getattr(function, "id", "")).strip("_")
    return ""


def of_self(node: ast.AST | None) -> str:
    """The attribute of self that a node is; "" for any other."""
    own = isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self"
    return node.attr if own else ""


def dropped_call(place: Place | None) -> str:
    """What a line calls, where it makes something and gives it no name; "" for any other."""
    nodes = around(place)
    if not nodes or not isinstance(nodes[-1], ast.Expr) or nodes[-1].value is not nodes[0]:
        return ""
    function = getattr(nodes[0], "func", None)
    name = getattr(function, "attr", getattr(function, "id", call_name(nodes[0])))
    return "" if name.endswith("_") else name  # which works in place


def operands(place: Place | None) -> Iterator[str]:
    """The texts of what a call is given, in order."""
    nodes = around(place)
    node = nodes[0] if nodes else None
    if isinstance(node, ast.BinOp):
        yield from map(ast.unparse, (node.left, node.right))
    elif isinstance(node, ast.AugAssign):
        yield from map(ast.unparse, (node.target, node.value))
    elif isinstance(node, ast.Compare):
        yield from map(ast.unparse, (node.left, *node.comparators))
    elif isinstance(node, ast.Call):
        function = node.func
        if isinstance(function, ast.Attribute):
            whose = ast.unparse(function.value)
            if whose not in ("torch", "F", "nn", "nn.functional", "torch.nn.functional", "self"):
                yield whose
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        for argument in given:
            parts = argument.elts if isinstance(argument, ast.List | ast.Tuple) else [argument]
            plain = (getattr(e, "operand", e) for e in parts)  # without a minus
            for part, number in zip(parts, plain, strict=True):
                if not isinstance(number, ast.Constant):
                    yield ast.unparse(part)
    elif isinstance(node, ast.Attribute | ast.Subscript):
        yield ast.unparse(node.value)


@functools.lru_cache(64)
def parsed(source: str) -> ast.AST:
    """The tree of a source, which may be indented; an empty one where it is none."""
    try:
        return ast.parse(textwrap.dedent(source))
    except SyntaxError:
        return ast.Module([], [])


def place_of(node: ast.AST, first: int, expression: str = "") -> Place:
    """The place of a node in a source whose first line has this number, with its own text."""
    text = ast.unparse(node)
    return Place(node.lineno + first - 1, text, text, expression)


@functools.lru_cache(64)
def set_in(tree: ast.AST, line: int) -> dict[str, list[ast.AST]]:
    """What each name of the function around a line is set to."""
    found: dict[str, list[ast.AST]] = {}
    every = (function for function in ast.walk(tree) if isinstance(function, ast.FunctionDef))
    own = next((e for e in every if e.lineno <= line <= e.end_lineno), tree)
    setting = ast.Assign | ast.AnnAssign | ast.For
    for node in (statement for statement in ast.walk(own) if isinstance(statement, setting)):
        value, target = target_of(node)
        for part in ast.walk(target) if value else ():
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                # A value stands where its statement begins.
                found.setdefault(part.id, []).append(ast.copy_location(value, node))
    return found


@functools.lru_cache(64)
def returning_nothing(source: str) -> list[ast.FunctionDef]:
    """The functions of a source that return nothing, though forward, or a call, makes use of it."""
    every = [*ast.walk(parsed(source))]
    alone = {node.value for node in every if isinstance(node, ast.Expr)}
    used = {call_name(node) for node in every if isinstance(node, ast.Call) and node not in alone}
    functions = [e for e in every if isinstance(e, ast.FunctionDef)]
    functions = [e for e in functions if e.name.strip("_") in {*used, "forward"}]
    hands = ast.Return | ast.Yield | ast.YieldFrom
    return [e for e in functions if not any(isinstance(n, hands) and n.value for n in ast.walk(e))]


def target_of(node: ast.Assign | ast.AnnAssign | ast.For) -> tuple[ast.expr, ast.expr]:
    """What a statement gives a name to, and the name."""
    if isinstance(node, ast.For):
        return node.iter, node.target
    return node.value, node.target if isinstance(node, ast.AnnAssign) else node.targets[0]


# The step that a call is for: by what it is, what it gets, and how far forward has come


def op_name(op: Op) -> str:
    """The plain name of a call: masked_fill for masked_fill_; an einsum of one tensor turns it."""
    return "permute" if op.name == "einsum" and len(op.given) == 1 else op.name.strip("_")


class _Call:
    """What tells the step of a call: what it is, what it gets, and how far forward has come."""

    def __init__(self, op: Op, given: list[Reading], phase: int, normed: bool):
        self.name, self.at, self.normed = op_name(op), FAMILIES[phase], normed
        self.families = [reading.family for reading in given]
        self.real = [reading for reading in given if reading.family in FAMILIES[1:]]
        self.first = first = self.real[0] if self.real else Reading("none")
        self.furthest = max(self.real, key=lambda e: FAMILIES.index(e.family), default=first)
        self.layer = next((reading.who for reading in given if reading.family == "layer"), "")
        self.layered = self.name == "linear" or self.layer and self.real and self.name in LAYERED
        self.scored = phase >= 3  # whether there are scores
        self.sizes = sum(type(number) is int for number in op.numbers)  # how many it is told
        self.family, self.state, self.axes = first.family, first.state, "".join(first.axes or ())
        self.grown = first.family == "scores" and first.state and first.state.grown
        self.weighed = self.grown and self.state.whole
        self.raw = first.family == "scores" and not self.grown
        self.shuffles = first.stage == 4 and self.name in SHUFFLE
        # whether it lays out what meets next, inside of the product or where heads come first
        by_head = first.family == "projected" and (first.stage or 0) >= 4
        turns = self.name in TURN and first.family == "none"
        late = by_head or first.family == "scores" or turns
        self.to_meet = in_meeting(op.place) and late
        self.pair = self.name == "mul" and {"queries", "keys"} <= {e.who for e in self.real}
        # the heads whose contexts meet
        self.heads = {dict(e.fixed).get("h") for e in self.real if e.family == "context"}


def step_for(op: Op, given: list[Reading], phase: int, normed: bool) -> int:
    """Return 1 to 11; phase is a number in FAMILIES, normed whether scores have met a softmax."""
    return _by_table(STEP_OF, _Call(op, given, phase, normed))


def _by_table(rows: Sequence, call: _Call) -> int:
    """The step of the first row that holds, which may be told by a table or function of its own."""
    step = next(step for holds, step in rows if holds(call))
    return step if isinstance(step, int) else step(call)


def _layer_step(c: _Call) -> int:
    if c.layer.startswith("W_gate"):
        return 10
    of_out = c.layer.startswith("out_proj")
    told = of_out or c.layer.startswith(LAYERS[:3])
    told = told and (c.name != "linear" or c.family != "scores")
    late = of_out if told else c.at not in ("x", "projected")
    after = c.at in ("context", "out") or late
    own = c.first.family != "x" or of_out and c.at not in ("x", "projected")
    return 11 if after and own else 2


def _made_of_products(c: _Call) -> bool:
    """Whether scores and values meet number by number, or their products are summed."""
    products = c.first.part and c.first.family in ("context", "projected")
    summed = c.name in ("sum", "mean") and products
    return c.scored and (summed or c.name == "mul" and {"scores", "projected"} <= {*c.families})


def _over_heads(c: _Call) -> bool:
    """Whether heads, or numbers of no scores yet, are joined: that is no part of a softmax."""
    context = c.first.family == "context" and not c.first.part
    joins = context and c.name in ("sum", "amax", "max")
    return joins or c.name in ("sum", "max", "min") and not c.scored


def _numbers_step(c: _Call) -> int:
    """What works number by number: the step of the tensor that has come furthest."""
    family, who, stage = c.furthest.family, c.furthest.who, c.furthest.stage or 0
    if family == "projected" and not c.scored:
        if c.name in SCALE | {"pow"} and "values" not in who:
            return 7
        return 2 if stage <= 3 else 8 if who == "values" else 5
    if family == "projected":
        return 8 if c.at in ("scores", "context") else 5
    if family == "context":
        return 8 if stage <= 8 and c.name not in ("mean", "sum", "amax") else 10
    return {"x": 2, "out": 11}.get(family, 7)


def _written_step(c: _Call) -> int:
    """The step of what is written into a part of a tensor."""
    scores = 6 if c.at == "scores" else 8
    context = 9 if "h" in dict(c.real[-1].fixed) else 8  # of one head, beside the others
    return {"scores": scores, "context": context, "out": 11}.get(c.real[-1].family, 4)


# The tables. A row holds once those above it do not: what is surer to tell comes first.
LAID_EARLY = (  # before there is a context
    (lambda c: c.shuffles and "g" in c.axes, 4),  # key heads on their way to each query head
    (lambda c: c.shuffles, lambda c: 8 if c.first.who == "values" else 5),
    (lambda c: c.raw and c.name not in TURN, 5),
    (lambda c: c.grown and c.name not in TURN | {"cat", "stack"}, 7),
    (lambda c: c.grown, 8),  # weights turn for nothing but to meet values
    (lambda c: "w" in c.axes and c.name in TAKES_APART, lambda c: max(c.first.stage or 2, 2)),
    (lambda c: c.family == "x", 2),
    (lambda c: c.name in TURN, 4),
    (lambda c: c.first.stage in (3, 4) and c.name in REGROUPS and c.sizes < 4, 4),
    (lambda c: True, 3),
)
LAID = (
    (lambda c: c.to_meet, lambda c: 8 if c.scored else 5),
    (lambda c: c.at == "out" or c.at == "context" and c.family == "out", 11),
    (
        lambda c: c.at != "context" and (c.at != "scores" or c.real),
        lambda c: _by_table(LAID_EARLY, c),
    ),
    (lambda c: c.name in TURN, 9),
    (lambda c: c.family == "context" and c.first.axes and c.first.axes[0] in ("bh", "hb"), 9),
    (lambda c: True, 10),
)
STEP_OF = (
    (lambda c: c.layered, _layer_step),
    # x, queries, keys or values, not grouped yet, and nothing they meet in any step
    (lambda c: c.name in MEET and len(c.real) == 1 and c.first.stage in (1, 2), 2),
    (lambda c: (c.name in MEET or c.pair) and ("scores" in c.families or c.scored), 8),
    (lambda c: c.name in MEET or c.pair, 5),
    (_made_of_products, 8),
    (lambda c: "add" in c.name and len(c.heads) > 1, 10),
    (lambda c: c.name == "sum" and c.raw and c.state and c.state.hidden == "none", 5),  # over heads
    (lambda c: c.name == "sum" and c.raw and c.first.part and not c.axes, 5),  # over features
    (lambda c: c.name in NORM and not _over_heads(c), 7),
    (lambda c: c.name == "setitem" and c.real, _written_step),
    (lambda c: c.name in MASK or c.families and not c.real, 6),
    (
        lambda c: "const" in c.families and c.scored and not c.weighed and c.name not in CUT | TURN,
        6,
    ),
    (lambda c: c.name in TURN | CUT, lambda c: _by_table(LAID, c)),
    (lambda c: c.normed and c.family == "scores" and c.name == "mean", 8),
    (lambda c: True, _numbers_step),
)
