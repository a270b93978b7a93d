"""Compare a number, a row of numbers or a matrix with the one asked for."""

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from eleven_steps.checks.know.exercises.kinds import Explain
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.name.say import Finding, came, say, say_slip, sized, together
from eleven_steps.checks.run.isolate import Failure, attempt

WORDS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]
LARGE = 20  # of what is smaller a multiple says it all


def judge_value(task: Explain, answer: Any) -> Finding:
    """Compare a number, or a row of numbers, with the one asked for."""
    if is_open(answer):
        return say("open")
    right, also = as_numbers(task.answer), map(as_numbers, task.also)
    wanted, numbers = sized(tuple(right.shape)), attempt(as_numbers, answer, right.dim() > 0)
    if type(numbers) is Failure:
        return say("other_type", wanted=wanted, came=came(answer, right.dim() > 1))
    if numbers.squeeze().shape == right.shape:  # the same numbers in a list more
        numbers = numbers.squeeze()
    if numbers.isnan().any():
        return say("nan_for_number", wanted=wanted)
    ways = [(each,) for each in (right, *also)] if task.whole else [(right, *also)]
    far = min(off(numbers, *way) for way in ways)
    slips = [(off(numbers, as_numbers(number)), slip) for number, slip in task.slips.items()]
    nearest, slip = min(slips, key=lambda each: round(each[0], 6), default=(math.inf, ""))
    if far <= task.apart and far <= nearest:
        return say("right")
    if nearest <= 1e-2:
        return say_slip(slip)
    if numbers.shape != right.shape:
        nested = type(answer) in (list, tuple) and right.dim() < 2 <= numbers.dim()
        shape = came(answer, rows=False) if nested else sized(tuple(numbers.shape))
        return replace(say("other_type", wanted=wanted, came=shape), kind="shape")
    name, like = (
        "other_matrix" if right.dim() else "other_number",
        _like(numbers, right, task.apart),
    )
    return replace(say(name), text=together(say(name).text, like))


def _like(numbers: torch.Tensor, right: torch.Tensor, apart: float) -> str:
    """Say how wrong numbers are related to the right ones, without telling these."""
    return (
        _like_one(numbers.item(), right.item())
        if not right.dim()
        else _like_several(numbers, right, apart)
    )


def _like_one(number: float, right: float) -> str:
    if right == round(right) and abs(number - right) == 1:
        return wording("off_by_one")
    if number in (float(f"{right:.{digits}g}") for digits in range(2, 6)):
        return wording("not_exact")
    factor = number / right if right else 0.0
    if right > LARGE and factor > 1.5 and factor == round(factor):
        return wording("times_too_large", factor=round(factor))
    return wording("too_large" if number > right else "too_small")


def _like_several(numbers: torch.Tensor, right: torch.Tensor, apart: float) -> str:
    if right.dim() == 2 and numbers.T.shape == right.shape and off(numbers.T, right) <= apart:
        return wording("rows_are_columns")
    if any(off(numbers, right.round(decimals=n)) < 1e-9 for n in range(1, 4)):
        return wording("not_exact")
    if off(numbers.flatten().sort().values, right.flatten().sort().values) <= apart:
        return wording("in_another_order")
    wrong = (numbers - right).abs() > apart
    if wrong.all():
        return ""
    at = wrong.nonzero()[0].tolist()
    place = wording("at_place" if right.dim() == 1 else "at_row", row=at[0], column=at[-1])
    return wording("some_are_right", count=int((~wrong).sum()), all=right.numel(), place=place)


def is_open(answer: Any) -> bool:
    """Whether some of it is still to be written."""
    inside = any(map(is_open, answer)) if type(answer) in (list, tuple) else False
    return inside or answer is ... or answer is None


def as_numbers(answer: Any, several: bool = False) -> torch.Tensor:
    """Return numbers of any kind as a float64 tensor; raise for anything else.

    Args:
        answer: numbers, or a text that holds them and nothing else.
        several: whether a text is read as a row.
    """
    if type(answer) is str:
        answer = _listed(answer) if several else _spelt(answer)
    if type(answer) in (list, tuple) and len({type(each) for each in answer}) > 1:
        answer = list(_flat(answer))  # a tuple in a tuple
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


def _spelt(text: str) -> float:
    """The number that a text spells, in digits or as a word."""
    plain = re.sub(r"(?<=\d) (?!million|billion|thousand)[a-z]+$", "", text.strip().lower())
    plain = re.sub(r"[_, ]", "", plain)
    return WORDS.index(plain) if plain in WORDS else float(plain)


def _listed(text: str) -> list[float]:
    """The numbers that a text lists, between commas, spaces and brackets."""
    return [float(each) for each in re.split(r"[\s,;()\[\]]+", text) if each]


def _flat(answer: Any) -> Any:
    for each in answer:
        yield from _flat(each) if type(each) in (list, tuple, torch.Size) else (each,)
