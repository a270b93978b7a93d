"""Define the cases that answers are tried in: sizes, weights, x.

The sizes of a case that a message reasons from differ from each other, so that no letter can be
taken for another.
"""

import functools
import math
import random
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from eleven_steps.checks.asking.failures import Failure
from eleven_steps.helpers.attention import MultiHeadAttention
from eleven_steps.helpers.examples import load_second, load_whiteboard

LAYERS = ("W_query", "W_key", "W_value", "out_proj")
TOLERANCE = 2e-4  # of outputs, above what reordered float32 operations differ by


@dataclass(frozen=True)
class Case:
    """One choice of sizes and numbers; equal cases have equal weights and an equal x."""

    b: int
    num_tokens: int
    d_in: int
    d_out: int
    num_heads: int
    context_length: int
    qkv_bias: bool | None = False  # None if the argument is left out
    scale: float = 1.5  # spread of queries and keys; at 0 all scores are 0
    example: str = ""  # source of x: whiteboard, second, or drawn from the seed
    seed: int = 0  # seed of the weights and x
    label: str = ""  # text in messages; if empty, sizes are listed
    change: str = ""  # name of the variant, in an exercise about one

    @property
    def head_dim(self) -> int:
        """Return the number of features of each head."""
        return self.d_out // self.num_heads

    @property
    def letters(self) -> dict[str, int]:
        """Return the lecture's letters and their sizes."""
        names = "b num_tokens d_in d_out num_heads head_dim context_length"
        return {name: getattr(self, name) for name in names.split()}

    @property
    def where(self) -> str:
        """Describe the case in words, for messages."""
        names = "b", "num_tokens", "d_in", "d_out", "num_heads"
        sizes = ", ".join(f"{n} = {getattr(self, n)}" for n in names)
        return self.label.format(sizes=sizes) if self.label else f"with {sizes}"

    @property
    def x(self) -> torch.Tensor:
        """Return the input x (b, num_tokens, d_in)."""
        if self.example:
            return from_seed(self)[1].clone()
        return seeded(f"x{self.seed}", (self.b, self.num_tokens, self.d_in)).clone()

    def weight(self, name: str, shape: Iterable[int]) -> torch.Tensor:
        """Draw the weight of a parameter, such as "W_key.weight", in the shape it has."""
        shape = tuple(shape)
        if self.example and shape == from_seed(self)[0].get(name, torch.empty(0)).shape:
            return from_seed(self)[0][name]
        scored = ("query" in name or "key" in name) and "index" not in name
        spread = self.scale if scored else 1.5
        fan_in = shape[-1] if len(shape) > 1 else 4
        return spread / math.sqrt(fan_in) * seeded(f"{name}{self.seed}", shape)


MAIN = Case(4, 7, 10, 40, 5, 9)
BIASED, BY_DEFAULT = replace(MAIN, qkv_bias=True), replace(MAIN, qkv_bias=None)
OTHER = Case(2, 6, 5, 24, 3, 11)  # whose sizes differ from each other, and from those of MAIN

# The first two tell most mistakes apart; the others agree in sizes that should not matter.
CASES = (
    MAIN,
    BIASED,
    Case(3, 4, 12, 12, 3, 4, qkv_bias=True),  # d_in = d_out, as long as context_length
    Case(1, 5, 6, 10, 5, 8),  # one sequence, as many heads as tokens
    Case(2, 6, 3, 4, 1, 6, qkv_bias=True),  # one head
    Case(3, 1, 5, 12, 3, 9),  # one token
    Case(2, 3, 4, 6, 6, 5),  # head_dim = 1
    Case(12, 3, 4, 8, 2, 4),  # many sequences
    Case(1, 40, 6, 8, 2, 64),  # a long text
    replace(MAIN, scale=30.0),  # scores so far apart that exp() of them is inf
)
FEW = Case(1, 4, 6, 8, 2, 5)  # a short text, for many draws
LONGER = Case(1, 20, 6, 8, 2, 20)

# Where exercises are tried: first the two examples of the notebooks, as they are made there. The
# others catch answers with sizes written as numbers: each size that an answer could have
# typed differs in some other case.
BOARD = "on the whiteboard"
TASK_CASES = (
    Case(1, 3, 6, 6, 2, 6, seed=123, example="whiteboard", label=BOARD),
    # A bias left out shows here as well, where d_in = d_out.
    Case(1, 3, 6, 6, 2, 6, True, seed=7, example="drawn", label="with other numbers"),
    Case(2, 7, 5, 12, 3, 9, seed=123, example="second", label="on example 2"),
    Case(13, 10, 150, 132, 12, 10, qkv_bias=True, seed=7, example="drawn"),
)
FIRST, SIZED = 0, 2  # the notebooks' case; the case whose sizes all differ


def seeded(name: str, shape: Iterable[int], scale: float = 1.0) -> torch.Tensor:
    """Draw random numbers that depend on name and shape alone."""
    return scale * _numbers(name, tuple(shape))


@functools.cache
def _numbers(name: str, shape: tuple[int, ...]) -> torch.Tensor:
    seed = zlib.crc32(f"{name}{shape}".encode())
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@functools.cache
def from_seed(case: Case) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Make the weights of a case with an example, and its x (b, num_tokens, d_in), as a cell does.

    torch.manual_seed(case.seed), then the constructor, then x, where it is not an example's own.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(case.seed)
        sizes = case.d_in, case.d_out, case.context_length, 0.0, case.num_heads
        state = MultiHeadAttention(*sizes, bool(case.qkv_bias)).state_dict()
        x = 3 * torch.randn(case.b, case.num_tokens, case.d_in)
    x = {"whiteboard": load_whiteboard, "second": load_second}.get(case.example, lambda: x)()
    return {name: weight for name, weight in state.items() if name != "mask"}, x


def construct(cls: Any, case: Case, dropout: float = 0.0) -> nn.Module:
    """Build a module of a class, or by a function, from the sizes of a case."""
    torch.default_generator.manual_seed(0)  # other random draws of the constructor repeat as well
    sizes = case.d_in, case.d_out, case.context_length, dropout, case.num_heads
    return cls(*sizes) if case.qkv_bias is None else cls(*sizes, qkv_bias=case.qkv_bias)


def build(cls: Any, case: Case, dropout: float = 0.0) -> nn.Module:
    """Build a module for a case with known weights, in eval mode."""
    module = construct(cls, case, dropout)
    fill(module, case)
    return module.eval()


def fill(module: nn.Module, case: Case) -> None:
    """Fill each parameter with the numbers that belong to its name in the case."""
    with torch.no_grad():
        for name, parameter in module.named_parameters(remove_duplicate=False):
            if not parameter.requires_grad and not name.startswith(LAYERS):
                continue  # a mask that is kept as a parameter
            parameter.copy_(case.weight(name, parameter.shape))


def close(one: Any, other: Any, tolerance: float = TOLERANCE) -> bool:
    """Say whether two results agree: tensors to rounding, with NaN and inf in the same places."""
    if isinstance(one, Failure) or isinstance(other, Failure):
        return isinstance(one, Failure) and isinstance(other, Failure)
    if one.shape != other.shape or one.dtype != other.dtype or one.is_meta or other.is_meta:
        return False
    if not one.numel() or torch.equal(one, other):
        return True
    if not one.is_floating_point():
        return False
    odd = ~(one.isfinite() & other.isfinite())
    if odd.any():
        if not torch.equal(one[odd].nan_to_num(1.5), other[odd].nan_to_num(1.5)):
            return False
        one, other = one[~odd], other[~odd]
    return not len(one) or bool((one - other).abs().max() <= tolerance * (1 + other.abs().max()))


def unseen(near: Case = TASK_CASES[1]) -> tuple[Case, Case]:
    """Draw two fresh cases, one of near's sizes, for an answer that runs in a sandbox."""
    draw = random.SystemRandom()
    num_heads, head_dim = draw.sample((4, 6, 8) if near.change else range(3, 6), 2)
    b, num_tokens, d_in = draw.sample(range(4, 12), 3)
    sizes = b, num_tokens, d_in, num_heads * head_dim, num_heads, num_tokens + 3
    first, second = (draw.getrandbits(32) for _ in range(2))
    return Case(*sizes, True, seed=first, change=near.change), replace(near, seed=second)
