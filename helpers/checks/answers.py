"""Say of an answer to an exercise whether it is right, and if not, what is wrong with it."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from helpers.checks import growing, progress
from helpers.checks.functions import judge_function
from helpers.checks.isolate import Failure, TimeUp, attempt, isolated, type_name
from helpers.checks.nearest import unknown
from helpers.checks.observe import ask, elsewhere, kind_of
from helpers.checks.outcome import Outcome, honestly
from helpers.checks.paper import SHEET, Paper, Part, Words, papers, plain_words, practised
from helpers.checks.tasks import TASKS, Explain, Grow, Task, Write

EXERCISES = (*TASKS, *SHEET)
SECONDS = 5.0
OPEN = "not answered yet."


def check(identifier: str | None = None, answer: Any = ..., record: bool = True) -> Any:
    """Try an answer, say what is wrong with it, and remember an exercise that is done.

    Args:
        identifier: the exercise, "scores.1" for the first of step 5, or a fresh problem for
            practice, "practice.single_head.7": shapes, single_head, columns or multi_head, and a
            number. Without one, the picture of what is done comes back.
        answer: what the exercise asks for, a function, a number, a dictionary or a class. Whatever
            comes is looked at: code runs on copies, for SECONDS of its own at most, and what it
            prints or raises stays inside. An answer that lives in another process is an object
            with a method ask, as helpers.checks.observe describes.
        record: whether a right answer counts as progress; a solution only proves itself.

    Returns:
        An Outcome; the picture of the progress where no exercise is named.
    """
    if identifier is None:
        return progress.picture()
    task = find(identifier)
    if task is None:
        return Outcome("check", "unknown", unknown(identifier, EXERCISES))
    outcome = honestly(task.identifier, judged, task, answer)
    if isinstance(task, Paper):
        outcome = replace(
            outcome, given=dict(task.given), sizes=dict(task.sizes), solution=task.right
        )
    if record and outcome.passed and task.identifier in EXERCISES:
        return replace(outcome, note=progress.record(task.identifier))
    return outcome


def find(identifier: Any) -> Task | Paper | None:
    """Return the exercise or problem of that name, if there is one."""
    if type(identifier) is not str:
        return None
    if identifier in SHEET:
        return papers()[identifier]
    return TASKS.get(identifier) or practised(identifier)


def judged(task: Task | Paper, answer: Any) -> Outcome:
    """Say of an answer what check says, the clock running."""
    owners = (
        (answer,) if not elsewhere(answer) and attempt(isinstance, answer, type) is True else ()
    )
    with isolated(SECONDS, *owners):
        try:
            return judge(task, answer)
        except TimeUp:
            text = f"no end after {SECONDS:g} seconds of running: look for a loop without an end."
            return Outcome(task.identifier, "error", text)


def judge(task: Task | Paper, answer: Any) -> Outcome:
    """Say of an answer what check says, unless it takes too long."""
    if kind_of(answer)[0] == "open":
        return Outcome(task.identifier, "unfinished", OPEN)
    if isinstance(task, Write):
        return judge_function(task, answer)
    if isinstance(task, Grow):
        return growing.judge_class(task.identifier, answer)
    handed = ask(answer, "value")
    handed = object() if type(handed) is Failure else handed
    if isinstance(task, Paper):
        return judge_paper(task, handed)
    return judge_value(task, handed)


# Numbers


def judge_value(task: Explain, answer: Any) -> Outcome:
    """Compare a number, or a row of numbers, with the one asked for."""

    def outcome(kind: str, message: str, *mistakes: str) -> Outcome:
        return Outcome(task.identifier, kind, message, mistakes=mistakes)

    if answer is ... or answer is None:
        return outcome("unfinished", OPEN)
    if type(answer) in (list, tuple) and any(item is ... or item is None for item in answer):
        return outcome("unfinished", OPEN)
    right, also = as_numbers(task.answer), map(as_numbers, task.also)
    sizes = " x ".join(map(str, right.shape))
    wanted = ("one number", f"a row of {sizes} numbers", f"a {sizes} matrix")[right.dim()]
    numbers = attempt(as_numbers, answer)
    if type(numbers) is Failure:
        return outcome("type", f"{wanted} is expected; this is of type {type_name(answer)}.")
    if numbers.isnan().any():
        return outcome("nan", f"{wanted} is expected; NaN is not a number.")
    far = off(numbers, right, *also)
    slips = [(off(numbers, as_numbers(number)), said) for number, said in task.slips.items()]
    nearest, said = min(slips, key=lambda slip: round(slip[0], 6), default=(math.inf, ""))
    if far <= task.apart and far <= nearest:
        return outcome("right", "right.")
    if nearest <= 1e-2:
        sentence, *known = (said,) if type(said) is str else said
        return outcome("mistake", sentence, *known)
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
    if answer is ... or answer is None:
        return Outcome(paper.identifier, "unfinished", OPEN)
    known = attempt(lambda: set(answer) <= set(names)) if type(answer) is dict else False
    if known is not True:
        wanted = f"a dictionary with the names {', '.join(names)} is expected"
        return Outcome(paper.identifier, "type", f"{wanted}; this is {shown(answer, names)}.")
    for name, part in paper.parts.items():
        found = judge_part(name, part, answer.get(name))
        if found.kind == "unfinished":
            still_open.append(name)
        elif found.passed:
            right.append(name)
        else:
            before = f"right: {', '.join(right)}. " if right else ""
            message = f"{before}`{name}`: {found.message}"
            return replace(found, exercise=paper.identifier, message=message)
    if not right:
        return Outcome(paper.identifier, "unfinished", OPEN)
    if still_open:
        message = f"right so far: {', '.join(right)}. Next is {still_open[0]}."
        return Outcome(paper.identifier, "so far", message)
    return Outcome(paper.identifier, "right", "right.")


def shown(answer: Any, names: list[str]) -> str:
    """Say what is wrong with an answer that is no dictionary of these names."""
    if type(answer) is not dict:
        return f"of type {type_name(answer)}"
    odd = [key for key in answer if type(key) is str and key not in names]
    return f"one with the name {odd[0][:20]!r}" if odd else "one with another key"


def judge_part(name: str, part: Part, answer: Any) -> Outcome:
    """Judge one of the things that a paper asks for."""
    if answer is ... or answer is None:
        return Outcome(name, "unfinished", "")
    if isinstance(part, Explain):
        return judge_value(part, answer)
    if isinstance(part, Words):
        return judge_words(name, part, answer)
    built = answer if type(answer) is dict else ask(answer, "value")
    if type(built) is not dict or "qkv_bias" not in built:
        said = f"a MultiHeadAttention is expected; this is of type {type_name(answer)}."
        return Outcome(name, "type", said)
    for size, wanted in part.arguments.items():
        if built[size] != wanted:
            said = f"it is built with {size} = {built[size]}; read the sizes again."
            return Outcome(name, "value", said)
    if built["qkv_bias"]:
        return Outcome(name, "value", "qkv_bias is on; leave it at False.")
    return Outcome(name, "right", "right.")


def judge_words(name: str, part: Words, answer: Any) -> Outcome:
    """Compare words with those asked for, whatever stands between them."""
    if type(answer) in (tuple, list) and all(type(word) is str for word in answer):
        answer = " ".join(answer)
    if type(answer) is not str:
        return Outcome(name, "type", f"{part.wanted}; this is of type {type_name(answer)}.")
    if plain_words(answer) == plain_words(part.answer):
        return Outcome(name, "right", "right.")
    for words, said in part.slips.items():
        if plain_words(answer) == plain_words(words):
            return Outcome(name, "mistake", said)
    return Outcome(name, "value", f"another answer is asked for; {part.wanted}.")
