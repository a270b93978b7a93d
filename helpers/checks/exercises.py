"""Say of an answer to an exercise whether it is right, and if not, what is wrong with it."""

import math
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np
import torch

from helpers.attention import MultiHeadAttention
from helpers.checks import progress
from helpers.checks.compare import call, fault, same, type_name
from helpers.checks.growing import how_far
from helpers.checks.guard import Failure, TimeUp, attempt, kept_state, time_limit
from helpers.checks.mistakes import MISTAKES
from helpers.checks.paper import PAPERS, Paper, Part, Words
from helpers.checks.plain import decode, encode_argument
from helpers.checks.scenes import PLACES, Sizes, play
from helpers.checks.tasks import TASKS, Explain, Grow, Parts, Slip, Task, Write, catalogued

EXERCISES: dict[str, Task | Paper] = TASKS | PAPERS
SECONDS = 5.0
LOOKS = {"right": ("✓", "success"), "so far": ("→", "info"), "unfinished": ("○", "info")}
WRONG = "✗", "warn"


@dataclass(frozen=True)
class Outcome:
    """What check says of an answer; true if it is right.

    Args:
        exercise: the identifier, "scores.1" for one.
        kind: right, unfinished, so far (right as far as it goes), or what is wrong: type, shape,
            nan, value, mistake, error; unknown where there is no such exercise.
        message: one or two sentences for the learner.
        mistake: the identifier of the catalogued mistake that the message names, or None.
        note: what there is to say about writing the progress down.
    """

    exercise: str
    kind: str
    message: str
    mistake: str | None = None
    note: str = ""

    @property
    def passed(self) -> bool:
        """Whether the answer is right."""
        return self.kind == "right"

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        mark, _ = LOOKS.get(self.kind, WRONG)
        return " ".join(filter(None, (f"{mark} {self.exercise}: {self.message}", self.note)))

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        mark, colour = LOOKS.get(self.kind, WRONG)
        said = re.sub(r"`(.+?)`", r"<code>\1</code>", escape(f"{self.message} {self.note}".strip()))
        html = (
            f'<div style="border-left:4px solid var(--jp-{colour}-color1,#757575);'
            f'padding:2px 10px">{mark} <strong>{escape(self.exercise)}:</strong> {said}</div>'
        )
        return {"text/html": html, "text/plain": str(self)}


def check(identifier: str | Paper, answer: Any, record: bool = True) -> Outcome:
    """Try an answer, say what is wrong with it, and remember an exercise that is done.

    Args:
        identifier: the exercise, "scores.1" for the first of step 5, or a problem for practice.
        answer: what the exercise asks for, a function or a number. Whatever comes is looked at:
            a function runs on copies, for SECONDS at most, and what it prints or raises stays
            inside.
        record: whether a right answer counts as progress; a solution only proves itself.
    """
    task = identifier if type(identifier) is Paper else None
    if type(identifier) is str:
        task = EXERCISES.get(identifier)
    if task is None:
        return Outcome("check", "unknown", f"the exercises are called {', '.join(EXERCISES)}.")
    if hasattr(answer, "ask"):
        return judge_elsewhere(task, answer)
    with kept_state():
        try:
            with time_limit(SECONDS):
                outcome = attempt(judge, task, answer)
        except TimeUp:
            outcome = Outcome(
                task.identifier, "error", f"no end after {SECONDS:g} seconds of running."
            )
    if isinstance(outcome, Failure):
        outcome = Outcome(task.identifier, "type", f"this cannot be looked at: {outcome.text}.")
    if record and outcome.passed and task.identifier in EXERCISES:
        return replace(outcome, note=progress.record(task.identifier))
    return outcome


def judge_elsewhere(task: Task | Paper, stand_in: Any) -> Outcome:
    """Judge an answer by what its stand-in tells, which has a method ask; also on fresh numbers."""

    def called(*arguments: Any) -> Any:
        question = {"kind": "call", "arguments": [list(map(encode_argument, arguments))]}
        return decode(stand_in.ask(question)["returned"][0])

    with kept_state():
        reply = stand_in.ask({"kind": "value"})
        if reply.get("callable") and isinstance(task, Write):
            told = judge_function(task, called)
            fresh = [replace(place, seed=secrets.randbits(32)) for place in PLACES[1:]]
            return judge_function(task, called, fresh) if told.passed else told
        return judge(task, decode(reply["value"]))


def judge(task: Task | Paper, answer: Any) -> Outcome:
    """Say of an answer what check says, unless the answer breaks out of it."""
    if answer is ... or answer is None:
        return unfinished(task)
    if isinstance(task, Paper):
        return judge_paper(task, answer)
    if isinstance(task, Grow):
        return Outcome(task.identifier, *how_far(answer))
    return judge_value(task, answer) if isinstance(task, Explain) else judge_function(task, answer)


def unfinished(task: Task | Paper) -> Outcome:
    """Return the line for an answer that is still open."""
    return Outcome(task.identifier, "unfinished", "not answered yet.")


# Numbers


def judge_value(task: Explain, answer: Any) -> Outcome:
    """Compare a number, or a row of numbers, with the one asked for."""

    def outcome(kind: str, message: str, mistake: str | None = None) -> Outcome:
        return Outcome(task.identifier, kind, message, mistake)

    if isinstance(answer, list | tuple) and any(item is ... or item is None for item in answer):
        return unfinished(task)
    right, also = as_numbers(task.answer), map(as_numbers, task.also)
    sizes = " x ".join(map(str, right.shape))
    wanted = ("one number", f"a row of {sizes} numbers", f"a {sizes} matrix")[right.dim()]
    numbers = attempt(as_numbers, answer)
    if isinstance(numbers, Failure):
        return outcome("type", f"{wanted} is expected; this is of type {type_name(answer)}.")
    if numbers.isnan().any():
        return outcome("nan", f"{wanted} is expected; NaN is not a number.")
    far = off(numbers, right, *also)
    slips = [(off(numbers, as_numbers(number)), said) for number, said in task.slips.items()]
    nearest, said = min(slips, key=lambda slip: round(slip[0], 6), default=(math.inf, ""))
    if far <= task.apart and far <= nearest:
        return outcome("right", "right.")
    if nearest <= 1e-2:
        slip = catalogued(said) if said in MISTAKES else Slip(said)
        return outcome("mistake", slip.sentence, slip.mistake)
    if numbers.shape != right.shape:
        shape = tuple(numbers.shape)
        return outcome("shape", f"{wanted} is expected; this has shape {shape}.")
    return outcome("value", "another number is asked for. The hints below help you along.")


def as_numbers(answer: Any) -> torch.Tensor:
    """Return numbers of any kind as a float64 tensor; raise for anything else."""
    if type(answer) is int:  # however large
        answer = float(max(min(answer, 10**300), -(10**300)))
    if not isinstance(answer, torch.Tensor):
        answer = torch.as_tensor(np.asarray(answer))
    if answer.dtype == torch.bool or answer.is_complex():
        raise TypeError
    return answer.detach().cpu().double()


def off(numbers: torch.Tensor, *others: torch.Tensor) -> float:
    """Return how far the worst of some numbers is from the nearest of its right ones."""
    if numbers.shape != others[0].shape:
        return math.inf
    return (torch.stack(others) - numbers).abs().amin(0).max().item()


# Pencil and paper


def judge_paper(paper: Paper, answer: Any) -> Outcome:
    """Judge what is written down, in the order in which it is worked out."""
    names, right, still_open = list(paper.parts), [], []
    if type(answer) is not dict or not set(answer) <= set(names):
        wanted = f"a dictionary with the names {', '.join(names)} is expected"
        return Outcome(paper.identifier, "type", f"{wanted}; this is {shown(answer, names)}.")
    for name, part in paper.parts.items():
        judged = judge_part(name, part, answer.get(name))
        if judged.kind == "unfinished":
            still_open.append(name)
        elif judged.passed:
            right.append(name)
        else:
            before = f"right: {', '.join(right)}. " if right else ""
            message = f"{before}`{name}`: {judged.message}"
            return Outcome(paper.identifier, judged.kind, message, judged.mistake)
    if not right:
        return unfinished(paper)
    if still_open:
        message = f"right so far: {', '.join(right)}. Next is {still_open[0]}."
        return Outcome(paper.identifier, "so far", message)
    return Outcome(paper.identifier, "right", "right.")


def shown(answer: Any, names: list[str]) -> str:
    """Say what is wrong with an answer that is no dictionary of these names."""
    if type(answer) is not dict:
        return f"of type {type_name(answer)}"
    odd = next(key for key in answer if key not in names)
    return f"one with the name {odd[:20]!r}" if type(odd) is str else "one with another key"


def judge_part(name: str, part: Part, answer: Any) -> Outcome:
    """Judge one of the things that a paper asks for."""
    if answer is ... or answer is None:
        return Outcome(name, "unfinished", "")
    if isinstance(part, Explain):
        return judge_value(part, answer)
    if isinstance(part, Words):
        return judge_words(name, part, answer)
    if not isinstance(answer, MultiHeadAttention):
        said = f"a MultiHeadAttention is expected; this is of type {type_name(answer)}."
        return Outcome(name, "type", said)
    for size, wanted in part.arguments.items():
        if getattr(answer, size) != wanted:
            said = f"it is built with {size} = {getattr(answer, size)}; read the sizes again."
            return Outcome(name, "value", said)
    if answer.W_query.bias is not None:
        return Outcome(name, "value", "qkv_bias is on; leave it at False.")
    return Outcome(name, "right", "right.")


def judge_words(name: str, part: Words, answer: Any) -> Outcome:
    """Compare words with those asked for, whatever stands between them."""
    if type(answer) in (tuple, list) and all(type(word) is str for word in answer):
        answer = " ".join(answer)
    if type(answer) is not str:
        return Outcome(name, "type", f"{part.wanted}; this is of type {type_name(answer)}.")
    if plain(answer) == plain(part.answer):
        return Outcome(name, "right", "right.")
    for words, said in part.slips.items():
        if plain(answer) == plain(words):
            return Outcome(name, "mistake", said)
    return Outcome(name, "value", f"another answer is asked for; {part.wanted}.")


def plain(words: str) -> list[str]:
    """Return the words alone, without brackets, commas, underscores, capitals and times signs."""
    return [word for word in re.findall(r"\w+", words.lower().replace("_", "")) if word != "x"]


# Functions


def judge_function(task: Write, answer: Any, places: Iterable[Sizes] = PLACES) -> Outcome:
    """Run a function in every place and compare what it returns."""

    def outcome(kind: str, message: str, mistake: str | None = None) -> Outcome:
        return Outcome(task.identifier, kind, message, mistake)

    if not callable(answer):
        return outcome(
            "type",
            f"a function is expected; this is of type {type_name(answer)}. Hand over the "
            f"function's name, without brackets.",
        )
    scenes, returned = [], []
    for place in places:
        scenes.append(play(place))
        returned.append(as_parts(task, call(answer, *task.gets(scenes[-1]))))
        if any(part is ... for part in returned[-1]):
            return unfinished(task)
    faults = [fault(task, *each) for each in zip(scenes, returned, strict=True)]
    first = next((place for place, found in enumerate(faults) if found), None)
    if first is None:
        return outcome("right", "right, on the whiteboard and everywhere else it was tried.")
    # Slips may look alike in one place, so one that explains all places comes before others.
    for tried in range(len(scenes)), [first]:
        if len(tried) == 1 and isinstance(returned[first][0], Failure):
            break  # an error in one place has many causes
        for place, slip in enumerate(task.usual()):
            if all(same(returned[i], task.slipped(slip, scenes[i])) for i in tried):
                if task.planted and place == 0:
                    return outcome("unfinished", "not repaired yet, it still does what it did.")
                return outcome("mistake", slip.sentence, slip.mistake)
    kind, message = faults[first]
    partly = f"right {scenes[0].sizes.where}, but not everywhere: " if first else ""
    return outcome(kind, partly + message)


def as_parts(task: Write, returned: Any) -> Parts:
    """Return what came, one part for each name if there are as many."""
    several = len(task.names) > 1 and type(returned) in (list, tuple)
    return tuple(returned) if several else (returned,)
