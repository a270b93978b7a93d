"""Send a function of a notebook to another process: as source, with everything it uses.

A new process imports modules by name, but a notebook is no module. So the source of the function is
sent, and with it what the source names: functions of the notebook also as source, imported things
by name, everything else by value.
"""

import dis
import importlib
import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import CodeType, FunctionType, ModuleType
from typing import Any

NOTEBOOK = "__main__"


@dataclass
class Luggage:
    """Hold what another process needs to call a function."""

    name: str
    sources: list[str] = field(default_factory=list)
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)

    def unpack(self) -> Callable:
        """Return the function, in the process that received it."""
        names = dict(self.values)
        for name, (module, inside) in self.imports.items():
            place = importlib.import_module(module)
            names[name] = getattr(place, inside) if inside else place
        for source in self.sources:
            exec(compile(source, "<from the notebook>", "exec"), names)
        return names[self.name]


def pack(function: Callable) -> Luggage:
    """Collect what another process needs to call a function that was defined with def."""
    if not isinstance(function, FunctionType) or function.__name__ == "<lambda>":
        raise TypeError(f"{function!r} cannot be sent: a function defined with def is expected")
    luggage = Luggage(function.__name__)
    if function.__module__ != NOTEBOOK:
        luggage.imports[function.__name__] = function.__module__, function.__qualname__
        return luggage
    waiting, seen = [function], set()
    while waiting:
        sent = waiting.pop()
        if sent.__name__ in seen:
            continue
        seen.add(sent.__name__)
        source = textwrap.dedent(inspect.getsource(sent))
        luggage.sources.append(source)
        for name in sorted(set(named(compile(source, "", "exec"))) & set(sent.__globals__)):
            value = sent.__globals__[name]
            if isinstance(value, FunctionType) and value.__module__ == NOTEBOOK:
                waiting.append(value)
            elif isinstance(value, ModuleType):
                luggage.imports[name] = value.__name__, ""
            elif isinstance(value, type | FunctionType):
                luggage.imports[name] = value.__module__, value.__name__
            else:
                luggage.values[name] = value
    return luggage


def named(code: CodeType) -> Iterator[str]:
    """Yield the global names that code uses."""
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield step.argval
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from named(inner)
