"""Where two tensors meet: whether each is the one, and as far along, that the call takes."""

import contextlib

import torch

from eleven_steps.checks.judge.path import Difference, Walk
from eleven_steps.checks.judge.roles import kind
from eleven_steps.checks.judge.syntax import MASK, MEET, NORM, SCALE, TURN
from eleven_steps.checks.run.recording import Op

JOINING = "view", "reshape", "flatten", "contiguous", "unflatten", "view_as"


def of_another(walked: Walk, number: int, op: Op, step: int, start: list[int]) -> Difference | None:
    """Where two projections meet, one of which is not the one that its step takes."""
    if kind(op) not in MEET or step not in (5, 8):
        return None
    given = [(i, walked.readings[i]) for i in op.given]
    three = [(i, each) for i, each in given if each.family == "projected" and each.who]
    if step == 5 and len(three) != 2 or step == 8 and len(three) != 1:
        return None
    needed = {"queries", "keys"} if step == 5 else {"values"}
    missing = sorted(needed - {each.who for _, each in three})
    if not missing:
        return None
    lost = missing[0]
    wrong = [i for i, each in three if each.who not in needed]
    wrong = wrong or [three[0 if lost == "queries" else -1][0]]
    idle = _unused(walked, lost, [*start, *op.given])
    if not idle:
        chain = sorted(n for n in walked.back(wrong) if walked.roles[n] == 2)
        at = chain[-1] if chain else number
        place = walked.trace.ops[at].place
        made = any(each.who == lost and each.right for each in walked.readings)
        both, first = {each.who for _, each in three}, three[0][1]
        over_tokens = first.axes and first.axes[-1] == "n" or "n" in dict(first.fixed)
        if made and both == {"keys", "values"} and over_tokens:
            return None  # a table that the queries meet later
        reason = "exchanged" if made else "projection"
        return Difference(2, reason, at, place, wrong[0], None, {"who": lost})
    left = max(idle, key=lambda i: (walked.readings[i].stage or 0, i))
    after = walked.makers[left][0] if left in walked.makers else -1
    shared = walked.back(i for i, _ in given if i != wrong[0])
    stage = walked.readings[left].stage

    def takes(number: int) -> bool:
        given = walked.of(walked.trace.ops[number])
        return any(e.family == "projected" and (e.stage or 0) >= stage for e in given)

    own = sorted(n for n in walked.back(wrong) - shared if n > after and takes(n))
    at = own[0] if own else number
    if own:  # what the line at fault takes
        mine = [i for i in walked.trace.ops[at].given if walked.readings[i].family == "projected"]
        wrong = mine[:1] or wrong
    return Difference(
        walked.roles[at], "other", at, walked.trace.ops[at].place, wrong[0], left, {"who": lost}
    )


def _unused(walked: Walk, who: str, start: list[int]) -> list[int]:
    """The right queries, keys or values that nothing on the way to some tensors takes."""
    used = {i for n in walked.back(start) for i in walked.trace.ops[n].given} | {*start}
    return [
        i
        for i, each in enumerate(walked.readings)
        if each.family == "projected"
        and each.who == who
        and each.right
        and i not in used
        and not {*dict(each.fixed)} - {"w"}
    ]


def skipped(walked: Walk, number: int, op: Op, step: int) -> Difference | None:
    """An operand that comes from before the step that the call needs."""
    families = {walked.readings[i].family for i in op.given}
    name, phase = kind(op), walked.phases[number]
    operands = [(_unturned(walked, i, step), i) for i in op.given]
    for index, own in operands:
        lost = _lost(walked, op, name, step, phase, families, index, own)
        if lost and not used_later_on(walked, index):
            return Difference(lost, "skipped", number, op.place, index, None, {"for_step": step})
    return None


def _unturned(walked: Walk, index: int, step: int) -> int:
    """The tensor that another one is with its axes moved on the way into a call of this step."""
    while numbers := walked.makers.get(index):
        op = walked.trace.ops[numbers[-1]]
        if walked.roles[numbers[-1]] != step or kind(op) not in TURN or not op.given:
            break
        index = op.given[0]
    return index


def _lost(walked, op, name, step, phase, families, index, own) -> int:
    """The step that an operand has not been through; 0 if none."""
    reading = walked.readings[index]
    stage, axes = reading.stage, [a for a in reading.axes or () if a]
    projected, context = reading.family == "projected", reading.family == "context"
    if (
        projected
        and step in (6, 7)
        and phase < 3
        and (name in MASK | NORM - {"exp"} or "const" in families and name not in SCALE)
    ):
        return 5
    if step == 8 and "scores" not in families:
        return 0
    if reading.family == "x" and step in (3, 4, 5, 8):
        return 2
    if projected and step in (4, 5, 8) and stage == 2 and (step != 4 or name in TURN):
        return 3
    if projected and step in (5, 8) and stage == 3 and name != "einsum":
        return 4
    if projected and axes and _not_turned(walked, op, name, step, index, own):
        return 4
    if projected and name == "einsum" and stage == 3 and _replayed(walked, op, step):
        return 4
    if context and step == 10 and stage == 8 and name in JOINING:
        return 9
    if context and step == 11 and stage in (8, 9) and name == "linear":
        return 10 if stage == 9 else 9
    return 0


def _not_turned(walked: Walk, op: Op, name: str, step: int, index: int, own: int) -> bool:
    """Whether heads and tokens of this operand are not where the product wants them."""
    reading = walked.readings[index]
    axes = [a for a in reading.axes if a]
    others = [walked.readings[i] for i in op.given if i != own]
    if name == "scaled_dot_product_attention":
        return axes[-2:] == ["d", "n"]
    if step == 5 and name in ("matmul", "bmm"):
        alone = axes[0] == "h" and not all((o.axes or ("h",))[0] == "h" for o in others)
        mine = walked.readings[own]
        twin = mine.axes and others and others[0].axes
        alike = twin and _ends(mine.axes) == _ends(others[0].axes) == ["d", "n"]
        return bool(alone or alike and own == op.given[0])
    if step == 8 and reading.who == "values":
        weights = next((o for o in others if o.family == "scores"), None)
        alone = axes[0] == "h" and weights and (weights.axes or ("h",))[0] != "h"
        return bool(alone or axes[-2:] == ["d", "n"] and name in ("matmul", "bmm"))
    return False


def _ends(axes: tuple[str, ...]) -> list[str]:
    return [a for a in axes if a][-2:]


def _replayed(walked: Walk, op: Op, step: int) -> bool:
    """Whether this einsum would be right, were its operands right: heads before tokens."""
    steps = walked.right.scene.steps
    grouped, words = steps["transpose"], [e for e in op.numbers if type(e) is str]
    pair = (
        (grouped["queries"], grouped["keys"])
        if step == 5
        else (steps["softmax"]["weights"], grouped["values"])
    )
    with contextlib.suppress(Exception):
        found = walked.right.find(torch.einsum(words[0], *pair))
        return bool(found and found.right)
    return False


def used_later_on(walked: Walk, index: int) -> bool:
    """Whether what is made of a tensor is right at a later stage: then the wrong name was used."""
    mine = walked.readings[index]
    if not mine.stage:
        return False
    return any(
        each.family == mine.family
        and (each.stage or 0) > mine.stage
        and each.who in mine.who
        and i != index
        and index in {g for n in walked.back([i]) for g in walked.trace.ops[n].given}
        for i, each in enumerate(walked.readings)
    )
