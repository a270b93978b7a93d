"""Judge a class in progress: its forward returns what an earlier step makes."""

from dataclasses import dataclass, replace
from typing import Any

import torch

from eleven_steps.checks.asking.cases import BIASED, MAIN, OTHER, TASK_CASES, Case
from eleven_steps.checks.asking.clauses import Reply
from eleven_steps.checks.asking.isolation import attempt
from eleven_steps.checks.asking.questions import ask, is_remote, kind_of
from eleven_steps.checks.attention import judge_class, of_clause
from eleven_steps.checks.blame import Blame, Search
from eleven_steps.checks.contract import Broken, Clause, asked, equal, expected
from eleven_steps.checks.mistakes import MISTAKES
from eleven_steps.checks.place import find, placed, search_class
from eleven_steps.checks.reference import run_reference
from eleven_steps.checks.replacements import TENSORS
from eleven_steps.checks.right import right_of, same
from eleven_steps.checks.verdict import Verdict, say
from eleven_steps.helpers.attention import MultiHeadAttention
from eleven_steps.helpers.trace import SHAPES, STEPS

RETURNED = "what forward returns so far"
WHITEBOARD = TASK_CASES[0]
LAYERS = ("W_query", "W_key", "W_value", "out_proj")


def judge_growing(cls: Any) -> Verdict:
    """Say how far a class in progress is right, or what is wrong with it first."""
    sort, name = kind_of(cls)
    if sort != "module class":
        return say("built_already") if sort == "module" else say("no_class", name=name)
    if (verdict := _constructor(cls)) is not None:
        return verdict
    replies = {case: _asked(cls, case) for case in (MAIN, OTHER)}
    if all(reply.value is ... for reply in replies.values()):
        return _begun(cls)
    right = [
        number
        for number, step in enumerate(STEPS, 1)
        if number > 1 and all(equal(replies[case].value, goal(step, case)) for case in replies)
    ]
    if right and right[-1] < len(STEPS):
        return so_far(right[-1])
    verdict = _whole_or_fault(cls, replies[MAIN])
    return verdict if verdict.passed else replace(verdict, reached=_reached(cls, verdict))


def _asked(cls: Any, case: Case) -> Reply:
    """Return what forward returns so far; a list of tensors counts as a tuple."""
    reply = asked(cls, Clause(RETURNED, "output", case))
    return replace(reply, value=tuple(reply.value)) if type(reply.value) is list else reply


def _whole_or_fault(cls: Any, reply: Reply) -> Verdict:
    """Judge a class that returns what a finished one does, or what no step makes."""
    if _shapes(reply.value) == _shapes(goal(STEPS[-1], MAIN)):
        return judge_class(cls, MultiHeadAttention)
    if found := _found(cls, reply.value):
        kind = "error" if reply.raised else "value"
        return placed(Verdict(kind, step=found[0].step), *found)
    return of_clause(Broken(Clause(RETURNED, "output", MAIN), reply, None))


def _reached(cls: Any, verdict: Verdict) -> int:
    """Return the last right step of a wrong class, which is its number of points.

    It is the same here and in a sandbox, so it does not depend on a place.
    """
    if verdict.mistake:
        return MISTAKES[verdict.mistake].step - 1
    if verdict.step and not verdict.line:  # the clause names the step
        return verdict.step - 1
    return min(steps_made(cls), len(STEPS) - 1)


def _shapes(value: Any) -> list[Any]:
    return [getattr(e, "shape", None) for e in (value if type(value) is tuple else (value,))]


def _constructor(cls: Any) -> Verdict | None:
    """Say what is wrong in the constructor, or what is still missing."""
    clause = Clause("the layers of the constructor", "parameters", MAIN, step=2, new=True)
    reply, right = asked(cls, clause), expected(MultiHeadAttention, clause).value
    broken = Broken(clause, reply, right)
    if reply.raised:
        found = None if is_remote(cls) else find(lambda: search_class(cls, MAIN))
        verdict = Verdict("error", step=2)
        return placed(replace(verdict, step=found[0].step), *found) if found else of_clause(broken)
    have = reply.value if isinstance(reply.value, dict) else {}
    if any(not equal(have[name], right.get(name)) for name in have):
        return of_clause(
            Broken(clause, replace(reply, value=have), {n: right.get(n) for n in have})
        )
    biased = replace(clause, case=BIASED)
    with_bias, right = asked(cls, biased), expected(MultiHeadAttention, biased).value
    some = with_bias.value if isinstance(with_bias.value, dict) else {}
    lost = [f"{e}.bias" for e in LAYERS if f"{e}.weight" in have and f"{e}.bias" not in some]
    if lost:
        wanted = {name: right[name] for name in (*some, *lost) if name in right}
        return of_clause(Broken(biased, with_bias, wanted))
    lacks = [name for name in LAYERS if f"{name}.weight" not in have]
    if len(lacks) == len(LAYERS):
        return say("open" if _asked(cls, MAIN).value is ... else "no_layers")
    return say("layers_to_come", these=", ".join(lacks)) if lacks else None


def so_far(number: int) -> Verdict:
    """Make the verdict on a class that is right up to a step."""
    following = STEPS[number]
    values = {"next": number + 1, "name": following, "letters": SHAPES[following]}
    verdict = say("right_so_far" if number > 1 else "constructor_right", number=number, **values)
    return replace(verdict, step=number, reached=number)


def goal(step: str, case: Case) -> Any:
    """Name what forward returns once a step is done."""
    tensors = tuple(run_reference(case).steps[step].values())
    return tensors if len(tensors) > 1 else tensors[0]


def _begun(cls: Any) -> Verdict:
    """Judge a class that returns `...` by the tensors that its forward has made."""
    return so_far(steps_made(cls))


def steps_made(cls: Any) -> int:
    """Return the last step up to which a class makes something right at every step."""
    return min(_steps_made(cls, case) for case in (MAIN, OTHER))


def _steps_made(cls: Any, case: Case) -> int:
    made = ask(cls, "tensors_made", case)
    reads = [right_of(case).read(tensor) for tensor in made] if type(made) is list else []
    known = [read.steps for read in reads if read and read.kind in ("x", *TENSORS)]
    done = frozenset({1}).union(*known)
    return max(n for n in done if set(range(1, n + 1)) <= done)


def _found(cls: Any, came: Any) -> tuple[Blame, Search] | None:
    """Find the fault before the step that the returned value is meant for.

    The class does not say which step that is. Of the steps after the last one reached, it is that
    for which the earliest expression has to be repaired.
    """
    first = None if is_remote(cls) else attempt(search_class, cls, MAIN)
    if not isinstance(first, Search):
        return None
    order = [spot.number for spot in first.seen]
    best: tuple[Blame, Search] | None = None
    later = STEPS[max(steps_made(cls), 2) - 1 :]
    alike = [step for step in later if _shapes(came) == _shapes(goal(step, MAIN))]
    for step in alike or later:
        found = find(lambda step=step: search_class(cls, MAIN, goal=lambda case: goal(step, case)))
        if found and found[0].need and not _undoes(*found):
            place = order.index(found[0].spot.number)
            if not best or place < order.index(best[0].spot.number):
                best = found
    return best


def _undoes(found: Blame, search: Search) -> bool:
    """Say whether the expression already takes the needed value, so the step is done."""
    reads = [search.seen[part].read for part in found.spot.children if part in search.seen]
    return any(
        read and read.kind == found.need.kind and read.steps >= found.need.steps for read in reads
    )


# A class step by step on the whiteboard


@dataclass(frozen=True)
class StepRead:
    """Hold one step of a class, right or wrong."""

    name: str
    state: str  # done; next; wrong, the first that is not right; dark, where nothing is known
    tensors: dict[str, torch.Tensor]  # the class's own tensors, also of a wrong step
    right: dict[str, torch.Tensor]  # the right tensors


@dataclass(frozen=True)
class ClassRead:
    """Hold how far a class is right on the whiteboard."""

    cls: Any
    says: str  # message of check
    steps: tuple[StepRead, ...]  # all eleven

    @property
    def whole(self) -> bool:
        """Say whether all eleven steps are right."""
        return all(step.state == "done" for step in self.steps)


def read_steps(cls: Any, verdict: Verdict) -> ClassRead:
    """Read how far a class is right, in its own tensors."""
    found = find(lambda: search_class(cls, WHITEBOARD))
    search = found[1] if found else attempt(search_class, cls, WHITEBOARD)
    order = [*search.seen] if isinstance(search, Search) else []
    kept = [search.seen[spot].kept for spot in order]
    tensors = [e for e in kept if isinstance(e, torch.Tensor) and e.is_floating_point()]
    later = kept[order.index(found[0].spot) :] if found else []
    wrong = None
    if verdict.kind not in ("right", "so far", "unfinished", "failed"):
        wrong = min(verdict.step or verdict.reached + 1, len(STEPS))
    rows = enumerate(run_reference(WHITEBOARD).steps.items(), 1)
    done = max((n for n, (_, right) in rows if n > 1 and _has(tensors, right)), default=1)
    done = len(STEPS) if verdict.passed else min(done, wrong - 1) if wrong else done
    steps = []
    for number, (step, right) in enumerate(run_reference(WHITEBOARD).steps.items(), 1):
        state = "done" if number <= done else "wrong" if number == wrong else "dark"
        if wrong is None and number == done + 1:
            state = "next"
        own = {}
        if state == "done":
            own = {name: _own(tensors, tensor) for name, tensor in right.items()}
        elif state == "wrong":
            own = {name: _near(tensors, later, tensor) for name, tensor in right.items()}
        kept = {name: tensor.float() for name, tensor in own.items() if tensor is not None}
        steps.append(StepRead(step, state, kept, right))
    return ClassRead(cls, verdict.message, tuple(steps))


def _own(tensors: list[torch.Tensor], right: torch.Tensor) -> torch.Tensor | None:
    return next((own for own in tensors if same(right, own)), None)


def _has(tensors: list[torch.Tensor], right: dict[str, torch.Tensor]) -> bool:
    return all(_own(tensors, tensor) is not None for tensor in right.values())


def _near(tensors: list, later: list, right: torch.Tensor) -> torch.Tensor | None:
    """Return a right tensor, or the first tensor of its shape at the fault."""
    own = _own(tensors, right)
    plain = [e for e in later if isinstance(e, torch.Tensor) and e.is_floating_point()]
    at_fault = [e for e in plain[:1] if e.dim() == right.dim()]
    shaped = [e for e in plain if e.shape == right.shape]
    return next(iter(at_fault + shaped), None) if own is None else own
