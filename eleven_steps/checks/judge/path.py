"""Walk a trace: what each tensor is, which step each call is for, and where what came came from."""

import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from eleven_steps.checks.judge.read import FAMILIES, HIDDEN, Reading, Reference
from eleven_steps.checks.judge.syntax import (
    CUT,
    KEEP,
    MASK,
    MEET,
    NORM,
    SCALE,
    TURN,
    around,
    call_name,
    op_name,
    step_for,
)
from eleven_steps.checks.run.cases import LAYERS
from eleven_steps.checks.run.places import Place
from eleven_steps.checks.run.recording import Op, Trace
from eleven_steps.helpers.trace import STEPS

OVER_KEYS = {"sum": "sum", "max": "amax", "amax": "amax", "logsumexp": "logsumexp"}
OF_GIVEN = ("idle", "skipped", "family", "other", "number")  # what a call is given is at fault


@dataclass(frozen=True)
class Difference:
    """The first thing that is not right."""

    step: int  # to look at, 1 to 11
    reason: str  # why, as in the names of the sentences differs_idle, differs_skipped ...: see tell
    op: int | None = None  # the call, by its number in the trace; None where none was reached
    place: Place | None = None  # where to look in the learner's source
    # The tensor that is not what the call takes, or that it makes; None where unknown
    index: int | None = None
    # The right tensor that is there in its stead and not used; None where there is none
    wanted: int | None = None
    values: dict[str, Any] = field(default_factory=dict)  # what else was established


@dataclass
class Walk:
    """A trace that was read."""

    trace: Trace  # what ran
    reference: Reference  # what is right there
    readings: list[Reading] = field(default_factory=list)  # of each tensor
    steps: list[int] = field(default_factory=list)  # that each call is for
    # The family that forward had come to before each call, by its number in FAMILIES
    phases: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ops, self.tensors, self.stop = self.trace.ops, self.trace.tensors, self.trace.stop
        self.case = self.reference.case

    def differs(
        self, number: int, step: int, reason: str, *tensors: int | None, **values: Any
    ) -> Difference:
        """A difference at a call; tensors are index and wanted, in this order.

        Where a helper is right elsewhere, or what it was given is wrong, its call is at fault.
        """
        op = self.ops[number]
        place, makers = op.place, self.makers.get(tensors[0] if tensors else None, ())
        known = own_text(tensors[1], self) if reason == "other" else ""
        for call in op.calls if reason in OF_GIVEN and tensors[0] in op.given else ():
            both = known and re.search(
                rf"\b{re.escape(known)}\b", call.expression
            )  # it has it, too
            if call in self.whole or both or any(call in self.ops[m].calls for m in makers):
                break
            place = call
        every = (e for e in self.ops if e.place == place and e.calls != op.calls and e.gave)
        heads = {pair for e in self.of(op) for pair in e.fixed if pair[0] in "bh"}
        right = len(heads) > len(dict(heads)) or any(all(map(self.sound, e.gave)) for e in every)
        if reason in ("made", "torch") and right:
            place = next(iter(op.calls), place)
        return Difference(step, reason, number, place, *tensors, values=values)

    def source_at(self, place: Place) -> tuple[str, int]:
        """The source that a place stands in and its first line's number; "" where it is not known.

        What raised may stand in the class of a part, which is not in the answer's own source.
        """
        for part in filter(None, (self.trace, self.stop)):
            own = part.source.splitlines()[max(place.line - part.first, 0) :]
            if own and own[0].strip() == place.text and place.line >= part.first:
                return part.source, part.first
        return "", 1

    def of(self, op: Op) -> list[Reading]:
        """What a call was given."""
        return [self.readings[index] for index in op.given]

    @property
    def came(self) -> list[int]:
        """The tensors that are returned, or else those that the call that raised was given."""
        last = self.ops[-1].given if self.stop and self.ops else self.trace.returned
        return [index for index in last if index is not None]

    @functools.cached_property
    def makers(self) -> dict[int, list[int]]:
        """The calls that made each tensor, or wrote into it."""
        makers: dict[int, list[int]] = {}
        for number, op in enumerate(self.ops):
            for index in op.gave:
                makers.setdefault(index, []).append(number)
        return makers

    @functools.cached_property
    def whole(self) -> set[Place]:
        """The calls of helpers that project: what they are given is x, and is not at fault."""
        steps = zip(self.ops, self.steps, strict=False)
        own = (op for op, step in steps if step == 2 and "layer" in {e.family for e in self.of(op)})
        return {call for op in own for call in op.calls}

    def back(self, start: Iterable[int], stop_at_right: bool = False) -> set[int]:
        """The calls that some tensors came from, as far back as what is right, or all of them."""
        calls, todo = set(), [*start]
        seen = set(todo)
        while todo:
            for number in self.makers.get(todo.pop(), ()):
                if number in calls:
                    continue
                calls.add(number)
                for index in self.ops[number].given:
                    if index not in seen and not (stop_at_right and self.on_the_way(index)):
                        seen.add(index)
                        todo.append(index)
        return calls

    def ancestry(self, index: int | None, before: int | None = None) -> Iterator[int]:
        """The call that made a tensor, the one that made the first that it was given, and so on."""
        number = len(self.ops) if before is None else before
        while earlier := [n for n in self.makers.get(index, ()) if n < number]:
            number = earlier[-1]  # what changes nothing is among its own makers
            yield number
            index = next(iter(self.ops[number].given), None)

    def on_the_way(self, index: int) -> bool:
        """Whether a tensor is what some step makes, or on the right way there."""
        return on_the_way(self.readings[index], self.reference)

    def reached(self, step: str) -> bool:
        """Whether all right tensors of a step are there, in their shapes."""
        return all(self.own(right) is not None for right in self.reference.scene[step].values())

    def steps_reached(self) -> int:
        """How many steps from the first on have all their tensors there."""
        missing = (i for i, step in enumerate(STEPS) if i and not self.reached(step))
        return next(missing, len(STEPS))

    def inside(self, number: int) -> bool:
        """Whether a call is one of those that torch takes together, and not the last of them."""
        op, *later = self.ops[number : number + 2]
        names = [call_name(node) for node in around(op.place)[:1]]
        return bool(later and names and later[0].place == op.place and names != [op_name(op)])

    def own(self, right: torch.Tensor) -> torch.Tensor | None:
        """The answer's own tensor that is a right one."""
        near = 1e-7 if right.dtype == torch.float64 else 2e-4
        return next((t for t in self.tensors if same_numbers(t, right, near)), None)

    def sound(self, index: int) -> bool:
        """Whether nothing of x is in a tensor, or what there is is right."""
        reading = self.readings[index]
        part = reading.part and not self.across(index)
        return reading.family in ("const", "layer") or part or self.on_the_way(index)

    def across(self, index: int) -> bool:
        """Whether an axis holds features of several heads, or a part of one: no whole heads."""
        axes = [*zip(self.readings[index].axes or (), self.tensors[index].shape, strict=False)]
        one, maker = self.case.head_dim, self.ops[self.makers.get(index, [-1])[0]]
        before = self.readings[maker.given[0]] if maker.given else Reading("const")
        cuts = index in self.makers and op_name(maker) in CUT - {"setitem"}
        cut = cuts and "hd" in (before.axes or ())
        if cut and "d" in dict(self.readings[index].fixed):
            return one > 1
        joined = any(axis == "hd" and (size == one or size % one) for axis, size in axes)
        return joined or cut and any(axis == "d" and size != one for axis, size in axes)


def same_numbers(one: torch.Tensor, other: torch.Tensor, near: float) -> bool:
    """Whether two tensors agree in shape and numbers, -inf for any number that hides."""
    if one.shape != other.shape or one.dtype != other.dtype or one.device.type != "cpu":
        return False
    hides = other == -torch.inf
    one = one.masked_fill(hides & (one < HIDDEN), -torch.inf)
    return torch.allclose(one, other, near, near)


def on_the_way(reading: Reading, reference: Reference) -> bool:
    """Whether it is what some step makes, or on the right way there; of scores by their state."""
    root = reference.case.head_dim**-0.5
    if reading.family == "scores":
        state = reading.state
        axes = "|".join(filter(None, reading.axes or ()))
        laid = reading.fixed or axes in reference.stages["scores"]
        if state and not laid:
            return False
        if state is None:
            return reading.stage is not None and reading.scale in (1.0, root)
        if not state.scale:  # all of it is hidden
            return True
        usual = abs(state.scale / root - 1) < 1e-6 or abs(state.scale - 1) < 1e-6
        if state.grown:  # exponentials may be hidden once they are taken
            hidden = ("right",) if state.whole else ("none", "right")
            return abs(state.scale / root - 1) < 1e-6 and state.hidden in hidden
        return usual and state.hidden in ("none", "right")
    if not reading.stage:
        return False
    if reading.family == "projected" and "values" not in reading.who:
        return any(abs(reading.scale / scale - 1) < 1e-6 for scale in (1.0, root, root**0.5))
    return abs(reading.scale - 1) < 1e-6


def walk(trace: Trace, reference: Reference) -> Walk:
    """Read every tensor of a trace, in order, and say which step each call is for."""
    walked = Walk(trace, reference)
    names = (trace.layers.get(index) for index in range(len(trace.tensors)))
    walked.readings += (Reading("layer", e) if e else Reading("const") for e in names)
    for index in trace.inputs:
        given, x = trace.tensors[index], reference.scene["shape"]["x"]
        is_x = given.shape == x.shape and torch.equal(given, x.to(given.dtype))
        own = Reading("x", "x", ("b", "n", "e"), 1) if is_x else reference.find(given)
        walked.readings[index] = own or Reading("const")
    phase = max((FAMILIES.index(walked.readings[i].family) for i in trace.inputs), default=1)
    by_place: dict[tuple, tuple[int, int]] = {}
    normed = False
    for op in trace.ops:
        readings, name = walked.of(op), op_name(op)
        nodes = around(op.place)
        if nodes and call_name(nodes[0]) == name:  # and not inside of what torch takes together
            where = op.place.line, op.place.expression, name, op.calls
            step, at = by_place.setdefault(where, (step_for(op, readings, phase, normed), phase))
        else:
            step, at = step_for(op, readings, phase, normed), phase
        walked.steps.append(step)
        walked.phases.append(at)
        for index in op.gave:
            walked.readings[index] = _reading_of(walked, op, readings, step, index)
            family = walked.readings[index].family
            phase = max(phase, FAMILIES.index(family) if family in FAMILIES else 0)
            normed |= name in NORM and family == "scores"
    return walked


def _reading_of(walked: Walk, op: Op, given: list[Reading], step: int, index: int) -> Reading:
    tensor, reference, name = walked.tensors[index], walked.reference, op_name(op)
    if name in ("to", "type_as"):  # of another tensor no more than its dtype counts
        given = [*given[:1], *[Reading("const")] * len(given[1:])]
    if name == "pad" and op.place is None and given[0].family == "x":  # as wide as a class wants
        return given[0]
    if tensor.dtype == torch.bool:  # of whatever it compares, a mask is no more than a mask
        return Reading("const")
    if under_way := _under_way(walked, op, name, given, index):
        return under_way
    layers = [reading for reading in given if reading.family == "layer"]
    real = [reading for reading in given if reading.family in FAMILIES[1:]]
    if layers and not real:  # a layer's weight, taken apart or put together
        return Reading("layer", " and ".join(dict.fromkeys(layer.who for layer in layers)))
    if name.endswith("_like") or name.startswith(("new_", "size")):
        return Reading("const")  # of the shape alone
    pairs = ((walked.tensors[i], e) for i, e in zip(op.given, given, strict=True))
    alike = [pair for other, pair in pairs if pair.axes and other.shape == tensor.shape]
    scores = (reading for reading in alike if reading.family == "scores")
    like = None if name in CUT - {"setitem"} | TURN | MEET else next(scores, None)
    if like and like.tokens:
        return replace(like, stage=None, part=False, state=reference.state(tensor, like))
    meant = {5: "scores", 8: "context"}.get(step, "") if name in MEET else ""
    found = reference.find(tensor, meant) if real or not given or name == "written" else None
    if found and _by_chance(found, name, real):
        found = None
    if found:
        return _as_laid(reference, name, given, alike, found, tensor)
    turned = {"rope", "norm"} & {*reference.case.variant.names} and name not in MEET | MASK | {
        "linear"
    }
    three = {*" and ".join(reading.who for reading in real).split(" and ")}
    sound = all(e.part or on_the_way(e, reference) for e in real)
    if turned and three <= {"queries", "keys"} and sound:
        return Reading("projected", " and ".join(sorted(three)), part=True)  # no step holds it
    of_changes = {not part.startswith(LAYERS) for e in layers[:1] for part in e.who.split(" and ")}
    if name == "linear" and True in of_changes:  # a layer of a change, or with one of ours
        both = Reading("projected", "queries", part=True)
        return both if False in of_changes else Reading("layer", layers[0].who)
    family = max((reading.family for reading in real), key=FAMILIES.index, default="const")
    if name in MEET and real:
        family = {5: "scores", 8: "context"}.get(step, family)
    if layers and real:
        family = {2: "projected", 11: "out"}.get(step, family)
    who = " and ".join(dict.fromkeys(e.who for e in real if e.family == family and e.who))
    if like and family == "scores":
        return Reading(family, who, like.axes, None, 1.0, reference.state(tensor, like), like.fixed)
    return Reading(family, who)


def _under_way(walked: Walk, op: Op, name: str, given: list[Reading], index: int) -> Reading | None:
    """What stands between two right tensors: a product not yet summed, a sum over the keys."""
    reference, first = walked.reference, given[0] if given else Reading("const")
    if walked.tensors[index].device.type != "cpu":
        return None
    if name == "setitem" and (filling := _filling(reference, walked.tensors[index])):
        return filling
    if name in OVER_KEYS and first.state and on_the_way(first, reference) and "j" in first.axes:
        along = first.axes.index("j")
        over = getattr(walked.tensors[op.given[0]], OVER_KEYS[name])(along, True)
        if torch.equal(over.flatten(), walked.tensors[index].flatten()):
            return Reading("scores", first.who, part=True)
    of_scores = name in MEET | SCALE and any(reading.family in FAMILIES[2:] for reading in given)
    scales = (
        (1.0, reference.case.head_dim**-0.5) if of_scores and reference.product is not None else ()
    )
    tensor = walked.tensors[index]
    if any(same_numbers(tensor, reference.product * scale, 1e-7) for scale in scales):
        return Reading("scores", "scores", ("b", "h", "i", "j"), part=True)
    kept = first.family == "scores" and name in {"softmax"} | KEEP | CUT | TURN
    if kept and (walked.tensors[index] == 1).all():  # of one key, whatever it scores
        return Reading("scores", "weights", part=True)
    own = [reading for reading in given if reading.family in FAMILIES[2:]]
    who = {reading.who for reading in own if reading.part or on_the_way(reading, reference)}
    summed = any(op_name(e) in ("sum", "mean") and index in e.given for e in walked.ops)
    alike = len({dict(reading.fixed).get("h") for reading in own}) == 1  # of one head, or of all
    if name == "mul" and summed and alike and who in ({"queries", "keys"}, {"weights", "values"}):
        family = "context" if "values" in who else "scores"
        return reference.find(walked.tensors[index]) or Reading(family, family, part=True)
    if name == "expand" and "g" in "".join(first.axes or ()) and on_the_way(first, reference):
        return replace(first, stage=None, part=True)
    return None


def _filling(reference: Reference, tensor: torch.Tensor) -> Reading | None:
    """What is being filled with right numbers, each in its place, and is 0 elsewhere so far."""
    if not tensor.any() or (tensor != 0).all():
        return None
    for step in reference.scene.steps.values():
        for whole in step.values():
            alike = whole.shape == tensor.shape and whole.dtype == tensor.dtype
            if alike and same_numbers(tensor, whole.where(tensor != 0, 0), 1e-7):
                found = reference.find(whole)
                return found and replace(found, stage=None, part=True)
    return None


def _by_chance(found: Reading, name: str, real: list[Reading]) -> bool:
    """Whether a call cannot have made what its numbers are: a part by a maximum, say."""
    odd = CUT | TURN | MEET | {"linear", "mul", "sum"}
    parts = found.part and any(reading.part for reading in real)
    moves = name in TURN | CUT | KEEP and real
    new = moves and found.family not in {reading.family for reading in real}
    return bool(not found.stage and name not in odd and not parts or new)


def _as_laid(
    reference: Reference, name: str, given: list, alike: list, found: Reading, tensor
) -> Reading:
    """What was read, right only where the call can have laid it so; alike is of the same shape."""
    if found.family == "scores" and reference.aligned(tensor, found):
        state = reference.state(tensor, found)
        found = replace(found, state=state, stage=found.stage if state else None)
    otherwise = False
    if name in MEET and found.axes:
        first = [e.axes[0] for e in given if e.axes and e.family in FAMILIES[1:]]
        otherwise = found.axes[0] == "h" and "h" not in first
    if name not in CUT | TURN | MEET | {"linear", "written"}:  # number by number mends no order
        odd = (e for e in alike if e.family == found.family and e.stage is None)
        otherwise = any(not on_the_way(reading, reference) for reading in odd)
    return replace(found, stage=None, state=None) if otherwise else found


def makes_nan(walked: Walk) -> int | None:
    """The first call that makes NaN of what holds none, by its number."""
    nan = [t.device.type == "cpu" and bool(t.isnan().any()) for t in walked.tensors]
    made = (any(nan[i] for i in e.gave) and not any(nan[i] for i in e.given) for e in walked.ops)
    return next((number for number, first in enumerate(made) if first), None)


def stage_of(reading: Reading, walked: Walk) -> int:
    """The last step that a right tensor has behind it."""
    if reading.family == "scores":
        state = reading.state
        hides = bool(walked.reference.hidden.any()) or state and state.grown
        before = 6 if state and state.hidden == "right" and hides else 5
        return 7 if before == 6 and state.grown and state.whole else before
    return reading.stage or 0


def own_text(index: int, walked: Walk) -> str:
    """A tensor in the learner's words: the name it was given, else what made it."""
    if index in walked.trace.names:
        return walked.trace.names[index]
    makers = walked.makers.get(index, [])
    makers = [n for n in makers if op_name(walked.ops[n]) != "setitem"]  # which names what it fills
    for number in reversed(makers):
        place = walked.ops[number].place
        if walked.inside(number):
            return ""
        if place:
            return place.expression
    return walked.trace.layers.get(index, "")
