"""Find the first thing that is not right on the way to what came, and whose step it is.

The way is walked back from what is returned, or from the call that raised, to tensors that are
right. The first call on it whose inputs are right and whose output is not is where to look: it got
what another step makes, or skipped one, or makes something else of what its step takes. It is found
in one case, and asked for again in another, of other sizes and numbers.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch

from eleven_steps.checks.judge.meeting import MEETINGS, of_another
from eleven_steps.checks.judge.path import Difference, Walk, op_name, step_for, walk
from eleven_steps.checks.judge.read import FAMILIES, HIDDEN, Reading, Right, right_of
from eleven_steps.checks.judge.syntax import CUT, MASK, MEET, NORM, SCALE, dropped_call
from eleven_steps.checks.judge.tried import GUESSES, in_blocks, lacks_keys, projected_otherwise
from eleven_steps.checks.judge.unreached import unreached
from eleven_steps.checks.know.catalogue import mistake_named
from eleven_steps.checks.know.right import play
from eleven_steps.checks.run.ask import ask
from eleven_steps.checks.run.cases import Case, close
from eleven_steps.checks.run.isolate import Failure, clock_paused
from eleven_steps.checks.run.places import Place
from eleven_steps.checks.run.recording import Op, Trace
from eleven_steps.helpers.trace import STEPS

NEEDED = {2: "x", **dict.fromkeys((3, 4, 5), "projected"), 6: "scores", 7: "scores"}
BEFORE_BLOCKS = "hidden", "scale", "skipped", "tokens"  # wrong in a block, whatever comes of it
NEEDED |= dict.fromkeys((9, 10, 11), "context")


@dataclass(frozen=True)
class Blame:
    """A difference with the walk it was found on."""

    walked: Walk
    found: Difference | None

    @property
    def raised(self) -> bool:
        """Whether the run was stopped by an error."""
        return self.walked.stop is not None

    def step_of(self, name: str) -> int:
        """The step of a mistake, or an earlier one of its steps where it is made here."""
        mistake = mistake_named(name)
        step = self.found.step if self.found else mistake.step
        here = step in mistake.steps and not self.walked.reached(STEPS[step - 1])
        return min(step, mistake.step) if here else mistake.step

    def unspoilt(self, name: str) -> bool:
        """Whether what a mistake would have spoilt is there, and right, and the fault elsewhere."""
        number, case = mistake_named(name).step, self.walked.case
        if self.found and self.found.step == number:
            return False
        step = STEPS[number - 1]
        wrong, right = play(case, name).steps.get(step, {}), play(case)[step]
        spoilt = [n for n, t in right.items() if n not in wrong or not close(wrong[n], t)]
        ours = self.walked.right.scene[step]
        return bool(spoilt) and all(self.walked.own(ours[n]) is not None for n in spoilt)


def blamed(cls: Any, case: Case, out: torch.Tensor | Failure | None = None) -> Blame | None:
    """Trace a class in a case and find its first difference; None where it cannot be traced.

    In double precision it must do the same as out, what it gives there in float32. What it makes
    in float32 all the same, such as angles, is right there alone: then what is later there counts.
    """
    first = None
    for double in (True, False):
        does = isinstance(out, Failure) if double and out is not None else None
        blame = followed(ask(cls, "trace", case, double), right_of(case, double), does)
        found = [one and one.found and one.found.op for one in (first, blame)]
        first = first if first and (found[1] or 0) <= (found[0] or 0) else blame
        if first and not (first.found and first.found.reason in ("made", "family")):
            break
    return first


def followed(trace: Any, right: Right, raises: bool | None) -> Blame | None:
    """Find the first difference of a trace; None where there is no trace, or it ends otherwise.

    Raises says whether it must end in an error; None where it may.
    """
    if not isinstance(trace, Trace) or raises is (trace.stop is None):
        return None
    with clock_paused():
        walked = walk(trace, right)
        return Blame(walked, differ(walked))


def makes_nan(walked: Walk) -> int | None:
    """The first call that makes NaN of what holds none, by its number."""
    nan = [t.device.type == "cpu" and bool(t.isnan().any()) for t in walked.tensors]
    made = (any(nan[i] for i in e.gave) and not any(nan[i] for i in e.given) for e in walked.ops)
    return next((number for number, first in enumerate(made) if first), None)


def plainly(blame: Blame) -> Blame:
    """The same as the line that raised has it, whatever step it is for."""
    ops, stop = blame.walked.ops, blame.walked.stop
    last = len(ops) - 1
    if ops and ops[-1].failed:
        found = blame.walked.differs(last, blame.walked.steps[last], "torch")
    else:
        found = Difference(1, "name", None, stop.place if stop else None)
    return replace(blame, found=found)


def differ(walked: Walk) -> Difference | None:
    """Return the first difference of a trace from the right one; None where none is found."""
    trace = walked.trace
    if trace.stop and not (trace.ops and trace.ops[-1].failed):
        return unreached(walked)
    last = len(trace.ops) - 1
    start = trace.ops[last].given if trace.stop else trace.returned
    start = [index for index in start if index is not None]
    if not start and not trace.stop:
        return None
    if not trace.stop and walked.fits(start[0]) and walked.readings[start[0]].family == "out":
        came, right = trace.tensors[start[0]], walked.right.scene.out
        if came.shape == right.shape:
            return None
        number = walked.makers[start[0]][0]
        return walked.differs(number, 11, "shape", start[0])
    wrong = [i for i in start if not walked.fits(i) or walked.readings[i].tokens]
    visited = walked.back(wrong, stop_at_right=True) | ({last} if trace.stop else set())
    if found := _idle(walked, start, last if trace.stop else None):
        return found
    if not visited:
        return _early(walked, start[0])

    def deviates(op: Op) -> bool:
        made = op.failed or not all(map(walked.known, op.gave))
        return made and op_name(op) != "written" and all(map(walked.known, op.given))

    every = [n for n in sorted(visited) if deviates(trace.ops[n])] or [max(visited)]
    first = _blamed(walked, every[0], start)
    if first.reason != "blocks":
        return first
    later = (_blamed(walked, number, start) for number in every[1:])
    return next((difference for difference in later if difference.reason in BEFORE_BLOCKS), first)


def _early(walked: Walk, index: int) -> Difference:
    """What is right, and comes back before it is out."""
    stage, number = stage_of(walked.readings[index], walked), walked.makers.get(index, [None])[-1]
    place = None if number is None else walked.ops[number].place
    return Difference(min(stage + 1, 11), "early", number, place, index)


def stage_of(reading: Reading, walked: Walk) -> int:
    """The last step that a right tensor has behind it."""
    if reading.family == "scores":
        state = reading.state
        if state is None or not state.grown:
            hides = bool(walked.right.hidden.any())
            return 6 if state and state.hidden == "right" and hides else 5
        return 7 if state.whole else 6
    return reading.stage or 0


def _idle(walked: Walk, start: list[int], last: int | None) -> Difference | None:
    """Scores, weights, context or out that are right, and that nothing uses."""
    ours = any(walked.readings[index].family in FAMILIES[1:] for index in start)
    if last is not None and not ours:  # what raises is of something else, as a mask
        return None
    trace, full = walked.trace, walked.back(start)
    used = {index for number in full for index in trace.ops[number].given} | {*start}
    full |= set() if last is None else {last}

    def progress(index: int) -> int:
        reading = walked.readings[index]
        some = reading.tokens or "i" in dict(reading.fixed)  # of a loop, which may use others
        fits = walked.fits(index) and reading.family in FAMILIES[3:] and not some
        return stage_of(reading, walked) if fits else 0

    reached = max(map(progress, used), default=0)
    places = {trace.ops[n].place for i in used for n in walked.makers.get(i, ())}
    made = [
        i
        for i in range(len(trace.tensors))
        if walked.makers.get(i) and i not in used and not _piece(walked, i, places)
    ]
    best = max(made, key=lambda index: (progress(index), index), default=None)
    if best is None or progress(best) <= reached:
        return None
    maker, step = walked.makers[best][0], progress(best)
    if dropped_call(trace.ops[maker].place):
        return walked.differs(maker, step, "idle", None, best)
    for number in sorted(n for n in full if n > maker and walked.steps[n] >= step):
        op = trace.ops[number]
        real = [i for i in op.given if walked.readings[i].family in FAMILIES[1:]]
        came = min(real, key=lambda i: walked.readings[i].who == "values", default=None)
        if came is not None:
            others = [i for i in op.given if i not in real]
            if op_name(op) in MEET and others and walked.readings[came].who == "values":
                came = others[0]  # what they meet is nothing of x
                while made := [n for n in walked.makers.get(came, ()) if maker < n < number]:
                    number, op = made[-1], trace.ops[made[-1]]
                    came = next(iter(op.given), came)
            # The step that the line is for, were it given what is right.
            given = [walked.readings[best if i == came else i] for i in op.given]
            step = step_for(op, given, walked.phases[number], step > 6)
            return walked.differs(number, step, "idle", came, best)
    return Difference(step, "idle", maker, None, None, best)  # the last line names something else


def _piece(walked: Walk, index: int, places: set[Place | None]) -> bool:
    """Whether a tensor is one head's of several, and those of other heads are used."""
    reading = walked.readings[index]
    one = {*dict(reading.fixed)} - {"w"}
    return bool(one) and walked.ops[walked.makers[index][0]].place in places


# The call that is blamed


def _blamed(walked: Walk, number: int, start: list[int]) -> Difference:
    op = walked.ops[number]
    step = walked.steps[number]
    if found := of_another(walked, number, op, step, start):
        return found
    for question in (*MEETINGS, *GUESSES, _weighed, _of_another_family):
        if found := question(walked, number, op, step):
            return found
    if step == 2 and (found := projected_otherwise(walked, number, op)):
        return found
    gave = next((i for i in op.gave if not walked.known(i)), next(iter(op.gave), None))
    if gave is not None and walked.inside(number):  # what torch takes together is told as one call
        last = next(n for n in range(number, len(walked.steps)) if not walked.inside(n))
        step = max(step, 5 * any(op_name(e) in MEET for e in walked.ops[number : last + 1]))
        gave = walked.ops[last].gave[0]
    right = [walked.fits(i) for i in op.given if walked.readings[i].family in FAMILIES[1:]]
    if op.failed and op_name(op) == "scaled_dot_product_attention" and all(right):
        step = 6 if len(op.given) > len(right) else step  # what is left is the mask
    first = next((e for e in walked.of(op) if e.family == "projected"), None)
    scaled = any(_scales(walked, n) for n, phase in enumerate(walked.phases) if phase > 2)
    if step == 7 and first and scaled and op_name(op) in SCALE and walked.phases[number] < 3:
        step = 5
    return walked.differs(number, step, "torch" if op.failed else "made", gave)


def _weighed(walked: Walk, number: int, op: Op, step: int) -> Difference | None:
    """Scores on their way to weights: the scale, what is hidden, the sums of the rows."""
    given = [(i, walked.readings[i]) for i in op.given if walked.readings[i].family == "scores"]
    if not given:
        return None
    index, before = given[0]
    root = walked.case.head_dim**-0.5
    hides = bool(walked.right.hidden.any())

    def found(step: int, reason: str, *tensors: int, **values: Any) -> Difference:
        return walked.differs(number, step, reason, *tensors, **values)

    # In blocks rows are divided by their sums at the end, and a softmax takes a whole row.
    lost = "softmax" in op_name(op) and "j" in (before.axes or ()) and lacks_keys(walked, index)
    unread = not op.failed and op.gave and not walked.readings[op.gave[0]].state
    own = op_name(op) in MASK or "softmax" in op_name(op)  # wrong by itself, whatever comes later
    unread = unread and not own and (before.tokens or not before.state)
    if (lost or unread) and (blocks := in_blocks(walked)):
        return blocks
    if step == 8 and op_name(op) in MEET and (state := before.state):
        if not state.grown:
            masked = state.hidden == "right" or not hides
            return found(7 if masked else 6, "skipped", index, for_step=8)
        if not state.whole and not op.failed:
            return found(7, "rows", index)
        return None
    if op.failed or not op.gave:
        return None
    after = walked.readings[op.gave[0]]
    if before.state is None:
        return None
    state = after.state
    if state is None and step == 6 and _mask_seen(walked, number):
        return found(6, "hidden", op.gave[0], crossed=False)
    if state is None:
        unscaled = not before.state.grown and (before.state.hidden == "none" or not hides)
        plain = op_name(op) not in NORM | SCALE | MASK | {"pow"} and step == 7
        return found(5, "made", op.gave[0]) if unscaled and plain else None
    if state.hidden == "none" and hides and state.grown:
        return found(6, "skipped", index, for_step=7)
    if state.hidden == "other":
        crossed = after.axes and [a for a in after.axes if a][-2:] == ["j", "i"]
        return found(5 if crossed else 6, "hidden", op.gave[0], crossed=bool(crossed))
    if abs(state.scale / root - 1) > 1e-3 and (state.grown or abs(state.scale - 1) > 1e-3):
        scales = [n for n in range(number + 1) if _scales(walked, n)]
        number = scales[-1] if scales else number
        return found(7, "scale", op.gave[0], factor=state.scale, before=not scales)
    return None


def _mask_seen(walked: Walk, number: int) -> bool:
    """Whether what a call hides is wrong, and nothing after it hides what is right."""
    told = []
    for index in (i for op in walked.ops[number:] for i in op.gave):
        reading = walked.readings[index]
        scores = reading.axes and reading.family == "scores" and not reading.part
        if laid := scores and walked.right.aligned(walked.tensors[index], reading):
            told.append(not laid[0].isnan().any() and torch.equal(laid[0] < HIDDEN, laid[2]))
    weighed = any("softmax" in op_name(op) for op in walked.ops[:number])
    return bool(told) and not any(told) and not weighed and makes_nan(walked) != number


def _scales(walked: Walk, number: int) -> bool:
    """Whether a call multiplies or divides queries, keys or scores, and no sums of a softmax."""
    op = walked.ops[number]
    real = [reading for reading in walked.of(op) if reading.family in FAMILIES[1:]]
    return op_name(op) in SCALE and walked.steps[number] == 7 and len(real) == 1


def _of_another_family(walked: Walk, number: int, op: Op, step: int) -> Difference | None:
    if op_name(op) == "setitem" or step == 11 and op_name(op) != "linear":
        return None
    if step == 2 and op_name(op) != "linear":  # what is made of a projection is what is wrong
        return None
    if step == 7 and op_name(op) in SCALE and walked.phases[number] < 3:  # before they meet
        return None
    met = {reading.family for reading in walked.of(op)} if op_name(op) in MEET else ()
    if step == 8 and met == {"scores"} and not walked.inside(number):
        return walked.differs(number, 8, "family", op.given[-1], needs="values")
    for index in op.given:
        reading = walked.readings[index]
        if reading.family in ("const", "layer") or reading.part:
            continue
        done = walked.fits(index) and stage_of(reading, walked) >= step
        if done and op_name(op) not in MEET | {"linear"}:  # made already, and changed
            continue
        if op_name(op) in CUT and step < 9:  # pieces of what comes later are laid out as well
            continue
        wanted = NEEDED.get(step)
        if wanted and reading.family != wanted:
            beside = [reading.state for reading in walked.of(op) if reading.state]
            if step == 7 and beside:  # scores are there: what they meet is no mask
                masks = op_name(op) == "add" and beside[0].hidden == "none"
                return walked.differs(number, 6, "family", index, needs="mask") if masks else None
            before = [walked.readings[i].state for e in walked.ops[:number] for i in e.gave]
            if step == 7 and {reading.whole for reading in before if reading and reading.grown} == {
                False
            }:
                wanted = "exponentials"
            return walked.differs(number, step, "family", index, needs=wanted)
    return None
