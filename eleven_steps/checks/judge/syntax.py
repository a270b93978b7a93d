"""What calls are called, and what a place in the learner's source says of one."""

import ast
import functools
import textwrap
from collections.abc import Iterator

from eleven_steps.checks.run.places import Place


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# The calls by what they do: move axes, cut and join, multiply two tensors, hide, make weights,
# change the order, keep the numbers, scale.
TURN = _names("T adjoint mH mT moveaxis movedim permute swapaxes swapdims t transpose")
CUT = _names(
    """as_strided cat chunk concat concatenate contiguous expand expand_as flatten flip getitem
    hstack index_select narrow pad repeat repeat_interleave reshape roll select setitem split
    squeeze stack tensor_split unbind unflatten unsqueeze view view_as vstack"""
)
MEET = _names(
    """addmm baddbmm bilinear bmm cdist dot einsum inner matmul mm mv rmatmul
    scaled_dot_product_attention tensordot"""
)
MASK = _names(
    """arange bool eq eye full ge gt invert le logical_and logical_not logical_or lt masked_fill
    masked_scatter ne ones ones_like tril triu where zeros zeros_like"""
)
NORM = _names("amax amin dropout exp log_softmax logsumexp max min sigmoid softmax sum")
SHUFFLE = _names("expand flip getitem index_select narrow pad repeat roll")
KEEP = _names("clone contiguous detach double dropout float requires_grad to type written")
SCALE = _names("div divide floor_divide floordiv mul multiply rdiv rmul rtruediv truediv")


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
        if isinstance(node, ast.expr) and not stored and ast.unparse(node) == place.expression:
            every = [node]
            while every[-1] in parents:
                every.append(parents[every[-1]])
            return tuple(inside for inside in every if not isinstance(inside, ast.Module))
    return ()


def call_name(node: ast.AST) -> str:
    """The call that a node of the source stands for, as far as its text says."""
    if isinstance(node, ast.BinOp):
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
    name = getattr(function, "attr", getattr(function, "id", ""))
    return "" if name.endswith("_") else name  # which works in place


def operands(place: Place | None) -> Iterator[str]:
    """The texts of what a call is given, in order."""
    nodes = around(place)
    node = nodes[0] if nodes else None
    if isinstance(node, ast.BinOp):
        yield from map(ast.unparse, (node.left, node.right))
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
            signed = ((e, e.operand if isinstance(e, ast.UnaryOp) else e) for e in parts)
            yield from (
                ast.unparse(e) for e, plain in signed if not isinstance(plain, ast.Constant)
            )
    elif isinstance(node, ast.Attribute | ast.Subscript):
        yield ast.unparse(node.value)


# A whole source


@functools.lru_cache(64)
def parsed(source: str) -> ast.AST:
    """The tree of a source, which may be indented; an empty one where it is none."""
    try:
        return ast.parse(textwrap.dedent(source))
    except SyntaxError:
        return ast.Module([], [])


@functools.lru_cache(64)
def set_in(tree: ast.AST, line: int) -> dict[str, list[tuple[int, ast.AST]]]:
    """The lines at which each name of the function around a line is set, and what it is set to."""
    found: dict[str, list[tuple[int, ast.AST]]] = {}
    every = (statement for statement in ast.walk(tree) if isinstance(statement, ast.FunctionDef))
    own = next(
        (function for function in every if function.lineno <= line <= function.end_lineno), tree
    )
    for node in (
        statement for statement in ast.walk(own) if isinstance(statement, ast.Assign | ast.For)
    ):
        value, target = target_of(node)
        for part in ast.walk(target):
            if isinstance(part, ast.Name):
                found.setdefault(part.id, []).append((node.lineno, value))
    return found


def target_of(node: ast.Assign | ast.For) -> tuple[ast.expr, ast.expr]:
    """What a statement gives a name to, and the name."""
    if isinstance(node, ast.For):
        return node.iter, node.target
    return node.value, node.targets[0]
