"""Every number of the steps by itself: where it stands, where it goes, and how it is made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from eleven_steps.pictures.map import draw_map
from eleven_steps.pictures.panels import SPACE, axes, in_words, panel, row
from eleven_steps.pictures.reach import MATRICES
from eleven_steps.pictures.storage import indices, place
from eleven_steps.pictures.svg import FAINT, STEP, TINT, Picture, below, number, picture
from eleven_steps.pictures.tensors import COMPARED, COUNTS, TracedStep, shades

Linear = tuple[str, torch.Tensor, torch.Tensor | None]

# The steps that only move numbers, as the move itself.
MOVES = {
    "view": lambda moved, shape: moved.reshape(shape),
    "transpose": lambda moved, shape: moved.transpose(1, 2),
    "reformat": lambda moved, shape: moved.transpose(1, 2),
    "combine": lambda moved, shape: moved.reshape(shape),
}


@dataclass(frozen=True)
class Told:
    """Hold what is said of one number: what and where it is, and the arithmetic that makes it."""

    words: str
    made: str


def draw_numbers(trace: Sequence[TracedStep], steps: Sequence[str] = ()) -> Picture:
    """Draw steps in panels, every number where a script can find it.

    Args:
        trace: the eleven steps of a trace, of one sequence, with W as for reach_all.
        steps: names of the steps to draw; the whole map where it is empty.

    Raises:
        ValueError: there is no such step, or more than one sequence.
    """
    by_name = {step.name: step for step in trace}
    if unknown := [step for step in steps if step not in by_name]:
        raise ValueError(f"no step is called {unknown[0]!r}: expected {', '.join(by_name)}")
    b, _, num_heads, _ = by_name["view"].tensors["queries"].shape
    if b != 1:
        raise ValueError(f"b is {b}: one sequence is expected, so that each number is drawn")
    if not steps:
        return draw_map(trace, touched=True)
    panels = [panel(by_name[each], num_heads, touched=True) for each in steps]
    rows = [row(panels[i : i + 3]) for i in range(0, len(panels), 3)]
    first, last = by_name[steps[0]], by_name[steps[-1]]
    return picture(
        below(rows, gap=SPACE),
        f"From {first.name} to {last.name}: every number has its place",
        in_words(by_name[each] for each in steps),
    )


def written(trace: Sequence[TracedStep]) -> list[tuple[str, str]]:
    """Return for every number of a trace, in order, its text and its cell's opacity as drawn."""
    cells = []
    for step in trace:
        for name, tensor in step.tensors.items():
            shaded = shades(tensor).flatten().tolist() if name in COMPARED else None
            for i, value in enumerate(tensor.flatten().tolist()):
                opacity = FAINT + STEP * round(shaded[i] * 10) if shaded else TINT
                opacity = FAINT if value == -torch.inf else opacity
                cells.append((number(value), f"{opacity:g}"))
    return cells


def tell(trace: Sequence[TracedStep], linears: Mapping[str, Linear]) -> list[Told]:
    """Say of every number of a trace, in order, what and where it is and how it is made.

    Args:
        trace: the eleven steps of a trace, with W as for reach_all.
        linears: for "queries", "keys", "values" and "out" the name of what makes it, its matrix
            (features in, features out) and its bias or None.
    """
    tensors = {(step.name, name): each for step in trace for name, each in step.tensors.items()}
    told = []
    before, after = ways(trace)
    for step in trace:
        for name, tensor in step.tensors.items():
            for index in indices(tensor):
                here = step.name, name, index
                what = f"{name}{list(index)} = {number(tensor[index].item())}"
                where = f"step {step.number}, place {place(tensor, index)} in storage"
                words = [f"{what} at {where}: {counted(step, index)}."]
                words += [before[here]] if here in before else []
                words += [after[here]] if here in after else []
                how, made = arithmetic(*here, tensors, linears)
                told.append(Told(" ".join([*words, how]).strip(), made))
    return told


Places = dict[tuple[str, str, tuple[int, ...]], str]


def ways(trace: Sequence[TracedStep]) -> tuple[Places, Places]:
    """Say of numbers that are only moved where they were before a step, and where they go next."""
    before, after = {}, {}
    for earlier, step in zip(trace, trace[1:], strict=False):
        for name, now in step.tensors.items() if step.name in MOVES else ():
            was = earlier.tensors[name]
            flat = moved(step.name, was, now).flatten().tolist()
            for index, old in zip(indices(now), (unravel(i, was.shape) for i in flat), strict=True):
                old_place = f"{name}{list(old)} at {earlier.name}, place {place(was, old)}"
                before[step.name, name, index] = f"Before, {old_place}."
                after[earlier.name, name, old] = f"Next, {name}{list(index)} at {step.name}."
    return before, after


def moved(step: str, earlier: torch.Tensor, now: torch.Tensor) -> torch.Tensor:
    """Return for every number of a tensor which number of the step before it was, counted flat."""
    flat = torch.arange(earlier.numel()).view(earlier.shape)
    return MOVES[step](flat, now.shape)


def unravel(flat: int, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the index at which the number counted flat stands in a shape."""
    index = []
    for size in reversed(shape):
        flat, each = divmod(flat, size)
        index.append(each)
    return tuple(reversed(index))


def counted(step: TracedStep, index: Sequence[int]) -> str:
    """Say in words where an index points: "token 2, head 1, feature 0"."""
    if step.name in ("W", "weight"):
        source, made = ("x", "") if step.name == "W" else ("context", " of out")
        return f"from feature {index[0]} of {source} to feature {index[1]}{made}"
    nouns = [COUNTS[axis] for axis in axes(step)[1:]]
    if nouns[-2:] == ["token", "token"]:
        nouns[-2:] = ["query", "key"]
    return ", ".join(f"{noun} {i}" for noun, i in zip(nouns, index[1:], strict=True))


def arithmetic(
    step: str,
    name: str,
    index: tuple[int, ...],
    tensors: Mapping[tuple[str, str], torch.Tensor],
    linears: Mapping[str, Linear],
) -> tuple[str, str]:
    """Say how one number is made, in words and as a line of arithmetic; both empty if moved."""
    *outer, i, j = index
    at = tuple(outer)
    value = number(tensors[step, name][index].item())
    if step in ("project", "out_proj"):
        source = "x" if step == "project" else "context"
        left = tensors["shape", "x"] if step == "project" else tensors["combine", "context"]
        called, matrix, bias = linears[name]
        more = "" if bias is None else ", plus the bias"
        line = products(left[(*at, i)], matrix[:, j])
        line += "" if bias is None else f" + {number(bias[j].item())}"
        how = f"{len(matrix)} products of {source}'s row {i} and column {j} of {called}{more}."
        return how, f"{line} = {value}"
    if step == "scores":
        queries, keys = (tensors["transpose", each] for each in ("queries", "keys"))
        how = f"{queries.shape[-1]} products of query {i} and key {j} of head {at[-1]}."
        return how, f"{products(queries[(*at, i)], keys[(*at, j)])} = {value}"
    if step == "mask":
        if j > i:
            return f"Key {j} is in the future of query {i}.", "its score is replaced by -\u221e"
        return f"Key {j} is not in the future of query {i}.", f"its score stays {value}"
    if step == "softmax":
        return share(tensors, index)
    if step == "context":
        weights, values = tensors["softmax", "weights"], tensors["transpose", "values"]
        how = f"{i + 1} weight{'s' * (i > 0)} of query {i} and column {j} of the head's values."
        return how, f"{products(weights[(*at, i)][: i + 1], values[at][: i + 1, j])} = {value}"
    return "", ""


def share(
    tensors: Mapping[tuple[str, str], torch.Tensor], index: tuple[int, ...]
) -> tuple[str, str]:
    """Say how one weight is made of its row of masked scores."""
    *_, i, j = index
    row, head_dim = tensors["mask", "masked"][index[:-1]], tensors["view", "queries"].shape[-1]
    value = number(tensors["softmax", "weights"][index].item())
    if j > i:
        return f"Key {j} is in the future of query {i}.", f"exp(-\u221e) = 0, so it is {value}"
    scaled = [number(one) for one in (row / head_dim**0.5)[: i + 1].tolist()]
    every = " + ".join(f"exp({one})" for one in scaled)
    how = f"Its share of row {i}, the masked scores divided by {head_dim}**0.5."
    return how, f"exp({scaled[j]}) / ({every}) = {value}"


def pairs(trace: Sequence[TracedStep]) -> dict[int, list[tuple[int, int]]]:
    """Say of each dot product which two numbers meet, one pair after the other.

    Numbers are counted through all tensors of a trace, in order. Steps 2 and 11 are told of where
    their matrices stand in the trace; a bias meets nothing.
    """
    starts, count = {}, 0
    for step in trace:
        for name, tensor in step.tensors.items():
            numbered = torch.arange(count, count + tensor.numel()).view(tensor.shape)
            starts[step.name, name] = numbered
            count += tensor.numel()
    found = {}

    def meet(made: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> None:
        for index in indices(made):
            *outer, i, j = index
            row, column = left[(*outer, i)].tolist(), right[(*outer, slice(None), j)].tolist()
            found[int(made[index])] = list(zip(row, column, strict=True))

    for name, key in MATRICES.items():
        step, source = ("out_proj", "combine.context") if name == "out" else ("project", "shape.x")
        rows, matrix = (starts.get(tuple(each.split(".", 1))) for each in (source, key))
        if matrix is not None:
            meet(starts[step, name], rows, matrix[None])
    queries, keys = (starts["transpose", each] for each in ("queries", "keys"))
    meet(starts["scores", "scores"], queries, keys.transpose(2, 3))
    meet(starts["context", "context"], starts["softmax", "weights"], starts["transpose", "values"])
    for index in indices(starts["context", "context"]):  # later values have no weight
        at = int(starts["context", "context"][index])
        found[at] = found[at][: index[2] + 1]
    return found


def products(left: torch.Tensor, right: torch.Tensor) -> str:
    """Write a dot product out: "0.43 x 0.12 + 0.15 x -0.30"."""
    pairs = zip(left.tolist(), right.tolist(), strict=True)
    return " + ".join(f"{number(one)} x {number(other)}" for one, other in pairs)
