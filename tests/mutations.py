"""Small changes of a right class, each on a line that says which step it is for.

A mutation replaces a piece of the text, and every other line stays as it is typed. So the number
of the changed line is the number that a learner sees.
"""

import ast
import itertools
import re
from dataclasses import dataclass

OPERATORS = {ast.Mult: "/+", ast.Div: "*", ast.Add: "-*", ast.Sub: "+", ast.FloorDiv: "*"}
OPERATORS |= {ast.Pow: "*/"}
METHODS = {"triu": "tril", "tril": "triu", "softmax": "sigmoid", "amax": "amin"}
GROUPS = ["W_query", "W_key", "W_value", "out_proj"], ["head_dim", "num_heads", "d_out"]
MODULES = {"torch", "F", "nn", "math", "self"}
SIZES = {"b", "n", "B", "T", "_", "d_in", "num_tokens"}  # names that nobody takes for a tensor's


@dataclass(frozen=True)
class Mutation:
    """One replaced piece of a source, and the line and the steps that a judge should name."""

    begin: int
    end: int
    text: str
    line: int
    steps: tuple[int, ...]
    words: str


class Source(str):
    """A source without its labels, which knows where the nodes of its tree are."""

    def __new__(cls, labelled):
        return super().__new__(cls, re.sub(r"(?m)  # s\d.*$", "", labelled))

    def span(self, node):
        """Return where a node begins and ends."""
        starts = [0, 0, *itertools.accumulate(map(len, self.splitlines(keepends=True)))]
        return starts[node.lineno] + node.col_offset, starts[node.end_lineno] + node.end_col_offset

    def of(self, node):
        """Return the text of a node."""
        return self[slice(*self.span(node))]

    def operator(self, left, right):
        """Return where the operator between two nodes begins and ends."""
        begin, end = self.span(left)[1], self.span(right)[0]
        found = re.search(r"[-+*/%@<>=!]+", self[begin:end])
        return begin + found.start(), begin + found.end()


def labels(labelled):
    """Return the steps of each labelled line, by its number."""
    lines = enumerate(labelled.splitlines(), 1)
    steps = {number: re.findall(r"\bs(\d+)", line.partition("  # ")[2]) for number, line in lines}
    return {number: tuple(map(int, found)) for number, found in steps.items() if found}


def mutated(labelled, *mutations):
    """Return a source without labels, with some mutations that do not overlap."""
    source = Source(labelled)
    for each in sorted(mutations, key=lambda each: -each.begin):
        source = source[: each.begin] + each.text + source[each.end :]
    return str(source)


def mutations(labelled):
    """Return all mutations of a labelled source that Python can parse, each text once."""
    source, steps = Source(labelled), labels(labelled)
    found, seen = [], {str(source)}
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        nodes = [*ast.walk(function)]
        stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        for begin, end, text in (
            edit for node in nodes for edit in edits(node, source, sorted(stored - SIZES))
        ):
            line = source.count("\n", 0, begin) + 1
            new = source[:begin] + text + source[end:]
            if line in steps and new not in seen and parses(new):
                seen.add(new)
                words = " ".join(f"{source[begin:end]} -> {text or 'nothing'}".split())
                found.append(Mutation(begin, end, text, line, steps[line], words))
    return found


def parses(source):
    """Tell whether Python can parse a source."""
    try:
        return bool(ast.parse(source))
    except SyntaxError:
        return False


def edits(node, source, stored):
    """Yield what can be typed in place of a node: where it begins, where it ends, the text."""

    def whole(*texts):
        return ((*source.span(node), text) for text in texts)

    match node:
        case ast.Constant(value=bool(value)):
            yield from whole(str(not value))
        case ast.Constant(value=int(value)):
            yield from whole(str(value + 1), str(value - 1), str(-value))
        case ast.Constant(value=float(value)):
            yield from whole("1.0", str(2 * value))
        case ast.Constant(value="-inf"):
            yield from whole('"0"', '"inf"', '"-1"')
        case ast.Constant(value=str(value)) if "->" in value:
            left, right = value.split("->")
            orders = map("".join, itertools.permutations(right))
            yield from whole(*(f'"{left}->{order}"' for order in orders))
        case ast.BinOp(left=left, op=op, right=right):
            begin, end = source.operator(left, right)
            yield from ((begin, end, other) for other in OPERATORS.get(type(op), ""))
            between = source[source.span(left)[1] : source.span(right)[0]]
            if isinstance(op, ast.MatMult | ast.Div | ast.Sub | ast.Pow) and "(" not in between:
                yield from whole(f"{source.of(right)}{between}{source.of(left)}")
        case ast.UnaryOp(operand=operand):
            yield source.span(node)[0], source.span(operand)[0], ""
        case ast.Compare(left=left, comparators=[right]):
            place = source.operator(left, right)
            yield from ((*place, other) for other in (">=", "<", "!="))
        case ast.Name(id=name, ctx=ast.Load()) if name in stored:
            yield from whole(*(other for other in stored if other != name))
        case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Load()):
            others = {f"self.{other}" for group in GROUPS if name in group for other in group}
            yield from whole(*sorted(other for other in others if other in source))
        case ast.Slice(lower=None, upper=ast.expr() as upper, step=None):
            yield from whole(f"-{source.of(upper)}:")
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in stored:
            if re.search(rf"\b{name}\b", source.of(value)):
                yield from whole("pass" + "\n" * source.of(node).count("\n"))
        case ast.Call(func=ast.Attribute(value=base, attr=name) as called, args=args):
            after = source.span(base)[1]
            dot = after + len(source[after:]) - len(source[after:].lstrip())
            if not isinstance(base, ast.Name) or base.id not in MODULES:
                if name != "__init__":
                    yield dot, source.span(node)[1], ""
            elif args and base.id != "nn" and "\n" not in source.of(node):
                yield from whole(source.of(args[0]))
            if other := METHODS.get(name):
                end = source.span(called)[1]
                yield end - len(name), end, other
            for one, two in itertools.pairwise(args):
                begin, end = source.span(one)[0], source.span(two)[1]
                between = source[source.span(one)[1] : source.span(two)[0]]
                yield begin, end, f"{source.of(two)}{between}{source.of(one)}"
