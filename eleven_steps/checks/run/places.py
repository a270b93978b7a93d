"""Where something stands in a learner's source, and what a function uses that it is not given."""

import ast
import copy
import functools
import inspect
import linecache
import math
import os
import re
import site
from collections import ChainMap
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from itertools import chain, starmap
from pathlib import Path
from types import CodeType
from typing import Any

import torch
from torch import nn

LIBRARY = Path(__file__).parents[2]
FOLDERS = LIBRARY, LIBRARY.parent / "helpers", Path(torch.__file__).parent
OUR_FILES = tuple(f"{folder}{os.sep}" for folder in FOLDERS)
PACKAGES = tuple(site.getsitepackages())
EDITED = ", edited, "  # in the name of a file that the catalogue makes
MOST_SOURCE = 20_000  # characters
Function = ast.FunctionDef | ast.Lambda
CONTROL = re.compile("[\0-\b\v-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True)
class Failure:
    """An exception that a learner's code raised: its text, and their line where it happened."""

    text: str
    line: str = ""
    number: int = 0  # of the line, known where its text is not; 0 where none of theirs was reached

    @classmethod
    def of(cls, error: BaseException) -> "Failure":
        """What is kept of an exception."""
        steps = own_steps(error)
        if not steps:
            return cls(_text(error))
        file, number = steps[-1].tb_frame.f_code.co_filename, steps[-1].tb_lineno
        return cls(_text(error), linecache.getline(file, number).strip(), number)

    @property
    def told(self) -> str:
        """The text, with the line if there is one."""
        return f"{self.text} in `{self.line}`" if self.line else self.text


def visible(text: str) -> str:
    """A text in which what steers a terminal, or turns the writing, is spelt out."""
    return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def _text(error: BaseException) -> str:
    """Name and message of an error on one line; its own __str__ may be broken."""
    try:
        message = visible(" ".join(str(error).split()))
    except BaseException:
        message = ""
    name = str(type(error).__name__)
    short = message if len(message) <= 160 else message[:159] + "…"
    return f"{name}: {short}" if short else name


@dataclass(frozen=True)
class Place:
    """Where a call stands in the learner's source."""

    line: int
    text: str  # the line as it is written
    statement: str = ""  # the whole statement, on one line
    expression: str = ""  # the call itself


def is_theirs(file: str) -> bool:
    """Whether a file is neither ours nor torch's; what the catalogue makes counts as theirs."""
    return not file.startswith(OUR_FILES) or EDITED in file


def tracebacks(error: BaseException) -> Iterator[Any]:
    """The steps of an error's traceback, from the outermost in."""
    step = error.__traceback__
    while step:
        yield step
        step = step.tb_next


def own_steps(error: BaseException) -> list[Any]:
    """The steps of an error's traceback in a learner's own lines."""
    ours = *OUR_FILES, "<frozen"
    files = ((step, step.tb_frame.f_code.co_filename) for step in tracebacks(error))
    return [step for step, file in files if not file.startswith(ours)]


def tree_of(file: str, scope: dict[str, Any] | None = None) -> ast.Module:
    """The syntax tree of a file; an empty one where its source is not to be had."""
    try:
        return ast.parse("".join(linecache.getlines(file, scope)))
    except SyntaxError:
        return ast.Module([], [])


@functools.lru_cache(256)
def positions_of(code: CodeType) -> list[tuple]:
    """Where each instruction of some code stands: line, last line, column, last column."""
    return list(code.co_positions())


def statement_at(file: str, line: int) -> ast.stmt | None:
    """The plain statement that stands at a line, where the source is known."""
    return _nodes(file, len(linecache.getlines(file))).get((line,))


@functools.lru_cache(32)
def _nodes(file: str, size: int) -> dict[tuple, ast.AST]:
    """The nodes of a file by where they stand, and by each of its lines the plain statement."""
    nodes: dict[tuple, ast.AST] = {}
    for node in ast.walk(tree_of(file)):
        if isinstance(node, ast.stmt | ast.expr):
            at = node.lineno, node.end_lineno, node.col_offset, node.end_col_offset
            if not isinstance(node, ast.Expr):
                nodes.setdefault(at, node)
            if isinstance(node, ast.Call):  # of a chain over lines its end alone is told
                nodes.setdefault((node.end_lineno, node.end_col_offset), node)
        if isinstance(node, ast.stmt):
            after = node.end_lineno + 1
            if body := getattr(node, "body", ()):  # its head is a statement
                after, node = body[0].lineno, copy.copy(node)
                node.body, node.orelse = [ast.Pass()], []
            for line in range(node.lineno, after):
                nodes.setdefault((line,), node)
    return nodes


@functools.lru_cache(4096)
def placed(file: str, position: tuple) -> Place:
    """The place of a position, (line, last line, column, last column)."""
    line, last, _, end = position
    lines = linecache.getlines(file)
    nodes = _nodes(file, len(lines))
    node, statement = nodes.get(position) or nodes.get((last, end)), nodes.get((line,))
    if isinstance(node, ast.Call) and last and last != line:  # a chain: its own line is its end
        line = node.func.end_lineno
    text = lines[line - 1].strip() if line and line <= len(lines) else ""
    whole = ast.unparse(statement) if statement else text
    own = ast.unparse(node) if isinstance(node, ast.expr | ast.AugAssign) else text
    return Place(line or 0, text, whole, own)


def source_around(answer: Any) -> tuple[str, int]:
    """The source of a class or function and its first line's number; "" where there is none."""
    forwards = (vars(cls).get("forward") for cls in getattr(answer, "__mro__", ()))
    plain = (inspect.unwrap(function) for function in (answer, *forwards) if function is not None)
    codes = (getattr(function, "__code__", None) for function in plain)
    code = next(filter(None, codes), None)
    if isinstance(code, CodeType):
        for node in tree_of(code.co_filename).body:
            first = min(part.lineno for part in (node, *getattr(node, "decorator_list", ())))
            if first <= code.co_firstlineno <= node.end_lineno:
                lines = linecache.getlines(code.co_filename)[node.lineno - 1 : node.end_lineno]
                return "".join(lines)[:MOST_SOURCE], node.lineno
    return "", 1


def source_of(code: CodeType) -> tuple[str, int]:
    """The source of a function and its first line's number; "" where there is none."""
    for node in ast.walk(tree_of(code.co_filename)):
        if isinstance(node, ast.FunctionDef) and _is_of(node, code):
            lines = linecache.getlines(code.co_filename)[node.lineno - 1 : node.end_lineno]
            return "".join(lines)[:MOST_SOURCE], node.lineno
    return "", 1


# What a function uses besides what it is given; of code without source nothing is said


def names_read(function: Any) -> dict[str, list]:
    """What a function reads of the notebook, and what stands in its code.

    Returns:
        names: each global that holds a tensor, a number or a module.
        called: the names in its code, of what it calls for one; known without its source too.
        constants: the numbers above 0 in the code.
    """
    if isinstance(function, type):
        function = vars(function).get("forward")
    elif isinstance(function, nn.Module):
        function = vars(type(function)).get("forward")
    code = getattr(function, "__code__", None)
    called = sorted(_named(code)) if isinstance(code, CodeType) else []
    found = {"names": [], "constants": [], "called": called}
    node = node_of(function)
    if node is None:
        return found
    scope = function.__globals__
    names = sorted(scope.keys() & _read(node, function.__code__))
    constants = sorted({size.value for size in _sizes(node)})
    return found | {"names": [n for n in names if _is_own(scope[n])], "constants": constants}


def _named(code: CodeType) -> set[str]:
    """The names in a function's code, and in the code of functions within."""
    return {name for part in _codes(code) for name in part.co_names}


def _codes(code: CodeType) -> list[CodeType]:
    """The code of a function, and that of functions within."""
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return [code, *chain(*map(_codes, inner))]


def numbers_in(module: nn.Module, *kept: dict[str, Any], told: tuple[Any, ...] = ()) -> set[float]:
    """The numbers in the code of a module and its parts, in what that names, and in what is kept.

    Args:
        module: of any class; what torch's classes have is left out.
        kept: tables of names, whose numbers count too.
        told: functions whose defaults do not count, since they are told something.
    """
    kinds = [[*map(vars, filter(not_torchs, type(part).__mro__))] for part in module.modules()]
    # What a class says anew its parent says no more; a function may still be called by super().
    found = [value for table in (*starmap(ChainMap, kinds), *kept) for value in table.values()]
    every = [value for table in chain(*kinds) for value in table.values()]
    own = {getattr(e, "__func__", getattr(e, "fget", e)) for e in every if isinstance(e, Hashable)}
    functions = [e for e in own if inspect.isfunction(e)]
    for function in functions:
        names = _named(function.__code__) & function.__globals__.keys()
        found += [function.__globals__[name] for name in names]
    functions += filter(inspect.isfunction, found)
    for function in {*functions}:
        found += chain(*(code.co_consts for code in _codes(function.__code__)))
        if function not in told:
            found += (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    tuples = (value for value in found if isinstance(value, tuple))
    found += chain(*tuples, *(value.values() for value in found if type(value) is dict))
    return {value for value in found if type(value) in (int, float)}


def not_torchs(kind: type) -> bool:
    """Whether a class that is inherited from is neither torch's nor object."""
    return kind is not object and not kind.__module__.startswith("torch.")


def node_of(function: Any) -> Function | None:
    """The syntax tree of a function; None where its source is not to be had."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        return None
    tree = tree_of(code.co_filename, function.__globals__)
    every = [node for node in ast.walk(tree) if isinstance(node, Function)]
    return next((node for node in reversed(every) if _is_of(node, code)), None)


def with_constants(function: Any, constants: dict[float, float]) -> Callable[..., Any]:
    """A copy of a function with other numbers in its code.

    Raises:
        TypeError: its source is not to be had.
    """
    node = node_of(function)
    if node is None:
        raise TypeError("without source no number can be replaced")
    for size in _sizes(node):
        size.value = constants.get(size.value, size.value)
    # What surrounds the function is handed to another one, in which it is made anew.
    surrounding = ", ".join(function.__code__.co_freevars)
    tree = ast.parse(f"def make_anew({surrounding}): return")
    if isinstance(node, ast.Lambda):
        tree.body[0].body[0].value = node
    else:
        tree.body[0].body[0].value = ast.Name(node.name, ast.Load())
        tree.body[0].body.insert(0, node)
    scope = dict(function.__globals__)
    exec(compile(ast.fix_missing_locations(tree), function.__code__.co_filename, "exec"), scope)
    return scope["make_anew"](*(cell.cell_contents for cell in function.__closure__ or ()))


def _is_of(node: Function, code: CodeType) -> bool:
    """Whether a function is the one that some code was compiled from."""
    if isinstance(node, ast.FunctionDef):
        first = min(part.lineno for part in (node, *node.decorator_list))
        return (node.name, first) == (code.co_name, code.co_firstlineno)
    if (code.co_name, code.co_firstlineno) != ("<lambda>", node.lineno):
        return False
    # Of several in a line it is the one with all of the code in its body.
    body = node.body
    begin, end = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
    there = (e for e in code.co_positions() if e[3])  # some steps stand nowhere
    return all(begin <= (line, at) and (last, up_to) <= end for line, last, at, up_to in there)


def _body(node: Function) -> list[ast.AST]:
    return [node.body] if isinstance(node, ast.Lambda) else node.body


def _read(node: Function, code: CodeType) -> set[str]:
    """The names that a function reads and that are neither its own nor of a function around it."""
    inside = [inner for part in _body(node) for inner in ast.walk(part)]
    names = [inner for inner in inside if isinstance(inner, ast.Name)]
    own = {*code.co_freevars} | {e.arg for e in ast.walk(node) if isinstance(e, ast.arg)}
    own |= {name.id for name in names if not isinstance(name.ctx, ast.Load)}
    return {name.id for name in names} - own


def _sizes(node: Function) -> list[ast.Constant]:
    """The numbers above 0 in a function's code; the 1 in -1 is none."""
    inside = [inner for part in _body(node) for inner in ast.walk(part)]
    below = [e.operand for e in inside if isinstance(e, ast.UnaryOp)]
    numbers = [e for e in inside if isinstance(e, ast.Constant) and e not in below]
    return [e for e in numbers if type(e.value) in (int, float) and 0 < e.value < math.inf]


def _is_own(value: Any) -> bool:
    """Whether a value is a function's own to be given; -inf may well come from the notebook."""
    number = type(value) in (int, float) and math.isfinite(value)
    return number or isinstance(value, torch.Tensor | nn.Module)
