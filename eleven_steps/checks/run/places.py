"""Where a call stands in a learner's source, and whose lines are whose."""

import ast
import functools
import linecache
import site
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any

from eleven_steps.checks.run.failure import OUR_FILES

MOST_SOURCE = 20_000  # characters


PACKAGES = tuple(site.getsitepackages())


EDITED = ", edited, "  # in the name of a file that the catalogue makes


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


@functools.lru_cache(256)
def positions_of(code: CodeType) -> list[tuple]:
    """Where each instruction of some code stands: line, last line, column, last column."""
    return list(code.co_positions())


@functools.lru_cache(32)
def _tree(file: str, size: int) -> dict[tuple, ast.AST]:
    """The nodes of a file by where they stand, and by line the statement that begins there."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return {}
    nodes: dict[tuple, ast.AST] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt | ast.expr):
            at = node.lineno, node.end_lineno, node.col_offset, node.end_col_offset
            if not isinstance(node, ast.Expr):
                nodes.setdefault(at, node)
            if isinstance(node, ast.Call):  # of a chain over lines its end alone is told
                nodes.setdefault((node.end_lineno, node.end_col_offset), node)
        if isinstance(node, ast.stmt) and not hasattr(node, "body"):
            for line in range(node.lineno, node.end_lineno + 1):
                nodes.setdefault((line,), node)
    return nodes


@functools.lru_cache(4096)
def placed(file: str, position: tuple) -> Place:
    """The place of a position, (line, last line, column, last column)."""
    line, last, _, end = position
    lines = linecache.getlines(file)
    text = lines[line - 1].strip() if line and line <= len(lines) else ""
    nodes = _tree(file, len(lines))
    node = nodes.get(position) or nodes.get((last, end))
    statement = nodes.get((line,))
    if isinstance(node, ast.Call) and last and last != line:  # a chain: its own line is its end
        function = node.func
        line = function.end_lineno
        text = lines[line - 1].strip()
    return Place(
        line or 0,
        text,
        ast.unparse(statement) if statement else text,
        ast.unparse(node) if node is not None and isinstance(node, ast.expr) else text,
    )


def source_around(answer: Any) -> tuple[str, int]:
    """The source of a class or function and its first line's number; "" where there is none."""
    code = getattr(answer, "__code__", None)
    for cls in getattr(answer, "__mro__", ()):
        code = code or getattr(vars(cls).get("forward"), "__code__", None)
    if not isinstance(code, CodeType):
        return "", 1
    lines = linecache.getlines(code.co_filename)
    try:
        tree = ast.parse("".join(lines))
    except SyntaxError:
        return "", 1
    for node in tree.body:
        last = getattr(node, "end_lineno", 0)
        if node.lineno <= code.co_firstlineno <= last or (
            getattr(node, "decorator_list", None)
            and node.decorator_list[0].lineno <= code.co_firstlineno <= last
        ):
            return "".join(lines[node.lineno - 1 : last])[:MOST_SOURCE], node.lineno
    return "", 1
