"""Run a learner's class so that each expression's value can be read and replaced."""

import ast
import linecache
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

WATCHED = (
    ast.Call | ast.BinOp | ast.UnaryOp | ast.Compare | ast.Subscript | ast.Attribute | ast.Name
)
LIBRARIES = {"torch", "nn", "F", "math", "np"}


class NoSource(Exception):
    """The source of a class or function is not available."""


@dataclass(eq=False)
class Spot:
    """Hold one expression of the learner's source."""

    node: ast.AST
    number: int
    text: str
    line: int
    typed: str  # the text of the line
    function: str
    target: str  # the name that the whole expression is assigned to
    above: "Spot | None"  # the expression it is part of
    children: list["Spot"] = field(default_factory=list)
    row: list["Spot"] = field(default_factory=list)  # the values of one unpacking


class Watch:
    """Rebuild a learner's class or function from its source, with every expression watched.

    An expression E becomes `_put(i) if _enter(i) else _leave(i, E)`. So nothing has to be known of
    how it is written, an error has the very expression it comes from, and what is put in place of
    an expression is used by all that follows.
    """

    def __init__(self, what: type | FunctionType):
        self.spots: list[Spot] = []
        self.instead: dict[
            Spot, Callable[[int], Any]
        ] = {}  # replacement by spot: the value of the k-th visit
        self.seen: Callable[[Spot, Any], None] | None = None  # called with every value, if set
        self.open: list[Spot] = []  # entered but not left, so the last one raised
        self._times: dict[Spot, int] = {}
        namespace = _scope_of(what)
        namespace |= {"_enter": self._enter, "_put": self._put, "_leave": self._leave}
        for thing in [*_helpers(what, namespace), what]:
            node, lines = _source_of(thing)
            node = _Wrap(self.spots, lines).visit(node)
            if isinstance(node, ast.Lambda):
                node = ast.Assign([ast.Name("<lambda>", ast.Store())], node)
            tree = ast.fix_missing_locations(ast.Module([node], []))
            namespace |= {n: v for n, v in _scope_of(thing).items() if n not in namespace}
            exec(compile(tree, _function_of(thing).__code__.co_filename, "exec"), namespace)
        self.made = namespace[what.__name__]
        self.file = _function_of(what).__code__.co_filename

    def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function of the learner's."""
        self._times.clear()
        self.open.clear()
        return function(*args)

    def _enter(self, number: int) -> bool:
        spot = self.spots[number]
        self.open.append(spot)
        return spot in self.instead

    def _put(self, number: int) -> Any:
        spot = self.spots[number]
        self._times[spot] = self._times.get(spot, -1) + 1
        return self._leave(number, self.instead[spot](self._times[spot]))

    def _leave(self, number: int, value: Any) -> Any:
        spot = self.open.pop()
        if self.seen:
            self.seen(spot, value)
        return value


class _Wrap(ast.NodeTransformer):
    """Wrap the expressions in the bodies of functions."""

    def __init__(self, spots: list[Spot], lines: list[str]):
        self.spots, self.lines = spots, lines
        self.inside: list[Spot] = []
        self.function = ""
        self.targets: dict[int, str] = {}  # name by id of the assigned node

    def visit_FunctionDef(self, node):
        outer, self.function = self.function, node.name
        node.body = self._all(node.body)
        self.function = outer
        return node

    def _all(self, body):
        made = [self.visit(statement) for statement in body]
        return [s for some in made for s in (some if isinstance(some, list) else [some])]

    def visit_Lambda(self, node):
        outer, self.function = self.function, self.function or "lambda"
        node.body = self.visit(node.body)
        self.function = outer
        return node

    def visit_Assign(self, node):
        target, value, text = node.targets[0], node.value, ast.unparse(node)
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = list(zip(target.elts, value.elts, strict=False))
        self.targets |= {id(value): ast.unparse(target) for target, value in pairs}
        names = [t for t, value in pairs if isinstance(t, ast.Tuple) or _unwatched(value)]
        node.value = self.visit(value)
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            return [node, self._written(node, target.value.id, text)]
        return [node, *self._unpacked(node, names)]

    def visit_For(self, node):
        node.iter = self.visit(node.iter)
        node.body = [*self._unpacked(node, [node.target]), *self._all(node.body)]
        return node

    def _unpacked(self, node, targets):
        """Watch names that get their values by unpacking."""
        names = [n for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
        first = len(self.spots)
        written = [self._written(node, n.id, n.id) for n in names if isinstance(n.ctx, ast.Store)]
        row = self.spots[first:]
        for spot in row if len(row) > 1 else ():
            spot.row = row
        return written

    def visit_AugAssign(self, node):
        text, named = ast.unparse(node), isinstance(node.target, ast.Name)
        node.value = self.visit(node.value)
        return [node, self._written(node, node.target.id, text)] if named else node

    def visit_Expr(self, node):
        text = ast.unparse(node)
        function = getattr(node.value, "func", None)  # scores.masked_fill_(...), not assigned
        base = getattr(function, "value", None)
        written = isinstance(base, ast.Name) and function.attr.endswith("_")
        self.generic_visit(node.value if written else node)  # without its result, which is not used
        return [node, self._written(node, base.id, text)] if written else node

    def _written(self, node, name, text):
        """Watch what a name holds once a statement has written into it."""
        spot = self._spot(node)
        spot.text, spot.target = text, name
        value = self._wrapped(spot, ast.Name(name, ast.Load()))
        return ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], value), node)

    def visit_JoinedStr(self, node):
        return node

    visit_Assert = visit_Raise = visit_JoinedStr  # what checks and messages compute is no step

    def visit(self, node):
        if not isinstance(node, WATCHED) or not self.function or not _is_value(node):
            return super().visit(node)
        spot = self._spot(node)
        self.inside.append(spot)
        if isinstance(node, ast.Call):  # a method is no value, what it is called on is one
            if isinstance(node.func, ast.Attribute):
                node.func.value = self.visit(node.func.value)
            node.args = [self.visit(arg) for arg in node.args]
            node.keywords = [self.generic_visit(word) for word in node.keywords]
        else:
            node = self.generic_visit(node)
        self.inside.pop()
        return self._wrapped(spot, node)

    def _spot(self, node) -> Spot:
        line = node.lineno
        if isinstance(node, ast.Call):  # in a chain over several lines, that of the method
            line = node.func.end_lineno
        elif isinstance(node, ast.Attribute):
            line = node.end_lineno
        typed, target = self.lines[line - 1].strip(), self.targets.get(id(node), "")
        above = self.inside[-1] if self.inside else None
        text = ast.unparse(node)
        spot = Spot(node, len(self.spots), text, line, typed, self.function, target, above)
        if above:
            above.children.append(spot)
        self.spots.append(spot)
        return spot

    @staticmethod
    def _wrapped(spot, node):
        def call(name, *args):
            return ast.Call(ast.Name(name, ast.Load()), [ast.Constant(spot.number), *args], [])

        new = ast.IfExp(call("_enter"), call("_put"), call("_leave", node))
        return ast.copy_location(new, node)


def _unwatched(value) -> bool:
    """Say whether an assigned expression has no spot of its own."""
    return not isinstance(value, WATCHED | ast.Constant | ast.Tuple) or not _is_value(value)


def _is_value(node) -> bool:
    """Say whether an expression has a value to watch: no module, self or super()."""
    if isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
        return False
    root = node
    while isinstance(root, ast.Attribute):
        root = root.value
    if isinstance(root, ast.Name) and root.id in LIBRARIES:
        return False
    parts = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return "super" not in parts and not (isinstance(node, ast.Name) and node.id == "self")


def _function_of(what: type | FunctionType) -> FunctionType:
    """Return a function, or the first function of a class."""
    every = [what] if isinstance(what, FunctionType) else vars(what).values()
    plain = (getattr(one, "__func__", getattr(one, "fget", one)) for one in every)
    function = next((one for one in plain if isinstance(one, FunctionType)), None)
    if function is None:
        raise NoSource(f"{what.__name__} has no function of its own")
    return function


def _scope_of(what: type | FunctionType) -> dict[str, Any]:
    """Return the names around a class or function, from its file and enclosing functions."""
    functions = [what] if isinstance(what, FunctionType) else vars(what).values()
    scope = dict(_function_of(what).__globals__)
    for function in functions:
        if isinstance(function, FunctionType):
            cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
            scope |= {name: _content(cell) for name, cell in cells if name != "__class__"}
    return scope


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is not set yet
        return None


def _source_of(what: type | FunctionType) -> tuple[ast.AST, list[str]]:
    """Return the syntax tree and the lines of a class or function.

    Raises:
        NoSource: there is none.
    """
    code = _function_of(what).__code__
    lines = linecache.getlines(code.co_filename)
    kind = {"<lambda>": ast.Lambda}.get(what.__name__, ast.ClassDef | ast.FunctionDef)
    try:
        nodes = [*ast.walk(ast.parse("".join(lines)))]
    except SyntaxError as error:
        raise NoSource("its file has changed") from error
    for node in nodes:
        named = isinstance(node, kind) and getattr(node, "name", "<lambda>") == what.__name__
        if named and node.lineno <= code.co_firstlineno + 1 <= node.end_lineno + 1:
            return node, lines
    raise NoSource(f"the source of {what.__name__} is not to be had")


def _helpers(what: type | FunctionType, namespace: dict[str, Any]) -> list[type | FunctionType]:
    """List the learner's functions and classes that a class uses, dependencies first."""
    found: list[type | FunctionType] = []

    def look(thing: type | FunctionType) -> None:
        names = {n.id for n in ast.walk(_source_of(thing)[0]) if isinstance(n, ast.Name)}
        for name in sorted(names):
            used = namespace.get(name)
            own = isinstance(used, type | FunctionType) and used.__module__ == what.__module__
            if own and used.__name__ == name and used not in (what, thing, *found):
                try:
                    look(used)
                except NoSource:
                    continue
                found.append(used)

    look(what)
    return found
