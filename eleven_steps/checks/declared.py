"""Declare a class of any form: how it is built, what its parameters hold, how it is called."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

import torch
from torch import nn
from torch.func import functional_call

from eleven_steps.checks.asking.cases import MAIN, Case, construct
from eleven_steps.checks.asking.failures import Failure, own_steps
from eleven_steps.checks.asking.isolation import attempt, type_name
from eleven_steps.checks.watch import NoSource
from eleven_steps.helpers.attention import MultiHeadAttention

State = dict[str, torch.Tensor]


class Undeclared(ValueError):
    """A declaration does not fit its class."""


def _call(module: nn.Module, x: torch.Tensor) -> Any:
    return module(x)


def declare(
    build: Callable[..., nn.Module],
    state: Callable[[nn.Module], State] | None = None,
    call: Callable[[nn.Module, torch.Tensor], Any] = _call,
    one_width: bool = False,
) -> type:
    """Declare a class of any form, so that check_attention can judge it.

    Args:
        build: called as build(d_in, d_out, context_length, dropout, num_heads), and with
            qkv_bias=True or False if it takes one; returns the module. Without qkv_bias the class
            is judged only as it is built, with or without biases.
        state: called with a module of the reference, MultiHeadAttention by default; returns for
            each parameter of the class, by name, a tensor made of that module's parameters. Without
            state, the parameters of both have the same names.
        call: called as call(module, x); returns the output (b, num_tokens, d_out).
        one_width: whether d_in has to be d_out. The class is then asked at such sizes only.

    Returns:
        A class for check_attention.

    Example:
        >>> declare(lambda d_in, d_out, context_length, dropout, num_heads: Mine(d_out, num_heads))
    """
    declared = {"build": staticmethod(build), "state": staticmethod(state) if state else None}
    declared |= {"call": staticmethod(call), "one_width": one_width}
    return type("Declared", (_Declared,), declared)


class _Declared(nn.Module):
    """Somebody's module, with the parameters of the reference."""

    build: Callable[..., nn.Module]
    state: Callable[[nn.Module], State] | None
    call: Callable[[nn.Module, torch.Tensor], Any]
    one_width: bool
    reference: Callable[..., nn.Module] = MultiHeadAttention
    biased = False  # whether the layers have biases, if build takes no qkv_bias

    def __init__(self, *sizes, qkv_bias=False):
        super().__init__()
        if ... in getattr(getattr(self.build, "__code__", None), "co_consts", ()):
            raise Undeclared("build still has `...`")
        named = {"qkv_bias": qkv_bias} if _takes_bias(self.build) else {}
        inner = _declared_part("build", self.build, *sizes, **named)
        if not isinstance(inner, nn.Module):
            raise Undeclared(f"build returns {type_name(inner)}, and an nn.Module is expected")
        held = inner
        if self.state:
            held = type(self).reference(*sizes, qkv_bias=qkv_bias)
            self._check_state(held, inner, *sizes[:2])
            inner.requires_grad_(False)
        # They are not registered, so that each parameter keeps its name in the reference.
        self._modules, self._parameters = held._modules, held._parameters
        self._buffers = held._buffers
        self.apart = SimpleNamespace(held=held, called=_Called(inner, self.call))

    @torch.enable_grad()
    def _check_state(self, held: nn.Module, inner: nn.Module, d_in: int, d_out: int) -> None:
        state = _declared_part("state", self.state, held)
        for name, tensor in state.items():
            if not isinstance(tensor, torch.Tensor):
                raise Undeclared(f"state gives `{name}` as {type_name(tensor)}, not as a tensor")
        has = {name: tuple(tensor.shape) for name, tensor in state.items()}
        wanted = {name: tuple(p.shape) for name, p in inner.named_parameters()}
        for name in wanted | has:  # functional_call would accept a wrong name or shape
            if has.get(name) != wanted.get(name):
                raise Undeclared(_misfit(name, has.get(name), wanted.get(name), d_in, d_out))
        total, ours = sum(tensor.sum() for tensor in state.values()), dict(held.named_parameters())
        for name, used in zip(ours, _gradients(total, [*ours.values()]), strict=True):
            if used is None:
                raise Undeclared(
                    f"nothing in state is made of `{name}`; if the class has no such parameter, "
                    f"pass a reference without it"
                )

    def _apply(self, function, recurse=True):
        self.apart.called._apply(function)
        return super()._apply(function, recurse) if self.state else self

    def train(self, mode=True):
        self.apart.called.train(mode)
        self.training = mode
        return self

    def forward(self, x):
        if not self.state:
            return self.apart.called(x)
        state = {f"inner.{name}": tensor for name, tensor in self.state(self.apart.held).items()}
        return functional_call(self.apart.called, state, (x,))


class _Called(nn.Module):
    """Somebody's module, called as it is declared."""

    def __init__(self, inner: nn.Module, call: Callable[[nn.Module, torch.Tensor], Any]):
        super().__init__()
        self.inner, self._call = inner, call
        inner.register_forward_pre_hook(_complete, with_kwargs=True)

    def forward(self, x):
        out = _declared_part("call", self._call, self.inner, x)
        if out is None or isinstance(out, torch.Tensor):
            return out
        raise Undeclared(f"call returns {type_name(out)}, and the output alone is expected")


def _complete(module: nn.Module, args: tuple, named: dict[str, Any]) -> None:
    if any(value is ... for value in (*args, *named.values())):
        raise Undeclared("call still has `...`")


def _declared_part(name: str, function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """Call a part of a declaration; what fails before any module's own code is its fault."""
    try:
        return function(*args, **named)
    except Undeclared:
        raise
    except Exception as error:
        frames = [step.tb_frame.f_locals.get("self") for step in own_steps(error)]
        if any(isinstance(one, nn.Module) for one in frames):
            raise
        raise Undeclared(f"{name} raises {Failure.of(error).text}") from error


def _gradients(total: torch.Tensor, parameters: list[nn.Parameter]) -> tuple:
    if not total.requires_grad:
        return (None,) * len(parameters)
    return torch.autograd.grad(total, parameters, allow_unused=True)


def _misfit(name: str, has: tuple | None, wanted: tuple | None, d_in: int, d_out: int) -> str:
    if has is None:
        return f"state lacks `{name}`, a parameter of shape {wanted}"
    if wanted is None:
        return f"state gives `{name}`, and the class has no parameter of that name"
    text = f"state gives `{name}` the shape {has}, but the parameter has {wanted}"
    widths = tuple(d_out if size == d_in else size for size in has)
    return f"{text}; if d_in has to be d_out, add one_width=True" if widths == wanted else text


def _takes_bias(build: Callable[..., Any]) -> bool:
    parameters = attempt(lambda: inspect.signature(build).parameters.values())
    takes = () if isinstance(parameters, Failure) else parameters
    return any(one.name == "qkv_bias" or one.kind is one.VAR_KEYWORD for one in takes)


# What the judge needs to know of a declaration


def is_declared(cls: Any) -> bool:
    """Say whether a class is what declare returns."""
    return isinstance(cls, type) and issubclass(cls, _Declared)


def against(cls: Any, reference: Callable[..., nn.Module]) -> Any:
    """Return a declaration whose state is made of a module of the reference."""
    if not is_declared(cls):
        return cls
    made = type("Declared", (cls,), {"reference": staticmethod(reference)})
    without, biased = _why_not(made, False), _why_not(made, True)
    # A state that reads missing biases raises, so the other misfit is reported.
    made.biased = bool(without) and (not biased or "state raises" in without)
    return made


def _why_not(cls: type, qkv_bias: bool) -> str:
    """Say why a class lacks the parameters of the reference, with or without biases."""
    case = replace(MAIN, d_in=MAIN.d_out) if cls.one_width else MAIN
    case = replace(case, qkv_bias=qkv_bias)
    both = [attempt(construct, built, case) for built in (cls, cls.reference)]
    if failed := [one for one in both if isinstance(one, Failure)]:
        return failed[0].text
    names = [{name for name, _ in module.named_parameters()} for module in both]
    return "" if names[0] == names[1] else "their names differ"


def case_of(cls: Any, case: Case) -> Case:
    """Return a case at sizes that a declared class has; of any other class, the case itself."""
    if not is_declared(cls):
        return case
    bias = case.qkv_bias if _takes_bias(cls.build) else cls.biased
    return replace(case, d_in=case.d_out if cls.one_width else case.d_in, qkv_bias=bias)


def written_class(cls: type) -> type:
    """Return the class that somebody wrote: that of the declared module, or cls itself."""
    if not is_declared(cls):
        return cls
    return type(construct(cls, case_of(cls, MAIN)).apart.called.inner)


def with_class(cls: type, made: type) -> type:
    """Return the same declaration of another class in place of the one that was written.

    Raises:
        NoSource: build is no function, so that the names it reads are not known.
    """
    if not is_declared(cls):
        return made
    build, written, name = cls.build, written_class(cls), made.__name__
    if build is written:
        return type("Declared", (cls,), {"build": staticmethod(made)})
    if not isinstance(build, FunctionType):
        raise NoSource("build is no function")

    def instead(value: Any) -> Any:
        if isinstance(value, ModuleType) and vars(value).get(name) is written:
            return SimpleNamespace(**vars(value) | {name: made})
        return made if value is written else value

    cells = tuple(type(cell)(instead(cell.cell_contents)) for cell in build.__closure__ or ())
    scope = {name: instead(value) for name, value in build.__globals__.items()}
    again = FunctionType(build.__code__, scope, build.__name__, build.__defaults__, cells)
    again.__kwdefaults__ = build.__kwdefaults__
    return type("Declared", (cls,), {"build": staticmethod(again)})
