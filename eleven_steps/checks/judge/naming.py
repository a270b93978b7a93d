"""A tensor in the learner's words, and its axes in the lecture's letters."""

import math

import torch

from eleven_steps.checks.judge.path import Walk, own_text
from eleven_steps.checks.judge.read import LETTERS, Reading
from eleven_steps.checks.judge.roles import kind
from eleven_steps.checks.judge.syntax import around, named, operands
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.run.cases import Case

JOINED = {"hd": "d_out", "gd": "num_kv_heads * head_dim", "whd": "3 * d_out", "wh": "3 * num_heads"}


CALLED = {  # what right numbers are called
    **{"x": "x", "scores": "scores", "masked": "masked scores", "weights": "weights"},
    **{"context": "context", "out": "output", "projected": "queries, keys or values"},
    **{"values": "values"},
}


PLURAL = ("scores", "weights", "queries", "keys", "values", "masked scores")


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
        at = call.given.index(index) if index in call.given else len(texts)
        indexed = kind(call) == "getitem" and at < len(texts)
        if indexed or len(texts) == len(call.given) > at:
            return texts[at]
    return own_text(index, walked)


def quoted(index: int, walked: Walk, op: int | None = None) -> str:
    """The same as code, or else what the tensor holds."""
    name, reading = name_of(index, walked, op), walked.readings[index]
    if not name and reading.family == "layer":
        return wording("made_with", what=reading.who)
    return f"`{name}`" if name else wording("unnamed", what=called(reading))


def operand(index: int, walked: Walk, op: int | None = None) -> str:
    """A tensor by name with its shape in numbers, and in letters where its axes were read."""
    shape = tuple(walked.trace.tensors[index].shape)
    letters = in_letters(walked.readings[index], walked.trace.tensors[index], walked.right.case)
    name = quoted(index, walked, op)
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
