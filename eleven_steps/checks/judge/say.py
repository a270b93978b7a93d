"""Say what was found: findings, the outcome that a learner sees, and the words they are made of.

The sentences themselves stand in checks/know, under the names that say is called with.
"""

import difflib
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import torch

from eleven_steps.checks.know.catalogue import MISTAKES, VARIANT_MISTAKES
from eleven_steps.checks.know.sentences import OPTIONS, SENTENCES, wording
from eleven_steps.checks.run.cases import MAIN, Case
from eleven_steps.checks.run.isolate import type_name
from eleven_steps.checks.run.places import visible
from eleven_steps.helpers.trace import STEPS

MARKS = {"right": ("✓", "success"), "so far": ("→", "info"), "unfinished": ("○", "info")}
WRONG_MARK = "✗", "warn"
FEW = 4  # lines to run in a cell that are shown at once


@dataclass(frozen=True, repr=False)
class Outcome:
    """What check or check_attention says of an answer; true if it is right."""

    exercise: str  # the identifier, "scores.1" for one; "" for a class on its own
    # right, unfinished, so far (right as far as it goes), or what is wrong: type, shape, nan,
    # value, mistake, error; failed where the check itself did; unread where a class cannot be
    # judged; unknown where there is no such exercise
    kind: str
    message: str  # what is wrong, where to look, what was expected, in one to three sentences
    step: int | None = None  # the first wrong one, 1 to 11; None where none is, or can be told
    mistakes: tuple[str, ...] = ()  # of the catalogue, first step first; two are told at most
    note: str = ""  # what there is to say besides, about writing the progress down for one
    # The beginning of what the answer printed where the message speaks of, or else at first
    printed: str = field(default="", compare=False)
    # Lines of code that make what the message speaks of, where no notebook has it
    cell: str = field(default="", compare=False)
    # What a pencil-and-paper problem starts from, and the matrices that it asks for, by name
    given: dict[str, torch.Tensor] = field(default_factory=dict, compare=False)
    sizes: dict[str, int] = field(default_factory=dict, compare=False)
    solution: dict[str, torch.Tensor] = field(default_factory=dict, compare=False)
    reached: int = 0  # steps that are right, of the class that is written step by step
    # What its sentences claim for whoever decides by it, as sentences.toml has it
    claims: tuple[str, ...] = field(default=(), compare=False)

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
        mark, colour = MARKS.get(self.kind, WRONG_MARK)
        text = re.sub(r"`(.+?)`", r"<code>\1</code>", escape(together(self.message, self.note)))
        shown = "".join(
            f"<details{' open' if lines != self.cell or len(lines.splitlines()) <= FEW else ''}>"
            f"<summary>{said}</summary>"
            f"<pre>{escape(lines)}</pre></details>"
            for said, lines in self._lines()
        )
        return (
            f'<div role="group" aria-label="Verdict: {escape(self.title)}" style="border-left:4px '
            f'solid var(--jp-{colour}-color1,#757575);padding:2px 10px">{mark} '
            f"<strong>{escape(self.title)}:</strong> {text}{shown}</div>"
        )

    def __post_init__(self) -> None:
        for name in ("message", "note", "printed"):  # names and errors in them may hold anything
            object.__setattr__(self, name, visible(getattr(self, name)))

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        mark, _ = MARKS.get(self.kind, WRONG_MARK)
        title = f"{mark} {self.title}" if self.exercise else self.title
        lines = [together(f"{title}: {self.message}", self.note)]
        for said, text in self._lines():
            lines += [said, *(f"  {line}" for line in text.splitlines())]
        return "\n".join(lines)

    def __repr__(self) -> str:
        """The sentence, which a failing assert of a test then shows."""
        return f"{self.title}: {self.message}"

    def _lines(self) -> list[tuple[str, str]]:
        both = ("it_printed", self.printed), ("in_a_cell", self.cell)
        return [(wording(name), text.rstrip()) for name, text in both if text.strip()]

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self.display, "text/plain": str(self)}


@dataclass(frozen=True)
class Finding:
    """One thing that was found in an answer; most are wrong."""

    step: int | None  # to look at, 1 to 11
    text: str  # what was established and where to look
    mistake: str | None = None  # of the catalogue
    kind: str = "value"  # of the outcome where this alone is said; or remark, on a right class
    name: str = field(default="", compare=False)  # of its first sentence, or of its mistake
    case: Case | None = field(default=None, compare=False)  # that it speaks of, of an exercise's
    reached: int = 0  # steps of a class that are right
    claim: str = field(default="", compare=False)  # of its first sentence

    @property
    def sentence(self) -> str:
        """What to say of a class, the step first."""
        return f"Step {step_named(self.step)}: {self.text}" if self.step else self.text

    def outcome(self, exercise: str) -> Outcome:
        """What to say of an exercise where this is all that is to be said."""
        text = f"step {self.step}: {self.text}" if self.step else self.text
        mistakes = (self.mistake,) if self.mistake else ()
        return Outcome(exercise, self.kind, text, self.step, mistakes, reached=self.reached)


def say(name: str, step: int | None = None, /, **values: Any) -> Finding:
    """Say what was found.

    Args:
        name: a mistake of the catalogue, or a name in SENTENCES.
        step: where it was found, if not at its usual step; a mistake has few steps it can be at.
        values: what stands in the braces of the sentence; for a mistake the case whose sizes it
            is told with, None for no sizes.
    """
    if mistake := MISTAKES.get(name) or VARIANT_MISTAKES.get(name):
        step = step if step in mistake.steps else mistake.step
        case = values.get("case", MAIN)
        sentence = with_numbers(mistake.sentence, case) if case else mistake.sentence
        return Finding(step, sentence, name, "mistake", name)
    usual, text, kind, claim = SENTENCES[name]
    text = " ".join(text.format(**{"at": "", **OPTIONS, **values}).split())
    return Finding(step or usual, text, kind=kind, name=name, claim=claim)


def say_slip(slip: str | tuple[str, str]) -> Finding:
    """Say what a usual wrong answer gets: its sentence, and the catalogued mistake of a pair."""
    sentence, mistake = (slip, None) if type(slip) is str else slip
    return Finding(None, sentence, mistake, "mistake")


# What all findings together come to


def in_order(findings: list[Finding]) -> list[Finding]:
    """What is wrong, the first step first; remarks are left out."""
    wrong = (finding for finding in findings if finding.kind != "remark")
    return sorted(wrong, key=lambda finding: finding.step or len(STEPS) + 1)


def outcome_of(findings: list[Finding]) -> Outcome:
    """Put together what was found in a class, the first step first; remarks if it passes."""
    wrong = in_order(findings)
    if not wrong:
        remarks = (finding.text for finding in findings)
        return Outcome("", "right", together(wording("class_right"), *remarks))
    mistakes = tuple(dict.fromkeys(finding.mistake for finding in wrong if finding.mistake))
    message = together(*dict.fromkeys(finding.sentence for finding in wrong[:2]))
    first, kind = wrong[0], "mistake" if mistakes else "value"
    if first.kind == "unfinished":  # nothing is written yet, so nothing is wrong yet
        kind = first.kind
    claims = tuple(finding.claim for finding in wrong[:2])
    return Outcome("", kind, message, first.step, mistakes, claims=claims)


def honestly(exercise: str, judge: Callable[..., Outcome], *arguments: Any) -> Outcome:
    """Run a judge; a slip of ours in it is no verdict on the answer, and is said to be ours.

    Where the environment variable ELEVEN_STEPS_STRICT is set, as in our tests, it is raised.
    """
    try:
        return judge(*arguments)
    except Exception as error:
        if os.environ.get("ELEVEN_STEPS_STRICT"):
            raise
        return say("check_failed", error=f"{type(error).__name__}: {error}").outcome(exercise)


# The words


def step_named(step: int) -> str:
    """A step by its number and its name, as a message names it."""
    return f"{step} ({STEPS[step - 1]})"


def letters_of(case: Case, but: str = "b") -> str:
    """The lecture's letters and their sizes in one line, but one."""
    return ", ".join(f"{name} = {size}" for name, size in case.letters.items() if name != but)


def with_numbers(sentence: str, case: Case = MAIN) -> str:
    """Put the sizes of a case behind the letters of a sentence about square roots."""
    if "square root" not in sentence:
        return sentence
    for name, size in case.letters.items():
        sentence = re.sub(rf"\b{name}\b(?! \()", f"{name} ({size})", sentence, count=1)
    return sentence


def together(*sentences: str) -> str:
    """One after the other; empty ones are left out."""
    return " ".join(filter(None, sentences))


def listed(names: Sequence[str], quote: str = "`") -> str:
    """Names as a sentence lists them: `a`, `b` and `c`."""
    *others, last = (f"{quote}{name}{quote}" for name in names)
    return " and ".join(filter(None, (", ".join(others), last)))


def came(thing: Any, rows: bool = True) -> str:
    """Say what was handed over in place of a number, a tensor or, if rows, a matrix."""
    kind, parts = type(thing), thing
    if kind not in (list, tuple):
        return wording("of_type", type=type_name(thing))
    if len(thing) > 1 and all(type(part) is torch.Tensor for part in thing):
        shapes = " and ".join(dict.fromkeys(str(tuple(part.shape)) for part in thing))
        return wording("of_tensors", type=kind.__name__, count=len(thing), shapes=shapes)
    if kind is tuple and len(thing) == 1 and type(thing[0]) is torch.Tensor:
        return wording("of_a_comma")
    if rows and thing and all(type(row) in (list, tuple) for row in thing):
        lengths = dict.fromkeys(str(len(row)) for row in thing)
        if len(lengths) > 1:
            return wording("of_rows", type=kind.__name__, lengths=" and ".join(lengths))
        parts = [number for row in thing for number in row]
    odd = next((type_name(e) for e in parts if type(e) not in (int, float)), "")
    return wording("of_odd_parts" if odd else "of_numbers", type=kind.__name__, odd=odd)


def like(name: str, names: Iterable[str]) -> str:
    """The one of some names that is like another; "" where none is."""
    lowered = {known.lower(): known for known in reversed([*names])}
    near = difflib.get_close_matches(name.lower(), lowered, 1, 0.7)
    return lowered[near[0]] if near else ""


def meant(name: str, names: Iterable[str], before: str = "") -> str:
    """Ask whether another name is meant, if one is like it."""
    near = like(name, names)
    return wording("meant", name=f"{before}{near}") if near else ""


def sized(shape: tuple[int, ...]) -> str:
    """Say how many numbers there are."""
    if shape == (1,):
        return wording("row_of_one")
    name = ("one_number", "row", "matrix", "of_shape")[min(len(shape), 3)]
    return wording(name, size=" x ".join(map(str, shape)), shape=shape)
