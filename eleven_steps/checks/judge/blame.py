"""Say of a difference what was established, in the learner's own line and names.

A difference is found in one case and asked for again in another, of other sizes and numbers; what
does not hold there is not said.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from eleven_steps.checks.judge.differ import Difference, differ, parsed, set_in
from eleven_steps.checks.judge.path import (
    CUT,
    MEET,
    SHUFFLE,
    TURN,
    Walk,
    around,
    kind,
    named,
    operands,
    own_text,
    walk,
)
from eleven_steps.checks.judge.read import HIDDEN, LETTERS, Reading, right_of
from eleven_steps.checks.judge.say import Finding, say
from eleven_steps.checks.know.catalogue import mistakes_of
from eleven_steps.checks.know.right import play
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.run.ask import ask
from eleven_steps.checks.run.cases import Case, close
from eleven_steps.checks.run.isolate import Failure, clock_paused
from eleven_steps.checks.run.trace import Place, Stop, Trace
from helpers.trace import SHAPES, STEPS

JOINED = {"hd": "d_out", "gd": "num_kv_heads * head_dim", "whd": "3 * d_out", "wh": "3 * num_heads"}
CALLED = {  # what right numbers are called
    **{"x": "x", "scores": "scores", "masked": "masked scores", "weights": "weights"},
    **{"context": "context", "out": "output", "projected": "queries, keys or values"},
    **{"values": "values"},
}
PLURAL = ("scores", "weights", "queries", "keys", "values", "masked scores")


@dataclass(frozen=True)
class Blame:
    """A difference with the walk it was found on."""

    walked: Walk
    found: Difference | None

    @property
    def raised(self) -> bool:
        """Whether the run was stopped by an error."""
        return self.walked.trace.stop is not None

    def unspoilt(self, name: str) -> bool:
        """Whether what a mistake would have spoilt is there, and right, and the fault elsewhere."""
        if self.found and self.found.step == mistakes_of(self.walked.right.case.variant)[name].step:
            return False
        case = self.walked.right.case
        step = STEPS[mistakes_of(case.variant)[name].step - 1]
        wrong, right = play(case, name).steps.get(step, {}), play(case)[step]
        spoilt = [n for n, t in right.items() if n not in wrong or not close(wrong[n], t)]
        ours = self.walked.right.scene[step]
        return bool(spoilt) and all(self.walked.own(ours[n]) is not None for n in spoilt)


def blamed(cls: Any, case: Case, right: torch.Tensor | Failure | None = None) -> Blame | None:
    """Trace a class in a case and find its first difference; None where it cannot be traced.

    Args:
        cls: the class.
        case: where.
        right: what it gives there in float32; in double precision it must do the same.
    """
    for double in (True, False):
        trace = ask(cls, "trace", case, double)
        if not isinstance(trace, Trace):
            continue
        if not double or right is None or (trace.stop is None) != isinstance(right, Failure):
            with clock_paused():
                walked = walk(trace, right_of(case, double))
                return Blame(walked, differ(walked))
    return None


def holds(blame: Blame, other: Blame | None) -> bool:
    """Whether another case shows the same difference at the same place."""
    if other is None or other.found is None or blame.found is None:
        return False
    one, two = blame.found, other.found
    return (one.step, one.reason, one.place and one.place.line) == (
        two.step,
        two.reason,
        two.place and two.place.line,
    )


def plainly(blame: Blame) -> Blame:
    """The same as the line that raised has it, whatever step it is for."""
    ops, stop = blame.walked.trace.ops, blame.walked.trace.stop
    last = len(ops) - 1
    if ops and ops[-1].failed:
        found = Difference(blame.walked.roles[last], "torch", last, ops[-1].place)
    else:
        found = Difference(1, "name", None, stop.place if stop else None)
    return replace(blame, found=found)


def told(blame: Blame, error: str = "") -> Finding:
    """Say what a difference is.

    Args:
        blame: with a difference.
        error: what was raised, if something was.
    """
    found, walked = blame.found, blame.walked
    error = error.rstrip(".")  # the sentence has a full stop of its own
    values = {"at": line_of(found.place), **_values(found, walked)}
    name = f"differs_{found.reason}"
    if found.reason == "torch":
        hint = _hint(error)
        finding = say(
            name,
            found.step,
            error=error.rstrip("."),
            hint=hint,
            given=_given(found, walked),
            **values,
        )
    elif found.reason == "name":
        finding = say(name, found.step, error=error, hint=_unbound(error, walked), **values)
    elif found.reason == "scale":
        finding = _scale(found, walked, values)
    elif found.reason == "hidden":
        finding = _hidden(found, walked, values)
    elif found.reason == "made":
        finding = say(
            name, found.step, given=_given(found, walked), made=_made(found, walked), **values
        )
    else:
        finding = say(name, found.step, **values)
    stops = walked.trace.stop.place if walked.trace.stop else None
    later = ""
    if stops and found.place and stops.line != found.place.line and found.reason != "name":
        later = wording("stops_later", line=stops.line)
    return replace(finding, text=" ".join(filter(None, (finding.text, later))))


def line_of(place: Place | None) -> str:
    """A line as a message begins with it; "" where there is none."""
    if place is None or not place.text:
        return ""
    return wording("at_line", line=place.line, text=_plain(place.text))


def _plain(text: str) -> str:
    """A line without the comment at its end."""
    code, mark, _ = text.partition("  #")
    return (code if mark else text).rstrip()


def _values(found: Difference, walked: Walk) -> dict[str, Any]:
    """What the sentence of a difference is filled with."""
    values = dict(found.values)
    if found.index is not None:
        reading = walked.readings[found.index]
        values["came"] = _quoted(found.index, walked, found.op)
        values["operand"] = operand(found.index, walked, found.op)
        values["is_what"] = what_is(reading)
        values["shape"] = tuple(walked.trace.tensors[found.index].shape)
    if found.wanted is not None:
        values["wanted"] = _quoted(found.wanted, walked)
        what = called(walked.readings[found.wanted])
        values["what"] = what
        values["are"] = "are" if what in PLURAL else "is"
        maker = walked.makers.get(found.wanted)
        place = walked.trace.ops[maker[0]].place if maker else None
        apart = place and (found.place is None or place.line != found.place.line)
        values["since"] = wording("of_line", line=place.line) if apart else ""
        values["them"] = "them" if what in PLURAL else "it"
    if found.reason == "skipped":
        at = found.values["for_step"]
        needs = {3: 2, 4: 3, 5: 4, 6: 5, 7: 6, 8: 7 if _is(found, walked, "scores") else 4}
        needed = STEPS[needs.get(at, at - 1) - 1]
        shape = SHAPES[needed]
        usual = any(
            each.right and in_letters(each, tensor, walked.right.case) == shape
            for each, tensor in zip(walked.readings, walked.trace.tensors, strict=True)
        )
        values["needed"] = wording("is_needed", shape=shape) if usual else ""
        values["cause"] = wording(f"not_{found.step}")
    if found.reason == "early":
        last = found.step - 1
        values |= {"number": last, "name": STEPS[last - 1], "next": found.step}
        values["whats_next"] = STEPS[found.step - 1]
    if found.reason == "shape":
        values["wanted_shape"] = tuple(walked.right.scene.out.shape)
    if found.reason == "behind":
        values |= {"before": walked.readings[found.index].stage, "at_step": found.step}
    if found.reason == "family":
        needs = CALLED[found.values["needs"]]
        the = needs if needs == "x" else f"the {needs}"
        values["needs"] = f"{the} {'is' if needs in ('x', 'context') else 'are'}"
    if found.reason == "rows":
        state = walked.trace.tensors[found.index]
        values["sum"] = float(state.reshape(-1, state.shape[-1])[-1].sum())
    if found.reason == "size":
        n = walked.right.case.num_tokens
        values["needs"] = (
            f"num_tokens, {n}," if found.values.get("for_step") == 6 else "Another size"
        )
        values["letter"] = (
            next(
                (
                    f", which is {n}"
                    for n, s in walked.right.case.letters.items()
                    if s == values["size"]
                ),
                "",
            )
            if not values["name"].startswith("self.")
            else ""
        )
    if found.reason == "projection":
        layer = {"queries": "W_query", "keys": "W_key", "values": "W_value"}[values["who"]]
        values["layer"] = layer
    return values


def _is(found: Difference, walked: Walk, family: str) -> bool:
    return found.index is not None and walked.readings[found.index].family == family


def called(reading: Reading) -> str:
    """What right numbers are called."""
    if reading.family in ("const", "layer"):
        return wording("of_neither")
    state = reading.state
    if reading.family == "scores" and state:
        return (
            "weights" if state.grown else "masked scores" if state.hidden == "right" else "scores"
        )
    return CALLED.get(reading.who, reading.who) or CALLED.get(reading.family, "tensor")


def what_is(reading: Reading) -> str:
    """Say what a tensor holds: "holds the values"."""
    if reading.family == "const":
        return wording("holds_nothing")
    if reading.family == "x":
        return wording("holds_x")
    return wording("holds", what=called(reading))


def name_of(index: int, walked: Walk, op: int | None = None) -> str:
    """A tensor in the learner's words: what the call that takes it says, or who makes it."""
    if op is not None:
        call = walked.trace.ops[op]
        nodes = around(call.place)
        same = nodes and named(nodes[0]) == kind(call)
        texts = list(operands(call.place)) if same else []
        if index in call.given and len(texts) == len(call.given):
            return texts[call.given.index(index)]
    return own_text(index, walked)


def _quoted(index: int, walked: Walk, op: int | None = None) -> str:
    name = name_of(index, walked, op)
    return f"`{name}`" if name else wording("unnamed", what=called(walked.readings[index]))


def operand(index: int, walked: Walk, op: int | None = None) -> str:
    """A tensor by name with its shape in numbers, and in letters where its axes were read."""
    shape = tuple(walked.trace.tensors[index].shape)
    letters = in_letters(walked.readings[index], walked.trace.tensors[index], walked.right.case)
    name = _quoted(index, walked, op)
    return wording(
        "has_shape" if letters else "has_numbers", name=name, shape=shape, letters=letters
    )


def in_letters(reading: Reading, tensor: torch.Tensor, case: Case) -> str:
    """The axes of a tensor in letters; "" where one of them was not read.

    An axis of another size than its letter's, as of a part, stands as its number.
    """
    sizes = {"3": 3, **case.letters}
    if reading.axes is None or len(reading.axes) != tensor.dim() or reading.family == "const":
        return ""
    axes = []
    for axis, size in zip(reading.axes, tensor.shape, strict=True):
        if "?" in axis or not axis and size != 1:
            return ""
        names = [LETTERS[letter] for letter in axis]
        whole = math.prod(sizes.get(name, size) for name in names) == size
        said = JOINED.get(axis) or " * ".join(names) or "1"
        axes.append(said if whole or len(names) > 1 else str(size))
    return f"({', '.join(axes)})"


def _given(found: Difference, walked: Walk) -> str:
    """What a call was given, tensor by tensor."""
    op = walked.trace.ops[found.op]
    own = [i for i in dict.fromkeys(op.given) if walked.readings[i].family != "layer"]
    return "; ".join(operand(i, walked, found.op) for i in own[:3])


def _made(found: Difference, walked: Walk) -> str:
    """What came out of a call that is no tensor of the eleven steps."""
    if found.index is None:
        return ""
    tensor, reading = walked.trace.tensors[found.index], walked.readings[found.index]
    shape, right = tuple(tensor.shape), STEPS[found.step - 1]
    letters = in_letters(reading, tensor, walked.right.case)
    moves = kind(walked.trace.ops[found.op]) in TURN | MEET | CUT - SHUFFLE
    if moves and letters and letters != SHAPES[right]:
        return wording("made_axes", shape=shape, letters=letters)
    mixed = reading.axes and any("?" in axis for axis in reading.axes)
    if mixed and kind(walked.trace.ops[found.op]) in ("view", "reshape"):
        return wording("made_mixed", shape=shape)
    return wording("made_other", shape=shape, step=found.step, name=right)


def _scale(found: Difference, walked: Walk, values: dict[str, Any]) -> Finding:
    head_dim = walked.right.case.head_dim
    factor = found.values["factor"]
    if found.values["before"]:
        return say("not_scaled", 7, head_dim=head_dim, root=head_dim**0.5, **values)
    return say(
        "scaled_otherwise", 7, divisor=1 / factor, head_dim=head_dim, root=head_dim**0.5, **values
    )


def _hidden(found: Difference, walked: Walk, values: dict[str, Any]) -> Finding:
    """Say what a mask hides too much or too little."""
    if found.values["crossed"]:
        return say("scores_crossed", 5, **values)
    laid = walked.right.beside(walked.trace.tensors[found.index], walked.readings[found.index])
    mine, _, hides = laid
    state = walked.readings[found.index].state
    gone = mine == 0 if state.grown else mine < HIDDEN
    leak, lost = hides & ~gone, gone & ~hides
    if leak.any():
        also = wording("past_hidden_too") if lost.any() else ""
        some = int(leak.flatten(0, -3).flatten(1).any(-1).sum()) if leak.dim() > 2 else 1
        whole = leak.shape[:-2].numel()
        return say(
            "future_not_masked",
            some="" if some == whole else wording("in_some"),
            also=also,
            **values,
        )
    return say("past_hidden", **values)


# What torch says, and our word for it, where that is always so.
EXPLAINED = {
    "view size is not compatible": "moved_before_view",
    "'NoneType'": "is_none",
    "shape of the mask": "picked_by_mask",
    "must be a matrix": "matrices_alone",
    "must be a 3D tensor": "matrices_alone",
    "'Linear'": "layer_called",
    "must be Tensor, not int": "number_for_tensor",
    "length of the desired ordering": "every_axis",
    "bitwise_xor": "no_power",
    "selected index k out of range": "topk_at_most",
}


def _hint(error: str) -> str:
    """What torch's words mean, where that is always so."""
    return next((wording(name) for said, name in EXPLAINED.items() if said in error), "")


def _unbound(error: str, walked: Walk) -> str:
    """Where a name is made that is read before; else what torch's or Python's words mean."""
    lost, stop = re.search(r"(?:variable|name) '(\w+)'", error), walked.trace.stop
    if stop and stop.place and (several := _several(walked, stop)):
        return several
    if not lost or not stop or not stop.place:
        return _hint(error)
    if lost[1] in stop.several:
        return ""
    lines = [n + walked.trace.first - 1 for n, _ in set_in(parsed(walked.trace.source), lost[1])]
    if lines and min(lines) >= stop.place.line:
        name = "made_here" if min(lines) == stop.place.line else "made_later"
        return wording(name, name=lost[1], line=min(lines))
    return ""


def _several(walked: Walk, stop: Stop) -> str:
    """Which name of the line stands for several tensors where one is wanted."""
    for name, each in stop.several.items():
        if re.search(rf"\b{name}\b", stop.place.expression) and (
            made := walked.makers.get(each[-1])
        ):
            place = walked.trace.ops[made[0]].place
            line = wording("of_line", line=place.line) if place else ""
            return wording("is_several", name=name, count=len(each), line=line)
    return ""


def again(blame: Blame, cls: Any, cases: Sequence[Case]) -> bool:
    """Whether one of some other cases shows the same; of no other case nothing can be said."""
    others = (blamed(cls, case) for case in cases)
    return any(holds(blame, other) for other in others)
