"""Judge written answers: a number, a row, a matrix, a letter, words, lines in an order."""

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from eleven_steps.checks.asking.isolation import attempt, type_name
from eleven_steps.checks.exercises import Choose, Explain, Order, Saying
from eleven_steps.checks.mistakes import MISTAKES
from eleven_steps.checks.paper import SHEET_LETTERS, Construct, Paper, Part, Words, plain_words
from eleven_steps.checks.sentences import wording
from eleven_steps.checks.verdict import (
    Verdict,
    described,
    say,
    say_mistake,
    sized,
    step_named,
    together,
)
from eleven_steps.helpers.attention import MultiHeadAttention
from eleven_steps.helpers.trace import STEPS

# The steps that a step needs, so that its line finds what it reads; else the one before.
NEEDS = {1: (), 2: (), 3: (1, 2), 8: (4, 7), 10: (1, 9)}


def judge_written(task: Part | Choose | Order | Paper, answer: Any) -> Verdict:
    """Judge a written answer; a number is no text, and a text is no number."""
    judges = {Paper: _judge_paper, Explain: judge_value, Choose: _judge_choice}
    judges |= {Order: _judge_order, Words: _judge_words, Construct: _judge_construct}
    return judges[type(task)](task, answer)


def _other_type(wanted: str, answer: Any, rows: bool = True) -> Verdict:
    text = type(answer) is str
    return _typed(wanted, wording("a_text") if text else described(answer, rows))


def _typed(wanted: str, came: str, kind: str = "type") -> Verdict:
    return Verdict(kind, gets=f"{came}.", expected=f"{wanted}.")


def _said(slip: Saying) -> Verdict:
    """Return the verdict on a usual wrong answer: its sentence, and its catalogued mistake."""
    return say_mistake(slip) if type(slip) is str else say_mistake(*slip)


# Numbers

LARGE, ODD = 1000, 20  # larger right numbers are not met by chance
UNITS = [(1, 10**3, "1000"), (1, 10**6, "1000000"), (1, 2**10, "1024"), (1, 2**20, "1024 * 1024")]


def judge_value(task: Explain, answer: Any) -> Verdict:
    """Compare a number, a row or a matrix with the one asked for."""
    if is_open(answer):
        return say("open")
    right, numbers = as_numbers(task.answer), as_numbers(answer)
    wanted = sized(tuple(right.shape))
    if numbers is None:
        return _other_type(wanted, answer, right.dim() > 1)
    if numbers.squeeze().shape == right.shape:  # the same numbers, in one more list
        numbers = numbers.squeeze()
    if numbers.isnan().any():
        return say("nan_for_number", wanted=wanted)
    every = [right, *map(as_numbers, task.also)]
    far = min(_off(numbers, *way) for way in ([[e] for e in every] if task.whole else [every]))
    slips = [(_off(numbers, as_numbers(number)), slip) for number, slip in task.slips.items()]
    nearest, slip = min(slips, key=lambda pair: round(pair[0], 6), default=(math.inf, ""))
    if far <= task.apart and far <= nearest:
        return say("right")
    if nearest <= 1e-2:
        return _said(slip)
    if numbers.shape != right.shape:
        inside = answer if type(answer) in (list, tuple) and right.dim() < 2 else ()
        nested = any(type(part) not in (int, float) for part in inside)
        shape = described(answer, rows=False) if nested else sized(tuple(numbers.shape))
        return replace(_typed(wanted, shape, "shape"), hint=task.look)
    if right.dim():
        like = _like_several(numbers, right, task) or wording("other_matrix")
    else:
        like = _like_one(numbers.item(), right.item(), task.of)
    return Verdict("value", wrong=like, hint=task.look)


def as_numbers(answer: Any) -> torch.Tensor | None:
    """Return numbers as a float64 tensor; None for texts, booleans and complex numbers."""
    if type(answer) in (int, float):
        return torch.tensor(answer, dtype=torch.float64)
    if type(answer) in (list, tuple):
        parts = [as_numbers(part) for part in answer]
        if any(part is None for part in parts):
            return None
        if len({part.dim() for part in parts}) > 1:  # a tuple in a tuple
            return torch.cat([part.flatten() for part in parts])
        same = len({part.shape for part in parts}) == 1
        return torch.stack(parts) if same else None if parts else torch.empty(0)
    if type(answer) not in (torch.Tensor, np.ndarray):
        return None
    tensor = torch.as_tensor(answer)
    odd = tensor.is_meta or tensor.dtype == torch.bool or tensor.is_complex()
    return None if odd else tensor.double()


def is_open(answer: Any) -> bool:
    """Say whether part of an answer is still to be written."""
    inside = any(map(is_open, answer)) if type(answer) in (list, tuple) else False
    return inside or answer is ... or answer is None


def _off(numbers: torch.Tensor, *others: torch.Tensor) -> float:
    """Return the largest distance of a number from its nearest right number."""
    if numbers.shape != others[0].shape:
        return math.inf
    return (torch.stack(others) - numbers).abs().amin(0).max().item()


# How wrong numbers are related to the right ones, without telling these


def _like_one(number: float, right: float, letters: Mapping[str, float]) -> str:
    if right == round(right) and abs(number - right) == 1:
        return wording("off_by_one")
    if number in (float(f"{right:.{digits}g}") for digits in range(2, 6)):
        return wording("not_exact")
    made = made_of(number, right, letters) if number else ""
    return made or wording("too_large" if number > right else "too_small")


def made_of(number: float, right: float, letters: Mapping[str, float]) -> str:
    """Say how the sizes of an exercise make a number, if one way is shorter than all others.

    Where the right number is so large that nobody meets it by chance, it is one of the sizes.
    """
    large, came, ways = right >= LARGE, f"{number:.10g}", {}
    twice = {} if 2 in letters.values() else {"2": 2}
    for cost, value, code in (*products(twice | {**letters}), *UNITS):
        sizes = re.sub(r"[A-Za-z]\w*", lambda name: f"{letters[name[0]]:g}", code)
        twin = code == came or re.fullmatch(r"(\S+) [+] \1", sizes)  # 2 times is shorter
        readings = {} if twin else {"number_is": value}
        plain = cost < 3 and not re.search("[-+/]|[*][*]", code)
        if large and plain or code == "2" and right >= ODD:
            by = right / value
            readings |= {"right_times": right * value, "right_by": by}
            if large and by < 100 and code[0] != "1":  # many a small number divides a large one
                del readings["right_by"]
        if large and plain:
            readings |= {"right_more": right + value, "right_less": right - value}
        for name, made in readings.items():
            if math.isclose(number, made, rel_tol=1e-9 if number % 1 == 0 else 1e-3):
                spelled = code if sizes in (code, came) else f"{code} ({sizes})"
                same = ways.setdefault(cost + 1.5 * (name != "number_is"), {})
                same.setdefault((name, *sorted(sizes.split())), (name, spelled))
    shortest = [*ways[min(ways)].values()] if ways else []
    (name, code), *others = shortest or [("", "")]
    return wording(name, number=came, code=code) if name and not others else ""


def products(letters: Mapping[str, float]) -> Iterator[tuple[float, float, str]]:
    """Yield the numbers that sizes make: how many sizes it takes, the number, and the code."""
    for count in range(1, len(letters) + 1):
        for names in itertools.combinations(letters, count):
            value, code = math.prod(letters[name] for name in names), " * ".join(names)
            yield count, value, code
            if count == 1 and code != "2":
                yield 2, value**0.5, f"{code} ** 0.5"
                yield 2.5, value**2, f"{code} ** 2"
            for other in letters if count < 3 else ():
                if other not in names and code != "2":
                    yield count + 1, value / letters[other], f"{code} / {other}"
                if "2" not in (other, *names) and (count == 1) != (other in names):
                    yield count + 1, value - letters[other], f"{code} - {other}"
                    if count > 1 or [*letters].index(other) > [*letters].index(code):
                        yield count + 1, value + letters[other], f"{code} + {other}"


def _like_several(numbers: torch.Tensor, right: torch.Tensor, task: Explain) -> str:
    apart = task.apart
    if right.dim() == 2 and _off(numbers.T, right) <= apart:
        return wording("rows_are_columns")
    if any(_off(numbers, right.round(decimals=n)) < 1e-9 for n in range(1, 4)):
        return wording("not_exact")
    rows = itertools.permutations(range(len(right)) if len(right) < 5 else ())
    sorted_rows = numbers.dim() == 1 and _off(numbers.sort().values, right.sort().values) <= apart
    if sorted_rows or any(_off(numbers[[*order]], right) <= apart for order in rows):
        return wording("in_another_order")
    if {*(numbers - right).flatten().tolist()} in ({1}, {-1}):
        return wording("all_off_by_one")
    wrong = (numbers - right).abs() > apart
    if wrong.all():
        return ""
    at = wrong.nonzero()[0].tolist()
    place = wording("at_place" if right.dim() == 1 else "at_row", row=at[0], column=at[-1])
    letter = next((name for name, size in task.of.items() if size == numbers[tuple(at)]), "")
    said = wording("some_are_right", count=int((~wrong).sum()), all=right.numel(), place=place)
    number = f"{numbers[tuple(at)].item():.10g}"
    return together(said, wording("number_is", number=number, code=letter) if letter else "")


# Letters


def _judge_choice(task: Choose, answer: Any) -> Verdict:
    if type(answer) is not str:
        return _other_type(wording("one_letter"), answer)
    letter = answer.strip().upper()
    if letter == task.answer:
        return say("right")
    if letter not in task.slips:
        return say("no_such_letter", letters=", ".join(sorted([task.answer, *task.slips])))
    return _said(task.slips[letter])


def _judge_order(task: Order, answer: Any) -> Verdict:
    answer = _joined(answer)
    if type(answer) is not str:
        return _other_type(wording("letters_in_order", example="".join(task.lines)[:3]), answer)
    letters, done = re.sub(r"[\s,]", "", answer).upper(), set()
    for place, letter in enumerate(letters, 1):
        if (verdict := _misplaced(task, place, letter, done)) is not None:
            return verdict
        done.add(task.lines[letter].step)
    missing = len(STEPS) - len(done)
    if not done or not missing:
        return say("right" if done else "open")
    return say("lines_right", count=len(done), missing=missing, are="is" if missing == 1 else "are")


def _joined(answer: Any) -> Any:
    texts = type(answer) in (list, tuple) and all(type(text) is str for text in answer)
    return " ".join(answer) if texts else answer


def _misplaced(task: Order, place: int, letter: str, done: set[int]) -> Verdict | None:
    if letter not in task.lines:
        return say("no_such_line", place=place, letter=letter, last=list(task.lines)[-1])
    line = task.lines[letter]
    here = {"place": place, "letter": letter, "code": line.code}
    needed = NEEDS.get(line.step, (line.step - 1,))
    if lacking := [step_named(step) for step in needed if step not in done]:
        word = "step" if len(lacking) == 1 else "steps"
        return say("line_too_early", steps=f"{word} {' and '.join(lacking)}", **here)
    if line.step in done:
        return say("line_again", step=step_named(line.step), **here)
    if not line.mistake:
        return None
    verdict = say_mistake(MISTAKES[line.mistake].sentence, line.mistake)
    place = wording("at_letter", place=place, letter=letter, code=line.code)
    return replace(verdict, wrong=together(place, verdict.wrong))


# Pencil and paper


def _judge_paper(paper: Paper, answer: Any) -> Verdict:
    names, right, still_open = list(paper.parts), [], []
    if type(answer) is not dict:
        return _no_paper(names, described(answer))
    if odd := [key for key in answer if type(key) is not str or key not in names]:
        other = wording("other_name", name=str(odd[0])[:20])
        return _no_paper(names, other)
    for name, part in paper.parts.items():
        given = answer.get(name)
        verdict = say("open") if is_open(given) else judge_written(part, given)
        if verdict.kind == "unfinished":
            still_open.append(name)
        elif verdict.kind == "right":
            right.append(name)
        else:
            before = wording("right_before", names=", ".join(right)) if right else ""
            wrong = together(before, f"`{name}`:", verdict.wrong)
            return replace(verdict, wrong=wrong if verdict.wrong or before else wrong[:-1] + ".")
    if not right:
        return say("open")
    if still_open:
        return say("paper_so_far", right=", ".join(right), next=still_open[0])
    return say("right")


def _no_paper(names: list[str], came: str) -> Verdict:
    """Return the verdict on an answer that is no dictionary of the asked names."""
    return _typed(wording("a_paper", names=", ".join(names)), came)


def _judge_construct(part: Construct, answer: Any) -> Verdict:
    if type(answer) is not MultiHeadAttention:
        class_alone = wording("a_class_alone") if type_name(answer) == "type" else ""
        return _typed(wording("a_module"), class_alone or described(answer))
    for name, wanted in part.arguments.items():
        size = attempt(lambda: answer.dropout.p) if name == "dropout" else getattr(answer, name)
        if size != wanted:
            return say("built_with", name=name, size=size)
    return say("right" if answer.W_query.bias is None else "built_with_bias")


def _judge_words(part: Words, answer: Any) -> Verdict:
    answer = _joined(answer)
    if type(answer) is not str:
        return _typed(part.wanted, described(answer))
    right, words = plain_words(part.answer), plain_words(answer.partition("=")[0])
    if "".join(words) == "".join(right):
        return say("right")
    said = {"".join(plain_words(wrong)): sentence for wrong, sentence in part.slips.items()}
    if "".join(words) in said:
        return _said(said["".join(words)])
    if shape := {*right + words} <= {*plain_words(" ".join(SHEET_LETTERS))}:
        like = _like_shape(words, right)
    else:
        like = wording("in_another_order") if sorted(words) == sorted(right) else ""
    verdict = say("other_shape_asked") if shape else say("other_words", wanted=part.wanted)
    return replace(verdict, wrong=together(verdict.wrong, like), hint=part.look)


def _like_shape(words: list[str], right: list[str]) -> str:
    """Say where a shape in letters goes wrong, and what the right one has axes for."""
    others = (i for i, two in enumerate(zip(words, right, strict=False)) if len({*two}) > 1)
    where = wording("other_axis", at=next(others, 0))
    if sorted(words) == sorted(right):
        where = wording("in_another_order")
    elif len(words) != len(right):
        where = wording("other_axes", count=len(words), right=len(right))
    rows = "shape_of_rows" if "n" in right else "shape_of_weight"
    return together(where, wording("shape_of_pairs" if right.count("n") > 1 else rows))
