"""Read the tensors of a trace beside those of the right steps: whose numbers, along which axes.

All numbers are random, so that each says which token, head and feature it belongs to. No name of
the learner's is read, and no way to write a step is known here: a stack, an einsum and a view
that lay the same numbers out alike are read alike.
"""

import functools
import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch

from eleven_steps.checks.know.right import play
from eleven_steps.checks.run.cases import Case

THREE = ("queries", "keys", "values")
HIDDEN = -999.0  # a score below this counts as hidden


@dataclass(frozen=True)
class Table:
    """Right numbers, each to be found by its value."""

    family: str
    who: str
    values: np.ndarray  # sorted
    indices: np.ndarray  # (numbers, axes): where each of them stands
    letters: str
    alone: np.ndarray  # whether no other of them is the same number

    @property
    def sure(self) -> np.ndarray:
        """The places of the numbers that are alone, which tell where they are from."""
        return self.indices[self.alone]


def telling(numbers: np.ndarray) -> np.ndarray:
    """Which numbers say where they are from."""
    return np.isfinite(numbers) & (numbers != 0) & (abs(numbers - 1) > 1e-12)


def looked_up(values: np.ndarray, table: Table, near: float) -> np.ndarray | None:
    """Which numbers of a table values are, or None where one is none of them."""
    for some in (values[:3], values):  # most are told apart by three
        at = np.clip(np.searchsorted(table.values, some), 1, max(len(table.values) - 1, 1))
        at = np.minimum(at, len(table.values) - 1)
        before = np.maximum(at - 1, 0)
        nearer = abs(table.values[before] - some) < abs(table.values[at] - some)
        at = np.where(nearer, before, at)
        if (abs(table.values[at] - some) > near * (1 + abs(some))).any():
            return None
    return at


class Layout(NamedTuple):
    """How right numbers lie in a tensor."""

    axes: tuple[str, ...]  # the letters of each, slowest first
    whole: bool  # whether all of them are there
    fixed: tuple[tuple[str, int], ...]  # as in Reading, and tokens too
    ordered: bool  # whether those that are there are in order
    tokens: tuple[tuple[str, tuple[int, ...]], ...]


def laid_out(
    shape: tuple[int, ...], at: tuple[np.ndarray, ...], found: np.ndarray, table: Table
) -> Layout:
    """Read off how numbers lie whose places in a table were found.

    A letter belongs to an axis where the place along the axis alone decides it.
    """
    numbers = range(len(table.letters))
    fixed = [k for k in numbers if (found[:, k] == found[0, k]).all()]
    fixed = [k for k in fixed if (table.sure[:, k] != table.sure[0, k]).any()]
    same = np.ones(len(table.sure), bool)
    for k in fixed:
        same &= table.sure[:, k] == found[0, k]
    axes, held, places = [""] * len(shape), set(), []
    for axis, size in enumerate(shape):
        own = []
        for k in numbers:
            if k in fixed or size < 2:
                continue
            along = np.full(size, -1)
            along[at[axis]] = found[:, k]
            if (along[at[axis]] == found[:, k]).all() and len(np.unique(along[along >= 0])) > 1:
                own.append(((np.diff(along) != 0).sum(), k))
                held.add(k)
                some = size <= table.indices[:, k].max() and min(along) >= 0
                if some and table.letters[k] in "ijn":
                    places.append((table.letters[k], tuple(map(int, along))))
        axes[axis] = "".join(table.letters[k] for _, k in sorted(own)) or ("?" if size > 1 else "")
    free = {k for k in numbers if k not in fixed and (found[:, k] != found[0, k]).any()}
    ordered = _axes_in_order(shape, at, found, axes, table)
    whole = same.sum() == len(found) and held == free and ordered
    whole &= all(table.letters[k] in "bhgw" for k in fixed)
    fixed = tuple((table.letters[k], int(found[0, k])) for k in fixed)
    part = ordered and "?" not in axes and same.sum() != len(found)
    one = {letter for letter, _ in fixed} - {"w"}  # one head of several, say
    part = part or one and ordered and "?" not in axes
    return Layout(tuple(axes), bool(whole), fixed, bool(part), tuple(places))


def _axes_in_order(shape, at, found, axes, table) -> bool:
    """Whether tokens, heads and features come one after the other along each axis."""
    for axis, letters in enumerate(axes):
        if not letters or letters == "?":
            continue
        size = shape[axis]
        number, sizes = np.zeros(len(found), int), 1
        for letter in reversed(letters):
            k = table.letters.index(letter)
            low = table.indices[:, k].min()
            number += (found[:, k] - low) * sizes
            sizes *= table.indices[:, k].max() - low + 1
        along = np.full(size, -1)
        along[at[axis]] = number
        known = along[along >= 0]
        if letters in ("h", "g", "w") and len(known) < sizes:
            continue
        if (np.diff(known) < 0).any() or ("g" not in letters and (np.diff(known) == 0).any()):
            return False
    return True


# The letters of each axis: sequence, token, feature of x, which of the three, head, feature of a
# head, query token, key token, feature of out.
LETTERS = {
    **dict(b="b", n="num_tokens", e="d_in", w="3", h="num_heads", d="head_dim"),
    **dict(i="num_tokens", j="num_tokens", o="d_out", g="num_kv_heads", m="num_keys"),
}
FAMILIES = ("const", "x", "projected", "scores", "context", "out")
NEAR = {torch.float64: 1e-9, torch.float32: 3e-6}
# The step that numbers are of, by the axes along which they lie.
STAGES = {
    "x": {"b|n|e": 1, "n|b|e": 1},
    "projected": {"b|n|hd": 2, "b|n|whd": 2, "b|n|h|d": 3, "b|n|w|h|d": 3, "b|n|w|hd": 2}
    | {"b|n|gd": 2, "b|n|g|d": 3, "n|b|hd": 2, "n|b|h|d": 3, "n|bh|d": 3, "b|hd|n": 2}
    | dict.fromkeys(
        ("b|h|n|d", "b|h|d|n", "bh|n|d", "bh|d|n", "h|b|n|d", "h|b|d|n", "b|n|d", "b|d|n")
        + ("b|g|n|d", "b|g|d|n", "w|b|h|n|d", "b|w|h|n|d", "hb|n|d", "hb|d|n", "w|b|n|h|d"),
        4,
    ),
    "scores": dict.fromkeys(
        ("b|h|i|j", "bh|i|j", "b|i|j", "b|h|j|i", "bh|j|i", "b|j|i", "h|b|i|j", "hb|i|j"), 5
    ),
    "context": {"b|n|h|d": 9, "b|n|hd": 10, "n|b|hd": 10, "n|bh|d": 9, "nb|hd": 10}
    | {"n|b|h|d": 9, "b|hd|n": 10}
    | dict.fromkeys(
        ("b|h|n|d", "bh|n|d", "b|n|d", "b|h|d|n", "bh|d|n", "b|d|n", "h|b|n|d", "hb|n|d"), 8
    ),
    "out": {"b|n|o": 11},
}


@dataclass(frozen=True)
class State:
    """How far scores have come on their way to weights."""

    scale: float  # by which the right scores are multiplied in it, or in its logarithm
    grown: bool  # whether exp has been taken
    hidden: str  # what is hidden: "none", "right" or "other"
    whole: bool = False  # whether its rows sum to 1


def state_of(
    mine: torch.Tensor, scores: torch.Tensor, hides: torch.Tensor, near: float
) -> State | None:
    """Read a tensor beside the scores; all are (.., num_tokens, num_tokens), see State."""
    tolerance = max(near * 100, 1e-6)
    low = (mine < HIDDEN) & (scores > HIDDEN)
    if mine.isnan().any() or (mine == torch.inf).any():
        return None
    sums = mine.sum(-1)
    weights = bool((mine >= 0).all() and (sums - 1).abs().max() < 1e-6 + tolerance)
    for grown in (weights, not weights):
        if grown and (mine < -1e-12).any():
            return None
        gone = mine == 0 if grown else low
        seen = ~gone
        if not seen.any():  # a block of keys that come later
            return State(0.0, grown, "right") if hides.all() else None
        numbers = torch.where(seen, mine.clamp(min=1e-300).log() if grown else mine, torch.nan)
        beside = torch.where(seen, scores, torch.nan)
        centred, wanted = (e - e.nanmean(-1, True) for e in (numbers, beside))
        centred, wanted = centred.nan_to_num(), wanted.nan_to_num()
        spread = (wanted * wanted).sum()
        if spread < 1e-12:
            return None
        factor = float((centred * wanted).sum() / spread)
        if abs(factor) < 1e-4:
            continue
        if (centred - factor * wanted).abs().max() > tolerance * (1 + centred.abs().max()):
            continue
        hidden = "other" if gone.any() else "none"
        hidden = "right" if torch.equal(gone, hides) else hidden
        return State(factor, grown, hidden, grown and weights)
    return None


@dataclass(frozen=True)
class Reading:
    """What one tensor is."""

    family: str  # of which of the right tensors, or made of which
    who: str = ""  # queries, keys, values, several of them, scores, weights
    axes: tuple[str, ...] | None = None  # letters of each axis, as hd; None: it is no right tensor
    # The step that makes it, where it is whole and in one of the usual orders
    stage: int | None = None
    scale: float = 1.0  # by which its numbers are those of the right one
    state: State | None = None  # of scores on the way to weights
    # Letters along which it holds one place alone, with that place: one head of several
    fixed: tuple[tuple[str, int], ...] = ()
    part: bool = False  # some of the right numbers, in their order
    # Of some tokens alone: the letter of an axis, and which tokens lie along it
    tokens: tuple[tuple[str, tuple[int, ...]], ...] = ()


class Reference:
    """The right class of a case in double precision, as a scene, and its numbers to be found."""

    def __init__(self, case: Case, double: bool):
        self.case, self.dtype = case, torch.float64 if double else torch.float32
        self.scene = play(case, dtype=self.dtype)
        steps, heads = self.scene.steps, (case.num_heads, case.head_dim)
        sizes = case.letters
        self.sizes = {name: sizes[letter] for name, letter in LETTERS.items() if letter in sizes}
        self.tables: list[Table] = []
        self.stages = {family: self._sized(stages) for family, stages in STAGES.items()}
        self._add("x", "x", steps["shape"]["x"], "bne")
        three = steps["view"]
        shapes = {tuple(tensor.shape) for tensor in three.values()}
        if len(shapes) == 1 and next(iter(shapes))[2:] == heads:
            self._add("projected", "", torch.stack([three[name] for name in THREE]), "wbnhd")
        else:
            for name, tensor in three.items():
                own = tuple(tensor.shape[1:3]) == (case.num_tokens, case.num_heads)
                self._add("projected", name, tensor, "bnhd" if own else "bngd")
        for name, tensor in steps["transpose"].items():
            if self.find(tensor) is None:  # a change since the lecture makes other numbers here
                self._add("projected", name, tensor, "bhnd")
        for step, name in ("scores", "scores"), ("mask", "masked"), ("softmax", "weights"):
            self._add("scores", name, steps[step][name], "bhij")
        self._add("context", "context", steps["context"]["context"], "bhnd")
        combined = steps["combine"]["context"]
        if self.find(combined) is None and combined.shape[-1] == case.d_out:
            self._add("context", "context", combined.unflatten(-1, heads), "bnhd")
        self._add("out", "out", steps["out_proj"]["out"], "bno")
        # queries @ keys where a change makes other scores of it, as ALiBi does; None elsewhere
        queries, keys = steps["transpose"]["queries"], steps["transpose"]["keys"].mT
        alike = queries.shape[1] == keys.shape[1] and queries.shape[3] == keys.shape[2]
        self.product = queries @ keys if alike and not self.find(queries @ keys) else None
        # (b, num_heads, num_tokens, num_keys), True where the right class hides
        self.hidden = steps["mask"]["masked"] == -torch.inf

    def _sized(self, stages: dict[str, int]) -> dict[str, int]:
        """The same without the letters of axes that are 1 long, which no number tells of."""
        kept: dict[str, int] = {}
        for axes, stage in stages.items():
            parts = ("".join(filter(self._long, part)) for part in axes.split("|"))
            kept.setdefault("|".join(filter(None, parts)), stage)
        return kept

    def _add(self, family: str, who: str, tensor: torch.Tensor, letters: str) -> None:
        numbers = tensor.detach().to(torch.float64).numpy()
        at = np.nonzero(telling(numbers))
        values = numbers[at]
        order = np.argsort(values)
        places = np.stack(at, 1)[order] if len(values) else np.zeros((0, numbers.ndim), int)
        values = values[order]
        apart = np.diff(values) > NEAR[self.dtype] * (1 + abs(values[1:]))
        alone = np.ones(len(values), bool)
        alone[1:] &= apart
        alone[:-1] &= apart
        self.tables.append(Table(family, who, values, places, letters, alone))

    def find(self, tensor: torch.Tensor, family: str = "") -> Reading | None:
        """Read a tensor by its numbers alone; None where they are of no right tensor, or family."""
        if tensor.dtype not in NEAR or tensor.device.type != "cpu" or tensor.dim() == 0:
            return None
        numbers = tensor.detach().to(torch.float64).numpy()
        at = np.nonzero(telling(numbers))
        values = numbers[at]
        if len(values) < 2:
            return None
        near, part, d = max(NEAR[tensor.dtype], NEAR[self.dtype]), None, self.case.head_dim
        for table in self.tables:
            if not len(table.values) or family not in ("", table.family):
                continue
            largest = abs(values).max() / abs(table.values).max()
            for scale in dict.fromkeys((1.0, d**-0.5, d**-0.25, d**0.5, -1.0, largest)):
                which = looked_up(values / scale, table, near)
                if which is None:
                    continue
                tell = table.alone[which]
                if tell.sum() < 2:
                    continue
                found, places = table.indices[which[tell]], tuple(place[tell] for place in at)
                laid = laid_out(numbers.shape, places, found, table)
                sequence = "b" in dict(laid.fixed)  # of one alone
                full = table.family == "scores" or len(values) == tensor.numel()
                every = len(values) == tensor.numel()
                every = every or table.family == "x" and sequence  # which may hold a 0
                axes = ["b", *filter(None, laid.axes)] if sequence else filter(None, laid.axes)
                stage = self.stages[table.family].get("|".join(axes))
                three = np.unique(found[:, table.letters.index("w")]) if not table.who else ()
                who = table.who or " and ".join(THREE[k] for k in three)
                scaled = scale > 0 and (scale == 1 or table.family in ("projected", "scores"))
                reading = Reading(table.family, who, laid.axes, stage, float(scale))
                reading = replace(reading, fixed=laid.fixed)
                if laid.whole and full and scaled and stage:
                    return reading
                ordered = bool(laid.ordered and every and scaled)
                part = part or replace(reading, stage=None, part=ordered, tokens=laid.tokens)
        return part

    def holds(self, tensor: torch.Tensor, family: str) -> bool:
        """Whether the numbers of a tensor are all those of a family's, in whatever order."""
        mine = np.sort(tensor.detach().double().numpy(), None)
        tables = (table.values for table in self.tables if table.family == family)
        return any(len(e) == len(mine) and np.allclose(e, mine, 1e-4, 1e-5) for e in tables)

    def state(self, tensor: torch.Tensor, like: Reading) -> State | None:
        """How far a tensor that lies like scores has come; None where it is none of them.

        Its numbers need not be right ones: any scale, any mask and any softmax of rows is read.
        """
        laid = self.aligned(tensor, like)
        return laid and state_of(*laid, NEAR.get(tensor.dtype, 1e-3))

    def aligned(self, tensor: torch.Tensor, like: Reading) -> tuple[torch.Tensor, ...] | None:
        """The tensor, the right scores and what is hidden, (.., queries, keys) each."""
        if not tensor.is_floating_point() or tensor.device.type != "cpu":
            return None
        letters, fixed = "".join(like.axes), dict(like.fixed)
        wanted = [c for c in "bhij" if c not in fixed and self._long(c)]
        if sorted(letters) != sorted(wanted) or "j" not in letters:
            return None
        scores, hidden = self.scene.steps["scores"]["scores"], self.hidden
        scores, hidden = scores.to(torch.float64), hidden.expand_as(scores)
        for letter, tokens in like.tokens:
            dim, tokens = "bhij".index(letter), torch.tensor(tokens)
            scores, hidden = (table.index_select(dim, tokens) for table in (scores, hidden))
        at = tuple(fixed.get(c, slice(None) if self._long(c) else 0) for c in "bhij")
        scores, hidden = scores[at], hidden[at]
        sizes = [scores.shape[wanted.index(c)] for c in letters]
        if tensor.numel() != math.prod(sizes):
            return None
        mine = tensor.detach().to(torch.float64).reshape(sizes)
        return mine.permute([letters.index(c) for c in wanted]), scores, hidden

    def _long(self, letter: str) -> bool:
        return self.sizes.get(letter, 2) > 1


@functools.cache
def reference_of(case: Case, double: bool = True) -> Reference:
    """The right class of a case, read once."""
    return Reference(case, double)
