"""The step that a call is for: by what it is, what it gets, and how far forward has come."""

from eleven_steps.checks.judge.read import FAMILIES, Reading
from eleven_steps.checks.judge.syntax import CUT, MASK, MEET, NORM, SCALE, SHUFFLE, TURN, in_meeting
from eleven_steps.checks.run.recording import Op

APART = {"chunk", "split", "tensor_split", "unbind", "getitem"}  # queries, keys and values


def kind(op: Op) -> str:
    """The plain name of a call: masked_fill for masked_fill_ and getitem for __getitem__."""
    return op.name.strip("_")


def role_of(op: Op, given: list[Reading], phase: int, normed: bool) -> int:
    """The step that a call is for: by what it is, what it gets, and how far forward has come."""
    name, at = kind(op), FAMILIES[phase]
    real = [each for each in given if each.family in FAMILIES[1:]]
    families = [each.family for each in given]
    first = real[0] if real else Reading("none")
    if name == "linear" or "layer" in families and real and name in MEET | {"add", "mul"}:
        layer = next((each.who for each in given if each.family == "layer"), "")
        of_out = layer.startswith("out_proj")
        of_three = layer.startswith(("W_query", "W_key", "W_value"))
        if layer.startswith("W_gate"):
            return 10
        if (of_out or of_three) and (name != "linear" or at != "scores"):
            return 11 if at in ("context", "out") or of_out and first.family != "x" else 2
        if at in ("x", "projected"):
            return 2
        return 11 if at in ("context", "out") or first.family != "x" else 2
    if name in MEET and len(real) == 1 and first.family == "projected" and first.stage == 2:
        return 2  # queries, keys or values, not grouped yet, and nothing they meet in any step
    if name in MEET:
        return 8 if any(e.family == "scores" for e in given) or phase >= 3 else 5
    raw = first.family == "scores" and first.state is not None and not first.state.grown
    if raw and name == "sum" and first.state.hidden == "none":
        return 5  # over heads
    if name in NORM and not (name in ("sum", "max", "min") and phase < 3):
        return 7
    if name == "setitem" and real:
        return _placing_step(real[-1], at)
    if (
        name in MASK
        or given
        and not real
        or "const" in families
        and phase >= 3
        and name not in CUT | TURN
    ):
        return 6
    if name in TURN | CUT:
        return _layout_step(op, name, first, at, phase)
    if normed and first.family == "scores" and name == "mean":
        return 8
    furthest = max(real, key=lambda each: FAMILIES.index(each.family), default=first)
    return _elementwise_step(name, furthest, phase, at)


def _placing_step(what: Reading, at: str) -> int:
    return {"scores": 6 if at == "scores" else 8, "context": 8, "out": 11}.get(what.family, 4)


def _layout_step(op: Op, name: str, first: Reading, at: str, phase: int) -> int:
    if in_meeting(op.place) and (
        first.family in ("scores", "context")
        or first.family == "projected"
        and (first.stage or 0) >= 4
        or name in TURN
        and first.family == "none"
    ):
        return 8 if phase >= 3 else 5
    if at in ("context", "out"):
        if first.family == "out" or at == "out":
            return 11
        if name in TURN:
            return 9
        joined = first.family == "context" and first.axes and first.axes[0] in ("bh", "hb")
        return 9 if joined else 10
    if first.stage == 4 and name in SHUFFLE:
        if "g" in "".join(first.axes):  # key heads on their way to each query head
            return 4
        return 8 if first.who == "values" else 5
    if "w" in "".join(first.axes or ()) and name in APART:
        return max(first.stage or 2, 2)
    if first.family == "x":
        return 2
    into = sum(type(each) is int for each in op.numbers)
    grouped = first.stage in (3, 4) and name in ("view", "reshape", "flatten") and into < 4
    return 4 if name in TURN or grouped else 3


def _elementwise_step(name: str, first: Reading, phase: int, at: str) -> int:
    stage = first.stage or 0
    if first.family == "projected" and phase < 3:
        if name in SCALE | {"pow"} and "values" not in first.who:
            return 7
        return 2 if stage <= 3 else 8 if first.who == "values" else 5
    if first.family == "projected":
        return 8 if at in ("scores", "context") else 5
    if first.family == "context":
        return 8 if stage <= 8 and name not in ("mean", "sum", "amax") else 10
    return {"x": 2, "out": 11}.get(first.family, 7)
