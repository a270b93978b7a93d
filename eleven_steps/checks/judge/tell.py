"""Say what a difference is, in the learner's own line and names."""

from dataclasses import replace
from typing import Any

import torch

from eleven_steps.checks.judge.blame import Blame, plainly
from eleven_steps.checks.judge.explained import hint_of, unbound
from eleven_steps.checks.judge.naming import (
    CALLED,
    PLURAL,
    called,
    in_letters,
    name_of,
    operand,
    quoted,
    what_is,
)
from eleven_steps.checks.judge.path import Difference, Walk
from eleven_steps.checks.judge.read import FAMILIES
from eleven_steps.checks.judge.roles import kind
from eleven_steps.checks.judge.say import Finding, say
from eleven_steps.checks.judge.states import HIDDEN
from eleven_steps.checks.judge.syntax import CUT, KEEP, MASK, MEET, NORM, SCALE, SHUFFLE, TURN
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.run.places import Place
from eleven_steps.helpers.trace import SHAPES, STEPS


def told(blame: Blame, error: str = "") -> Finding:
    """Say what a difference is.

    Args:
        blame: with a difference.
        error: what was raised, if something was.
    """
    blame = plainly(blame) if _said_by_torch(blame, error) else blame
    found, walked = blame.found, blame.walked
    error = error.rstrip(".")  # the sentence has a full stop of its own
    values = {"at": line_of(found.place), **_values(found, walked)}
    name = f"differs_{found.reason}"
    given = _given(found, walked) if found.reason in ("torch", "made") else ""
    if found.reason == "torch":
        given = given and f"; {given}"
        finding = say(
            name, found.step, error=error, hint=hint_of(error, walked), given=given, **values
        )
    elif found.reason == "name":
        finding = say(name, found.step, error=error, hint=unbound(error, walked), **values)
    elif found.reason == "scale":
        finding = _scale(found, walked, values)
    elif found.reason == "hidden":
        finding = _hidden(found, walked, values)
    elif found.reason == "made":
        given = given and f"{given}. "
        finding = say(name, found.step, given=given, made=_made(found, walked), **values)
    else:
        finding = say(name, found.step, **values)
    stops = walked.trace.stop.place if walked.trace.stop else None
    later = ""
    if stops and found.place and stops.line != found.place.line and found.reason != "name":
        later = wording("stops_later", line=stops.line)
    return replace(finding, text=" ".join(filter(None, (finding.text, later))))


def _said_by_torch(blame: Blame, error: str) -> bool:
    """Whether the line that is blamed raises, and what it raises says it best."""
    place, stop = blame.found.place, blame.walked.trace.stop
    here = place and stop and stop.place and place.line == stop.place.line
    other = blame.found.reason not in ("name", "torch")
    return bool(here and other and hint_of(error, blame.walked))


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
    if reason == "alone":
        return {"one": {"b": "sequence", "h": "head"}[values["letter"]]}
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
    own = [
        i
        for i in dict.fromkeys(op.given)
        if walked.readings[i].family in FAMILIES[1:]
        or walked.readings[i].family == "layer"
        and i not in walked.trace.layers
        or walked.readings[i].family == "const"
        and name_of(i, walked, found.op)
    ]
    return "; ".join(dict.fromkeys(operand(i, walked, found.op) for i in own[:3]))


def _made(found: Difference, walked: Walk) -> str:
    """What came out of a call that is no tensor of the eleven steps."""
    if found.index is None:
        return ""
    tensor, reading = walked.trace.tensors[found.index], walked.readings[found.index]
    shape, right = tuple(tensor.shape), STEPS[found.step - 1]
    if tensor.device.type == "cpu" and tensor.isnan().any():
        return wording("made_nan", shape=shape)
    if tensor.dtype in (torch.float16, torch.bfloat16):
        return wording("made_rounded", shape=shape, dtype=tensor.dtype)
    op = walked.trace.ops[found.op]
    if kind(op) not in USUAL and op.place and f"{kind(op)}(" in op.place.expression:
        return wording("made_by", call=kind(op))
    letters = in_letters(reading, tensor, walked.right.case)
    moves = kind(op) in TURN | MEET | CUT - SHUFFLE
    if letters and letters != SHAPES[right] and moves:
        return wording("made_axes", shape=shape, letters=letters)
    mixed = reading.axes and any("?" in axis for axis in reading.axes[:2])
    if kind(op) in ("view", "reshape", "unflatten"):
        heads = walked.right.scene.steps.get("view", {}).get("queries")
        if found.step == 3 and heads is not None and shape[:2] == heads.shape[:2] != shape:
            wanted = tuple(heads.shape)
            return wording("made_sizes", shape=shape, wanted=wanted, letters=SHAPES["view"])
        if mixed:
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


# The calls that the steps may take: of any other it is said that none of them does.
USUAL = TURN | CUT - {"flip", "pad", "roll"} | MEET | MASK | NORM | SCALE | KEEP
USUAL |= {"linear", "add", "sub", "pow", "sqrt", "neg"}
