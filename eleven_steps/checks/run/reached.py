"""What no call reaches in a class: lines behind a condition, and public methods."""

import dis
import functools
import inspect
import linecache
import os
import re
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from torch import nn

from eleven_steps.checks.run.places import OUR_FILES, PACKAGES

ELSEWHERE = *OUR_FILES, *PACKAGES, "<frozen", f"{os.path.dirname(os.__file__)}{os.sep}"
OURS = "eleven_steps.", "helpers.", "torch."
ENDS = re.compile("JUMP|RAISE|RETURN")  # of what comes one after the other
_kinds: dict[type, str] = {}  # of modules that were called, and the file of their forward
_left: dict[int, tuple[CodeType, set[int]]] = {}  # by id: code, and where in its jumps none was


def followed(call: Callable[..., Any], module: Any, *arguments: Any, **options: Any) -> Any:
    """Call somebody's module, and note what is reached; a debugger keeps what it follows."""
    kind = type(module)
    if sys.gettrace() or kind.__module__.startswith(OURS):
        return call(module, *arguments, **options)
    _kinds[kind] = getattr(getattr(kind.forward, "__code__", None), "co_filename", "")
    sys.settrace(_note)
    try:
        return call(module, *arguments, **options)
    finally:
        sys.settrace(None)


def left_by(judge: Callable[..., Any], *arguments: Any) -> tuple[Any, dict[str, list[str]]]:
    """What a judge returns, and what its calls did not reach: lines, and methods none names."""
    _kinds.clear()
    _left.clear()
    said, lines, methods = judge(*arguments), {}, set()
    for code, left in _left.values():
        for jump, end in ((e[0], end) for e in _jumps(code) for end in e if end.offset in left):
            if jump.offset not in left and end.positions.lineno:
                text = linecache.getline(code.co_filename, jump.positions.lineno).strip(" :\n")
                lines[end.positions.lineno] = f"line {end.positions.lineno} (`{text}`)"
    for kind in _kinds:
        held = [(e, *pair) for e in kind.__mro__[::-1] for pair in vars(e).items()]
        held = [(e, n, f.__code__) for e, n, f in held if inspect.isfunction(f)]
        # Of a method written anew the last counts; of constructors all, which call each other.
        each = {(n, e if n == "__init__" else None): code for e, n, code in held}
        named = {*dir(nn.Module)}.union(*(code.co_names for code in each.values()))
        own = {n: code for e, n, code in held if e.__module__ == kind.__module__}
        lost = own.keys() - named
        methods |= {n for n in lost if n[0] != "_" and id(own[n]) not in _left}
    return said, {"lines_left": [lines[n] for n in sorted(lines)], "methods_left": sorted(methods)}


def _note(frame: FrameType, event: str, arg: Any) -> Any:
    code = frame.f_code
    if id(code) not in _left:
        own = code.co_filename in _kinds.values() or not code.co_filename.startswith(ELSEWHERE)
        _left[id(code)] = code, {e.offset for jump in _jumps(code) for e in jump if own}
    left = _left[id(code)][1]
    left.discard(frame.f_lasti)
    frame.f_trace_opcodes, frame.f_trace_lines = bool(left), False
    return _note if left else None


@functools.lru_cache(256)
def _jumps(code: CodeType) -> list[tuple[dis.Instruction, ...]]:
    """Each conditional jump with its two ends, but those from which one can only raise."""
    every = [*dis.get_instructions(code)]
    after = {instruction.offset: every[i:] for i, instruction in enumerate(every)}
    found = []
    for jump in (e for e in every if re.search("JUMP.*_IF_", e.opname)):
        ends = after[jump.offset][1:], after[jump.argval]
        last = [next(name for e in rest if ENDS.search(name := e.opname)) for rest in ends]
        found += [(jump, *(rest[0] for rest in ends))] if "RAISE" not in "".join(last) else []
    return found
