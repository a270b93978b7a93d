"""The cases that answers are tried in: sizes, weights, x.

The sizes of a case that a message reasons from differ from each other, so that no letter can be
taken for another.
"""

import copy
import functools
import math
import random
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from eleven_steps.checks.run.isolate import Failure
from eleven_steps.checks.run.variant import LECTURE, Variant
from eleven_steps.helpers.attention import MultiHeadAttention
from eleven_steps.helpers.examples import load_second, load_whiteboard

LAYERS = ("W_query", "W_key", "W_value", "out_proj")
TOLERANCE = 2e-4  # of outputs: another order of the same float32 operations stays below it
SAME = 1e-7  # of outputs of the very same operations
LOOSE = 1e-3  # of gradients and of what is solved for


def pairs_up(case: "Case") -> bool:
    """Whether the features of a head that positions turn are pairs."""
    return round(case.head_dim * case.variant.rope[1], 6) % 2 == 0


@dataclass(frozen=True)
class Case:
    """One choice of sizes and numbers; equal cases have equal weights and an equal x."""

    b: int
    num_tokens: int
    d_in: int
    d_out: int
    num_heads: int
    context_length: int
    qkv_bias: bool = False
    scale: float = 1.5  # how far queries and keys spread; at 0 all scores are 0
    straight: bool = False  # whether out_proj passes the context on as it is
    example: str = ""  # whose x it is, whiteboard or second; or drawn: all from its seed
    without: frozenset[str] = frozenset()  # parameters that are set to 0
    seed: int = 0  # of the weights and x
    label: str = ""  # in a message; its letters if empty
    variant: Variant = LECTURE  # changes since the lecture

    @property
    def head_dim(self) -> int:
        """Features of each head."""
        return self.d_out // self.num_heads

    @property
    def letters(self) -> dict[str, int]:
        """The lecture's letters and their sizes."""
        names = "b num_tokens d_in d_out num_heads head_dim context_length"
        return {name: getattr(self, name) for name in names.split()}

    @property
    def where(self) -> str:
        """The case in words, for messages."""
        names = "b", "num_tokens", "d_in", "d_out", "num_heads"
        sizes = ", ".join(f"{n} = {getattr(self, n)}" for n in names)
        return self.label.format(sizes=sizes) if self.label else f"with {sizes}"

    @property
    def x(self) -> torch.Tensor:
        """The input (b, num_tokens, d_in)."""
        if self.example:
            return from_seed(self)[1].clone()
        return seeded(f"x{self.seed}", (self.b, self.num_tokens, self.d_in))

    def weight(self, name: str, shape: Iterable[int]) -> torch.Tensor:
        """The known weight of a parameter, "W_key.weight" for one, in whatever shape it has."""
        shape = tuple(shape)
        if self.example and shape == from_seed(self)[0].get(name, torch.empty(0)).shape:
            return from_seed(self)[0][name]
        if name in self.without or self.straight and name == "out_proj.bias":
            return torch.zeros(shape)
        if self.straight and name == "out_proj.weight" and len(shape) == 2:
            return torch.eye(*shape)
        scored = ("query" in name or "key" in name) and "index" not in name
        spread = self.scale if scored else 1.5
        fan_in = shape[-1] if len(shape) > 1 else 4
        return spread / math.sqrt(fan_in) * seeded(f"{name}{self.seed}", shape)


MAIN = Case(4, 7, 10, 40, 5, 9)
BIASED = replace(MAIN, qkv_bias=True)

# The first two tell most mistakes apart; the others agree in sizes that should not matter.
CASES = (
    MAIN,
    BIASED,
    Case(3, 4, 12, 12, 3, 4, qkv_bias=True),  # d_in = d_out, head_dim = num_tokens
    Case(1, 5, 6, 10, 5, 8),  # one sequence, as many heads as tokens
    Case(2, 6, 3, 4, 1, 6, qkv_bias=True),  # one head
    Case(3, 1, 5, 12, 3, 9),  # one token
    Case(2, 20, 6, 8, 2, 32),  # a longer text
    Case(2, 3, 4, 6, 6, 5),  # head_dim = 1
    Case(5, 5, 7, 15, 3, 6, qkv_bias=True),  # as many sequences as tokens
    Case(12, 3, 4, 8, 2, 4),  # many sequences
)

# The same for changes since the lecture, with heads that can share keys, and an even head_dim,
# whose features can pair.
OTHERS = (
    Case(4, 7, 10, 48, 6, 9),
    Case(4, 7, 10, 48, 6, 9, qkv_bias=True),
    Case(3, 4, 12, 12, 3, 4, qkv_bias=True),
    Case(1, 5, 6, 8, 4, 8),
    Case(2, 6, 3, 4, 1, 6, qkv_bias=True),
    Case(3, 1, 5, 12, 3, 9),
    Case(2, 20, 6, 8, 2, 32),
)


# What programs single out of a size: the first counts, powers of two, round numbers, and what lies
# just above. Where sequences are many they are short, so that each case is cheap.
COUNTS = (1, 2, 3, 4, 8, 10, 16, 17, 32, 33, 64, 65, 100, 128)
HEAD_SIZES = (4, 16), (32, 2), (24, 4), (16, 2), (12, 4), (8, 8), (9, 4)  # each with its head_dim
HEAD_SIZES += (1, 128), (2, 64), (3, 12), (2, 32), (2, 96), (2, 20), (2, 128)
MOST_TOKENS = 4096  # of a text, where a class's code names so many
WIDE = Case(1, 9, 768, 768, 12, 1024), Case(2, 5, 512, 512, 2, 8, qkv_bias=True)
# Each two letters are equal in one of these, where a slip in broadcasting may show.
EQUAL = Case(4, 4, 4, 16, 4, 16), Case(6, 6, 6, 6, 1, 6), Case(8, 8, 8, 8, 8, 8, qkv_bias=True)


def _sized() -> tuple[Case, ...]:
    """Cases in which sizes that programs single out each occur."""
    made, every = [], zip(COUNTS, COUNTS[::-1], HEAD_SIZES, strict=True)
    for i, (n, b, (heads, head_dim)) in enumerate(every):
        room, d_out = (n, n + 1, 1 << n.bit_length())[i // 2 % 3], heads * head_dim
        made.append(Case(b, n, (d_out, d_out + 9, 5)[i % 3], d_out, heads, room, i % 4 < 2))
    return tuple(sorted(made, key=lambda case: case.b * case.num_tokens * case.d_out))


def singled(numbers: Iterable[float], variant: Variant) -> tuple[list[Case], list[Case]]:
    """Cases in which a size is one of these numbers, or just above, as far as COUNTS lack them.

    Returns:
        (few tokens and a few heads, or as many of each; long texts, of which outputs are compared).
    """
    some = sorted({int(n) for n in numbers if 4 < n <= MOST_TOKENS and n == int(n)} - {*COUNTS})
    short, long = [], []
    for n in some:
        texts = Case(1, n, 4, 4, 1, n), Case(1, n + 9, 4, 4, 1, n + 9)
        if n <= max(COUNTS):
            short += *texts, Case(n, 3, 2 * n, 2 * n, n, 4), Case(2, 5, n, n, 1, 6)
        else:
            long += texts
    named = ([replace(case, variant=variant) for case in each] for each in (short, long))
    return tuple([case for case in each if not variant or pairs_up(case)] for each in named)


@dataclass(frozen=True)
class Cases:
    """Where a class is tried."""

    main: Case
    biased: Case
    every: tuple[Case, ...]  # in which mistakes are told apart
    simpler: tuple[Case, ...]
    sized: tuple[Case, ...]  # in which all states are tried
    rare: tuple[Case, ...]  # in which outputs alone are compared


@functools.cache
def cases_of(variant: Variant = LECTURE) -> Cases:
    """The cases of the lecture's class, or those of a variant."""
    every = tuple(replace(case, variant=variant) for case in (OTHERS if variant else CASES))
    some = (tuple(replace(e, d_out=e.d_out * wide) for e in every) for wide in range(1, 11))
    if variant:  # where a share of the features turns, heads are as wide as it takes
        every = next(filter(lambda case: all(map(pairs_up, case)), some), every)
    if "linear" in variant:  # where sums are small, what is added under a norm's root counts
        every += (replace(every[0], scale=0.1),)
    # Each of the simpler ones takes some steps away, so that one mistake of two is seen alone.
    still = replace(every[0], scale=0.0)
    wide = every[0].d_out // (OTHERS if variant else CASES)[0].d_out
    sizes = (2, 6, 5, 4 * wide, 1, 8), (1, 1, 5, 12 * wide, 3, 9)
    small = tuple(Case(*size, variant=variant) for size in sizes)
    straight = (replace(case, straight=True) for case in (every[0], still))
    more = (_sized(), EQUAL + WIDE)
    more = (tuple(replace(e, variant=variant) for e in some) for some in more)
    if variant:
        more = (tuple(filter(pairs_up, some)) for some in more)
    if "topk" in variant:  # of many keys two may be rated alike, but for rounding
        more = (), ()
    return Cases(every[0], every[1], every, (still, *small, *straight), *more)


# Where exercises are tried: first the two examples of the notebooks, as they are made there. The
# others leave nothing to be gained by writing numbers down: each size that an answer could have
# typed is another one in another case.
BOARD = "the whiteboard"
OF_ITS_SIZES = f"with other numbers of {BOARD}'s sizes"
TASK_CASES = (
    Case(1, 3, 6, 6, 2, 6, seed=123, example="whiteboard", label=f"on {BOARD}"),
    # A bias left out shows here as well, where d_in = d_out.
    Case(1, 3, 6, 6, 2, 6, qkv_bias=True, seed=7, example="drawn", label=OF_ITS_SIZES),
    Case(2, 7, 5, 12, 3, 9, seed=123, example="second", label="on the second example ({sizes})"),
    Case(13, 10, 150, 132, 12, 10, qkv_bias=True, seed=7, example="drawn"),
)
FIRST, SIZED = 0, 2  # the one before a learner's eyes; the one in which all sizes differ


def seeded(name: str, shape: Iterable[int], scale: float = 1.0) -> torch.Tensor:
    """Random numbers that depend on name and shape alone."""
    return scale * _numbers(name, tuple(shape))


@functools.cache
def _numbers(name: str, shape: tuple[int, ...]) -> torch.Tensor:
    seed = zlib.crc32(f"{name}{shape}".encode())
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def other_numbers(argument: torch.Tensor | nn.Linear) -> torch.Tensor | nn.Linear:
    """A tensor of other numbers, or a layer of other weights, of the same shapes."""
    if isinstance(argument, torch.Tensor):
        other = seeded("other numbers", argument.shape)
        return ~argument if argument.dtype == torch.bool else other
    other = nn.Linear(argument.in_features, argument.out_features, argument.bias is not None)
    with torch.no_grad():
        for name, parameter in other.named_parameters():
            parameter.copy_(seeded(f"other {name}", parameter.shape))
    return other


@functools.cache
def from_seed(case: Case) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """The weights of a case with an example, and its x (b, num_tokens, d_in), as a cell makes them.

    torch.manual_seed(case.seed), then the constructor, then x, where it is not an example's own.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(case.seed)
        sizes = case.d_in, case.d_out, case.context_length, 0.0, case.num_heads
        state = MultiHeadAttention(*sizes, case.qkv_bias).state_dict()
        x = 3 * torch.randn(case.b, case.num_tokens, case.d_in)
    x = {"whiteboard": load_whiteboard, "second": load_second}.get(case.example, lambda: x)()
    return {name: weight for name, weight in state.items() if name != "mask"}, x


def fill(module: nn.Module, case: Case) -> None:
    """Give the layers of the lecture's names the case's weights, whatever their shapes.

    Layers that are one and the same object become copies of their own first, and so do weights
    that two layers share.
    """
    layers = [getattr(module, name, None) for name in LAYERS]
    for index, (name, layer) in enumerate(zip(LAYERS, layers, strict=True)):
        if isinstance(layer, nn.Module) and any(layer is other for other in layers[:index]):
            setattr(module, name, copy.deepcopy(layer))
    filled: set[int] = set()
    with torch.no_grad():
        for name, parameter in lecture_parameters(module, case.variant).items():
            if id(parameter) in filled:
                layer, _, part = name.rpartition(".")
                parameter = nn.Parameter(parameter.clone(), parameter.requires_grad)
                setattr(module.get_submodule(layer), part, parameter)
            filled.add(id(parameter))
            parameter.copy_(case.weight(name, parameter.shape))


def lecture_parameters(module: Any, variant: Variant = LECTURE) -> dict[str, nn.Parameter]:
    """The registered parameters that bear the lecture's names, and those of changes since."""
    registered = dict(module.named_parameters(remove_duplicate=False))
    wanted = [f"{layer}.{part}" for layer in LAYERS for part in ("weight", "bias")]
    for layer in variant.layers:
        wanted += [layer, f"{layer}.weight", f"{layer}.bias"]
    return {name: registered[name] for name in wanted if name in registered}


def close(one: Any, other: Any, tolerance: float = TOLERANCE) -> bool:
    """Whether two results agree: tensors to rounding, with NaN and inf in the same places."""
    if isinstance(one, Failure) or isinstance(other, Failure):
        return isinstance(one, Failure) and isinstance(other, Failure)
    if one.shape != other.shape:
        return False
    if torch.equal(one, other):
        return True
    far = (one - other).abs().max()
    if not far.isfinite():
        odd = ~(one.isfinite() & other.isfinite())
        if not torch.allclose(one[odd], other[odd], 0, 0, equal_nan=True):
            return False
        one, other = one[~odd], other[~odd]
        if not len(one):
            return True
        far = (one - other).abs().max()
    return bool(far <= tolerance * (1 + other.abs().max()))


def unseen(near: Case = TASK_CASES[1]) -> tuple[Case, Case]:
    """Two cases that nobody has seen, one of near's sizes, for an answer that lives elsewhere."""
    draw = random.SystemRandom()
    num_heads, head_dim = draw.sample((4, 6, 8) if near.variant else range(3, 6), 2)
    b, num_tokens, d_in = draw.sample(range(4, 12), 3)
    sizes = b, num_tokens, d_in, num_heads * head_dim, num_heads, num_tokens + 3
    first, second = (draw.getrandbits(32) for _ in range(2))
    return Case(*sizes, True, seed=first, variant=near.variant), replace(near, seed=second)
