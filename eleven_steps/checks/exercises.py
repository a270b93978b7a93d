"""Read the exercises, by name, and define their kinds.

A kind is a function to write or repair, a number to explain, a class that grows, a line to choose,
lines to put in order, or a test to write. TASKS are those of the steps, speed, trained heads,
changes since, many machines: those of functions.toml, and those of QUESTIONS, of questions.toml,
that belong to one of these; QUIZZES are those that belong to no step. Both are in the order of the
course. What is right, and what a mistake of the catalogue gives instead, is read off recorded
forward passes; nothing is computed twice.
"""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from string import Template
from types import SimpleNamespace
from typing import Any

import torch

from eleven_steps.beyond.variants import alibi_slopes, distances, rotate
from eleven_steps.checks.asking.cases import TASK_CASES, Case, seeded
from eleven_steps.checks.asking.isolation import attempt, clock_paused
from eleven_steps.checks.changes import PARTS, is_padding, sizes_of
from eleven_steps.checks.mistakes import edited_source, mistake_named
from eleven_steps.checks.reference import Parts, Scene, run_reference
from eleven_steps.checks.sentences import read_toml
from eleven_steps.helpers.attention import future_mask
from eleven_steps.helpers.trace import SHAPES, STEPS

Saying = str | tuple[str, str]  # message about a wrong answer; a pair adds the catalogued mistake
Numbers = float | tuple[float, ...] | tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Slip:
    """Hold a usual wrong answer: its message, what a function then returns, its name.

    Without a function of its own, the catalogued mistake is planted and played.
    """

    sentence: str
    returns: Callable[[Scene], Any] | None = None
    mistake: str | None = None


def as_parts(returned: Any) -> Parts:
    """Return a function's result as a tuple, also if it is a single thing."""
    return returned if type(returned) is tuple else (returned,)


@dataclass(frozen=True)
class Write:
    """Ask for a function: to write, or, where a slip is planted, to repair."""

    identifier: str  # "scores.1" for the first exercise of step 5
    gets: Callable[[Scene], Parts]  # the function's arguments, which are copied for each call
    names: tuple[str, ...]  # names of the results, as in the trace
    slips: tuple[Slip, ...]  # the usual wrong answers
    ships: str = ""  # the line to be repaired, which makes the first slip
    right: Callable[[Scene], Any] | None = None  # if the trace does not have it
    step: str = ""  # the name of the step that it belongs to
    shape: str | tuple[str, ...] = ""  # in letters, or one for each name; if empty, the step's
    cases: tuple[Case, ...] = TASK_CASES  # all sizes of the third case differ
    counts: Callable[[torch.Tensor], torch.Tensor] | None = None  # the part to compare, if not all
    without: dict[str, str] = field(default_factory=dict)  # message by forbidden name
    given: tuple[str, ...] = ()  # names of its arguments
    heeds: dict[int, str] = field(default_factory=dict)  # message by an argument that must be used
    look: str = ""  # general hint, used if no slip fits

    @property
    def number(self) -> int:
        """Return the step that it belongs to, 1 to 11."""
        return STEPS.index(self.step) + 1

    @property
    def letters(self) -> tuple[str, ...]:
        """Return the shape of each tensor that the function returns, in letters."""
        if type(self.shape) is tuple:
            return self.shape
        return (self.shape or SHAPES[self.step],) * len(self.names)

    def answer(self, scene: Scene) -> Parts:
        """Return the right answer for the right class's scene, or a wrong class's answer."""
        if self.right:
            return self.counted(as_parts(self.right(scene)))
        return self.counted(tuple(scene[self.step][name] for name in self.names))

    def counted(self, parts: Parts) -> Parts:
        """Return the part of each tensor that counts; leave alone what is no matrix."""
        tables = (type(part) is torch.Tensor and part.dim() > 1 for part in parts)
        if not self.counts:
            return parts
        return tuple(self.counts(p) if t else p for p, t in zip(parts, tables, strict=True))

    def slipped(self, slip: Slip, scene: Scene) -> Parts:
        """Return what a function with this slip returns or raises; scene is the right class's."""
        if slip.returns:
            with clock_paused():
                returned = attempt(slip.returns, scene)
            return self.counted(as_parts(returned))
        wrong = run_reference(scene.case, slip.mistake)
        return self.answer(wrong) if self.step in wrong.steps else wrong.at(self.step)


@dataclass(frozen=True)
class Explain:
    """Ask for a number, a row of numbers or a matrix, to be found by thinking."""

    identifier: str
    answer: Numbers
    slips: dict[Numbers, Saying]
    also: tuple[Numbers, ...] = ()  # further right answers, such as rounded numbers
    apart: float = 1e-4  # tolerance of a right answer
    whole: bool = False  # compare whole answers, or each number by itself
    of: dict[str, float] = field(default_factory=dict)  # sizes of the exercise, by letter
    look: str = ""  # general hint, used if no slip fits


@dataclass(frozen=True)
class Grow:
    """Ask for a whole class, which may be filled in as far as any step."""

    identifier: str


@dataclass(frozen=True)
class Choose:
    """Ask for one of a few lines, by its letter."""

    identifier: str
    answer: str
    slips: dict[str, Saying]  # message by wrong letter


@dataclass(frozen=True)
class Line:
    """Hold one line that may be chosen."""

    code: str
    step: int  # the step that the line does, 1 to 11
    mistake: str = ""  # name in the catalogue, if the line is wrong


@dataclass(frozen=True)
class Order:
    """Ask for eleven of these lines in an order in which they run and are right."""

    identifier: str
    lines: dict[str, Line]


@dataclass(frozen=True)
class Catch:
    """Ask for a function test(cls) that catches wrong classes and lets right ones pass."""

    identifier: str


Task = Write | Explain | Grow
Quiz = Choose | Order | Catch


# With a number, a row, a matrix, a letter or an order of lines


def question(
    identifier: str, slips: list[list] = (), lines: dict[str, list] | None = None, **rest: Any
) -> Explain | Choose | Order:
    """Make an exercise from its table in a TOML file."""
    if lines:
        return Order(identifier, {letter: Line(*line) for letter, line in lines.items()})
    told = {}
    for first, *rest_of in slips:  # further wrong answers, then the message about all of them
        said = tuple(text for text in rest_of if type(text) is str)
        for wrong in (first, *rest_of[: -len(said)]):
            told[tuples(wrong)] = said[0] if len(said) == 1 else said
    kind = Choose if type(rest["answer"]) is str else Explain
    return kind(identifier, slips=told, **{name: tuples(value) for name, value in rest.items()})


def tuples(value: Any) -> Any:
    """Return lists in lists as tuples in tuples."""
    return tuple(map(tuples, value)) if type(value) is list else value


QUESTIONS = {name: question(name, **entry) for name, entry in read_toml("questions.toml").items()}

# The classes that a learner's test is tried on: ten wrong ones, and three right ones.
_CLASSES = read_toml("classes.toml")
WRONG = tuple(_CLASSES["wrong"].split())
RIGHT_CLASSES = {
    name: Template(source).substitute(built=_CLASSES["built"])
    for name, source in _CLASSES["right"].items()
}


def source_of(name: str) -> list[str]:
    """Return the lines of a class, by a key of RIGHT_CLASSES or an identifier of a mistake."""
    source = RIGHT_CLASSES[name] if name in RIGHT_CLASSES else edited_source(name)
    return (source or edited_source()).strip().splitlines()


# With a function

# Where an answer is tried; in the third all sizes differ, in the last heads go in threes.
_NEAR = Case(2, 6, 3, 16, 4, 8, seed=7, label="at 6 tokens and 4 heads of 4 features")
_ODD = Case(5, 7, 10, 48, 6, 9, qkv_bias=True, seed=7)
_SINCE = (
    _NEAR,
    replace(_NEAR, b=1, seed=8, label="with one sequence, at 6 tokens and 4 heads of 4 features"),
    _ODD,
    Case(3, 11, 40, 36, 9, 19, qkv_bias=True, seed=7),
)
_SHARED = Case(2, 8, 10, 12, 4, 8, seed=7, label="with 4 heads of 3 features on 2 processes")
_MANY = (
    _SHARED,
    replace(_SHARED, seed=8, label="with other numbers of the same sizes"),
    Case(5, 7, 10, 48, 6, 9, seed=7, label="with 6 heads of 8 features on 3 processes"),
    Case(1, 6, 18, 16, 8, 7, seed=7, label="with 8 heads of 2 features on 4 processes"),
    Case(3, 5, 9, 14, 2, 7, seed=7, label="with 2 heads of 7 features on 1 process"),
)
_LARGE = replace(_SHARED, seed=9, scale=6.0, label="where some scores are above 88")
_CASES = {
    "lecture": TASK_CASES,
    "mask": (*TASK_CASES, Case(2, 4, 5, 12, 3, 6, scale=0.0, label="where every score is 0")),
    "many": _MANY,
    "many and large": (*_MANY, _LARGE),
    "blocks": (
        replace(_NEAR, example="drawn", label="at 6 tokens, in blocks of 2"),
        replace(_NEAR, b=1, seed=8, label="with one sequence, at 6 tokens, in blocks of 2"),
        replace(_ODD, seed=0, example="drawn", label="at 7 tokens, in blocks of 2"),
        Case(3, 11, 14, 12, 2, 12, label="at 11 tokens, in blocks of 3"),
        Case(2, 7, 3, 16, 4, 8, scale=6.0, seed=20, label="where scores go beyond -104 and 88"),
    ),
    "window": (_NEAR, Case(1, 6, 3, 16, 4, 6, label="with a window of 1"), *_SINCE[2:]),
    "topk": (
        _NEAR,
        Case(1, 2, 3, 16, 4, 8, seed=8, label="in a text of 2 tokens, with top_keys = 3"),
        *_SINCE[2:],
    ),
    "cache": (
        Case(1, 2, 3, 16, 4, 6, label="with past = 4 and num_tokens = 2"),
        Case(1, 6, 3, 16, 4, 6, label="with past = 0 and num_tokens = 6"),
        Case(1, 7, 19, 24, 4, 12, label="with past = 5 and num_tokens = 7"),
        Case(1, 1, 3, 16, 4, 6, label="with past = 5 and num_tokens = 1"),
    ),
}
_CASES |= {
    change: tuple(replace(case, change=change) for case in _CASES.get(change, _SINCE))
    for change in PARTS
}


# A softmax in blocks, as in the exercise of notebook 17; slips replace one part of it.
_ROUND: dict[str, Callable[..., Any]] = {
    "top": lambda largest, block: torch.maximum(largest, block.amax(-1, keepdim=True)),
    "powers": lambda block, largest: (block - largest).exp(),
    "total": lambda kept, shrink, new: kept * shrink + new,
    "context": lambda kept, shrink, new: kept * shrink + new,
    "each": lambda context, total: context,  # applied after each block
    "over": lambda context, total, new: context / total,  # at the end; new is the last total
}


def blockwise(
    scaled: torch.Tensor, values: torch.Tensor, size: int, **slips: Callable[..., Any]
) -> torch.Tensor:
    """Return the context of scaled scores that are read a block of keys at a time.

    Args:
        scaled: (b, num_heads, num_tokens, num_tokens), the future at -inf.
        values: (b, num_heads, num_tokens, head_dim).
        size: keys of a block; the last may be shorter.
        slips: functions that replace one of _ROUND, by its name.
    """
    do = SimpleNamespace(**_ROUND | slips)
    largest, total, context = torch.full_like(scaled[..., :1], -torch.inf), 0.0, 0.0
    for block, v in zip(scaled.split(size, -1), values.split(size, -2), strict=True):
        before, largest = largest, do.top(largest, block)
        shrink, parts = torch.exp(before - largest), do.powers(block, largest)
        new = parts.sum(-1, keepdim=True)
        total = do.total(total, shrink, new)
        context = do.each(do.context(context, shrink, parts @ v), total)
    return do.over(context, total, new)


_KNOWN = {"torch": torch, "alibi_slopes": alibi_slopes, "distances": distances, "rotate": rotate}
_KNOWN |= {"future_mask": future_mask, "is_padding": is_padding, "sizes": sizes_of}
_KNOWN |= {"seeded": seeded, "blockwise": blockwise}


_code_of = functools.cache(lambda line: compile(line, "functions.toml", "eval"))


class Code:
    """Evaluate a line of functions.toml in a scene."""

    def __init__(self, line: str, let: dict[str, str]) -> None:
        self.line, self.let = line, let

    def __call__(self, scene: Scene) -> Any:
        """Evaluate the line on a recorded pass."""
        seen = _KNOWN | scene.case.letters | {"case": scene.case, "mha": scene.module}
        seen |= {step: SimpleNamespace(**tensors) for step, tensors in scene.steps.items()}
        seen["x"] = scene["shape"]["x"]
        with torch.no_grad():
            for name, line in self.let.items():
                seen[name] = eval(_code_of(line), seen)
            return eval(_code_of(self.line), seen)


def _slips_of(entries: list, let: dict[str, str], said: dict[str, str]) -> Iterator[Slip]:
    for entry in entries:
        *lines, name = [entry] if type(entry) is str else entry
        sentence = said.get(name.removeprefix("$"), name)
        known = " " not in name and not name.startswith("$")
        told = lines.pop() if lines and lines[-1].endswith(".") else ""
        slip = Slip(told or mistake_named(name).sentence, None, name) if known else Slip(sentence)
        yield from (replace(slip, returns=Code(line, let)) for line in lines)
        if not lines:
            yield slip


def _write(identifier: str, own: dict[str, Any], group: dict, said: dict[str, str]) -> Write:
    """Make an exercise from its table in functions.toml and the tables above it."""
    entry = {**group, **own, "let": group.get("let", {}) | own.get("let", {})}
    slips, let = own.get("slips", []) + group.get("slips", []), entry["let"]
    planted = [entry["planted"]] if "planted" in entry else []
    gets, names = Code(entry["gets"], let), entry.get("given", entry["gets"]).split(", ")
    shape = entry.get("shape", "")
    return Write(
        identifier,
        lambda scene: as_parts(gets(scene)),
        tuple(entry["names"].split(", ")),
        (*_slips_of(planted, let, said), *_slips_of(slips, let, said)),
        ships=entry.get("ships", ""),
        right=Code(entry["right"], let) if "right" in entry else None,
        step=entry.get("at", identifier.partition(".")[0]),
        shape=tuple(shape) if type(shape) is list else shape,
        cases=_CASES[entry.get("cases", "lecture")],
        counts=getattr(torch, entry["counts"]) if "counts" in entry else None,
        without=entry.get("without", {}),
        given=tuple(name.rpartition(".")[2] for name in names),
        look=entry.get("look", ""),
        heeds={names.index(name): said for name, said in entry.get("heeds", {}).items()},
    )


def _in_order() -> Iterator[Task]:
    """Return all exercises, by the group before the dot, then by number."""
    groups = read_toml("functions.toml")
    said = groups.pop("said")
    every = [
        _write(f"{name}.{number}", entry, group, said)
        for name, group in groups.items()
        for number, entry in group.items()
        if number.isdigit()
    ]
    every += [Grow("your_class.1"), *QUESTIONS.values()]
    for group in (*STEPS, "your_class", "fast", "learn", "since", "many"):
        own = [task for task in every if task.identifier.partition(".")[0] == group]
        yield from sorted(own, key=lambda task: int(task.identifier.partition(".")[2]))


TASKS: dict[str, Task] = {task.identifier: task for task in _in_order()}
_OTHERS: list[Quiz | Explain] = [*QUESTIONS.values(), Catch("the_test.1")]
QUIZZES: dict[str, Quiz | Explain] = {
    other.identifier: other
    for topic in ("tensors", "why", "find", "foresee", "the_order", "the_test")
    for other in _OTHERS
    if other.identifier.partition(".")[0] == topic
}
