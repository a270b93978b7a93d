"""What a constructor makes, and what it was at where it raises: asked in the learner's process."""

import ast
import dis
import inspect
import re
import types
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import nn

from eleven_steps.checks.run.cases import LAYERS, Case, cases_of, fill, lecture_parameters
from eleven_steps.checks.run.contract import sizes_besides
from eleven_steps.checks.run.isolate import Failure, attempt, type_name
from eleven_steps.checks.run.places import not_torchs, own_steps, statement_at
from eleven_steps.checks.run.variant import LECTURE, Variant

ATTRIBUTES = ("d_out", "num_heads", "head_dim")
READING = {"LOAD_FAST", "LOAD_ATTR", "LOAD_DEREF"}  # what builds nothing

Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Facts:
    """What a constructor makes of MAIN's sizes."""

    shapes: Shapes  # of the parameters of the lecture's names
    parameters: tuple[str, ...]  # the names of all of them
    tied: tuple[str, ...]  # those of the lecture's layers that share a weight
    listed: bool  # whether layers stand in a plain list
    mask: str  # parameter, trained (one that wants gradients), buffer, attribute or ""
    dropout: str  # the type of self.dropout, or ""
    sizes: dict[str, Any]  # d_out, num_heads and head_dim as they are stored, where they are
    # By the class of the module and of each part of the learner's: the type of each attribute, or
    # "buffer", and the names that the constructor makes, and that are no attributes
    attributes: dict[str, dict[str, str]] = field(default_factory=dict)
    local_names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    alone: bool = True  # whether no two of the lecture's layers are one and the same
    zero: tuple[str, ...] = ()  # layers of these names whose weight begins as 0
    frozen: tuple[str, ...] = ()  # parameters of the lecture's names that want no gradient


class Built(NamedTuple):
    """What a constructor makes with qkv_bias on, off, and left out."""

    biased: Facts
    plain: Facts
    by_default: Facts

    def at(self, case: Case) -> Facts:
        """What it makes in a case."""
        return self.biased if case.qkv_bias else self.plain


def facts(cls: Any, bias: bool | None, variant: Variant = LECTURE) -> Facts:
    """What the constructor makes, with qkv_bias as given, or left out where it is None."""
    case = cases_of(variant).main
    module = construct(cls, case, bias)
    everything = dict(module.named_parameters(remove_duplicate=False))
    own = lecture_parameters(module, variant)
    held = [thing for thing in vars(module).values() if isinstance(thing, list | tuple)]
    known_modules = {*module.modules()}
    weights = {name: id(own[f"{name}.weight"]) for name in LAYERS if f"{name}.weight" in own}
    every, layers = [*weights.values()], [id(getattr(module, name)) for name in weights]
    stored = {name: getattr(module, name) for name in ATTRIBUTES if hasattr(module, name)}
    stored["dropout"] = getattr(getattr(module, "dropout", None), "p", None)
    dropout = type_name(module.dropout) if hasattr(module, "dropout") else ""
    own_parts = (part for part in learners(module).modules() if not_torchs(type(part)))
    theirs = {type(part).__name__: part for part in own_parts}
    return Facts(
        {name: tuple(parameter.shape) for name, parameter in own.items()},
        tuple(everything),
        tuple(name for name, weight in weights.items() if every.count(weight) > 1),
        any(isinstance(e, nn.Module) and e not in known_modules for some in held for e in some),
        _mask(module, case.context_length),
        dropout,
        {name: value for name, value in stored.items() if isinstance(value, int | float)},
        {name: _attributes(part) for name, part in theirs.items()},
        {name: _local(part) for name, part in theirs.items()},
        len({*layers}) == len(layers),
        tuple(name for name in weights if not own[f"{name}.weight"].any()),
        tuple(name for name, parameter in own.items() if not parameter.requires_grad),
    )


def learners(module: nn.Module) -> nn.Module:
    """The learner's own module: of somebody else's class it stands inside one of ours."""
    return getattr(getattr(module, "called", None), "inner", module)


def _attributes(part: nn.Module) -> dict[str, str]:
    """The type of each attribute of a module, or "buffer", and its methods."""
    public = (name for name in _names(part) if not name.startswith("_"))
    sorts = {name: type_name(getattr(part, name)) for name in public}
    sorts |= dict.fromkeys(sorts.keys() & part._buffers.keys(), "buffer")
    methods = (name for name, e in vars(type(part)).items() if inspect.isroutine(e))
    return dict.fromkeys((n for n in methods if n.strip("_") != "init"), "method") | sorts


def _local(part: nn.Module) -> tuple[str, ...]:
    """The names that the constructor of a module makes, and that are no attributes."""
    code = attempt(lambda: type(part).__init__.__code__)
    made = () if isinstance(code, Failure) else code.co_varnames[code.co_argcount :]
    return tuple(name for name in made if name not in _names(part))


def _names(part: nn.Module) -> dict[str, Any]:
    return {**vars(part), **part._modules, **part._parameters, **part._buffers}


def statement(cls: Any, case: Case, bias: bool | None) -> dict[str, Any]:
    """The statement at which a constructor raises; nothing where it is not even called."""
    try:
        construct(cls, case, bias)
    except Exception as error:
        return raising(error)
    return {}


def construct(cls: Any, case: Case, bias: bool | None, dropout: float = 0.0) -> nn.Module:
    """Call a constructor as the lecture does; qkv_bias is left out where bias is None."""
    first = case.d_in, case.d_out, case.context_length, dropout, case.num_heads
    more = sizes_besides(case)
    if bias is None:
        return cls(*first, **more)
    try:
        return cls(*first, qkv_bias=bias, **more)
    except TypeError as error:
        if "qkv_bias" not in str(error):
            raise
        return cls(*first, bias, **more)


def build(cls: Any, case: Case, dropout: float = 0.0) -> nn.Module:
    """Construct cls for a case with known weights, in eval mode."""
    torch.default_generator.manual_seed(0)  # what it draws besides is the same each time
    module = construct(cls, case, case.qkv_bias, dropout)
    fill(module, case)
    return module.eval()


def _mask(module: nn.Module, context_length: int) -> str:
    """How a mask is kept: whatever is (..., context_length, context_length)."""
    square = (context_length, context_length)
    for name, parameter in module.named_parameters():
        if parameter.shape[-2:] == square and not name.startswith(LAYERS):
            return "trained" if parameter.requires_grad else "parameter"
    if any(buffer.shape[-2:] == square for buffer in module.buffers()):
        return "buffer"
    plain = [held for held in vars(module).values() if isinstance(held, torch.Tensor)]
    return "attribute" if any(tensor.shape[-2:] == square for tensor in plain) else ""


def raising(error: BaseException) -> dict[str, Any]:
    """What a constructor was at when it raised; nothing where none of its lines had begun.

    Returns:
        builds: the attributes and names that the statement sets, and what it calls for them.
        lacks: (name, owner) of what is not there; owner is self, a module, a type, or "" for none.
        later: the attributes and names that some line of the constructor sets.
        has: the attributes that there are.
        supers: whether the constructor calls that of nn.Module, in whatever line.
    """
    own = own_steps(error)
    made = [at for at in own if at.tb_frame.f_code.co_name == "__init__"] or own
    if not made:
        return {}
    frame, number = made[-1].tb_frame, made[-1].tb_lineno
    code = frame.f_code
    me = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
    name, owner = getattr(error, "name", None), getattr(error, "obj", None)
    if isinstance(error, UnboundLocalError):  # which has the name in its text alone
        name = "".join(re.findall(r"variable '(\w+)'", str(error)))
    whose = "self" if owner is me and me is not None else str(getattr(owner, "__name__", ""))
    if isinstance(error, AttributeError) and not whose:
        whose = type_name(owner)
    stores = {op.argval for op in dis.get_instructions(code) if "STORE" in op.opname}
    return {
        "builds": sorted(_builds(code, number)),
        "lacks": (str(name or ""), whose),
        "later": sorted(store for store in stores if type(store) is str),
        "has": sorted(n for n in getattr(me, "__dict__", {}) if not n.startswith("_")),
        "supers": "super" in code.co_names,
    }


def _builds(code: types.CodeType, number: int) -> set[str]:
    """What the statement at a line sets, and what it calls; where no source is known, the line."""
    node = statement_at(code.co_filename, number)
    if node is None:
        steps = (op for op in dis.get_instructions(code) if op.positions.lineno == number)
        return {e.argval for e in steps if type(e.argval) is str and e.opname not in READING}
    inside = [*ast.walk(node)]
    named = [part.func for part in inside if isinstance(part, ast.Call)]
    named += [part for part in inside if isinstance(getattr(part, "ctx", None), ast.Store)]
    return {getattr(part, "attr", getattr(part, "id", "")) for part in named}
