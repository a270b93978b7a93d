"""What a function uses besides what it is given: names of the notebook, typed-in sizes.

All of it is read off the source; of code that has none, exec'ed for one, nothing is said.
"""

import ast
import math
import types
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from eleven_steps.checks.run.places import tree_of

Function = ast.FunctionDef | ast.Lambda


def readings(function: Any) -> dict[str, list]:
    """What a function reads of the notebook, and what stands in its code.

    Returns:
        names: (name, what it is) of each global that holds a tensor, a number or a module.
        called: the names in its code, of what it calls for one; known without its source too.
        constants: the numbers above 0 in the code.
    """
    if isinstance(function, type):
        function = vars(function).get("forward")
    elif isinstance(function, nn.Module):
        function = vars(type(function)).get("forward")
    code = getattr(function, "__code__", None)
    called = sorted(_named(code)) if isinstance(code, types.CodeType) else []
    found = {"names": [], "constants": [], "called": called}
    node = source_of(function)
    if node is None:
        return found
    inside = [each for part in _body(node) for each in ast.walk(part)]
    scope = function.__globals__
    names = [
        (name, _kind(scope[name]))
        for name in sorted(_read(node, function.__code__))
        if name in scope
    ]
    return found | {
        "names": [(name, kind) for name, kind in names if kind],
        "constants": sorted({each.value for each in inside if _is_size(each)}),
    }


def _named(code: types.CodeType) -> set[str]:
    """The names in a function's code, and in the code of functions within."""
    inner = (each for each in code.co_consts if isinstance(each, types.CodeType))
    return {*code.co_names}.union(*map(_named, inner))


def source_of(function: Any) -> Function | None:
    """The syntax tree of a function; None where its source is not to be had."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, types.CodeType):
        return None
    tree = tree_of(code.co_filename, function.__globals__)
    every = [each for each in ast.walk(tree) if isinstance(each, Function)]
    return next((each for each in reversed(every) if _is_of(each, code)), None)


def with_constants(function: Any, constants: dict[float, float]) -> Callable[..., Any]:
    """A copy of a function with other numbers in its code.

    Raises:
        TypeError: its source is not to be had.
    """
    node = source_of(function)
    if node is None:
        raise TypeError("without source no number can be replaced")
    for part in _body(node):
        for each in filter(_is_size, ast.walk(part)):
            each.value = constants.get(each.value, each.value)
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


def _is_of(node: Function, code: types.CodeType) -> bool:
    """Whether a function is the one that some code was compiled from."""
    if isinstance(node, ast.FunctionDef):
        first = min(each.lineno for each in (node, *node.decorator_list))
        return (node.name, first) == (code.co_name, code.co_firstlineno)
    if (code.co_name, code.co_firstlineno) != ("<lambda>", node.lineno):
        return False
    # Of several in a line it is the one with all of the code in its body.
    begin, end = (
        (node.body.lineno, node.body.col_offset),
        (node.body.end_lineno, node.body.end_col_offset),
    )
    return all(
        begin <= (line, column) and (last_line, last_column) <= end
        for line, last_line, column, last_column in code.co_positions()
        if last_column  # some steps of the code stand nowhere
    )


def _body(node: Function) -> list[ast.AST]:
    return [node.body] if isinstance(node, ast.Lambda) else node.body


def _read(node: Function, code: types.CodeType) -> set[str]:
    """The names that a function reads and that are neither its own nor of a function around it."""
    names = [each for part in _body(node) for each in ast.walk(part) if isinstance(each, ast.Name)]
    own = {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)} | {*code.co_freevars}
    own |= {each.id for each in names if not isinstance(each.ctx, ast.Load)}
    return {each.id for each in names} - own


def _is_size(node: ast.AST) -> bool:
    number = isinstance(node, ast.Constant) and type(node.value) in (int, float)
    return number and 0 < node.value < math.inf


def _kind(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor {tuple(value.shape)}"
    if isinstance(value, nn.Module):
        return "a module"
    if type(value) is float and not math.isfinite(value):
        return ""  # no size: who needs -inf may well take it from the notebook
    return repr(value) if type(value) in (int, float) else ""
