"""Where something stands in a learner's source: a call, a statement, the line that raised."""

import ast
import functools
import linecache
import re
import site
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

import torch

LIBRARY = Path(__file__).parents[2]
OUR_FILES = tuple(
    f"{folder}/" for folder in (LIBRARY, LIBRARY.parent / "helpers", Path(torch.__file__).parent)
)
PACKAGES = tuple(site.getsitepackages())
EDITED = ", edited, "  # in the name of a file that the catalogue makes
MOST_SOURCE = 20_000  # characters
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
        if isinstance(node, ast.stmt) and not hasattr(node, "body"):
            for line in range(node.lineno, node.end_lineno + 1):
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
    return Place(
        line or 0,
        text,
        ast.unparse(statement) if statement else text,
        ast.unparse(node) if isinstance(node, ast.expr) else text,
    )


def source_around(answer: Any) -> tuple[str, int]:
    """The source of a class or function and its first line's number; "" where there is none."""
    code = getattr(answer, "__code__", None)
    for cls in getattr(answer, "__mro__", ()):
        code = code or getattr(vars(cls).get("forward"), "__code__", None)
    if isinstance(code, CodeType):
        for node in tree_of(code.co_filename).body:
            first = min(each.lineno for each in (node, *getattr(node, "decorator_list", ())))
            if first <= code.co_firstlineno <= node.end_lineno:
                lines = linecache.getlines(code.co_filename)[node.lineno - 1 : node.end_lineno]
                return "".join(lines)[:MOST_SOURCE], node.lineno
    return "", 1
