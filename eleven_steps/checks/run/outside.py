"""What a function uses besides what it is given: names of the notebook, typed-in sizes."""

import dis
import math
import types
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import nn

MAKING = {
    *("transpose", "view", "reshape", "permute", "swapaxes", "flatten", "unflatten"),
    *("contiguous", "masked_fill", "softmax", "div", "mul"),
    *("W_query", "W_key", "W_value", "W_gate", "out_proj", "dropout"),
}


def readings(function: Any) -> dict[str, list]:
    """The notebook's numbers and tensors that a function reads, and the numbers in its code.

    Returns:
        names: (name, what it is) of each global that holds a tensor, a number or a module.
        constants: the numbers above 0 that stand in the code.
        dropped: the methods and layers whose results the code makes and drops.
    """
    if isinstance(function, type):
        function = vars(function).get("forward")
    code, scope = getattr(function, "__code__", None), getattr(function, "__globals__", {})
    if not isinstance(code, types.CodeType):
        return {"names": [], "constants": [], "dropped": []}
    codes = [code, *_inner(code)]
    read = {i.argval for each in codes for i in dis.get_instructions(each) if "GLOBAL" in i.opname}
    held = {name: scope[name] for name in sorted(read) if name in scope}
    names = [(n, _kind(value)) for n, value in held.items() if _kind(value)]
    constants = {c for each in codes for one in each.co_consts for c in _numbers(one)}
    dropped = [name for each in codes for name in _dropped(each)]
    return {"names": names, "constants": sorted(constants), "dropped": dropped}


def with_constants(function: Any, constants: dict[int, int]) -> Callable[..., Any]:
    """A copy of a function with other numbers in its code."""

    def swapped(value: Any) -> Any:
        if type(value) is tuple:
            return tuple(map(swapped, value))
        if isinstance(value, types.CodeType):
            return edited(value)
        return constants.get(value, value) if type(value) in (int, float) else value

    def edited(code: types.CodeType) -> types.CodeType:
        return code.replace(co_consts=tuple(map(swapped, code.co_consts)))

    return types.FunctionType(
        edited(function.__code__),
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )


def _dropped(code: types.CodeType) -> list[str]:
    """The methods in statements that are nothing but a call of theirs."""
    found, made = [], {}
    for before, step in pairwise(dis.get_instructions(code)):
        if step.opname in ("LOAD_METHOD", "LOAD_ATTR", "LOAD_FAST") and step.argval in MAKING:
            made[step.positions.lineno, step.positions.col_offset] = step.argval
        at = before.positions.lineno, before.positions.col_offset
        called = before.opname in ("CALL", "CALL_FUNCTION_EX")
        if step.opname == "POP_TOP" and called and at in made:
            found.append(made[at])
    return found


def _inner(code: types.CodeType) -> list[types.CodeType]:
    inner = [each for each in code.co_consts if isinstance(each, types.CodeType)]
    return [found for each in inner for found in (each, *_inner(each))]


def _numbers(value: Any) -> list[float]:
    if type(value) is tuple:
        return [found for each in value for found in _numbers(each)]
    return [value] if type(value) in (int, float) and 0 < value < math.inf else []


def _kind(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor {tuple(value.shape)}"
    if isinstance(value, nn.Module):
        return "a module"
    if type(value) is float and not math.isfinite(value):
        return ""  # no size: who needs -inf may well take it from the notebook
    return repr(value) if type(value) in (int, float) else ""
