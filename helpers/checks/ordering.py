"""The exercise that asks for an order: the lines of a forward pass, with wrong ones among them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from helpers.checks.findings import say
from helpers.checks.mistakes import MISTAKES
from helpers.checks.outcome import Finding
from helpers.checks.sentences import came
from helpers.trace import STEPS


@dataclass(frozen=True)
class Line:
    """One line that may be chosen.

    Args:
        code: what it says.
        step: the step it takes, 1 to 11.
        mistake: the identifier in the catalogue, where it takes the step wrongly.
    """

    code: str
    step: int
    mistake: str = ""


@dataclass(frozen=True)
class Order:
    """Ask for eleven of these lines in an order in which they run and are right."""

    identifier: str
    lines: dict[str, Line]


# The steps that a step needs, so that its line finds what it reads; else the one before.
NEEDS = {1: (), 2: (), 3: (1, 2), 8: (4, 7), 10: (1, 9)}


FORWARD = Order(
    "the_order.1",
    {
        "A": Line("context = context.contiguous().view(b, num_tokens, self.d_out)", 10),
        "B": Line("scores = queries @ keys.transpose(2, 3)", 5),
        "C": Line(
            "weights = torch.softmax(masked / self.d_out**0.5, dim=-1)", 7, "scale_sqrt_d_out"
        ),
        "D": Line("queries, keys, values = (each.transpose(1, 2) for each in three)", 4),
        "E": Line(
            "masked = scores.masked_fill(~self.mask[:num_tokens, :num_tokens], -torch.inf)",
            6,
            "mask_inverted",
        ),
        "F": Line("return self.out_proj(context)", 11),
        "G": Line("three = self.W_query(x), self.W_key(x), self.W_value(x)", 2),
        "H": Line("scores = keys @ queries.transpose(2, 3)", 5, "scores_transposed"),
        "I": Line("b, num_tokens, d_in = x.shape", 1),
        "J": Line(
            "queries, keys, values = (each.view(b, self.num_heads, num_tokens, -1) "
            "for each in three)",
            3,
            "view_straight",
        ),
        "K": Line("weights = torch.softmax(masked / self.head_dim**0.5, dim=-1)", 7),
        "L": Line("context = context.transpose(1, 2)", 9),
        "M": Line("three = [each.view(b, num_tokens, self.num_heads, -1) for each in three]", 3),
        "N": Line("context = context.view(b, num_tokens, self.d_out)", 10, "not_contiguous"),
        "O": Line("context = weights @ values", 8),
        "P": Line(
            "masked = scores.masked_fill(self.mask[:num_tokens, :num_tokens], -torch.inf)", 6
        ),
        "Q": Line("context = weights.transpose(2, 3) @ values", 8, "weights_transposed"),
    },
)


def judge_order(task: Order, answer: Any) -> Finding:
    """Say which line of an answer is the first that stands in the wrong place."""
    letters = as_letters(answer)
    if letters is None:
        wanted = f'a text of letters in order, such as "{"".join(list(task.lines)[:3])}",'
        return say("other_type", wanted=wanted, came=came(answer))
    if not letters:
        return say("open")
    done: set[int] = set()
    for place, letter in enumerate(letters, 1):
        if found := misplaced(task, place, letter, done):
            return found
        done.add(task.lines[letter].step)
    if len(done) == len(STEPS):
        return say("right")
    text = f"the first {len(letters)} lines are right. {len(STEPS) - len(done)} are missing."
    return Finding(None, text, kind="so far")


def as_letters(answer: Any) -> Sequence[str] | None:
    """Return what was handed in as capital letters, or None where it is no text."""
    if type(answer) in (list, tuple) and all(type(each) is str for each in answer):
        answer = " ".join(answer)
    if type(answer) is not str:
        return None
    return re.sub(r"[\s,;.:>/|→–-]", "", answer).upper()  # what may stand between letters


def misplaced(task: Order, place: int, letter: str, done: set[int]) -> Finding | None:
    """Say what is wrong with a line in its place, after the steps that are done, if anything is."""
    where = f"place {place}, {letter}"
    if letter not in task.lines:
        last = list(task.lines)[-1]
        return Finding(None, f"{where}: there is no such line; they are A to {last}.")
    line = task.lines[letter]
    shown = f"{where}, `{line.code}`"
    needed = NEEDS.get(line.step, (line.step - 1,))
    if lacking := [step for step in needed if step not in done]:
        before = " and ".join(f"{step} ({STEPS[step - 1]})" for step in lacking)
        early = f"this comes too early. No line above it takes step {before}."
        return Finding(None, f"{shown}: {early}")
    if line.step in done:
        taken = f"step {line.step} ({STEPS[line.step - 1]})"
        return Finding(None, f"{shown}: a line above has taken {taken} already.")
    if line.mistake:
        return Finding(None, f"{shown}: {MISTAKES[line.mistake].told}", line.mistake, "mistake")
    return None
