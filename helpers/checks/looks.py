"""Look at an attention class from outside: what comes out of it at sizes that tell mistakes apart.

A class is built, filled with known weights and fed known inputs; a look is a tensor, or why there
is none. The right class and every catalogued mistake are looked at in the same way.
"""

import copy
import functools
import math
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from helpers.attention import MultiHeadAttention
from helpers.checks.guard import Failure, attempt
from helpers.checks.mistakes import wrong_class

NAMES = ("W_query", "W_key", "W_value", "out_proj")


@dataclass(frozen=True)
class Sizes:
    """One choice of sizes.

    The scale widens the random queries and keys: 0 makes all scores 0. Where straight, out_proj
    passes the context on as it is.
    """

    b: int
    num_tokens: int
    d_in: int
    d_out: int
    num_heads: int
    context_length: int
    qkv_bias: bool = False
    scale: float = 1.5
    straight: bool = False

    @property
    def head_dim(self) -> int:
        """Features of each head."""
        return self.d_out // self.num_heads

    def letters(self) -> dict[str, int]:
        """The lecture's letters and their sizes, for messages."""
        names = "d_out", "d_in", "head_dim", "num_heads", "num_tokens", "context_length"
        return {name: getattr(self, name) for name in names}

    def input(self) -> torch.Tensor:
        """A known random x (b, num_tokens, d_in)."""
        return known("x", (self.b, self.num_tokens, self.d_in))


MAIN = Sizes(2, 7, 5, 12, 3, 9)
BIASED = Sizes(2, 7, 5, 12, 3, 9, qkv_bias=True)

# The first two tell most mistakes apart; the others agree in sizes that should not matter.
SIZES = (
    MAIN,
    BIASED,
    Sizes(3, 4, 12, 12, 3, 4, qkv_bias=True),  # d_in = d_out, head_dim = num_tokens
    Sizes(1, 5, 6, 10, 5, 8),  # one sequence, as many heads as tokens
    Sizes(2, 6, 3, 4, 1, 6, qkv_bias=True),  # one head
    Sizes(3, 1, 5, 12, 3, 9),  # one token
    Sizes(2, 20, 6, 8, 2, 32),  # a longer text
    Sizes(2, 3, 4, 6, 6, 5),  # head_dim = 1
    Sizes(5, 5, 7, 15, 3, 6, qkv_bias=True),  # as many sequences as tokens
)

# Each of these takes some steps away, so that one mistake of two is seen alone.
SIMPLER = (
    Sizes(2, 7, 5, 12, 3, 9, scale=0.0),
    Sizes(2, 6, 5, 4, 1, 8),
    Sizes(1, 1, 5, 12, 3, 9),
    Sizes(2, 7, 5, 12, 3, 9, straight=True),
    Sizes(2, 7, 5, 12, 3, 9, scale=0.0, straight=True),
)


def known(name: str, shape: Iterable[int], scale: float = 1.0) -> torch.Tensor:
    """Random numbers that depend on name and shape alone."""
    return scale * _drawn(name, tuple(shape))


@functools.cache
def _drawn(name: str, shape: tuple[int, ...]) -> torch.Tensor:
    seed = zlib.crc32(f"{name}{shape}".encode())
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def build(
    cls: Any, sizes: Sizes, dropout: float = 0.0, ignored: frozenset[str] = frozenset()
) -> nn.Module | Failure:
    """Construct cls at sizes with known weights, ignored ones set to 0, in eval mode."""

    def built() -> nn.Module:
        module = construct(cls, sizes, sizes.qkv_bias, dropout)
        untie(module)
        fill(module, sizes, ignored)
        return module.eval()

    return attempt(built)


def construct(cls: Any, sizes: Sizes, bias: bool | None, dropout: float = 0.0) -> nn.Module:
    """Call a constructor as the lecture does; qkv_bias is left out where bias is None."""
    first = sizes.d_in, sizes.d_out, sizes.context_length, dropout, sizes.num_heads
    if bias is None:
        return cls(*first)
    try:
        return cls(*first, qkv_bias=bias)
    except TypeError as error:
        if "qkv_bias" not in str(error):
            raise
        return cls(*first, bias)


def untie(module: nn.Module) -> None:
    """Give layers that are one and the same object copies of their own."""
    layers = [getattr(module, name, None) for name in NAMES]
    for index, (name, layer) in enumerate(zip(NAMES, layers, strict=True)):
        if isinstance(layer, nn.Module) and any(layer is other for other in layers[:index]):
            setattr(module, name, copy.deepcopy(layer))


def fill(module: nn.Module, sizes: Sizes, ignored: frozenset[str] = frozenset()) -> None:
    """Give the layers of the lecture's names known weights, whatever their shapes."""
    with torch.no_grad():
        for name, parameter in expected_parameters(module).items():
            fan_in = parameter.shape[-1] if parameter.dim() > 1 else 4
            scale = sizes.scale if "query" in name or "key" in name else 1.5
            parameter.copy_(known(name, parameter.shape, scale / math.sqrt(fan_in)))
            if name in ignored or sizes.straight and name == "out_proj.bias":
                parameter.zero_()
            elif sizes.straight and name == "out_proj.weight" and parameter.dim() == 2:
                parameter.copy_(torch.eye(*parameter.shape))


def expected_parameters(module: Any) -> dict[str, nn.Parameter]:
    """The registered parameters that bear the lecture's names."""
    registered = dict(module.named_parameters(remove_duplicate=False))
    wanted = [f"{layer}.{part}" for layer in NAMES for part in ("weight", "bias")]
    return {name: registered[name] for name in wanted if name in registered}


def parameter_shapes(module: Any) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the parameters that bear the lecture's names."""
    return {name: tuple(each.shape) for name, each in expected_parameters(module).items()}


def run(module: nn.Module, x: torch.Tensor) -> torch.Tensor | Failure:
    """Feed a copy of x to module without gradients; return its output as float32, or why not."""

    def forward() -> torch.Tensor:
        with torch.no_grad():
            out = module(x.clone())
            if isinstance(out, tuple | list) and out and isinstance(out[0], torch.Tensor):
                out = out[0]
            if not isinstance(out, torch.Tensor):
                raise TypeError(f"forward returns {type(out).__name__}, not a tensor")
            return out.detach().to(torch.float32).clone()

    return attempt(forward)


def look(cls: Any, sizes: Sizes, ignored: frozenset[str] = frozenset()) -> torch.Tensor | Failure:
    """Output of cls at sizes, with the ignored parameters set to 0."""
    module = build(cls, sizes, ignored=ignored)
    return module if isinstance(module, Failure) else run(module, sizes.input())


def close(one: Any, other: Any, tolerance: float = 2e-4) -> bool:
    """Whether two looks agree: tensors to rounding with NaN in the same places, else failures."""
    if isinstance(one, Failure) or isinstance(other, Failure):
        return isinstance(one, Failure) and isinstance(other, Failure)
    if one.shape != other.shape or not torch.equal(one.isnan(), other.isnan()):
        return False
    if not one.numel() or one.isnan().all():
        return True
    one, other = one.nan_to_num(0.0, 1e9, -1e9), other.nan_to_num(0.0, 1e9, -1e9)
    return bool((one - other).abs().max() <= tolerance * (1 + other.abs().max()))


def stress_look(
    cls: Any, ignored: frozenset[str], allowed: float, future: float
) -> torch.Tensor | Failure:
    """Output where scaled scores are about allowed, and future above the diagonal."""
    sizes = Sizes(1, 4, 4, 8, 2, 5)
    module = build(cls, sizes, ignored=ignored)
    if isinstance(module, Failure):
        return module
    scores = torch.full((4, 4), future).triu(1) + (allowed + known("stress", (4, 4))).tril()
    scores *= sizes.head_dim**0.5

    def choose() -> None:
        with torch.no_grad():
            module.W_query.weight.copy_(torch.cat([scores.T, scores.T]))
            module.W_key.weight.copy_(torch.cat([torch.eye(4), torch.eye(4)]))

    failed = attempt(choose)
    return failed if isinstance(failed, Failure) else run(module, torch.eye(4)[None])


def gradient_look(cls: Any, ignored: frozenset[str]) -> dict[str, torch.Tensor | None] | Failure:
    """Gradients of a known sum of the output, for x and each parameter of the lecture's names."""
    module = build(cls, BIASED, ignored=ignored)
    if isinstance(module, Failure):
        return module
    x = BIASED.input().requires_grad_()

    def backward() -> dict[str, torch.Tensor | None]:
        out = module(x * 1)
        out = out[0] if isinstance(out, tuple | list) else out
        if out.requires_grad:
            (out * known("direction", out.shape)).sum().backward()
        parameters = {name: each.grad for name, each in expected_parameters(module).items()}
        return parameters | {"x": x.grad}

    return attempt(backward)


def training_looks(cls: Any, dropout: float) -> tuple[torch.Tensor, ...] | Failure:
    """Weights as read off the output: twice in eval mode, twice in training.

    Each is (b, num_heads, num_tokens, 2, num_tokens): every weight is read at two features, which
    dropout on weights leaves alike. out_proj adds 3, which dropout leaves alone.
    """
    b, tokens, heads = 32, 6, 2
    sizes = Sizes(b, tokens, tokens, heads * 2 * tokens, heads, tokens)
    module = build(cls, sizes, dropout)
    if isinstance(module, Failure):
        return module

    def read() -> tuple[torch.Tensor, ...]:
        with torch.no_grad():
            module.W_value.weight.copy_(torch.eye(tokens).repeat(2 * heads, 1))
            module.out_proj.weight.copy_(torch.eye(sizes.d_out))
            if (bias := module.out_proj.bias) is not None:
                bias.fill_(3.0)
        x = torch.eye(tokens).expand(b, tokens, tokens)
        outs = [run(module.train(mode), x) for mode in (False, False, True, True)]
        offset = 0.0 if bias is None else 3.0
        return tuple(out.view(b, tokens, heads, 2, tokens).transpose(1, 2) - offset for out in outs)

    torch.manual_seed(0)
    return attempt(read)


@functools.cache
def right_look(sizes: Sizes, ignored: frozenset[str] = frozenset()) -> torch.Tensor:
    """Output of the right class at sizes."""
    return look(MultiHeadAttention, sizes, ignored)


@functools.cache
def wrong_look(
    identifiers: tuple[str, ...], sizes: Sizes, ignored: frozenset[str] = frozenset()
) -> torch.Tensor | Failure:
    """Output of a catalogued mistake, or several, at sizes."""
    return look(planted(identifiers), sizes, ignored)


@functools.cache
def planted(identifiers: tuple[str, ...]) -> type[MultiHeadAttention]:
    """The class with the mistakes, built once."""
    return wrong_class(*identifiers)


@dataclass(frozen=True)
class Call:
    """One torch function that a forward called: its name, its tensors' shapes, its result."""

    name: str
    shapes: tuple[tuple[int, ...], ...]
    numbers: tuple[int, ...]
    result: torch.Tensor | None
    detaches: bool = False
    failed: bool = False


class Recorder(TorchFunctionMode):
    """Write down every torch function that is called, with a copy of what it returns."""

    def __init__(self):
        super().__init__()
        self.calls: list[Call] = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        """Call function and keep what it was given and gave."""
        kwargs = kwargs or {}
        flat = list(_flat([*args, *kwargs.values()]))
        tensors = [each for each in flat if isinstance(each, torch.Tensor)]
        name = getattr(function, "__name__", str(function))
        if name == "__get__":
            name = getattr(getattr(function, "__self__", None), "__name__", name)
        shapes = tuple(tuple(each.shape) for each in tensors)
        numbers = tuple(each for each in flat if type(each) is int)
        tracked = any(each.requires_grad for each in tensors)
        try:
            result = function(*args, **kwargs)
        except Exception:
            self.calls.append(Call(name, shapes, numbers, None, failed=True))
            raise
        kept = args[0] if name == "__setitem__" else result
        if isinstance(kept, tuple | list) and kept and isinstance(kept[0], torch.Tensor):
            for each in kept:
                self._keep(name, shapes, numbers, each, tracked)
        elif isinstance(kept, torch.Tensor):
            self._keep(name, shapes, numbers, kept, tracked)
        return result

    def _keep(self, name, shapes, numbers, result, tracked):
        detaches = tracked and result.is_floating_point() and not result.requires_grad
        copy = result.detach().clone() if result.numel() <= 20_000 else None
        self.calls.append(Call(name, shapes, numbers, copy, detaches))


def _flat(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if isinstance(value, tuple | list):
            yield from _flat(value)
        else:
            yield value


def recorded(module: nn.Module, x: torch.Tensor, gradients: bool = False) -> list[Call]:
    """Every torch function that one forward of module calls, up to where it ends."""
    recorder = Recorder()

    def forward() -> None:
        with recorder, torch.set_grad_enabled(gradients):
            module(x)

    attempt(forward)
    return recorder.calls
