"""Judge a function that an exercise asks for: what it returns, case by case, and why."""

import ast
import copy
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from eleven_steps.checks.asking.cases import BOARD, FIRST, SIZED, Case, close, unseen
from eleven_steps.checks.asking.failures import Failure
from eleven_steps.checks.asking.isolation import attempt
from eleven_steps.checks.asking.questions import (
    ask,
    is_remote,
    kind_of,
    tensors_of,
    used_by,
    weights_of,
)
from eleven_steps.checks.blame import Blame, Search
from eleven_steps.checks.exercises import Slip, Write
from eleven_steps.checks.mistakes import CHANGE_MISTAKES, MISTAKES
from eleven_steps.checks.place import facts, find, placed
from eleven_steps.checks.reference import Parts, Scene, run_reference, with_mistakes
from eleven_steps.checks.replacements import THREE
from eleven_steps.checks.right import right_of
from eleven_steps.checks.sentences import wording
from eleven_steps.checks.verdict import Verdict, described, listed, say, say_mistake, together
from eleven_steps.checks.watch import Watch
from eleven_steps.helpers.trace import STEPS


@dataclass(frozen=True)
class Returned:
    """Hold what a function gave in one case."""

    parts: Parts  # one for each name if there are as many; or what was raised
    changed: tuple[str, ...] = ()  # names of the arguments that it changed in place
    spoilt: str = ""  # a changed argument that matters: x, or one whose shape changed

    @property
    def failure(self) -> Failure | None:
        """Return what was raised."""
        return self.parts[0] if self.parts and isinstance(self.parts[0], Failure) else None


def judge_function(task: Write, answer: Any) -> Verdict:
    """Run a function in every case and compare what it returns."""
    sort, name = kind_of(answer)
    if sort not in ("callable", "class", "module class", "module"):
        return say("no_function", name=name)
    more = unseen(task.cases[1]) if is_remote(answer) else ()
    scenes = [run_reference(case) for case in (*task.cases, *more)]
    *returned, again = _returned(task, answer, [*scenes, scenes[FIRST]])
    if (verdict := _open(task, returned[FIRST].parts)) is not None:
        return verdict
    faults = [fault(task, *pair) for pair in zip(scenes, returned, strict=True)]
    if faults[FIRST] is None and fault(task, scenes[FIRST], again) is not None:
        return say("differs_each_time")
    if all(verdict is None for verdict in faults):
        board = scenes[FIRST].case.example == "whiteboard"
        right = say("right_everywhere" if board else "right_wherever")
        if changed := returned[SIZED].changed:
            right = replace(right, note=say("changes_given", name=changed[0]).wrong)
        ruled_out = _ruled_out(task, answer)
        return right if ruled_out is None else ruled_out
    return _explained(task, answer, scenes, returned, faults)


def _returned(task: Write, answer: Any, scenes: list[Scene]) -> list[Returned]:
    gets = [task.gets(scene) for scene in scenes]
    replies = ask(answer, "call", gets)
    if isinstance(replies, Failure):
        return [Returned((replies,))] * len(scenes)
    return [_one_returned(task, *both) for both in zip(replies, gets, strict=True)]


def _one_returned(task: Write, reply: Any, given: Parts) -> Returned:
    if type(reply) is not tuple or len(reply) != 2:
        return Returned((reply,))
    parts = task.counted(_parts(task, reply[0]))
    before = tensors_of(given)
    after = reply[1] if len(reply[1]) == len(before) else before
    named = zip(task.given, given, strict=False)
    names = [name for name, part in named for _ in (weights_of(part) or [part][: _plain(part)])]
    rows = [*zip(names, before, after, strict=False)]
    changed = tuple(name for name, one, other in rows if _plain(other) and not _same(one, other))
    # What a step has made may be written into, as the lecture's own class does.
    kept = {"x"} | {name for name, part in zip(task.given, given, strict=False) if weights_of(part)}
    turned = (name for name, one, other in rows if name in kept or one.shape != other.shape)
    return Returned(parts, changed, next((name for name in turned if name in changed), ""))


def _same(one: Any, other: Any) -> bool:
    both = isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)
    return both and one.dtype == other.dtype and close(one, other)


def _parts(task: Write, reply: Any) -> Parts:
    """Split a result by name; numpy arrays, lists and float64 count as tensors."""
    several = len(task.names) > 1
    if several and type(reply) in (torch.Tensor, np.ndarray) and len(reply) == len(task.names):
        reply = tuple(reply)
    parts = reply if several and type(reply) in (list, tuple) else (reply,)
    return tuple(map(_as_tensor, parts))


def _as_tensor(part: Any) -> Any:
    if type(part) is np.ndarray or type(part) is list:
        kept = attempt(torch.as_tensor, part)
        part = part if isinstance(kept, Failure) else kept
    double = type(part) is torch.Tensor and part.dtype == torch.float64
    return part.float() if double else part


def _open(task: Write, parts: Parts) -> Verdict | None:
    """Say what is still to be written."""
    left = [name for name, part in zip(task.names, parts, strict=False) if part is ...]
    if not left:
        return None
    return say("open_in_part", names=listed(left)) if len(left) < len(parts) else say("open")


def _ruled_out(task: Write, answer: Any) -> Verdict | None:
    """Say why a function with right results breaks a rule of its exercise."""
    called = used_by(answer)["called"]
    for name, sentence in task.without.items():
        if name in called:
            return say_mistake(sentence)
    given = task.gets(run_reference(task.cases[-1]))
    for index, sentence in task.heeds.items():
        other = *given[:index], given[index] + 1, *given[index + 1 :]
        shapes = [ask(answer, "shapes_made", arguments) for arguments in (given, other)]
        if shapes[0] == shapes[1]:
            return say_mistake(sentence)
    return None


# What is wrong in one case


def fault(task: Write, scene: Scene, returned: Returned) -> Verdict | None:
    """Say what is wrong with what was returned in one case, or None if all parts are right."""
    parts, where = returned.parts, _where(scene.case)
    if failure := returned.failure:
        place = {"line": failure.number or None, "code": failure.line}
        return Verdict("error", gets=f"an error{where}: {failure.text}.", **place)
    if returned.spoilt:
        return say("changes_given", name=returned.spoilt)
    if len(parts) == 1 and parts[0] is None:
        return say("nothing", what="function")
    if len(parts) != len(task.names):
        came = f"{len(parts)} things" if len(parts) > 1 else _one_thing(parts[0])
        wanted = f"{len(task.names)}: {', '.join(task.names)}."
        return Verdict("type", gets=f"{came}.", expected=wanted)
    for name, part, right, letters in zip(
        task.names, parts, task.answer(scene), task.letters, strict=True
    ):
        judge = _whole_fault if isinstance(right, int) else _tensor_fault
        if (verdict := judge(name, part, right, letters, scene.case)) is not None:
            return verdict
    return None


def _where(case: Case) -> str:
    """Name the case for a message; the whiteboard needs no name."""
    return "" if case.label == BOARD else f" {case.where}"


def _plain(part: Any) -> bool:
    return isinstance(part, torch.Tensor)


def _one_thing(part: Any) -> str:
    return f"one tensor, {tuple(part.shape)}" if _plain(part) else described(part)


def _whole_fault(name: str, part: Any, right: int, letters: str, case: Case) -> Verdict | None:
    number = whole_number(part)
    if number is None:
        hint = wording("as_whole_division") if type(part) is float else ""
        came = f"`{name}` = {part}, a float." if type(part) is float else f"{described(part)}."
        return Verdict("type", gets=came, expected=f"`{name}`, a whole number.", hint=hint)
    if number == right:
        return None
    return Verdict("value", gets=f"`{name}` = {number}{_where(case)}.", expected=f"{right}.")


def whole_number(part: Any) -> int | None:
    """Return a part as a whole number; None if it is none."""
    if type(part) is torch.Tensor and part.dim() == 0 and not part.is_meta:
        part = part.item()
    return part if type(part) is int else None


def _tensor_fault(
    name: str, part: Any, right: torch.Tensor, letters: str, case: Case
) -> Verdict | None:
    where = _where(case)
    if type(part) is not torch.Tensor:
        return Verdict("type", gets=f"{described(part)}.", expected=f"`{name}`, {letters}.")
    if part.shape != right.shape:
        wanted = f"{tuple(right.shape)} = {letters}."
        return Verdict("shape", gets=f"`{name}` is {tuple(part.shape)}{where}.", expected=wanted)
    if part.dtype != right.dtype:
        return Verdict("type", gets=f"{part.dtype}.", expected=f"{right.dtype}.")
    if part.is_meta:
        came, wanted = "a sparse tensor, or one on another device.", "a plain one on the CPU."
        return Verdict("type", gets=came, expected=wanted)
    if part.is_floating_point() and part.isnan().any():
        at = part.isnan().nonzero()[0].tolist()
        return Verdict("nan", gets=f"NaN{where}, first in {name}{at}.")
    if close(part, right):
        return None
    off = part != right if right.dtype == torch.bool else ~torch.isclose(part, right, 1e-4, 1e-5)
    at = tuple((off if off.any() else part != right).nonzero()[0].tolist())
    number, wanted = (_written(tensor[at].item()) for tensor in (part, right))
    return Verdict("value", gets=f"{name}{list(at)} = {number}{where}.", expected=f"{wanted}.")


def _written(number: Any) -> str:
    return f"{number:.4f}" if type(number) is float else str(number)


# Why


def _explained(
    task: Write,
    answer: Any,
    scenes: list[Scene],
    returned: list[Returned],
    faults: list[Verdict | None],
) -> Verdict:
    """Say what is wrong: a usual slip, a name of the notebook, or the place."""
    at = _told_in(faults)
    verdict = faults[at]
    found = _place(task, answer, scenes, at if faults[SIZED] is None else SIZED)
    if slip := _slip(task, scenes, returned):
        return _of_slip(task, answer, slip, found)
    if names := used_by(answer)["names"]:
        return say("function_reads", names=listed(names))
    verdict = replace(verdict, hint=verdict.hint or task.look)
    if found is None:
        return verdict
    blame, search = found
    shown = {scene.case: each for scene, each in zip(scenes, faults, strict=True)}
    there = shown.get(search.right.case)  # so that the whole message is about one case
    verdict = verdict if there is None else replace(there, hint=there.hint or task.look)
    whiteboard_only = faults[FIRST] is None and scenes[FIRST].case.example == "whiteboard"
    if whiteboard_only and (size := _typed_in(blame, scenes[FIRST].case)):
        return replace(verdict, line=blame.spot.line, code=blame.spot.typed, wrong=size)
    return _at_place(task, verdict, blame, search)


def _told_in(faults: list[Verdict | None]) -> int:
    """Choose the case for a message: the first wrong one, or one whose sizes differ.

    An error, a shape and a whole number say more where no two sizes agree.
    """
    first = next(index for index, verdict in enumerate(faults) if verdict is not None)
    other = faults[SIZED]
    if other is not None and first < SIZED:
        sizes = other.kind in ("error", "shape") or "= " in other.gets and "[" not in other.gets
        return SIZED if sizes else first
    return first


def _slip(task: Write, scenes: list[Scene], returned: list[Returned]) -> Slip | None:
    """Find the usual wrong answer that gives the same results in every case."""
    for slip in _slips(task):
        sure, pairs = False, zip(returned, scenes, strict=True)
        for mine, scene in pairs:
            theirs = task.slipped(slip, scene)
            both = mine.failure, theirs[0] if theirs and isinstance(theirs[0], Failure) else None
            if any(both):
                if not all(both) or both[0].text != both[1].text:
                    break
                sure |= True
            elif not all_alike(mine.parts, theirs):
                break
            else:
                sure |= not all_alike(theirs, task.answer(scene))
        else:
            if sure:
                return slip
    return None


def all_alike(one: Parts, other: Parts) -> bool:
    """Say whether all parts agree, numbers to rounding."""
    if len(one) != len(other):
        return False
    pairs = zip(one, other, strict=True)
    return all(_same(a, b) if _plain(b) else whole_number(a) == whole_number(b) for a, b in pairs)


def _slips(task: Write) -> Iterator[Slip]:
    """Yield the usual wrong answers, those of the exercise before those of its step."""
    yield from task.slips
    named = {slip.mistake for slip in task.slips}
    change = task.cases[0].change
    every = {} if task.right else CHANGE_MISTAKES if change else MISTAKES
    # What is made of x is given, and right: no mistake of steps 2 and 3 is blamed later.
    steps = {1, task.number, *range(4, 12)}
    for name, mistake in every.items():
        fits = task.number in mistake.steps and mistake.step in steps and mistake.change == change
        if fits and name not in named:
            yield Slip(mistake.sentence, None, name)


def _of_slip(task: Write, answer: Any, slip: Slip, found: tuple[Blame, Search] | None) -> Verdict:
    verdict = say_mistake(slip.sentence, slip.mistake)
    if task.ships and slip == task.slips[0]:
        source = attempt(inspect.getsource, answer)
        unchanged = type(source) is str and task.ships in source
        if unchanged or is_remote(answer):
            return say("not_repaired")
        return replace(verdict, wrong=together(say("not_repaired").text, verdict.wrong))
    return placed(verdict, *found) if found and found[0].need else verdict


def _place(task: Write, answer: Any, scenes: list[Scene], at: int) -> tuple[Blame, Search] | None:
    """Find where a function goes wrong, by repair in two cases of different sizes."""
    if is_remote(answer) or not inspect.isfunction(answer):
        return None
    case = scenes[at].case
    others = (e for e in reversed(task.cases) if e.letters != case.letters)
    found = find(lambda: _search(task, answer, case, next(others, None)))
    # Of speed, of many processes and of trained heads, the eleven steps do not know what is right.
    known = task.identifier.partition(".")[0] in (*STEPS, "since")
    return found if known or found and found[0].need is None else None


def _search(task: Write, answer: Any, case: Case, other: Case | None = None) -> Search:
    scene, watch = run_reference(case), Watch(answer)
    goal = task.answer(scene)
    before = THREE if task.number > 4 else ()
    right = right_of(case, with_mistakes(case.change))

    def run() -> Any:
        return watch.run(_call, task, watch.made, scene)

    def elsewhere() -> Search:
        return _search(task, answer, other)

    names = frozenset(inspect.signature(answer).parameters)
    return Search(watch, right, run, goal, before, elsewhere if other else None, names)


def _call(task: Write, answer: Callable[..., Any], scene: Scene) -> Parts:
    """Call a function with an exercise's arguments."""
    arguments = copy.deepcopy(task.gets(scene))
    with torch.no_grad():
        return task.counted(_parts(task, answer(*arguments)))


def _typed_in(blame: Blame, case: Case) -> str:
    """Say which number of a line is a size on the whiteboard only; "" where none is, or several."""
    tree = attempt(ast.parse, blame.spot.typed)
    nodes = ast.walk(blame.spot.node if isinstance(tree, Failure) else tree)
    typed = {n.value for n in nodes if isinstance(n, ast.Constant) and type(n.value) is int}
    sizes = sorted(typed & {size for size in case.letters.values() if size > 2})
    return wording("whiteboard_only", size=sizes[0]) if sizes else ""


def _at_place(task: Write, verdict: Verdict, blame: Blame, search: Search) -> Verdict:
    """Add the line and what was tried there; without a repair, only a line that raised."""
    if blame.need is None:
        if verdict.line or not search.error:
            return verdict
        return replace(verdict, line=blame.spot.line, code=blame.spot.typed)
    whole = blame.spot.above is None and not blame.operand and not search.error
    if whole:  # for a returned value, its name says more than its text
        known = blame.fact or next(facts(blame, search), "")
        line = {"line": blame.spot.line, "code": blame.spot.typed}
        return replace(verdict, wrong=known and f"{known}.", **line)
    step = replace(blame, step=task.number) if task.right else blame
    return placed(replace(verdict, wrong=""), step, search)
