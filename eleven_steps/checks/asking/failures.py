"""Keep what a learner's code raised, and find the notebook's names that a function reads."""

import dis
import inspect
import linecache
import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import CodeType
from typing import Any

import torch
from torch import nn

LIBRARY = Path(__file__).parents[2]
FOLDERS = LIBRARY, LIBRARY.parent / "helpers", Path(torch.__file__).parent, Path(os.__file__).parent
OUR_FILES = tuple(f"{folder}{os.sep}" for folder in FOLDERS)
EDITED = ", edited, "  # part of the name of a file that the catalogue makes
CONTROL = re.compile("[\0-\b\v-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True)
class Failure:
    """Hold an exception of a learner's code: its text, and the learner's line that raised it."""

    text: str
    line: str = ""
    number: int = 0  # number of the line; 0 if no line of theirs was reached

    @classmethod
    def of(cls, error: BaseException) -> "Failure":
        """Keep what a message needs of an exception."""
        steps = own_steps(error)
        if not steps:
            return cls(_text(error))
        file, number = steps[-1].tb_frame.f_code.co_filename, steps[-1].tb_lineno
        return cls(_text(error), linecache.getline(file, number).strip(), number)

    @property
    def kind(self) -> str:
        """Return the name of the exception's type."""
        return self.text.partition(":")[0]

    @property
    def told(self) -> str:
        """Return the text, with the line if there is one."""
        return f"{self.text} in `{self.line}`" if self.line else self.text


def visible(text: str) -> str:
    """Spell out the characters that steer a terminal or turn the direction of writing."""
    return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def _text(error: BaseException) -> str:
    """Return an error's name and message on one line, even if its __str__ is broken."""
    try:
        message = visible(" ".join(str(error).split()))
    except BaseException:
        message = ""
    name = str(type(error).__name__)
    short = message if len(message) <= 160 else message[:159] + "…"
    return f"{name}: {short}" if short else name


def is_theirs(file: str) -> bool:
    """Say whether a file is neither ours nor torch's; what the catalogue makes counts as theirs."""
    return not file.startswith(OUR_FILES) or EDITED in file


def own_steps(error: BaseException) -> list[Any]:
    """List the steps of an error's traceback that are in a learner's own lines."""
    ours = *OUR_FILES, "<frozen"
    steps, step = [], error.__traceback__
    while step:
        if not step.tb_frame.f_code.co_filename.startswith(ours):
            steps.append(step)
        step = step.tb_next
    return steps


def names_read(function: Any) -> dict[str, list]:
    """List what a function reads of the notebook around it, and what it calls.

    Returns:
        names: each global that holds a tensor, a number or a module.
        called: every name in its code.
    """
    if isinstance(function, type | nn.Module):
        function = vars(function if isinstance(function, type) else type(function)).get("forward")
    function = inspect.unwrap(function) if callable(function) else function
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        return {"names": [], "called": []}
    steps = chain(*map(dis.get_instructions, _codes(code)))
    read = {step.argval for step in steps if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    scope = function.__globals__
    names = sorted(name for name in read & scope.keys() if _is_value(scope[name]))
    called = {name for part in _codes(code) for name in part.co_names}
    return {"names": names, "called": sorted(called)}


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of a function, and of the functions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _is_value(value: Any) -> bool:
    """Say whether a value should have been an argument; -inf may come from the notebook."""
    number = type(value) in (int, float) and math.isfinite(value)
    return number or isinstance(value, torch.Tensor | nn.Module)
