"""List what can replace an expression: every right value, alone, in a list or in turn."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from eleven_steps.checks.right import Known, Right

TENSORS = ("queries", "keys", "values", "scores", "weights", "context", "out")
THREE = ("queries", "keys", "values")


@dataclass(frozen=True)
class Put:
    """Hold what replaces an expression, however often the code reaches it."""

    known: Known  # the right value, or the first of several
    values: Callable[[int], Any]  # value by the number of earlier visits
    how: str = "one"  # or "list", "turn" or "call"
    each: tuple[Known, ...] = field(default=(), compare=False)  # all values, if there are several

    @property
    def key(self) -> tuple:
        """Return what identifies the replacement in a case of any sizes."""
        known = self.known
        return self.how, known.kind, known.name, known.layout, getattr(known.value, "ndim", 0)


def one(known: Known) -> Put:
    """Return the same value every time."""
    return Put(known, lambda _: fresh(known))


def in_turn(name: str, each: list[Known]) -> Put:
    """Return one value after the other, for a loop over heads, or queries, keys and values."""
    named = replace(each[0], name=name)
    return Put(named, lambda k: fresh(each[k % len(each)]), "turn", tuple(each))


def as_read(reads: list[Known]) -> Put:
    """Return what another expression gave, each time."""
    return Put(reads[0], lambda k: fresh(reads[k % len(reads)]), "read")


def fresh(known: Known) -> Any:
    """Return a copy of a right value, which the code may change in place."""
    if isinstance(known.value, torch.Tensor):
        return known.value.clone(memory_format=torch.contiguous_format)
    return known.value


def every_put(right: Right) -> Iterator[Put]:
    """Yield all replacements, in the order in which to try them."""
    single = [known for known in right.known if known.head is None]
    groups = [(some, f"the heads of {some[0].name}") for some in heads(right)]
    groups += [(some, "queries, keys and values") for some in threes(right)]
    for some, name in groups:
        if some[0].kind in TENSORS:
            known = replace(some[0], name=f"a list of {name}, each")
            yield Put(known, lambda _, some=some: [*map(fresh, some)], "list", tuple(some))
    yield from map(one, sorted(single, key=lambda known: known.kind != "mask"))
    for some, name in groups:
        yield in_turn(f"in turn {name}, each" if some[0].kind in TENSORS else some[0].name, some)


def heads(right: Right) -> Iterator[list[Known]]:
    """Return the heads' parts of each tensor, one list for each kind and layout."""
    lists: dict[tuple[str, str], list[Known]] = {}
    for known in right.known:
        if known.head is not None:
            lists.setdefault((known.name, known.layout), []).append(known)
    yield from lists.values()


def threes(right: Right) -> Iterator[list[Known]]:
    """Return queries, keys and values in the same layout."""
    lists: dict[str, list[Known]] = {}
    for known in right.known:
        if known.kind in THREE and known.name == f"the {known.kind}" and known.head is None:
            lists.setdefault(known.layout, []).append(known)
    yield from lists.values()
