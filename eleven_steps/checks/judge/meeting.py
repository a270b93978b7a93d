"""Where two tensors meet: whether each is the one, and as far along, that the call takes."""

import contextlib
import re
from dataclasses import replace

import torch

from eleven_steps.checks.judge.path import Difference, Walk, own_text
from eleven_steps.checks.judge.read import Reading
from eleven_steps.checks.judge.syntax import CUT, MEET, TURN, in_meeting, op_name, step_for
from eleven_steps.checks.run.recording import Op

JOINING = "view", "reshape", "flatten", "contiguous", "unflatten", "view_as"


def of_another(walked: Walk, number: int, op: Op, step: int) -> Difference | None:
    """Where two projections meet, one of which is not the one that its step takes."""
    if op_name(op) not in MEET or step not in (5, 8):
        return None
    given = [(i, walked.readings[i]) for i in op.given]
    three = [(i, reading) for i, reading in given if reading.family == "projected" and reading.who]
    if step == 5 and len(three) != 2 or step == 8 and len(three) != 1:
        return None
    needed = {"queries", "keys"} if step == 5 else {"values"}
    ops, lost = walked.ops, min(needed - {reading.who for _, reading in three}, default="")
    if not lost:
        return None
    usual = three[0 if lost == "queries" else -1][0]
    wrong = [i for i, reading in three if reading.who not in needed] or [usual]
    fixed = walked.readings[wrong[0]].fixed  # of the head that a turn of a loop is for
    idle = _left_over(walked, lost, [*walked.came, *op.given], {*dict(fixed)})
    if not idle:
        chain = sorted(n for n in walked.back(wrong) if walked.steps[n] == 2)
        at, who = chain[-1] if chain else number, walked.readings[wrong[0]].who
        for n in chain if " and " in who else ():
            if op_name(ops[n]) in CUT:  # not into the three
                return walked.differs(n, 2, "made", ops[n].gave[0])
        made = any(reading.who == lost and reading.stage for reading in walked.readings)
        both, first = {reading.who for _, reading in three}, three[0][1]
        over_tokens = first.axes and first.axes[-1] == "n" or "n" in dict(first.fixed)
        if made and both == {"keys", "values"} and over_tokens:
            return None  # a table that the queries meet later
        reason, index = "exchanged" if made else "projection", _unturned(walked, wrong[0], step)
        name = own_text(index, walked) if made and " " not in who else ""
        handed = (e for e in op.calls if re.search(rf"\b{re.escape(name)}\b", e.text))
        call = next(handed, None) if name[:1].lower() == who[:1] else None
        if made and step == 5:  # the queries stand on the left, whatever meets them
            lost = "queries" if wrong[0] == three[0][0] else "keys"
        found = walked.differs(at, 2, reason, index, who=lost)
        # Handed to a helper under its right name
        return replace(found, step=step, place=call) if call else found
    same = [i for i in idle if walked.readings[i].fixed == fixed]
    left = max(same or idle, key=lambda i: (walked.readings[i].stage or 0, i))
    after = walked.makers[left][0] if left in walked.makers else -1
    shared = walked.back(i for i, _ in given if i != wrong[0])
    lines = {ops[n].place for n in walked.back([left])} - {None}  # of what is right
    stage, chain = walked.readings[left].stage, walked.back(wrong)
    used = {i for n in {*range(len(ops))} - chain - {number} for i in ops[n].given}  # elsewhere
    takes = {n: [e.stage or 0 for e in walked.of(ops[n]) if e.family == "projected"] for n in chain}
    own = [n for n in sorted(chain - shared) if n > after and max(takes[n], default=-1) >= stage]
    own = [n for n in own if ops[n].place not in lines and used.isdisjoint(ops[n].gave)]
    at = own[0] if own else number
    if own:  # what the line at fault takes, and the step that it is for, were that right
        op = ops[at]
        wrong = [i for i in op.given if walked.readings[i].family == "projected"][:1] or wrong
        taken = [walked.readings[left if i == wrong[0] else i] for i in op.given]
        step = step_for(op, taken, walked.phases[at], step > 6)
    found = walked.differs(at, step, "other", wrong[0], left, who=lost)
    # Of one call, where they meet as well
    inside = found.place in walked.ops[number].calls or walked.inside(at)
    return replace(found, step=walked.steps[number]) if inside else found


def of_another_head(walked: Walk, number: int, op: Op, step: int) -> Difference | None:
    """Where two meet that hold one head each, and not the same: where the odd one was cut out."""
    heads = {i: dict(walked.readings[i].fixed).get("h") for i in op.given}
    heads = {i: head for i, head in heads.items() if head is not None}
    if op_name(op) not in MEET | {"mul"} or len({*heads.values()}) < 2:
        return None
    for index, head in heads.items():
        ops = (walked.ops[n] for n in walked.ancestry(index))
        own = [op for op in ops if "h" in dict(walked.readings[op.gave[0]].fixed)][-1:]
        cuts = [op.gave for op in walked.ops for cut in own if op.place == cut.place]
        turns = [dict(walked.readings[i].fixed).get("h") for gave in cuts for i in gave]
        if turns and turns != [*range(walked.case.num_heads)]:
            other = next(e for e in heads.values() if e != head)
            at = walked.ops.index(own[0])
            return walked.differs(
                at, walked.steps[at], "head", own[0].gave[0], head=head, other=other
            )
    return None


def turned_early(walked: Walk, number: int, op: Op, step: int) -> Difference | None:
    """What is turned for a product while its tokens still stand before its heads."""
    first = walked.readings[op.given[0]] if op.given else None
    nothing = op.gave and not walked.tensors[op.gave[0]].numel()  # tokens cut out of heads
    turned = op_name(op) in TURN and (in_meeting(op.place) or walked.inside(number))
    if not (turned or nothing) or not first or first.family != "projected":
        return None
    every = enumerate(walked.ops)
    product = next((n for n, e in every if n > number and {*op.gave} & {*e.given}), None)
    if first.stage != 3 or product is None:
        return None
    other = of_another(walked, product, walked.ops[product], 5)
    return other or walked.differs(number, 4, "skipped", op.given[0], for_step=5)


def _left_over(walked: Walk, who: str, start: list[int], fixed: set[str]) -> list[int]:
    """The right queries, keys or values that nothing on the way to some tensors takes."""
    used = {i for n in walked.back(start) for i in walked.ops[n].given} | {*start}
    mine = ((i, e) for i, e in enumerate(walked.readings) if e.who == who and e.stage)
    whole = ((i, e.family) for i, e in mine if {*dict(e.fixed)} <= {"w"} | fixed)
    return [i for i, family in whole if family == "projected" and i not in used]


def skipped(walked: Walk, number: int, op: Op, step: int) -> Difference | None:
    """An operand that comes from before the step that the call needs."""
    for own in op.given:
        index = _unturned(walked, own, step)
        if lost := _lost(walked, op, step, own, walked.readings[index]):
            return walked.differs(number, lost, "skipped", index, for_step=max(step, 3))
    return None


def ordered(walked: Walk, number: int, op: Op, step: int) -> Difference | None:
    """An einsum that gives the context's axes in another order than what comes behind it takes.

    Only where the values come to it with tokens before heads: others are swapped back in a line
    of their own.
    """
    index = next(iter(op.gave if op_name(op) == "einsum" else op.given), None)
    chain = walked.ancestry(index, number + 1)
    maker = next((n for n in chain if op_name(walked.ops[n]) not in JOINING), None)
    if maker is None or op_name(made := walked.ops[maker]) != "einsum":
        return None
    index = made.gave[0]
    values = any(one.family == "projected" and one.stage == 3 for one in walked.of(made))
    reading, usual = walked.readings[index], [*"bnhd"]
    axes = [*(reading.axes or ())] if values and reading.family == "context" else usual
    if axes == usual or sorted(axes) != sorted(usual):
        return None
    return walked.differs(maker, 8, "ordered", index)


def _unturned(walked: Walk, index: int, step: int) -> int:
    """The tensor that another one is with its axes moved on the way into a call of this step."""
    for number in walked.ancestry(index):
        if walked.steps[number] != step or op_name(walked.ops[number]) not in TURN:
            break
        index = walked.ops[number].given[0]
    return index


def _lost(walked: Walk, op: Op, step: int, own: int, reading: Reading) -> int:
    """The step that an operand, own, has not been through; 0 if none.

    It is read as it was before its axes were moved for the call.
    """
    name, stage, axes = op_name(op), reading.stage, [a for a in reading.axes or () if a]
    projected, context = reading.family == "projected", reading.family == "context"
    if step == 8 and "scores" not in {e.family for e in walked.of(op)}:
        return 0
    alone = walked.stop and reading.state and reading.state.whole and not in_meeting(op.place)
    if alone and step == 8 and name in TURN:  # and raises before it meets the values
        return 8
    flat = stage == 2 or reading.part and "hd" in axes  # and some tokens or sequences of them
    helped = {*op.calls} - walked.whole  # what is right for others is given x
    cut = step == 2 and (op.failed and name in JOINING or helped and name in CUT | TURN)
    if reading.family == "x" and (cut or step in (3, 4, 5, 8)):
        return 2
    if projected and step in (4, 5, 8) and flat and (step != 4 or name in TURN):
        return 3
    if projected and step in (5, 8) and stage == 3 and name != "einsum":
        return 4
    if step == 5 and reading.who == "keys" and "h" in axes and "n" in dict(reading.fixed):
        return 4
    first = next((i for i in op.given if walked.readings[i].family == "projected"), None)
    both = [walked.readings[_unturned(walked, i, step)].axes for i in op.given]
    one = [axes[-2:] for axes in both if axes].count(("d", "n")) < 2  # where keys are laid so too
    turned = own == first and reading.who != "keys" and axes[-2:] == [*"dn"] and one
    if step == 5 and name in MEET - {"einsum"} and turned:
        return 4  # tokens last, where the product sums over features
    if projected and axes[:1] == ["h"] and _heads_alone(walked, op, step, own, reading):
        return 4
    laid = axes[-3:] == [*"hnd"]
    if projected and name == "einsum" and not (flat or laid) and _replayed(walked, op, step):
        return 4
    if context and step == 10 and stage == 8 and name in JOINING and axes[-1:] != ["n"]:
        return 9
    if context and step == 11 and name == "linear" and "h" in dict(reading.fixed):
        return 10  # one head's
    if context and step == 11 and stage in (8, 9) and (name == "linear" or op.failed):
        return 10 if stage == 9 or axes[0] == "hb" else 9  # a cat joins them, along another axis
    return 0


def _heads_alone(walked: Walk, op: Op, step: int, own: int, reading: Reading) -> bool:
    """Whether the heads of an operand come first, and those of what it meets do not."""
    others = [walked.readings[i] for i in op.given if i != own]
    if step == 8 and reading.who == "values":
        others = [other for other in others if other.family == "scores"]
    elif step != 5 or op_name(op) not in ("matmul", "bmm"):
        return False
    return any(other.axes and other.axes[0] != reading.axes[0] for other in others)


def _replayed(walked: Walk, op: Op, step: int) -> bool:
    """Whether this einsum would be right, were its operands right: heads before tokens."""
    steps = walked.reference.scene.steps
    grouped, words = steps["transpose"], [e for e in op.numbers if type(e) is str]
    pair = grouped["queries"], grouped["keys"]
    if step != 5:
        pair = steps["softmax"]["weights"], grouped["values"]
    with contextlib.suppress(Exception):
        found = walked.reference.find(torch.einsum(words[0], *pair))
        return bool(found and found.stage)
    return False


MEETINGS = ordered, turned_early, of_another_head, skipped
