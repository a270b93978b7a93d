"""What a check says, as text and as a notebook shows it."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from typing import Any

import torch

from helpers.trace import STEPS

Rows = tuple[tuple[float, ...], ...]

LOOKS = {"right": ("✓", "success"), "so far": ("→", "info"), "unfinished": ("○", "info")}
WRONG = "✗", "warn"


@dataclass(frozen=True)
class Outcome:
    """What check or check_attention says of an answer; true if it is right.

    Args:
        exercise: the identifier, "scores.1" for one; "" for a class on its own.
        kind: right, unfinished, so far (right as far as it goes), or what is wrong: type, shape,
            nan, value, mistake, error; failed where the check itself did; unknown where there is
            no such exercise.
        message: what is wrong, where to look, what was expected, in one to three sentences.
        step: the first wrong step, 1 to 11; None if there is none, or none can be told.
        mistakes: identifiers of the catalogued mistakes that were found, first step first; the
            message names two at most.
        note: what there is to say besides, about writing the progress down for one.
        theirs: numbers of the learner's, rows of equal length, if they help.
        expected: the right numbers, of the same shape.
        caption: what the numbers are.
        given: matrices that a pencil-and-paper problem starts from, by name.
        sizes: sizes that such a problem starts from, by name.
        solution: the matrices that such a problem asks for, by name.
    """

    exercise: str
    kind: str
    message: str
    step: int | None = None
    mistakes: tuple[str, ...] = ()
    note: str = ""
    theirs: Rows = field(default=(), repr=False)
    expected: Rows = field(default=(), repr=False)
    caption: str = field(default="", repr=False)
    given: dict[str, torch.Tensor] = field(default_factory=dict, repr=False, compare=False)
    sizes: dict[str, int] = field(default_factory=dict, repr=False, compare=False)
    solution: dict[str, torch.Tensor] = field(default_factory=dict, repr=False, compare=False)

    @property
    def passed(self) -> bool:
        """Whether the answer is right."""
        return self.kind == "right"

    @property
    def mistake(self) -> str | None:
        """The first catalogued mistake that the message names, or None."""
        return self.mistakes[0] if self.mistakes else None

    @property
    def title(self) -> str:
        """The exercise, or in one or two words what is said of a class."""
        return self.exercise or ("passed" if self.passed else "not yet")

    @property
    def display(self) -> str:
        """What is said as HTML, readable in light and dark themes."""
        mark, colour = LOOKS.get(self.kind, WRONG)
        said = re.sub(r"`(.+?)`", r"<code>\1</code>", escape(f"{self.message} {self.note}".strip()))
        tables = "".join(_table(title, rows, self.expected) for title, rows in self._numbers())
        if tables:
            tables = f'<div style="display:flex;flex-wrap:wrap;gap:24px">{tables}</div>'
        return (
            f'<div role="group" aria-label="Verdict: {escape(self.title)}" style="border-left:4px '
            f'solid var(--jp-{colour}-color1,#757575);padding:2px 10px">{mark} '
            f"<strong>{escape(self.title)}:</strong> {said}{tables}</div>"
        )

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        mark, _ = LOOKS.get(self.kind, WRONG)
        title = f"{mark} {self.title}" if self.exercise else self.title
        lines = [" ".join(filter(None, (f"{title}: {self.message}", self.note)))]
        for caption, rows in self._numbers():
            lines.append(f"{caption}:")
            lines += ["  " + "  ".join(f"{each:>8.4f}" for each in row) for row in rows]
        return "\n".join(lines)

    def _numbers(self) -> list[tuple[str, Rows]]:
        both = (f"your {self.caption}", self.theirs), (f"right {self.caption}", self.expected)
        return [each for each in both if each[1]]

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self.display, "text/plain": str(self)}


@dataclass(frozen=True)
class Finding:
    """One thing that was found in an answer; most are wrong.

    Args:
        step: the step to look at, 1 to 11, or None.
        text: what was established and where to look.
        mistake: the catalogued mistake, if it is one.
        kind: of the outcome where this alone is said; remark for what is said of a right class.
        theirs: a matrix of the learner's, with the right one beside it, if they help.
        right: the right matrix.
        caption: what the matrices are.
    """

    step: int | None
    text: str
    mistake: str | None = None
    kind: str = "value"
    theirs: torch.Tensor | None = field(default=None, compare=False)
    right: torch.Tensor | None = field(default=None, compare=False)
    caption: str = ""

    @property
    def sentence(self) -> str:
        """What to say of a class, the step first."""
        return f"Step {self.step} ({STEPS[self.step - 1]}): {self.text}" if self.step else self.text

    def outcome(self, exercise: str) -> Outcome:
        """What to say of an exercise where this is all that is to be said."""
        step = f"step {self.step}: " if self.step else ""
        mistakes = (self.mistake,) if self.mistake else ()
        return Outcome(exercise, self.kind, step + self.text, mistakes=mistakes)


def in_order(findings: list[Finding]) -> list[Finding]:
    """What is wrong, the first step first; remarks are left out."""
    wrong = (each for each in findings if each.kind != "remark")
    return sorted(wrong, key=lambda each: each.step or len(STEPS) + 1)


def verdict(findings: list[Finding]) -> Outcome:
    """Put together what was found in a class, the first step first; remarks if it passes."""
    found = in_order(findings)
    if not found:
        text = "All eleven steps are right: outputs, gradients, dropout and mask agree."
        return Outcome("", "right", " ".join([text, *(each.text for each in findings)]))
    mistakes = tuple(dict.fromkeys(each.mistake for each in found if each.mistake))
    message = " ".join(dict.fromkeys(each.sentence for each in found[:2]))
    first, kind = found[0], "mistake" if mistakes else "value"
    if first.kind == "unfinished":  # nothing is written yet, so nothing is wrong yet
        kind = first.kind
    shown = (first.theirs, first.right) if first.theirs is not None else ()
    rows = (tuple(map(tuple, each.tolist())) for each in shown)
    return Outcome("", kind, message, first.step, mistakes, "", *rows, caption=first.caption)


def honestly(exercise: str, judge: Callable[..., Outcome], *arguments: Any) -> Outcome:
    """Run a judge; a slip of ours in it is no verdict on the answer, and is said to be ours.

    Where the environment variable ELEVEN_STEPS_STRICT is set, as in our tests, it is raised.
    """
    try:
        return judge(*arguments)
    except Exception as error:
        if os.environ.get("ELEVEN_STEPS_STRICT"):
            raise
        text = f"the check itself failed, with {type(error).__name__}: {error}."
        return Outcome(exercise, "failed", f"{text} That says nothing of your answer.")


def _table(title: str, rows: Rows, right: Rows) -> str:
    body = ""
    for row, expected in zip(rows, right, strict=True):
        pairs = ((f"{x:.4f}", f"{y:.4f}") for x, y in zip(row, expected, strict=True))
        shown = (one if one == two else f"<strong>{one}</strong>" for one, two in pairs)
        body += f"<tr>{''.join(f'<td>{each}</td>' for each in shown)}</tr>"
    return f"<table><caption>{escape(title)}</caption><tbody>{body}</tbody></table>"
