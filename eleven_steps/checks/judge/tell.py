"""Say what a difference is, in the learner's own line and names."""

import re
from dataclasses import replace
from typing import Any

from eleven_steps.checks.judge.blame import Blame
from eleven_steps.checks.judge.difference import Difference
from eleven_steps.checks.judge.naming import (
    CALLED,
    PLURAL,
    called,
    in_letters,
    operand,
    quoted,
    what_is,
)
from eleven_steps.checks.judge.path import Walk
from eleven_steps.checks.judge.roles import kind
from eleven_steps.checks.judge.say import Finding, say
from eleven_steps.checks.judge.states import HIDDEN
from eleven_steps.checks.judge.syntax import CUT, MEET, SHUFFLE, TURN
from eleven_steps.checks.judge.wrong_sizes import parsed, set_in
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.run.places import Place
from eleven_steps.checks.run.recording import Stop
from eleven_steps.helpers.trace import SHAPES, STEPS


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
        given = _given(found, walked)
        finding = say(name, found.step, error=error, hint=_hint(error), given=given, **values)
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
        values["came"] = quoted(found.index, walked, found.op)
        values["operand"] = operand(found.index, walked, found.op)
        values["is_what"] = what_is(reading)
        values["shape"] = tuple(walked.trace.tensors[found.index].shape)
    if found.wanted is not None:
        values["wanted"] = quoted(found.wanted, walked)
        what = called(walked.readings[found.wanted])
        values["what"] = what
        values["are"] = "are" if what in PLURAL else "is"
        maker = walked.makers.get(found.wanted)
        place = walked.trace.ops[maker[0]].place if maker else None
        apart = place and (found.place is None or place.line != found.place.line)
        values["since"] = wording("of_line", line=place.line) if apart else ""
        values["them"] = "them" if what in PLURAL else "it"
    return values | _of_reason(found, walked)


def _of_reason(found: Difference, walked: Walk) -> dict[str, Any]:
    """What the sentence of one reason is filled with besides."""
    values, reason, case = found.values, found.reason, walked.right.case
    if reason == "skipped":
        return _needed(found, walked)
    if reason == "early":
        last, after = STEPS[found.step - 2 : found.step] if found.step > 1 else (STEPS[0],) * 2
        return {"number": found.step - 1, "name": last, "next": found.step, "whats_next": after}
    if reason == "shape":
        return {"wanted_shape": tuple(walked.right.scene.out.shape)}
    if reason == "behind":
        return {"before": walked.readings[found.index].stage, "at_step": found.step}
    if reason == "family":
        needs = CALLED[values["needs"]]
        the = needs if needs == "x" else f"the {needs}"
        return {"needs": f"{the} {'is' if needs in ('x', 'context') else 'are'}"}
    if reason == "rows":
        sums = walked.trace.tensors[found.index].sum(-1).flatten()
        return {"sum": float(sums[(sums - 1).abs().argmax()])}
    if reason == "size":
        one = values["for_step"] == 6
        letters = (n for n, size in case.letters.items() if size == values["size"])
        letter = "" if values["name"].startswith("self.") else next(letters, "")
        return {
            "needs": f"num_tokens, {case.num_tokens}," if one else "Another size",
            "letter": f", which is {letter}" if letter else "",
        }
    if reason == "projection":
        return {
            "layer": {"queries": "W_query", "keys": "W_key", "values": "W_value"}[values["who"]]
        }
    return {}


def _needed(found: Difference, walked: Walk) -> dict[str, str]:
    """The shape that a call takes, where something here has it, and what was left out."""
    at = found.values["for_step"]
    needs = {3: 2, 4: 3, 5: 4, 6: 5, 7: 6, 8: 7 if _is(found, walked, "scores") else 4}
    shape = SHAPES[STEPS[needs.get(at, at - 1) - 1]]
    usual = any(
        each.right and in_letters(each, tensor, walked.right.case) == shape
        for each, tensor in zip(walked.readings, walked.trace.tensors, strict=True)
    )
    mine = in_letters(
        walked.readings[found.index], walked.trace.tensors[found.index], walked.right.case
    )
    said = usual and mine != shape
    return {
        "needed": wording("is_needed", shape=shape) if said else "",
        "cause": wording(f"not_{found.step}"),
    }


def _is(found: Difference, walked: Walk, family: str) -> bool:
    return found.index is not None and walked.readings[found.index].family == family


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
    if tensor.device.type == "cpu" and tensor.isnan().any():
        return wording("made_nan", shape=shape)
    letters = in_letters(reading, tensor, walked.right.case)
    moves = kind(walked.trace.ops[found.op]) in TURN | MEET | CUT - SHUFFLE
    if letters and letters != SHAPES[right] and moves:
        return wording("made_axes", shape=shape, letters=letters)
    mixed = reading.axes and any("?" in axis for axis in reading.axes[:2])
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
