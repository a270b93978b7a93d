"""Lay an answer beside another: whether they agree, and if not, how they are related."""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from eleven_steps.checks.judge.read import HIDDEN
from eleven_steps.checks.judge.say import Finding, say
from eleven_steps.checks.know.right import Parts, Scene
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.run.cases import close
from eleven_steps.checks.run.isolate import CPU_STRIDED, Failure, clock_paused
from eleven_steps.helpers.trace import SHAPES, STEPS

POWERS = {1: "times", -1: "divided", 0.5: "times_root", -0.5: "divided_by_root"}  # as words
APPLIED = ("exp", "log", "square", "sqrt", "abs", "relu", "sigmoid", "tanh", "sin", "atan", "round")
MANY = 100_000  # numbers: an expanded tensor may claim any
LISTED = 12  # places that a sentence lists
GivenTensors = Sequence[tuple[str, torch.Tensor, str]]  # name, tensor, its axes in letters if known


# Whether two agree


def is_tensor(part: Any) -> bool:
    """Whether something is a plain tensor; a class made of it may do anything."""
    plain = type(part) in (torch.Tensor, torch.nn.Parameter)
    return plain and (part.layout, part.device.type) == CPU_STRIDED


def whole_number(part: Any) -> int | None:
    """A whole number of any kind as an int; None for anything else."""
    scalar = type(part) is torch.Tensor and part.dim() == 0 or issubclass(type(part), np.generic)
    part = part.item() if scalar else part
    return part if type(part) is int else None


def same_everywhere(returned: Sequence[Parts], others: Iterable[Parts]) -> bool:
    """Whether what was returned in several cases is what others give there, or the same errors."""
    pairs = [*zip(returned, others, strict=False)]
    same = all(same_parts(*pair) and not blank(pair[0]) for pair in pairs)
    return same and all(_errors(one) == _errors(other) for one, other in pairs)


def _errors(parts: Parts) -> list[str]:
    return [part.text for part in parts if isinstance(part, Failure)]


def blank(parts: Parts) -> bool:
    """Whether some tensor is all NaN: many mistakes end so, and it names none of them."""
    numbers = (part for part in parts if is_tensor(part) and part.numel())
    return any(bool(number.isnan().all()) for number in numbers)


def same_parts(parts: Parts, others: Parts, numbers_alone: bool = False) -> bool:
    """Whether two answers agree, failures with failures.

    NaN agrees with NaN; if numbers_alone, with anything: it may be 0 in another style.
    """
    if failed(parts) or failed(others):
        return failed(parts) and failed(others)
    pairs = zip(parts, others, strict=False)
    return len(parts) == len(others) and all(agree(*pair, numbers_alone) for pair in pairs)


def failed(parts: Parts) -> bool:
    """Whether something was raised."""
    return any(isinstance(part, Failure) for part in parts)


def agree(one: Any, other: Any, numbers_alone: bool = False) -> bool:
    """Whether one part of an answer is what is expected of it."""
    if isinstance(other, int):
        return whole_number(one) == other
    if not is_tensor(one) or one.shape != other.shape or one.dtype != other.dtype:
        return False
    if not other.is_floating_point():
        return torch.equal(one, other)
    if numbers_alone:
        one = one.masked_fill(other.isnan(), torch.nan)
    return close(one.detach(), other)


def reordered(
    names: Sequence[str], returned: Sequence[Parts], rights: Iterable[Parts]
) -> Finding | None:
    """Say that all parts are right in every case, in one other order than asked for."""
    rights = list(rights)
    for order in list(itertools.permutations(range(len(names))))[1:]:
        if same_everywhere(returned, (tuple(right[i] for i in order) for right in rights)):
            return say("parts_in_order", names=", ".join(names))
    return None


# How a wrong tensor is related to the right one, and to what a function was given


@dataclass(frozen=True)
class Pair:
    """A wrong tensor of a step beside the right one."""

    step: str  # its name
    part: torch.Tensor  # the wrong one and the right one
    right: torch.Tensor
    scene: Scene  # of the right class
    given: GivenTensors  # what the function was given, by names
    letters: str = ""  # the axes of the right one
    others: tuple["Pair", ...] = ()  # the same in other cases

    @property
    def shaped(self) -> bool:
        """Whether the two have one shape."""
        return self.part.shape == self.right.shape


def related(pair: Pair, last: bool = False) -> str:
    """Say how a wrong tensor is related, the first of RELATIONS, or nothing.

    At last, where no line tells more, right numbers at other places along any axis are said, and
    right rows times numbers of their own.
    """
    part, right = pair.part, pair.right
    if part.dtype == right.dtype == torch.bool:
        return hides_other(part, right) if pair.shaped else ""
    if part.dtype != right.dtype or not right.is_floating_point() or part.numel() > MANY:
        return ""
    # NaN is as far from one number as from another, and zeros are a part of much.
    if part.isnan().any() or not (pair.shaped or part.any()):
        return ""
    with clock_paused():
        if last:
            return _by_places(pair, last) or _rows_changed(pair) or _turned_and_multiplied(pair)
        return next(filter(None, (relation(pair) for relation in RELATIONS)), "")


def hides_other(part: torch.Tensor, right: torch.Tensor) -> str:
    """How far a mask that is True where something is hidden hides too much, or too little."""
    if torch.equal(part, right):  # of one text, where another is wrong
        return ""
    more, less = int((part & ~right).sum()), int((right & ~part).sum())
    hidden, seen, (rows, keys) = int(right.sum()), int((~right).sum()), right.shape[-2:]
    back = (torch.arange(rows)[:, None] + keys - rows - torch.arange(keys)).expand_as(right)
    off = {*back[part != right].tolist()} if not right[back == 0].any() else {}  # tokens back
    names = {
        "true_where_seen": more == seen and 2 * less > hidden,
        "hides_all": more == seen and not less,
        "hides_none": less == hidden and not more,
        "hides_itself": off == {0},
        "sees_next": off == {-1},
        "hides_other": more and less,
        "hides_more": more,
        "hides_less": less,
    }
    name = next((name for name, holds in names.items() if holds), "hides_less")
    return say(name, more=more, less=less, hidden=hidden, seen=seen).text


def _of_later_step(pair: Pair) -> str:
    later = STEPS[STEPS.index(pair.step) + 1 :]
    tensors = ((step, t) for step in later for t in pair.scene[step].values())
    name = next((step for step, tensor in tensors if agree(pair.part, tensor)), "")
    return say("later_step", number=STEPS.index(name) + 1, name=name).text if name else ""


def _only_reshaped(pair: Pair) -> str:
    flat, right = pair.part.flatten(), pair.right.flatten()
    alike = not pair.shaped and len(flat) == len(right) and close(flat, right)
    return say("right_in_order").text if alike else ""


def _multiplied(pair: Pair) -> str:
    if not (factor := _factor(pair)):
        return ""

    def holds(letter: str, power: float) -> bool:
        every = ((_factor(one), one.scene.case.letters) for one in (pair, *pair.others))
        both = ((mine, sizes[letter] ** power) for mine, sizes in every)
        return all(math.isclose(*two, rel_tol=1e-4) for two in both)

    powers = [
        letters for letters in itertools.product(pair.scene.case.letters, POWERS) if holds(*letters)
    ]
    if len(powers) != 1:
        return say("times_the_right", factor=factor).text
    ((letter, power),) = powers
    return say("times_a_size", how=wording(POWERS[power], letter=letter)).text


def _factor(pair: Pair) -> float:
    """What every number of the right one is multiplied by; 0 where that is not all."""
    part, right = pair.part, pair.right
    shown = pair.shaped and right.isfinite() & part.isfinite()
    if not pair.shaped or not torch.equal(part[~shown], right[~shown]) or not shown.any():
        return 0.0
    mine, wanted = part[shown], right[shown]
    factor = float(mine @ wanted / wanted.square().sum())
    return factor if abs(factor) > 1e-6 and close(mine, factor * wanted, 1e-5) else 0.0


def _divided_otherwise(pair: Pair) -> str:
    """The softmax of the masked scores, divided by another number than it should be."""
    masked, head_dim = pair.scene["mask"]["masked"], pair.scene.case.head_dim
    if pair.step != "softmax" or pair.part.shape != masked.shape:
        return ""
    shown = masked.isfinite() & (pair.part > 0)
    first = (masked - masked[..., :1])[shown], (pair.part / pair.part[..., :1]).log()[shown]
    divisor = float(first[0].square().sum() / (first[0] @ first[1]))
    if not math.isfinite(divisor) or not close(pair.part, (masked / divisor).softmax(-1)):
        return ""
    values = {"divisor": divisor, "head_dim": head_dim, "root": head_dim**0.5}
    return say("as_if_scaled", **values).text


def _applied(pair: Pair) -> str:
    """What is right, with a function of every number, or a softmax, applied to it."""
    every, dims = (pair, *pair.others), range(pair.right.dim())
    ways = [*((name, ()) for name in APPLIED), *(("softmax", (dim,)) for dim in dims)]
    if all(one.shaped and one.right.dim() == len(dims) for one in every):
        for name, dim in ways:
            if all(close(one.part, getattr(one.right, name)(*dim)) for one in every):
                return say("applied", call=f"{name}({', '.join(map(str, dim))})").text
    return ""


def _off_alike(pair: Pair) -> str:
    offs = []
    for one in (pair, *pair.others):
        if not one.shaped or not one.part.dim() or not one.right.isfinite().all():
            return ""
        rows = (one.part - one.right).reshape(-1, one.right.shape[-1])
        if len(rows) < 2 or not close(rows, rows[:1].expand_as(rows)):
            return ""
        offs.append(rows[0])
    same = torch.cat(offs)
    alone = close(same, same[:1].expand_as(same))
    return say("off_by", off=float(same[0])).text if alone else say("rows_off_alike").text


def _turned(pair: Pair) -> str:
    """What is right once its axes are moved, or some of them averaged or added up."""
    part, more = pair.part, pair.part.dim() - pair.right.dim()
    axes = range(part.dim())
    ways = [("permute", order) for order in itertools.permutations(axes)][1:] if not more else []
    dims = itertools.combinations(axes, more) if more > 0 else ()
    ways += [(how, some) for some in dims for how in ("mean", "sum")]
    made = ((how, dims) for how, dims in ways if agree(getattr(part, how)(dims), pair.right))
    how, dims = next(made, ("", ()))
    name = "right_once_reduced" if more else "axes_in_order"
    return say(name, how=how, order=dims, dim=dims if more > 1 else dims[0]).text if how else ""


def _one_axis_less(pair: Pair) -> str:
    """One slice of what is right, or of what was given, or the right one summed along an axis."""
    for name, tensor, letters in (("", pair.right, pair.letters), *pair.given):
        axes = letters.strip("(),").split(", ")
        if tensor.dim() != pair.part.dim() + 1 or len(axes) != tensor.dim():
            continue
        for dim, axis in enumerate(axes):
            slices = (i for i, part in enumerate(tensor.unbind(dim)) if close(pair.part, part))
            if (at := next(slices, None)) is not None:
                index = f"[{':, ' * dim}{at}]"
                found = say("slice_of_right", index=index, axis=axis)
                return (say("it_is", code=name + index) if name else found).text
            for how in ("sum", "mean", "amax") if name else ("sum", "mean"):
                if close(pair.part, getattr(tensor, how)(dim)):
                    found = name or say("over_an_axis", how=wording(how), axis=axis).text
                    return say("it_is", code=f"{name}.{how}({dim})").text if name else found
    return ""


def _by_places(pair: Pair, last: bool = False) -> str:
    """Right numbers at other places along an axis, or in some texts or heads; at last, on any."""
    axes = pair.letters.strip("(),").split(", ")
    if not pair.part.dim() == len(axes) == pair.right.dim():
        return ""
    for dim, letter in enumerate(axes):
        axis = letter if axes.count(letter) == 1 else wording("axis_number", dim=dim)
        mine, right = pair.part.unbind(dim), pair.right.unbind(dim)
        if max(len(mine), len(right)) > LISTED:
            continue
        there = [[i for i, other in enumerate(right) if close(one, other)] for one in mine]
        alike = [str(i) for i, places in enumerate(there) if pair.shaped and i in places]
        found = [str(*places) if places else "none" for places in there if len(places) < 2]
        each = len(found) == len(mine) and len({*found} - {"none"}) > (len(mine) > 1)
        if each and len(mine) > 1 and ("none" not in found or last and not alike):
            return say("placed_otherwise", axis=axis, places=", ".join(found)).text
        if not pair.shaped and each and len(mine) == 1:
            return say("right_in_part", axis=axis, places=found[0]).text
        other = [e for e in pair.others if e.shaped and 1 < e.right.shape[dim] <= LISTED]
        slices = ([e.part.unbind(dim), e.right.unbind(dim)] for e in other)
        in_all = alike and all(any(map(close, *both)) for both in slices)  # not by chance in one
        if in_all and (last or letter in ("b", "num_heads")):
            return say("right_in_part", axis=axis, places=", ".join(alike)).text
    return ""


def _left_at_zero(pair: Pair) -> str:
    if not pair.shaped or pair.part.dtype == torch.bool:
        return ""
    empty = (pair.part == 0) & (pair.right != 0)
    over = (pair.right[empty] > 0).any()  # which no relu takes away
    if not over or empty.all() or not close(pair.part[~empty], pair.right[~empty]):
        return ""
    return say("left_at_zero", count=int(empty.sum()), all=empty.numel()).text


def _hidden_finite(pair: Pair) -> str:
    hidden = pair.right == -torch.inf
    if pair.step != "mask" or not pair.shaped or not hidden.any():
        return ""
    low, same = pair.part[hidden], close(pair.part[~hidden], pair.right[~hidden])
    if not same or not low.isfinite().all() or low.max() - low.min() > 1e-2 * abs(low.min()):
        return ""
    infinite = wording("hide_with_infinity")
    return say("hides_finite", number=float(low[0]), infinite=infinite).text


def _turned_and_multiplied(pair: Pair) -> str:
    """What is right once its axes are moved, and every number multiplied."""
    every = (pair, *pair.others)
    if {pair.right.dim()} == {one.part.dim() for one in every}:
        for order in itertools.permutations(range(pair.right.dim())):
            mine, *others = (replace(one, part=one.part.permute(order)) for one in every)
            if times := _multiplied(replace(mine, others=tuple(others))):
                return say("axes_moved", order=order, times=times).text
    return ""


def _rows_changed(pair: Pair) -> str:
    """The right rows, each times a number of its own, or with one added."""
    mine, right = pair.part, pair.right
    if not pair.shaped or right.dim() < 2 or right.shape[-1] < 3 or not right.isfinite().all():
        return ""
    factors = (mine * right).sum(-1, keepdim=True) / right.square().sum(-1, keepdim=True)
    alike = factors.isfinite().all() and factors.all() and close(mine, factors * right, 1e-5)
    off = mine - right
    added = close(off, off[..., :1].expand_as(off))
    return say("rows_multiplied" if alike else "rows_shifted").text if alike or added else ""


def _rows_summed(pair: Pair) -> str:
    mine, right = (numbers.sum(-1).flatten() for numbers in (pair.part, pair.right))
    ones, due = (close(sums, torch.ones_like(sums)) for sums in (mine, right))
    off = max(mine.tolist(), key=lambda one: abs(one - 1), default=1)
    name = "rows_sum_to_1" if ones else "rows_sum_otherwise"
    return say(name, sum=off).text if pair.shaped and ones != due else ""


# In this order: whole tensors before parts, what is there as it is before what is made of it.
RELATIONS: tuple[Callable[[Pair], str], ...] = (
    *(
        _of_later_step,
        _only_reshaped,
        _multiplied,
        _applied,
        _divided_otherwise,
        _off_alike,
        _turned,
    ),
    *(_one_axis_less, _hidden_finite, _by_places, _left_at_zero, _rows_summed),
)


def given_of(arguments: Sequence[object], scene: Scene) -> GivenTensors:
    """The tensors of steps among a function's arguments, by their names."""
    steps = [(n, t, SHAPES[step]) for step in STEPS for n, t in scene.steps[step].items()]
    found = ([pair for pair in steps if pair[1] is argument][:1] for argument in arguments)
    return [*itertools.chain.from_iterable(found)]


def nan_cause(part: torch.Tensor, scene: Scene) -> str:
    """Say what made NaN, by where it stands beside the hidden scores, if that tells."""
    masked = scene["mask"]["masked"]
    if masked.shape != part.shape:
        return ""
    hidden, nan = masked == -torch.inf, part.isnan()
    if torch.equal(nan, hidden):
        for dim in (0, 1):
            sums = part.nan_to_num().sum(dim)
            if close(sums, (~hidden).any(dim).float()):
                return wording("nan_of_other_axis", dim=dim)
        return wording("nan_where_hidden")
    rows = hidden.any(-1, keepdim=True).expand_as(nan)
    return wording("nan_in_hidden_rows") if torch.equal(nan, rows) else ""


def hidden_by(scores: Iterable[torch.Tensor]) -> str:
    """Say which finite number hides the future of some scores, if one does."""
    for table in (t for t in scores if t.dim() > 1 and t.shape[-2] == t.shape[-1] > 1):
        future = table[..., torch.ones(table.shape[-2:]).triu(1).bool()]
        number = float(future.flatten()[0])
        if (future == number).all() and -torch.inf < number < HIDDEN:
            return say("hides_finite", number=number, infinite=wording("hide_with_infinity")).text
    return ""
