"""What a check found, as text and as a notebook shows it."""

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from helpers.checks.looks import MAIN, Sizes
from helpers.checks.readings import Finding
from helpers.trace import STEPS

Rows = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Verdict:
    """What check_attention found; a notebook shows it with the numbers that tell.

    Args:
        passed: whether the class is right.
        step: the first wrong step, 1 to 11; None if there is none, or none can be told.
        mistakes: identifiers in helpers.checks.mistakes of the known mistakes, first step first.
        message: what is wrong, where to look, what was expected.
        theirs: numbers of the learner's class, rows of equal length, if they help.
        right: the right numbers, of the same shape.
        caption: what the numbers are.
    """

    passed: bool
    step: int | None
    mistakes: tuple[str, ...]
    message: str
    theirs: Rows = field(default=(), repr=False)
    right: Rows = field(default=(), repr=False)
    caption: str = field(default="", repr=False)

    @property
    def display(self) -> str:
        """The verdict as HTML, readable in light and dark themes."""
        word, sign, colour = (
            ("passed", "✓", "var(--jp-success-color0, #2e7d32)")
            if self.passed
            else ("not yet", "✗", "var(--jp-error-color0, #c62828)")
        )
        text = re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(self.message))
        tables = ""
        if self.theirs:
            both = (f"your {self.caption}", self.theirs), (f"right {self.caption}", self.right)
            tables = "".join(_table(title, rows, self.right) for title, rows in both)
            tables = f'<div style="display: flex; flex-wrap: wrap; gap: 24px">{tables}</div>'
        return (
            f'<div role="group" aria-label="Verdict: {word}" style="border-left: 4px solid '
            f'{colour}; padding: 4px 12px; color: var(--jp-ui-font-color1, currentColor)">'
            f'<p style="margin: 4px 0"><strong>{sign} {word}</strong> {text}</p>{tables}</div>'
        )

    def __str__(self) -> str:
        """The verdict as plain text."""
        lines = [f"{'passed' if self.passed else 'not yet'}: {self.message}"]
        for title, rows in (("your", self.theirs), ("right", self.right)):
            if rows:
                lines.append(f"{title} {self.caption}:")
                lines += ["  " + "  ".join(f"{_number(each):>8}" for each in row) for row in rows]
        return "\n".join(lines)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": self.display}


@dataclass(frozen=True)
class Found:
    """One thing that is wrong: its step if known, what to say, the catalogued mistake if it is."""

    step: int | None
    text: str
    mistake: str | None = None
    finding: Finding | None = None

    @property
    def sentence(self) -> str:
        """What to say, the step first."""
        if self.step is None:
            return self.text
        return f"Step {self.step} ({STEPS[self.step - 1]}): {self.text}"


def verdict_on(found: Iterable[Found], remark: str = "") -> Verdict:
    """Put together what was found, the first step first; a remark is for a class that passes."""
    found = sorted(found, key=lambda each: each.step or len(STEPS) + 1)
    if not found:
        text = "All eleven steps are right: outputs, gradients, dropout and mask agree."
        return Verdict(True, None, (), f"{text} {remark}".strip())
    mistakes = tuple(dict.fromkeys(each.mistake for each in found if each.mistake))
    message = " ".join(dict.fromkeys(each.sentence for each in found[:2]))
    shown = found[0].finding
    if shown is None or shown.theirs is None:
        return Verdict(False, found[0].step, mistakes, message)
    theirs, right = (tuple(map(tuple, each.tolist())) for each in (shown.theirs, shown.right))
    return Verdict(False, found[0].step, mistakes, message, theirs, right, shown.caption)


def letters(sizes: Sizes) -> str:
    """The lecture's letters and their sizes in one line."""
    return ", ".join(f"{name} = {size}" for name, size in sizes.letters().items())


def with_numbers(sentence: str, sizes: Sizes = MAIN) -> str:
    """Put the sizes of the check behind the letters of a sentence about square roots."""
    if "square root" not in sentence:
        return sentence
    for name, size in sizes.letters().items():
        sentence = re.sub(rf"\b{name}\b(?! \()", f"{name} ({size})", sentence, count=1)
    return sentence


def _number(value: float) -> str:
    return f"{value:.4f}"


def _table(title: str, rows: Rows, right: Rows) -> str:
    body = ""
    for row, expected in zip(rows, right, strict=True):
        for one, two in zip(map(_number, row), map(_number, expected), strict=True):
            body += f"<td>{one}</td>" if one == two else f"<td><strong>{one}</strong></td>"
        body += "</tr><tr>"
    body = body.removesuffix("</tr><tr>")
    return f"<table><caption>{html.escape(title)}</caption><tbody><tr>{body}</tr></tbody></table>"
