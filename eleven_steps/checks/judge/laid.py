"""Right numbers, each to be found by its value, and how others lie beside them."""

from dataclasses import dataclass

import numpy as np

THREE = ("queries", "keys", "values")


@dataclass(frozen=True)
class Table:
    """Right numbers, each to be found by its value."""

    family: str
    who: str
    values: np.ndarray  # sorted
    places: np.ndarray  # (numbers, axes)
    letters: str
    alone: np.ndarray  # whether no other of them is the same number

    @property
    def told(self) -> np.ndarray:
        """The places of the numbers that are alone, which tell where they are from."""
        return self.places[self.alone]


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


def laid_out(
    shape: tuple[int, ...], at: tuple[np.ndarray, ...], found: np.ndarray, table: Table
) -> tuple[tuple[str, ...], bool, tuple[tuple[str, int], ...], bool]:
    """The letters of each axis, slowest first; whether all right numbers are there; what is fixed;
    whether those that are there are in order.

    A letter belongs to an axis where the place along the axis alone decides it.
    """
    numbers = range(len(table.letters))
    fixed = [k for k in numbers if (found[:, k] == found[0, k]).all()]
    fixed = [k for k in fixed if (table.told[:, k] != table.told[0, k]).any()]
    same = np.ones(len(table.told), bool)
    for k in fixed:
        same &= table.told[:, k] == found[0, k]
    axes, held = [""] * len(shape), set()
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
        axes[axis] = "".join(table.letters[k] for _, k in sorted(own)) or ("?" if size > 1 else "")
    free = {k for k in numbers if k not in fixed and (found[:, k] != found[0, k]).any()}
    ordered = _in_order(shape, at, found, axes, table)
    whole = same.sum() == len(found) and held == free and ordered
    whole &= all(table.letters[k] in "hgw" for k in fixed)
    fixed = tuple((table.letters[k], int(found[0, k])) for k in fixed)
    part = ordered and "?" not in axes and same.sum() != len(found)
    one = {letter for letter, _ in fixed} - {"w"}  # one head of several, say
    return tuple(axes), bool(whole), fixed, bool(part or one and ordered and "?" not in axes)


def _in_order(shape, at, found, axes, table) -> bool:
    """Whether tokens, heads and features come one after the other along each axis."""
    for axis, letters in enumerate(axes):
        if not letters or letters == "?":
            continue
        size = shape[axis]
        number, sizes = np.zeros(len(found), int), 1
        for letter in reversed(letters):
            k = table.letters.index(letter)
            low = table.places[:, k].min()
            number += (found[:, k] - low) * sizes
            sizes *= table.places[:, k].max() - low + 1
        along = np.full(size, -1)
        along[at[axis]] = number
        known = along[along >= 0]
        if letters in ("h", "g", "w") and len(known) < sizes:
            continue
        if (np.diff(known) < 0).any() or ("g" not in letters and (np.diff(known) == 0).any()):
            return False
    return True


def who_of(found: np.ndarray, table: Table) -> str:
    """Whether numbers are queries, keys, values, or of several of them."""
    which = np.unique(found[:, table.letters.index("w")])
    return " and ".join(THREE[k] for k in which)
