"""A class from elsewhere is declared: how it is built, what it holds and how it is called."""

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch
from torch import nn
from torch.func import functional_call

from eleven_steps.checks.watch import NoSource

State = dict[str, torch.Tensor]
NAMES = "d_in", "d_out", "context_length", "dropout", "num_heads", "qkv_bias"


class Undeclared(ValueError):
    """A declaration does not fit the class that it is about."""


def _call(module: nn.Module, x: torch.Tensor) -> Any:
    return module(x)


def declare(
    build: Callable[..., nn.Module],
    state: Callable[[nn.Module], State] | None = None,
    call: Callable[[nn.Module, torch.Tensor], Any] = _call,
    one_width: bool = False,
) -> type:
    """Declare a class from elsewhere, so that check_attention can ask it.

    Args:
        build: called as build(d_in, d_out, context_length, dropout, num_heads), where it takes one
            also with qkv_bias; returns the module.
        state: called with a module that has W_query, W_key, W_value and out_proj; returns a tensor
            made of theirs for each parameter of the class, by name. Without it the parameters have
            the lecture's names, or those of the reference.
        call: called as call(module, x); returns the output (b, num_tokens, d_out).
        one_width: whether the class has d_in = d_out; then it is asked at such sizes alone.

    Returns:
        A class for check_attention.

    Example:
        >>> declare(lambda d_in, d_out, context_length, dropout, num_heads: Mine(d_out, num_heads))
    """
    base = _Called if state is None else _Filled
    declared = {"build": staticmethod(build), "state": staticmethod(state)}
    declared |= {"call": staticmethod(call), "one_width": one_width}
    return type("Declared", (base,), declared)


class _Declared(nn.Module):
    """What declarations have in common."""

    one_width = False

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        sizes = d_in, d_out, context_length, dropout, num_heads
        named = {"qkv_bias": qkv_bias} if takes_bias(self.build) else {}
        inner = self.build(*sizes, **named)
        if not isinstance(inner, nn.Module):
            kind = type(inner).__name__
            raise Undeclared(f"build returns a {kind}, and an nn.Module is expected")
        self.hold(inner, *sizes[:2], qkv_bias)

    def hold(self, inner: nn.Module, d_in: int, d_out: int, qkv_bias: bool) -> None:
        """Keep the module."""
        raise NotImplementedError


def takes_bias(build: Callable[..., nn.Module]) -> bool:
    """Say whether build takes qkv_bias; where it does not, the class is asked without biases."""
    parameters = inspect.signature(build).parameters.values()
    return any(e.name == "qkv_bias" or e.kind is e.VAR_KEYWORD for e in parameters)


class _Called(_Declared):
    """A module whose parameters have the names of the reference's."""

    def hold(self, inner, d_in, d_out, qkv_bias):
        object.__setattr__(self, "inner", inner)  # so that names of parameters stay as they are
        self._modules, self._parameters = inner._modules, inner._parameters
        self._buffers = inner._buffers

    def forward(self, x):
        return self.call(self.inner, x)

    def train(self, mode=True):
        self.inner.train(mode)
        self.training = mode
        return self


class _Filled(_Declared):
    """A module whose parameters are made of the lecture's four layers."""

    def hold(self, inner, d_in, d_out, qkv_bias):
        layers = [nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3)]
        self.W_query, self.W_key, self.W_value = layers
        self.out_proj = nn.Linear(d_out, d_out)
        held = {name: tuple(tensor.shape) for name, tensor in self.state(self).items()}
        wanted = {name: tuple(p.shape) for name, p in inner.named_parameters()}
        for name in wanted | held:  # functional_call would take any
            if held.get(name) != wanted.get(name):
                raise Undeclared(_misfit(name, held.get(name), wanted.get(name)))
        # In a dictionary, so that this module has the four layers and nothing else.
        self.apart = {"called": _Caller(inner.requires_grad_(False), self.call)}

    def _apply(self, function, recurse=True):
        self.apart["called"]._apply(function)
        return super()._apply(function, recurse)

    def train(self, mode=True):
        self.apart["called"].train(mode)
        return super().train(mode)

    def forward(self, x):
        held = {f"inner.{name}": tensor for name, tensor in self.state(self).items()}
        return functional_call(self.apart["called"], held, (x,))


class _Caller(nn.Module):
    """Somebody else's module, called as it wants to be."""

    def __init__(self, inner: nn.Module, call: Callable[[nn.Module, torch.Tensor], Any]):
        super().__init__()
        self.inner, self._call = inner, call

    def forward(self, x):
        return self._call(self.inner, x)


def _misfit(name: str, held: tuple | None, wanted: tuple | None) -> str:
    if held is None:
        return f"state has no `{name}`, a parameter of shape {wanted}"
    if wanted is None:
        return f"state has `{name}`, and the module has no parameter of that name"
    return f"state gives `{name}` the shape {held}, and the parameter has {wanted}"


# The class that somebody wrote, behind a declaration


def is_declared(cls: Any) -> bool:
    """Say whether a class comes of declare."""
    return isinstance(cls, type) and issubclass(cls, _Declared)


def sizes_of_declared(cls: Any) -> tuple[bool, bool]:
    """Return whether a class is asked at d_in = d_out alone, and whether it can have biases."""
    return (cls.one_width, takes_bias(cls.build)) if is_declared(cls) else (False, True)


def written_class(cls: type) -> type:
    """Return the class that somebody wrote: that of the declared module, or cls itself."""
    if not is_declared(cls):
        return cls
    return type(_inner(cls(4, 4, 4, 0.0, 2)))


def _inner(module: _Declared) -> nn.Module:
    return module.inner if isinstance(module, _Called) else module.apart["called"].inner


def with_class(cls: type, made: type) -> type:
    """Return the same declaration of another class in place of the one that was written.

    Raises:
        NoSource: build does not find its class by a name.
    """
    if not is_declared(cls):
        return made
    build, name = cls.build, made.__name__
    code, cells = getattr(build, "__code__", None), getattr(build, "__closure__", None) or ()
    if isinstance(build, type):
        return declare(made, cls.state, cls.call, cls.one_width)
    if code is None:
        raise NoSource("build is no function")
    cells = tuple(
        type(cell)(made) if free == name else cell
        for free, cell in zip(code.co_freevars, cells, strict=True)
    )
    scope = {**build.__globals__, name: made}
    again = FunctionType(code, scope, build.__name__, build.__defaults__, cells)
    again.__kwdefaults__ = build.__kwdefaults__
    return declare(again, cls.state, cls.call, cls.one_width)
