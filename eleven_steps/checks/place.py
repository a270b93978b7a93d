"""Report where an answer is wrong: the learner's line, what it gives, what is expected.

Every statement about a line was tried: with the expected value in its place everything after it
is right, also in a second case of different sizes. The verdict is known before, and does not
depend on the place.
"""

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import permutations
from typing import Any

import torch
from torch import nn

from eleven_steps.checks.asking.cases import OTHER, Case, build
from eleven_steps.checks.asking.failures import is_theirs
from eleven_steps.checks.asking.isolation import TimeUp, attempt, timed
from eleven_steps.checks.blame import Blame, Search
from eleven_steps.checks.declared import case_of, with_class, written_class
from eleven_steps.checks.right import Known, right_of
from eleven_steps.checks.sentences import wording
from eleven_steps.checks.verdict import Verdict, listed
from eleven_steps.checks.watch import NoSource, Watch
from eleven_steps.helpers.attention import MultiHeadAttention
from eleven_steps.helpers.trace import STEPS

SECONDS = 5.0  # for the whole search
MOST_TOKENS = 128  # longest text to search, because every right value is computed


def search_class(
    cls: type, case: Case, reference: Any = MultiHeadAttention, goal: Any = None
) -> Search:
    """Begin the search for what is wrong with a class in a case.

    Args:
        cls: the class that is wrong there.
        case: where it is wrong.
        reference: the class to be equal to.
        goal: what its forward should return for a case; the output if None.

    Raises:
        NoSource: its source is not available.
    """
    watch = Watch(written_class(cls))
    if not is_theirs(watch.file):
        raise NoSource("the class is one of the course's own")
    right = right_of(case, reference)
    again = with_class(cls, watch.made)
    kept: list[nn.Module] = []

    def run() -> Any:
        if any(spot.function == "__init__" for spot in watch.instead) or not kept:
            module = build(again, case)
            if watch.instead:
                return module(right.x.clone())
            kept.append(module)
        return kept[0](right.x.clone())

    def whole() -> Any:
        with torch.no_grad():
            return watch.run(run)

    def elsewhere() -> Search:
        return search_class(cls, other, reference, goal)

    wanted, other = right.out if goal is None else goal(case), case_of(cls, OTHER)
    return Search(watch, right, whole, wanted, elsewhere=None if case == other else elsewhere)


def find(begin: Callable[[], Search]) -> tuple[Blame, Search] | None:
    """Search within SECONDS; None where no place is found, or there is no source to look at."""

    def searched() -> tuple[Blame | None, Search]:
        search = begin()
        return search.blame(), search

    try:
        with timed(SECONDS):
            came = attempt(searched)
    except TimeUp:
        return None
    return came if type(came) is tuple and came[0] else None


def placed(verdict: Verdict, found: Blame, search: Search) -> Verdict:
    """Add the place to a verdict, and facts about it if the verdict has no sentence yet.

    A hint that the verdict has stays, unless a name or a size to use is known.
    """
    spot = found.spot
    here = replace(verdict, line=spot.line, code=spot.typed)
    if verdict.wrong:
        return here
    rows = rows_of(found, search)
    rows["hint"] = rows["hint"] or verdict.hint or wording(f"hint_{STEPS[found.step - 1]}")
    return replace(here, **{name: text for name, text in rows.items() if text})


# The rows of a message


def rows_of(found: Blame, search: Search) -> dict[str, str]:
    """Return the rows of a message about a place: wrong, gets, expected, hint."""
    part = found.operand or found
    known = [found.fact] if found.fact else [*facts(found, search)]
    rows = {"wrong": f"{known[0]}." if known else "", "gets": _gets(found, part, search)}
    rows["expected"] = _expected(part, search)
    read, need = part.seen.read, part.need
    if found.fact and read and need and read.kind == need.kind and read.steps == need.steps:
        return {"wrong": rows["wrong"], "hint": wording("end_with_return")}
    rows["hint"] = _hint(found, part, search)
    return rows


def _gets(found: Blame, part: Blame, search: Search) -> str:
    letters, text = search.right.case.letters, f"`{_short(part.spot.text)}`"
    value = part.seen.kept
    if part.seen.raised:
        # What torch says with numbers in it is about sizes, and the shapes say more.
        sizes = isinstance(search.error, RuntimeError) and re.search(r"\d", str(search.error))
        takes = ", ".join(_operands(part, search)) if sizes else ""
        return f"an error: {takes or _error(search.error)}."
    if number := _different_number(value, part.need):
        return f"`{_subject(part)}{number[0]}` = {number[1]}."
    if isinstance(value, torch.Tensor):
        shape = _shape(value, letters, part.seen.read)
        dtype = f" {value.dtype}" if part.need and _dtype_differs(value, part.need.value) else ""
        return f"{text} is {shape}{dtype}."
    if search.error and found.need is None:
        return f"an error: {_error(search.error)}."
    came = _value(value, letters)
    return f"{came}." if came.startswith(part.spot.text) else f"{text} is {came}."


def _subject(part: Blame) -> str:
    """Return the text that an index can follow: the value's name, or the value itself."""
    text = part.spot.target if part.spot.target.isidentifier() else _short(part.spot.text)
    return text if re.fullmatch(r"[\w.]+", text) else f"({text})"


def _expected(part: Blame, search: Search) -> str:
    need, letters = part.need, search.right.case.letters
    if need is None:
        return ""
    if number := _different_number(part.seen.kept, need):
        return f"{number[2]}."
    value = need.value
    if isinstance(value, torch.Tensor):
        shape = f"{tuple(value.shape)} = {need.axes}"
        dtype = f" {value.dtype}" if _dtype_differs(part.seen.value, value) else ""
        return f"{need.name}, {shape}{dtype}."
    if type(value) is int and value in letters.values():
        return f"{value} = {_letter(value, letters)}."
    if need.kind == "factor":
        return f"{value:.4g} = {need.name}."
    if isinstance(value, nn.Linear):
        return f"{_value(value, letters)}, {need.name}."
    return f"{need.name}."


def _hint(found: Blame, part: Blame, search: Search) -> str:
    need = part.need
    if need is not None:
        if name := _name_that_holds(need, part, search):
            return wording("use_name", name=name)
        if need.kind == "size" and isinstance(part.seen.value, float):
            return wording("as_whole_division")
        if need.kind == "size" and need.name in search.right.case.letters:
            return wording("use_size", letter=need.name)
    return ""


def _name_that_holds(need: Known, part: Blame, search: Search) -> str:
    """Return the name that holds the needed value at the place; "" if none does."""
    order = list(search.seen)
    before = order[: order.index(part.spot)] if part.spot in order else []
    for spot in reversed(before):
        read = search.seen[spot].read
        same = read and (read.kind, read.steps, read.layout) == (need.kind, need.steps, need.layout)
        inside = spot.function == part.spot.function and spot.target.isidentifier()
        if same and inside and spot.target != part.spot.text:
            return spot.target
    return ""


def _operands(part: Blame, search: Search) -> Iterator[str]:
    for child in part.spot.children:
        seen = search.seen.get(child)
        if seen and isinstance(seen.value, torch.Tensor):
            yield f"`{_short(child.text)}` {tuple(seen.value.shape)}"


def _different_number(value: Any, need: Known | None) -> tuple[str, str, str] | None:
    """Return where two tensors of one shape first differ, and the two numbers there."""
    right = need and need.value
    if not isinstance(value, torch.Tensor) or not isinstance(right, torch.Tensor):
        return None
    plain = value.dim() and value.shape == right.shape and not _dtype_differs(value, right)
    if not plain or value.dtype == torch.bool:
        return None
    off = ~torch.isclose(value.double(), right.double(), 1e-4, 1e-5)
    if not off.any():
        return None
    place = tuple(off.nonzero()[0].tolist())
    numbers = (f"{tensor[place].item():.4f}" for tensor in (value, right))
    return f"[{', '.join(map(str, place))}]", *numbers


def _dtype_differs(value: Any, right: Any) -> bool:
    both = isinstance(value, torch.Tensor) and isinstance(right, torch.Tensor)
    return both and value.dtype != right.dtype


def _shape(value: torch.Tensor, letters: dict[str, int], read: Known | None) -> str:
    shape = tuple(value.shape)
    if not shape:
        return "one number"
    if read and read.head is None:
        return f"{shape} = {read.axes}"
    axes = ", ".join(_letter(size, letters) or str(size) for size in shape)
    return f"{shape} = ({axes})"


def _letter(size: int, letters: dict[str, int]) -> str:
    return next((name for name, value in letters.items() if value == size), "")


def _value(value: Any, letters: dict[str, int]) -> str:
    if isinstance(value, torch.Size):
        return f"{tuple(value)}"
    if type(value) is int:
        letter = _letter(value, letters)
        return f"{value} = {letter}" if letter else f"{value}"
    if isinstance(value, float):
        return f"{value:.4g}{'.0' * value.is_integer()}, a float"
    if value is None:
        return "None"
    if isinstance(value, nn.Linear):
        return f"Linear({value.in_features}, {value.out_features})"
    if isinstance(value, nn.Module):
        return f"a {type(value).__name__} layer"
    if callable(value):
        return "a method, not called"
    return f"a {type(value).__name__}"


def _error(error: BaseException | None) -> str:
    text = " ".join(str(error).split("\n")[0].split())
    short = text if len(text) <= 90 else f"{text[:89]}…"
    return f"{type(error).__name__}: {short}"


def _short(text: str) -> str:
    return text if len(text) <= 50 else f"{text[:49]}…"


# Five facts about a value that is not what is needed, each worked out from the two


def facts(found: Blame, search: Search) -> Iterator[str]:
    """List facts about the value at fault, in sentences."""
    part = found.operand or found
    value, need = part.seen.kept, part.need and part.need.value
    name = f"`{_short(part.spot.text)}`"
    yield from _unused(found, search)
    tensors = isinstance(value, torch.Tensor) and isinstance(need, torch.Tensor)
    if tensors and not value.is_meta:
        yield from _of_tensors(name, value, need)
    if part.need and (part.need.kind == "size" or _shape_differs(value, need)):
        yield from _typed_in(part, search)


def _of_tensors(name: str, value: torch.Tensor, need: torch.Tensor) -> Iterator[str]:
    floats = value.is_floating_point() and need.is_floating_point()
    if _dtype_differs(value, need) and value.shape == need.shape:
        yield wording("fact_dtype", name=name, dtype=value.dtype, right=need.dtype)
        return
    if floats and value.shape == need.shape:
        sure = need.isfinite() & value.isfinite() & (need.abs() > 1e-3)
        ratios = value[sure] / need[sure]
        if len(ratios) > 1 and ratios.std() < 1e-4 < (ratios[0] - 1).abs() and ratios[0].abs() > 0:
            yield wording("fact_factor", name=name, factor=f"{ratios[0]:.4g}")
    if floats and value.dim() == need.dim() > 1 and not _same(value, need):
        for order in permutations(range(need.dim())):
            moved = need.permute(order)
            if moved.shape == value.shape and _same(value, moved):
                swapped = [i for i in range(need.dim()) if order[i] != i]
                kind = "fact_swapped" if len(swapped) == 2 else "fact_order"
                yield wording(kind, name=name, axes=listed([*map(str, swapped)], ""))
                return


def _shape_differs(value: Any, need: Any) -> bool:
    both = isinstance(value, torch.Tensor) and isinstance(need, torch.Tensor)
    return both and value.shape != need.shape


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and torch.allclose(one, other, 1e-4, 1e-5)


def _typed_in(part: Blame, search: Search) -> Iterator[str]:
    tree = attempt(ast.parse, part.spot.text)  # the node itself is wrapped
    nodes = ast.walk(tree) if isinstance(tree, ast.AST) else ()
    constants = [n.value for n in nodes if isinstance(n, ast.Constant)]
    typed = [number for number in constants if type(number) is int and number > 4]  # less are axes
    if typed:
        yield wording("fact_typed_in", number=max(typed))


def _unused(found: Blame, search: Search) -> Iterator[str]:
    """Find a right value that has a name which no later line reads."""
    texts = {spot.text for spot in search.watch.spots if not spot.row}
    need = (found.operand or found).need
    for spot, seen in search.seen.items():
        simple = spot.target.isidentifier() and spot.function == found.spot.function
        before = spot.target not in texts and spot.number < found.spot.number
        if simple and seen.read and before and need and seen.read.kind == need.kind:
            yield wording("fact_unused", name=spot.target, line=spot.line)
