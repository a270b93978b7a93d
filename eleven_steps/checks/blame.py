"""Find the expression at fault: the first where a right value makes everything after it right.

The search guesses nothing from how code looks. It puts a value of the eleven steps in place of an
expression's own, runs the rest of the learner's code, and compares the output with the right one,
in two cases of different sizes. So every statement about a line has been tried.
"""

import ast
import functools
import re
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from types import BuiltinMethodType, MethodType
from typing import Any

import torch
from torch import nn

from eleven_steps.checks.asking.isolation import TimeUp, UserInterrupt
from eleven_steps.checks.contract import equal
from eleven_steps.checks.replacements import TENSORS, THREE, Put, as_read, every_put, one, threes
from eleven_steps.checks.right import Known, Right
from eleven_steps.checks.watch import Spot, Watch

# What the code must have made before it can make a value
BEFORE = {"scores": {"queries", "keys"}, "weights": {"queries", "keys"}}
BEFORE |= {"context": {"queries", "keys", "values"}, "out": {"context"}}
MADE_OF = {"context": {"weights", "values"}, "out": {"context"}}  # in one call
ELSEWHERE = {"__init__": ("b", "num_tokens")}  # sizes that a function cannot know
OFTEN = 16  # at most so many values of one expression are kept


@dataclass
class Seen:
    """Hold what an expression gave when the code ran unchanged."""

    value: Any = field(repr=False)
    reads: list[Known | None]  # one for each time that it was reached
    made: dict[str, set[frozenset[int]]]  # right values made before: their kinds and steps
    times: int = 1
    raised: bool = False
    kept: Any = field(default=None, repr=False)  # a copy of the value

    @property
    def read(self) -> Known | None:
        """Return the right value that it gave first."""
        return self.reads[0]

    @functools.cached_property
    def constant(self) -> bool:
        """Say whether it is a tensor of one repeated number, as zeros makes it."""
        value = self.value
        plain = isinstance(value, torch.Tensor) and value.numel() > 1 and not value.is_meta
        return plain and bool((value == value.reshape(-1)[0]).all())

    @property
    def absent(self) -> bool:
        """Say whether it is no value yet: an error, None, an uncalled layer or method."""
        kinds = nn.Module | MethodType | BuiltinMethodType | None
        return self.raised or isinstance(self.value, kinds)


@dataclass
class Blame:
    """Hold an expression at fault, what it gives, and what is needed in its place."""

    spot: Spot
    seen: Seen
    need: Known | None  # None if no value that was tried repairs the rest
    step: int
    operand: "Blame | None" = None  # the part of the expression that is wrong
    misnamed: bool = False  # the needed value exists, but a wrong name is used
    fact: str = ""  # one more known fact, as a sentence


class Search:
    """The search through one run of a learner's code.

    Args:
        watch: the code, watched.
        right: what is right in this case.
        run: runs the code and returns its output, or raises.
        goal: what it should return.
        given: kinds that are made before it, where it is one step's function.
        elsewhere: makes the search in a case of other sizes, in which what repairs has to hold
            too: sizes agree by chance, and one value can make up for the lack of another.
        trusted: names of arguments, whose values are right.
    """

    def __init__(
        self,
        watch: Watch,
        right: Right,
        run: Callable[[], Any],
        goal: Any,
        given: tuple[str, ...] = (),
        elsewhere: "Callable[[], Search] | None" = None,
        trusted: frozenset[str] = frozenset(),
    ):
        self.trusted, goal_read = trusted, right.read(goal)
        known = goal_read and goal_read.kind in TENSORS
        self._most = goal_read.steps | {1} if known else frozenset(range(1, 12))
        self.watch, self.right, self._run, self.goal = watch, right, run, goal
        self._elsewhere = elsewhere
        self.seen: dict[Spot, Seen] = {}
        self._made: dict[str, set[frozenset[int]]] = {"x": {frozenset({1})}}
        self._made |= {kind: {frozenset({2, 3, 4})} for kind in given}
        self._orders: set[str] = set()  # orders of axes that the learner's code has
        self.error: BaseException | None = None
        self.out: Any = None
        watch.instead, watch.seen = {}, self._note
        try:
            self.out = run()
        except (TimeUp, UserInterrupt):
            raise
        except BaseException as error:
            self.error = error
        self.stopped = self.watch.open[-1] if self.error and self.watch.open else None
        for spot in reversed(self.watch.open if self.error else []):  # the innermost first
            times = self.seen[spot].times if spot in self.seen else 0
            self.seen.pop(spot, None)
            self.seen[spot] = Seen(self.error, [None], self._so_far(), times + 1, raised=True)
        watch.seen = None

    def _note(self, spot: Spot, value: Any) -> None:
        before = self.seen.get(spot)
        read = None if before and before.times >= OFTEN else self.right.read(value)
        if before:
            before.times += 1
            before.reads.append(read)
            return
        plain = isinstance(value, torch.Tensor) and not value.is_meta
        kept = value.detach().clone() if plain else value  # later code may change it in place
        self.seen[spot] = Seen(value, [read], self._so_far(), kept=kept)
        if read:
            self._made.setdefault(read.kind, set()).add(read.steps)
            self._orders.add(read.layout.split()[0])

    def _so_far(self) -> dict[str, set[frozenset[int]]]:
        return {kind: {*steps} for kind, steps in self._made.items()}

    # ---- which expression ----

    def blame(self) -> Blame | None:
        """Find the expression at fault, or the likeliest if no value repairs the rest."""
        ways = (
            lambda: self._first(self._likely) or self._first(lambda spot, known: True),
            self._swapped_sizes,
            self._everywhere,
            self._three_alike,
            self._unfinished,
            self._returned,
            self._unproven,
        )
        found, swapped = next(filter(None, (way() for way in ways)), None), self._swapped()
        if swapped and (not found or self._before(swapped.operand.spot, found.spot)):
            return swapped
        return found and self._where_made(found)

    def _before(self, one: Spot, other: Spot) -> bool:
        order = list(self.seen)
        return order.index(one) < order.index(other)

    def _first(self, allowed: Callable[[Spot, Known], bool]) -> Blame | None:
        for spot, seen in list(self.seen.items()):

            def wanted(put, spot=spot, seen=seen):
                return self._is_other(spot, seen, put) and allowed(spot, put.known)

            if put := self.repair(spot, wanted):
                if seen.read and seen.read.kind == put.known.kind:
                    lacks = put.known.steps - seen.read.steps
                    step = min(lacks, default=max(put.known.steps))
                    return Blame(spot, seen, put.known, step)
                return self._explained(spot, put.known)
        return None

    def _likely(self, spot: Spot, known: Known) -> bool:
        """Say whether to try a value first: a size of the constructor that is no letter's.

        The size of a wrong letter may also be a mistake in forward, which uses it.
        """
        value = self.seen[spot].value
        odd = type(value) is int and value not in self.right.case.letters.values()
        return spot.function != "__init__" or known.kind != "size" or odd

    def _is_other(self, spot: Spot, seen: Seen, put: Put) -> bool:
        """Say whether a value differs from the present one, and can be made by then."""
        known, read = put.known, seen.read
        if not read:
            return True
        # One place that makes three, or every head: what it leaves out is left out thrice.
        if known.kind != read.kind == _named(spot.target):
            return False  # the value is what its name says
        other = known.kind != read.kind or seen.times > 1 and known.steps > read.steps
        if put.how == "turn" and not other:
            other = any(r and r.head != k.head for r, k in zip(seen.reads, put.each, strict=False))
        # If a different right value is here, the needed one was made before, or is made here.
        taken = {s.read.kind for p in spot.children if (s := self.seen.get(p)) and s.read}
        here = known.kind in seen.made or known.kind in THREE and not known.steps & {3, 4}
        return other and (here or MADE_OF.get(known.kind, {""}) <= taken)

    def _swapped(self) -> Blame | None:
        """Find two exchanged values, in a call or where they get their names."""
        order = {spot: i for i, spot in enumerate(self.seen)}
        pairs = [(spot, pair) for spot in self.seen for pair in combinations(spot.children, 2)]
        named = (s for s in self.seen if s.target and _named(s.target) and all(self.seen[s].reads))
        named = [s for s in named if self.seen[s].read.kind != _named(s.target)]
        pairs += [(pair[0], pair) for pair in combinations(named, 2)]
        pairs = [(s, pair) for s, pair in pairs if all(part in order for part in pair)]
        for spot, pair in sorted(pairs, key=lambda each: max(map(order.get, each[1]))):
            ours, theirs = (self.seen[part].reads for part in pair)
            if not all(ours + theirs) or ours[0].kind == theirs[0].kind or len(ours) != len(theirs):
                continue
            if self._holds({pair[0]: as_read(theirs), pair[1]: as_read(ours)}):
                late = {ours[0].kind, theirs[0].kind} & {"scores", "weights", "context"}
                step = 2 if spot is pair[0] else 8 if late else 5
                operand = Blame(pair[0], self.seen[pair[0]], theirs[0], step)
                fact = f"`{pair[0].text}` and `{pair[1].text}` are swapped"
                return Blame(spot, self.seen[spot], theirs[0], step, operand, step != 2, fact=fact)
        return None

    def _swapped_sizes(self) -> Blame | None:
        """Find two sizes that one unpacking assigns to each other's names."""
        for spot in [s for s in self.seen if s.row and type(self.seen[s].value) is int]:
            for other in spot.row[spot.row.index(spot) + 1 :]:
                ours, theirs = (self._size(self.seen[s].value) for s in (spot, other))
                if ours and theirs and self._holds({spot: theirs, other: ours}):
                    fact = f"`{spot.text}` and `{other.text}` are swapped"
                    return Blame(spot, self.seen[spot], theirs.known, 1, fact=fact)
        return None

    def _size(self, value: int) -> Put | None:
        sizes = (p for p in self._table.values() if p.key[:2] == ("one", "size"))
        return next((p for p in sizes if p.known.value == value), None)

    def _everywhere(self) -> Blame | None:
        """Find what is wrong or missing wherever the same text is written."""
        for spot, seen in list(self.seen.items()):
            alike_ones = [s for s in self.watch.spots if s.text == spot.text]
            if len(alike_ones) < 2 or not (seen.absent or type(seen.value) in (int, float)):
                continue
            sizes = (p for p in self._table.values() if p.key[:2] == ("one", "size"))
            for put in (*self._called(seen), *sizes):
                single = put.how == "call" or type(put.known.value) is int
                if single and self._holds(dict.fromkeys(alike_ones, put)):
                    return Blame(spot, seen, put.known, 1)
        return None

    def _unfinished(self) -> Blame | None:
        """Find a right value that several places use as if a later step had been done."""
        for spot, seen in list(self.seen.items()):
            if seen.read and seen.read.kind in TENSORS:
                kind, done = seen.read.kind, seen.read.steps

                def more(put, kind=kind, done=done):
                    return put.known.kind == kind and put.known.steps > done

                put = self.repair(spot, more)
                if put:
                    return Blame(spot, seen, put.known, min(put.known.steps - done))
        return None

    def _three_alike(self) -> Blame | None:
        """Find three expressions written alike, for queries, keys and values."""
        rows: dict[str, list[Spot]] = {}
        for spot, seen in self.seen.items():
            if not seen.read and isinstance(seen.value, torch.Tensor | nn.Module | Exception):
                rows.setdefault(_without_names(spot.text), []).append(spot)
        layers = [known for known in self.right.known if known.kind == "layer"][:3]
        for text, row in rows.items():
            spots = [s for s in self.watch.spots if _without_names(s.text) == text]
            for three in (*threes(self.right), layers) if len(spots) == 3 else ():
                if self._holds(dict(zip(spots, map(one, three), strict=True))):
                    return self._with_operand(row[0], three[spots.index(row[0])])
        return None

    def _odd(self) -> Iterator[tuple[Spot, Seen]]:
        """List the expressions of forward that raise, or give a tensor of no step."""
        for spot, seen in self.seen.items():
            tensor = isinstance(seen.value, torch.Tensor) and seen.value.is_floating_point()
            if spot.function != "__init__" and not seen.read and (tensor or seen.raised):
                yield spot, seen

    def _returned(self) -> Blame | None:
        """Blame the returned expression, if no expression before it is at fault."""
        if self.error:
            return None
        outs, goals = (list(x) if type(x) is tuple else [x] for x in (self.out, self.goal))
        if self.out is None:  # the code made this tensor last, but does not return it
            outs = [s.value for s in self.seen.values() if isinstance(s.value, torch.Tensor)][-1:]
        for out, goal in zip(outs, goals, strict=False):
            need = self.right.read(goal)
            spots = [s for s, seen in self.seen.items() if seen.value is out]
            if need and spots and (self.out is None or not equal(out, goal)):
                seen = self.seen[spots[-1]]
                done = seen.read.steps if seen.read else frozenset()
                step = min(need.steps - done, default=max(need.steps))
                fact = "forward returns nothing" if self.out is None else ""
                return Blame(spots[-1], seen, need, step, fact=fact)
        return None

    def _unproven(self) -> Blame | None:
        """Find where the code first goes wrong or stops, although no value repairs it.

        With two faults no single value makes the output right. The first expression whose inputs
        are all right, and which is nothing right itself, is the earlier of the two.
        """
        odd = [spot for spot, _ in self._odd()]
        left = next((spot for spot in odd if self._of_right_inputs(spot)), None)
        spot = left or self.stopped or self._last_of_line() or next(iter(odd), None)
        if not spot:
            return None
        inputs = [seen.read for seen in self._inputs(spot) if seen.read]
        made = self.seen[spot].made.values()
        done = frozenset().union(*(steps for some in made for steps in some))
        step = _next_step(inputs) or min(frozenset(range(1, 12)) - done, default=11)
        return Blame(spot, self.seen[spot], None, step)

    def _inputs(self, spot: Spot) -> list[Seen]:
        """Return the tensors that an expression is made of."""
        parts = (self.seen[part] for part in spot.children if part in self.seen)
        return [seen for seen in parts if isinstance(seen.value, torch.Tensor) or seen.raised]

    def _of_right_inputs(self, spot: Spot) -> bool:
        inputs = self._inputs(spot)
        return bool(inputs) and all(seen.read for seen in inputs)

    def _last_of_line(self) -> Spot | None:
        """Return the last expression of the line that raised, if no expression raised."""
        frames = traceback.extract_tb(self.error.__traceback__) if self.error else []
        lines = [frame.lineno for frame in frames if frame.filename == self.watch.file]
        return next((s for s in reversed(self.seen) if lines and s.line == lines[-1]), None)

    def _where_made(self, found: Blame) -> Blame:
        """Move the blame to the line that makes what the blamed line only reads or calls."""
        seen = found.seen
        passed_on = not found.spot.children or seen.value is None
        if seen.read or found.operand or not passed_on or type(seen.value) in (int, float):
            return found
        if seen.value is None and found.need:  # a function that makes it and returns nothing
            called = found.spot.text.partition("(")[0].rpartition(".")[2]
            for spot, other in reversed(self.seen.items()):
                read = other.read
                if spot.function == called and read and read.kind == found.need.kind:
                    fact = f"`{called}` makes it and does not return it"
                    return Blame(spot, other, found.need, max(read.steps), fact=fact)
        for spot, other in reversed(self.seen.items()):  # what wrote into it last
            named = found.spot.text == spot.target and spot.number < found.spot.number
            if named and other.value is seen.value:
                return Blame(spot, other, found.need, found.step)
        return found

    # ---- what repairs it ----

    def repair(self, spot: Spot, wanted: Callable[[Put], bool]) -> Put | None:
        """Find the value that makes the output right in place of an expression."""
        seen = self.seen[spot]
        for put in self._fitting(spot, seen):
            possible = BEFORE.get(put.known.kind, set()) <= seen.made.keys()
            if (possible or seen.constant) and wanted(put) and self._holds({spot: put}):
                return put
        return None

    def _holds(self, puts: dict[Spot, Put]) -> bool:
        """Say whether the output is right with these values, also in a second case."""
        if not self._right_with(puts):
            return False
        if not self._elsewhere:
            return True
        other, there = self._other, {}
        for spot, put in puts.items():
            same = other.watch.spots[spot.number]
            now = other.seen.get(same)
            if put.how == "call":
                there[same] = next(other._called(now), put) if now else put
            elif put.how == "read":
                partner = next(s for s, p in puts.items() if p is not put)
                reads = other.seen.get(other.watch.spots[partner.number])
                if not reads or not all(reads.reads):
                    return False
                there[same] = as_read(reads.reads)
            else:
                there[same] = other._table[put.key]
        return other._right_with(there)

    def _right_with(self, puts: dict[Spot, Put]) -> bool:
        self.watch.instead = {spot: put.values for spot, put in puts.items()}
        try:
            return equal(self._run(), self.goal)
        except (TimeUp, UserInterrupt):
            raise
        except BaseException:
            return False
        finally:
            self.watch.instead = {}

    @functools.cached_property
    def _other(self) -> "Search":
        return self._elsewhere() if self._elsewhere else self

    @functools.cached_property
    def _table(self) -> dict[tuple, Put]:
        return {put.key: put for put in every_put(self.right)}

    def _fitting(self, spot: Spot, seen: Seen) -> Iterator[Put]:
        """Keep the values of the expression's kind, or all if its kind is not known."""
        yield from self._called(seen)
        building, unknown = spot.function == "__init__", ELSEWHERE.get(spot.function, ())
        parts = [self.seen[part].read for part in spot.children if part in self.seen]
        kinds = {"size", "factor"} | ({"layer"} if building else {"x"})
        if not building and not _measured(spot):
            kinds |= {*TENSORS}
        if not _measured(spot) and not any(read and read.kind in TENSORS for read in parts):
            kinds.add("mask")
        other = "i j" if building else "c c"
        for put in self._table.values():
            known = put.known
            if known.kind not in kinds or known.name in unknown or known.layout == other:
                continue
            if not known.steps <= self._most:  # the value includes later steps
                continue
            if spot.text in self.trusted and seen.read and seen.read.kind == known.kind:
                continue
            if self._fits(put, spot, seen):
                yield put

    def _fits(self, put: Put, spot: Spot, seen: Seen) -> bool:
        known, value = put.known, seen.value
        if put.how == "turn" and not seen.constant:
            count = len(put.each)
            often = seen.times == count or bool(self.error) and seen.times <= count
            whole = type(value) is int and not isinstance(spot.node, ast.For)
            kind = isinstance(value, torch.Tensor) if known.kind in TENSORS else whole
            return often and (kind or seen.absent and not isinstance(value, nn.Module))
        several = isinstance(value, list | tuple) and not isinstance(value, torch.Size)
        if put.how == "list":
            return several or seen.absent
        if known.kind in TENSORS and seen.times > 1:
            return False
        if seen.constant and known.kind in TENSORS:  # to be written into: only its sizes count
            return known.kind not in seen.made and known.value.shape != value.shape
        if seen.constant and known.kind == "mask" and spot.above:  # to be cut along the diagonal
            return known.value.shape != value.shape
        if seen.absent and not isinstance(value, nn.Module):
            return True
        if known.kind == "mask":
            unsure = not seen.read or seen.read.kind == "mask"
            return isinstance(value, torch.Tensor) and value.dtype == known.value.dtype and unsure
        if known.kind == "size":
            row = [self.seen[s].value for s in spot.row if s in self.seen]
            if known.value not in [v for v in row if type(v) is int] and row:
                return False  # what is unpacked has no such size: another line uses the wrong one
            same = type(value) is type(known.value) and value != known.value
            return same or type(known.value) is int and type(value) is float
        if known.kind == "factor":
            return type(value) in (int, float)
        if known.kind == "layer":
            return isinstance(value, nn.Module)
        return several or isinstance(value, torch.Tensor | nn.Module)

    def _called(self, seen: Seen) -> Iterator[Put]:
        """Return what an uncalled method would give."""
        if not isinstance(seen.value, MethodType | BuiltinMethodType):
            return
        try:
            value = seen.value()
        except Exception:
            return
        read = self.right.read(value)
        known = Known(read.kind, read.name, read.steps, value, read.layout) if read else None
        known = known or Known("size", "what it gives when it is called", frozenset({1}), value)
        yield Put(known, lambda _: value, "call")

    # ---- which step ----

    def _explained(self, spot: Spot, need: Known) -> Blame:
        """Blame an expression, or the larger one that takes it by mistake."""
        seen, larger = self.seen[spot], spot.above
        made = self._is_made(seen, need)
        given = need.kind in ("size", "factor") or made and (seen.read or not spot.children)
        whole = larger and self.seen.get(larger)
        result = seen.read and not made and whole  # which is no part of itself
        if result and self.repair(larger, lambda p: p.known.kind == need.kind):
            return self._with_operand(larger, need)
        below = spot
        while given and larger:
            whole = self.seen.get(larger)
            kinds = {"size", "factor", whole and whole.read and whole.read.kind}
            put = whole and self.repair(larger, lambda p, kinds=kinds: p.known.kind not in kinds)
            same = put and put.known.kind == need.kind and put.known.steps <= need.steps
            if put and not same:  # else the larger expression changes nothing
                step = self._step(larger, put.known, {below: need})
                return Blame(larger, whole, put.known, step, Blame(spot, seen, need, step), made)
            below, larger = larger, larger.above
        if given and need.kind in TENSORS:
            return Blame(spot, seen, need, max(need.steps))
        return self._with_operand(spot, need)

    @staticmethod
    def _is_made(seen: Seen, need: Known) -> bool:
        """Say whether the needed value exists already, so that a wrong name is used."""
        return any(need.steps <= steps for steps in seen.made.get(need.kind, ()))

    def _with_operand(self, spot: Spot, need: Known) -> Blame:
        step = self._step(spot, need, {})
        for part in spot.children:
            seen = self.seen.get(part)
            put = (
                seen
                and seen.read
                and self.repair(part, lambda p, seen=seen: p.known is not seen.read)
            )
            if not put or put.known.kind == need.kind != seen.read.kind:
                continue
            has, wants = seen.read, put.known
            same_kind, lacks = has.kind == wants.kind, wants.steps - has.steps
            if self._is_made(seen, wants) and (lacks or not same_kind):
                step = self._step(spot, need, {part: wants})
            elif lacks or not same_kind:
                step = min(lacks, default=max(wants.steps))
            elif has.layout.split()[:2] != wants.layout.split()[:2] or "j i" in has.layout:
                if wants.layout.split()[0] not in self._orders:
                    continue  # an order that comes up nowhere only makes up for what is wrong here
                step = max(has.steps)  # its axes were in a different order when it was made
            misnamed = not same_kind and self._is_made(seen, wants)
            operand = Blame(part, seen, wants, step)
            return Blame(spot, self.seen[spot], need, step, operand, misnamed)
        return Blame(spot, self.seen[spot], need, step)

    def _step(self, spot: Spot, need: Known, instead: dict[Spot, Known]) -> int:
        """Return the step that makes the needed value from what an expression takes."""
        parts = [
            instead.get(p, self.seen[p].read if p in self.seen else None) for p in spot.children
        ]
        taken = [read for read in parts if read and read.kind in ("x", *TENSORS)]
        kinds = {read.kind for read in taken}
        if need.kind == "scores" and kinds & set(THREE):
            return 5
        if need.kind == "context" and kinds & {"weights", "values"}:
            return 8
        if need.kind in ("size", "x"):
            return min(need.steps)
        done = frozenset().union(*(read.steps for read in taken))
        if need.kind in ("scores", "weights") and not kinds & {"scores", "weights"}:
            done = max(self.seen[spot].made.get("scores", [done]), key=len)
        if done and not need.steps - done and spot.above:  # turned for what it is given to
            above = spot.above in self.seen
            put = above and self.repair(
                spot.above, lambda p: p.known.kind != need.kind or p.known.steps > need.steps
            )
            if put:
                return self._step(spot.above, put.known, {spot: need})
        return min(need.steps - done if done else (), default=max(need.steps))


def _next_step(inputs: list[Known]) -> int | None:
    """Return the step that takes these right values; None if there are none."""
    kinds = {read.kind for read in inputs}
    done = frozenset().union(*(read.steps for read in inputs))
    for kind, step in (("mask", 6), ("weights", 8), ("out", 11)):
        if kind in kinds:
            return step
    if len(kinds & {*THREE}) > 1:
        return 5
    steps = {"x": (2,), "scores": (6, 7), "context": (9, 10, 11)}
    steps |= dict.fromkeys(THREE, (3, 4, 5))
    after = (step for kind in kinds for step in steps.get(kind, ()) if step not in done)
    return min(after, default=None)


def _measured(spot: Spot) -> bool:
    """Say whether the code reads only the sizes of a tensor."""
    node = spot.above and spot.above.node
    name = getattr(getattr(node, "func", node), "attr", "")
    return name in ("shape", "size", "dim", "device", "dtype")


def _named(target: str) -> str:
    """Return which of queries, keys and values a name is meant for, or ""."""
    for kind in THREE:
        if re.fullmatch(rf"(self\.)?({kind[0]}|{kind[:4]}\w*)(_\w+)?", target.lower()):
            return kind
    return ""


def _without_names(text: str) -> str:
    """Return a text without the names of queries, keys and values."""
    return re.sub(r"\b(self\.)?([Ww]_?)?([qkv]|quer(y|ies)|keys?|values?)(_\w+)?\b", "_", text)
