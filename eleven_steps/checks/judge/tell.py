"""Say what a difference is, in the learner's own line and names."""

import math
import re
from dataclasses import replace
from typing import Any

import torch

from eleven_steps.checks.judge.differ import Blame, plainly
from eleven_steps.checks.judge.likeness import hides_other, nan_cause
from eleven_steps.checks.judge.path import Difference, Walk, makes_nan, own_text
from eleven_steps.checks.judge.read import HIDDEN, LETTERS, Reading
from eleven_steps.checks.judge.say import Finding, listed, meant, say, together
from eleven_steps.checks.judge.syntax import (
    CUT,
    KEEP,
    MASK,
    MEET,
    NORM,
    SCALE,
    SHUFFLE,
    TURN,
    WHOLE,
    around,
    call_name,
    in_meeting,
    op_name,
    operands,
    parsed,
    set_in,
)
from eleven_steps.checks.know.sentences import read_toml, wording
from eleven_steps.checks.run.contract import sizes_besides
from eleven_steps.checks.run.places import Place
from eleven_steps.helpers.trace import SHAPES, STEPS

# The calls that the steps may take: of any other it is said that none of them does.
USUAL = TURN | CUT - {"flip", "pad", "roll"} | MEET | MASK | NORM | SCALE | KEEP
USUAL |= {"linear", "add", "sub", "pow", "sqrt", "neg"}
JOINED = {"hd": "d_out", "gd": "num_kv_heads * head_dim", "whd": "3 * d_out", "wh": "3 * num_heads"}
CALLED = {  # what right numbers are called
    **{"x": "x", "scores": "scores", "masked": "masked scores", "weights": "weights"},
    **{"context": "context", "out": "output", "projected": "queries, keys or values"},
    **{"values": "values", "mask": "mask", "exponentials": "exponentials of the scores"},
}
# What is not rescaled in a softmax in blocks, by the parts of tasks.blockwise.
BLOCK_SUMS = {("context",): "sum of values", ("total",): "sum of the exponentials"}
BLOCK_SUMS["context", "total"] = "two sums"
PLURAL = ("scores", "weights", "queries", "keys", "values", "masked scores")
FEW = 12  # names that are told in one sentence
REDUCE = {"sum", "mean", "amax", "amin", "norm", "logsumexp", "std", "var"}
# The sentences for what torch says, where that is always so.
EXPLAINED: dict[str, str] = read_toml("torch.toml")["errors"]


def tell(blame: Blame, error: str = "") -> Finding:
    """Say what a difference is, and what was raised, if something was."""
    blame = plainly(blame) if _said_by_torch(blame, error) else blame
    found, walked = blame.found, blame.walked
    error = error.rstrip(".")  # the sentence has a full stop of its own
    values = {"at": line_of(found.place), **_values(found, walked)}
    idle = found.reason == "idle" and found.index is None
    name = "differs_unused" if idle else f"differs_{found.reason}"
    if found.reason in ("torch", "name"):
        hint = hint_of if found.reason == "torch" else unbound
        values |= {"error": error, "hint": hint(error, walked)}
    if found.reason in ("torch", "made"):
        given = _given(found, walked)
        values["given"] = given and (f"; {given}" if found.reason == "torch" else f"{given}. ")
    if found.reason == "made":
        values["made"] = _what_came_out(found, walked)
    if found.reason == "scale":
        head_dim, divisor = walked.case.head_dim, 1 / found.values["factor"]
        values |= {"head_dim": head_dim, "root": head_dim**0.5, "divisor": divisor}
        name = "not_scaled" if values["before"] else "scaled_otherwise"
    hides = found.reason == "hidden"
    finding = _hidden(found, walked, values) if hides else say(name, found.step, **values)
    stops = walked.stop.place if walked.stop else None
    later = ""
    if stops and found.place and stops.line != found.place.line and found.reason != "name":
        later = wording("stops_later", line=stops.line)
    return replace(finding, text=together(finding.text, later))


def nan_first(blame: Blame) -> str:
    """Say which call first makes NaN of what holds none."""
    number = makes_nan(blame.walked)
    place = None if number is None else blame.walked.ops[number].place
    code = place.expression if place else ""
    return wording("nan_first", at=line_of(place), code=code) if code else ""


def _said_by_torch(blame: Blame, error: str) -> bool:
    """Whether the line that is blamed raises, and what it raises says it best."""
    place, stop = blame.found.place, blame.walked.stop
    here = place and stop and stop.place and place.line == stop.place.line
    other = blame.found.reason not in ("name", "torch", "skipped", "layer", "float", "method")
    return bool(here and other and hint_of(error, blame.walked))


def line_of(place: Place | None) -> str:
    """A line as a message begins with it; "" where there is none."""
    if place is None or not place.text:
        return ""
    return wording("at_line", line=place.line, text=_plain(place.text))


def _plain(text: str) -> str:
    code, mark, _ = text.partition("  #")
    return (code if mark else text).rstrip()


def _values(found: Difference, walked: Walk) -> dict[str, Any]:
    values = dict(found.values)
    if found.index is not None:
        reading = walked.readings[found.index]
        outside = found.op is not None and found.place != walked.ops[found.op].place
        op = None if outside else found.op
        values["came"] = quoted(found.index, walked, op)
        values["operand"] = operand(found.index, walked, op)
        whole = walked.sound(found.index)
        name = "holds_nothing" if reading.family == "const" else "holds" if whole else "made_of"
        values["is_what"] = wording(name, what=noun(reading))
        values["shape"] = tuple(walked.tensors[found.index].shape)
        values["letters"] = in_letters(found.index, walked)
    if found.wanted is not None:
        values["wanted"] = quoted(found.wanted, walked)
        what = noun(walked.readings[found.wanted])
        name = own_text(found.wanted, walked)
        values["what"], values["called"] = what, "" if name in ("", what) else f" `{name}`"
        many = what.split(" and ")[-1] in PLURAL
        values["are"], values["them"] = ("are", "them") if many else ("is", "it")
        makers = [walked.ops[n] for n in walked.makers.get(found.wanted, ())[:1]]
        places = [e for op in makers for e in (op.place, *op.calls) if e]  # a helper's, its call
        named = (e for e in places if re.search(rf"\b{re.escape(name)}\b", e.text))
        place = next(named, next(iter(places), None))
        apart = place and (found.place is None or place.line != found.place.line)
        # In eval mode dropout hands on the very tensor: the line that names it anew is another.
        apart = apart and not any(n > place.line for n in _lines_of(name, walked, place))
        values["since"] = wording("of_line", line=place.line) if apart else ""
    return values | _of_reason(found, walked)


def _of_reason(found: Difference, walked: Walk) -> dict[str, Any]:
    values, reason, case = found.values, found.reason, walked.case
    if reason == "skipped":
        return _needed(found, walked)
    if reason == "early":
        last, after = STEPS[found.step - 2 : found.step] if found.step > 1 else (STEPS[0],) * 2
        return {"number": found.step - 1, "name": last, "next": found.step, "whats_next": after}
    if reason == "shape":
        return {"wanted_shape": tuple(walked.reference.scene.out.shape)}
    if reason == "family":
        needs = CALLED[values["needs"]]
        the = needs if needs == "x" else f"the {needs}"
        return {"needs": f"{the} {'is' if needs in ('x', 'context', 'mask') else 'are'}"}
    if reason == "rescaled":
        return {"sums": BLOCK_SUMS[values["sums"]]}
    if reason == "rows":
        sums = walked.tensors[found.index].sum(-1).flatten()
        return {"sum": float(sums[(sums - 1).abs().argmax()])}
    if reason == "size":
        needs = values["needs"]
        name = values["name"]
        letters = (n for n, size in case.letters.items() if size == values["size"])
        letter = "" if name.startswith("self.") else next((n for n in letters if n != name), "")
        needed = f"{needs}, {case.letters[needs]}," if needs else "Another size"
        return {"needs": needed, "letter": f", which is {letter}" if letter else ""}
    layers = {"queries": "W_query", "keys": "W_key", "values": "W_value"}
    return {"layer": layers[values["who"]]} if reason == "projection" else {}


def _needed(found: Difference, walked: Walk) -> dict[str, str]:
    """The shape that a call takes, where something here has it, and what was left out."""
    at = found.values["for_step"]
    values = at == 8 and walked.readings[found.index].family != "scores"
    shape = SHAPES[STEPS[(4 if values else at - 1) - 1]]
    read = enumerate(walked.readings)
    usual = any(reading.stage and in_letters(i, walked) == shape for i, reading in read)
    mine = in_letters(found.index, walked)
    maker = walked.makers.get(found.index)
    op = walked.ops[maker[-1]] if maker else None
    turned = op and op_name(op) in TURN and in_meeting(op.place)  # for its product
    flat = any((reading.axes or ("",))[0] in ("bh", "hb") for reading in walked.readings)
    said = usual and mine != shape and not turned and not flat
    axes = [*filter(None, walked.readings[found.index].axes or ())] if found.step == 4 else []
    cause = "heads_stand_first" if axes[:2] == [*"hb"] else f"not_{found.step}"
    cause = "tokens_stand_last" if axes[-2:] == [*"dn"] else cause
    return {"needed": wording("is_needed", shape=shape) if said else "", "cause": wording(cause)}


def _given(found: Difference, walked: Walk) -> str:
    op = walked.ops[found.op]
    own = []
    for i in op.given:
        family, named = walked.readings[i].family, name_of(i, walked, found.op)
        if i not in walked.trace.layers and (named or family != "const"):
            own.append(operand(i, walked, found.op))
    once = {re.sub(r"\[\d\]", "", text): text for text in reversed(own)}  # of a list, each shape
    return "; ".join([*reversed(once.values())][:3])


def _what_came_out(found: Difference, walked: Walk) -> str:
    """What came out of a call that is no tensor of the eleven steps."""
    tensor, reading = walked.tensors[found.index], walked.readings[found.index]
    shape, step = tuple(tensor.shape), STEPS[found.step - 1]
    writes = op_name(walked.ops[found.op]) == "setitem"
    what = wording("comes_out") if writes else _part(walked.ops[found.op].place)
    if tensor.device.type == "cpu" and tensor.isnan().any():
        nan = wording("made_nan", what=what, shape=shape)
        return together(nan, nan_cause(tensor, walked.reference.scene))
    if tensor.dtype in (torch.float16, torch.bfloat16):
        return wording("made_rounded", what=what, shape=shape, dtype=tensor.dtype)
    op = walked.ops[found.op]
    if op_name(op) not in USUAL and op.place and f"{op_name(op)}(" in op.place.expression:
        return wording("made_by", call=op_name(op))
    if op_name(op) in WHOLE:
        return wording("made_whole", what=what, shape=shape)
    if reading.part and walked.sound(found.index) and "g" not in "".join(reading.axes or ()):
        return wording("made_part", what=what, shape=shape)
    first = walked.readings[op.given[0]] if op.given else reading
    if walked.across(found.index):
        name = "made_uneven" if "w" in "".join(first.axes or ()) else "made_across"
        return wording(name, what=what, shape=shape)
    letters = in_letters(found.index, walked)
    moves = op_name(op) in TURN | MEET | CUT - SHUFFLE
    one = walked.case.b == 1  # where an axis of 1 may be that of the sequences
    usual = {letters, letters.replace("(1,", "(b,")} if one else {letters}
    laid = "|".join(filter(None, reading.axes or ())) in walked.reference.stages.get(
        reading.family, ()
    )
    laid = laid and "h" in dict(reading.fixed)  # one head's, in a usual order of axes
    if letters and usual.isdisjoint(SHAPES.values()) and moves and not laid:
        return wording("made_axes", what=what, shape=shape, letters=letters)
    if op_name(op) in ("view", "reshape", "unflatten"):
        heads = walked.reference.scene["view"]["queries"]
        if found.step == 3 and shape[:2] == heads.shape[:2] and shape != heads.shape:
            values = {"wanted": tuple(heads.shape), "letters": SHAPES["view"]}
            is_now = wording("has_numbers", name=what, shape=shape)
            return f"{is_now}; {wording('wants_sizes', **values)}"
        before, left = ("".join(read.axes or ()) for read in (first, reading))
        mixed = [LETTERS[letter] for letter in before if letter not in left]
        if "?" in left and len(mixed) > 1:
            return wording("made_mixed", what=what, shape=shape, mixed=listed(mixed, quote=""))
    if reading.axes and "?" not in reading.axes and walked.reference.holds(tensor, reading.family):
        return wording("made_unordered", what=what, shape=shape)
    return wording("made_other", what=what, shape=shape, step=found.step, name=step)


def _part(place: Place | None) -> str:
    """What a call makes, as it is called: by its own code where that is part of its line alone."""
    nodes = around(place)
    alone = not nodes or getattr(nodes[-1], "value", None) is nodes[0]
    return wording("comes_out") if alone else f"`{place.expression}`"


def _hidden(found: Difference, walked: Walk, values: dict[str, Any]) -> Finding:
    """Say what a mask hides too much or too little."""
    if found.values["crossed"]:
        return say("scores_crossed", 5, **values)
    reading, state = walked.readings[found.index], walked.readings[found.index].state
    mine, _, hides = walked.reference.aligned(walked.tensors[found.index], reading)
    gone = mine == 0 if state and state.grown else mine < HIDDEN
    if hides.tril().any():  # of the past too, as a window does
        matrices = [table.reshape(-1, *table.shape[-2:]) for table in (gone, hides)]
        told = {hides_other(*pair) for pair in zip(*matrices, strict=True)}
        counts = told.pop() if len(told) == 1 else hides_other(gone, hides)
        return say("masks_otherwise", 6, counts=counts, **values)
    return say("future_not_masked" if (hides & ~gone).any() else "past_hidden", 6, **values)


# A tensor in the learner's words, and its axes in the lecture's letters


def noun(reading: Reading) -> str:
    """What right numbers are called."""
    if reading.family in ("const", "layer"):
        return wording("of_neither")
    state = reading.state if reading.family == "scores" else None
    if state and state.grown:
        return "weights" if state.whole else CALLED["exponentials"]
    if state:
        return "masked scores" if state.hidden == "right" else "scores"
    who = listed(reading.who.split(" and "), quote="")
    return CALLED.get(who, who) or CALLED.get(reading.family, "tensor")


def name_of(index: int, walked: Walk, op: int | None = None) -> str:
    """A tensor in the learner's words: what the call that takes it says, or who makes it."""
    if op is not None:
        call = walked.ops[op]
        nodes = around(call.place)
        texts = list(operands(call.place))
        at = call.given.index(index) if index in call.given else len(texts)
        same = nodes and call_name(nodes[0]) == op_name(call)
        if same and len(texts) == len(call.given) > at:
            return texts[at]
        first = at == 0 and texts and not walked.inside(op) and texts[0]
        op = op if index in call.given else None
        alone = len(texts) == 1 and (len(call.given) == 1 or not same)
        alone = alone or first and call.place.expression.startswith((f"{first}.", f"{first} / "))
        if first and alone and own_text(index, walked) not in call.place.statement:
            return first  # another function gave it another name
    return own_text(index, walked)


def quoted(index: int, walked: Walk, op: int | None = None) -> str:
    """The same as code, or else what the tensor holds."""
    name, reading = name_of(index, walked, op), walked.readings[index]
    if not name and reading.family == "layer":
        return wording("made_with", what=reading.who)
    return f"`{name}`" if name else wording("unnamed", what=noun(reading))


def operand(index: int, walked: Walk, op: int | None = None) -> str:
    """A tensor by name with its shape in numbers, and in letters where its axes were read."""
    shape = tuple(walked.tensors[index].shape)
    letters = in_letters(index, walked)
    name = quoted(index, walked, op)
    makers = (walked.ops[number] for number in walked.makers.get(index, ()))
    if any(len(e.gave) > 1 and e.place and name == f"`{e.place.expression}`" for e in makers):
        name = wording("one_of", name=name)
    return wording(
        "has_shape" if letters else "has_numbers", name=name, shape=shape, letters=letters
    )


def in_letters(index: int, walked: Walk) -> str:
    """The axes of a tensor in letters; "" where one of them was not read.

    An axis of another size than its letter's, as of a part, stands as its number.
    """
    reading, tensor = walked.readings[index], walked.tensors[index]
    sizes = {"3": 3, **walked.case.letters, **sizes_besides(walked.case)}
    if reading.axes is None or len(reading.axes) != tensor.dim() or reading.family == "const":
        return ""
    axes = []
    for axis, size in zip(reading.axes, tensor.shape, strict=True):
        if "?" in axis or not axis and size != 1:
            return ""
        names = [LETTERS[letter] for letter in axis]
        whole = math.prod(sizes.get(name, size) for name in names) == size
        said = JOINED.get(axis) or " * ".join(names) or "1"
        axes.append(said if whole or not {*names} <= sizes.keys() else str(size))
    return f"({', '.join(axes)})"


# What torch's words mean, and a name that is read before it is made


def hint_of(error: str, walked: Walk | None = None) -> str:
    """What torch's words mean, where that is always so."""
    hint = next((wording(name) for said, name in EXPLAINED.items() if said in error), "")
    op = walked.ops[-1] if walked and walked.ops else None
    cut = op and op.failed and op_name(op) == "view" and walked.readings[op.given[0]]
    if cut and cut.family == "projected" and cut.stage == 4 and len(op.numbers) == 4:
        return wording("cut_already")
    if hint or not op or not op.failed:
        return hint
    if [e.who for e in walked.of(op)][:2] == ["x", "out_proj.weight"]:
        return wording("out_takes")
    return _axis_lost(walked) or _sizes_expected(walked)


def _sizes_expected(walked: Walk) -> str:
    """Say which sizes a view takes that raises where heads are cut or joined."""
    op, last = walked.ops[-1], len(walked.ops) - 1
    sizes = sum(type(number) is int for number in op.numbers)
    step = {(3, 4): "view", (10, 3): "combine"}.get((walked.steps[last], sizes), "")
    laid = step and walked.on_the_way(op.given[0]) and walked.readings[op.given[0]].axes[:2]
    if op_name(op) not in ("view", "reshape") or laid != ("b", "n"):
        return ""
    wanted, *others = {tuple(right.shape) for right in walked.reference.scene[step].values()}
    others += [wanted] * (math.prod(wanted) != walked.tensors[op.given[0]].numel())  # fused
    return "" if others else wording("wants_sizes", letters=SHAPES[step], wanted=wanted)


def _axis_lost(walked: Walk) -> str:
    """Say which call has taken an axis away that the failing one needs, if one has."""
    op, tensors = walked.ops[-1], walked.tensors
    most = max((tensors[i].dim() for i in op.given), default=0)
    for index in op.given:
        while tensors[index].dim() < most and index in walked.makers:
            made = walked.ops[walked.makers[index][0]]
            if not made.given or "softmax" in op_name(made):  # which has done what it is for
                break
            index = made.given[0]
            if op_name(made) in REDUCE and tensors[index].dim() == most:
                return wording("kept_axis", name=op_name(made))
    return ""


def unbound(error: str, walked: Walk) -> str:
    """Where a name is made that is read before; else what torch's or Python's words mean."""
    stop = walked.stop
    if (hint := hint_of(error)) or not stop or not stop.place or not stop.lost:
        return hint
    lines = (
        _lines_of(stop.lost, walked, stop.place) if error.startswith(("Name", "Unbound")) else ()
    )
    if lines and min(lines) >= stop.place.line:
        name = "made_here" if min(lines) == stop.place.line else "made_later"
        return wording(name, name=stop.lost, line=min(lines))
    few = 0 < len(stop.known) < FEW and not re.match("Name|Unbound|.*multiple values", error)
    near = meant(stop.lost, stop.known)
    return near or (wording("knows", names=", ".join(stop.known)) if few else "")


def _lines_of(name: str, walked: Walk, place: Place) -> list[int]:
    """The lines at which a name is set in the function of a place."""
    source, first = walked.source_at(place)
    every = set_in(parsed(source), place.line - first + 1).get(name, ())
    return [value.lineno + first - 1 for value in every]
