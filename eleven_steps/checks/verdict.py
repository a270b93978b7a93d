"""Make verdicts: whether an answer is right and, if not, where, what is wrong, what to do."""

import difflib
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

import torch

from eleven_steps.checks.asking.failures import visible
from eleven_steps.checks.asking.isolation import type_name
from eleven_steps.checks.sentences import SENTENCES, wording
from eleven_steps.helpers.trace import STEPS

MARKS = {
    "right": ("✓", "success"),
    "so far": ("→", "info"),
    "unfinished": ("○", "info"),
    "unread": ("?", "info"),
}
WRONG_MARK = "✗", "warn"
UNJUDGED = "unread", "failed", "unknown"  # kinds that say nothing of the answer
LABELS = {"wrong": "Wrong:", "gets": "You get:", "expected": "Expected:", "hint": "Hint:"}
WIDTH = 10  # width of a label, with the space after it
CODE = re.compile(r"`[^`]+`")


@dataclass(frozen=True, repr=False)
class Verdict:
    """What check or check_attention says of an answer; true if it is right."""

    # right, unfinished, so far (right as far as it goes), or what is wrong: type, shape, nan,
    # value, mistake, error; failed where the check itself did; unread where a class cannot be
    # judged; unknown where there is no such exercise
    kind: str
    text: str = ""  # the whole message, if nothing is wrong
    # One line each where something is wrong; "" where nothing is known for certain
    wrong: str = ""
    gets: str = ""
    expected: str = ""
    hint: str = ""
    exercise: str = ""  # the identifier, "scores.1" for example; "" for a class on its own
    step: int | None = None  # the first wrong step, 1 to 11; None if none is known
    line: int | None = None  # number in the learner's file or cell, if it is known
    code: str = ""  # the text of that line
    mistakes: tuple[str, ...] = ()  # names in the catalogue
    note: str = ""  # what was not tried, or a problem with saving progress
    printed: str = field(default="", compare=False)  # the beginning of what the answer printed
    # What a pencil-and-paper problem starts from, and the matrices that it asks for, by name
    given: dict[str, torch.Tensor] = field(default_factory=dict, compare=False)
    sizes: dict[str, int] = field(default_factory=dict, compare=False)
    solution: dict[str, torch.Tensor] = field(default_factory=dict, compare=False)
    reached: int = 0  # the last step whose tensors are right, of a class

    def __post_init__(self) -> None:
        for name in ("text", *LABELS, "code", "note", "printed"):  # they may hold any character
            object.__setattr__(self, name, visible(getattr(self, name)))

    def __bool__(self) -> bool:
        return self.passed

    @property
    def passed(self) -> bool:
        """Say whether the answer is right."""
        return self.kind == "right"

    @property
    def mistake(self) -> str | None:
        """Return the first catalogued mistake that the message names, or None."""
        return self.mistakes[0] if self.mistakes else None

    @property
    def rows(self) -> dict[str, str]:
        """Return what is wrong, what you get, what is expected and what to do, by label."""
        return {label: getattr(self, name) for name, label in LABELS.items() if getattr(self, name)}

    @property
    def place(self) -> str:
        """Return the step of a class, and the line, as text."""
        step = f"step {step_named(self.step)}" if self.step and not self.exercise else ""
        line = f"line {self.line}: `{self.code}`" if self.line else ""
        return ", ".join(filter(None, (step, line)))

    @property
    def message(self) -> str:
        """Return the whole text, without the mark and the exercise's name."""
        rows = [f"  {label:{WIDTH}}{text}" for label, text in self.rows.items()]
        return "\n".join(filter(None, (together(self.place, self.text), *rows)))

    @property
    def title(self) -> str:
        """Return the exercise's name, or the verdict on a class in one or two words."""
        kinds = {"right": "passed", "unread": "not judged"}
        return self.exercise or kinds.get(self.kind, "not yet")

    def __str__(self) -> str:
        mark, _ = MARKS.get(self.kind, WRONG_MARK)
        before = ":" if self.text else "," if self.place else ""
        head = f"{mark} {self.exercise}{before} " if self.exercise else f"{mark} "
        first, *rest = self.message.split("\n")
        if not self.text and not self.place:  # the rows are below the name
            first, rest = "", [first, *rest]
        lines = [f"{head}{first}".rstrip(), *rest, *filter(None, [self.note and f"  {self.note}"])]
        if self.printed.strip():
            lines += [wording("it_printed"), *(f"  {e}" for e in self.printed.rstrip().split("\n"))]
        return "\n".join(lines)

    def __repr__(self) -> str:
        """Return the message, which pytest then shows when an assert fails."""
        return str(self)

    @property
    def display(self) -> str:
        """Return the verdict as HTML, readable in light and dark themes."""
        mark, colour = MARKS.get(self.kind, WRONG_MARK)
        text, _, code = self.text.partition("\n")  # a declaration to paste
        code = f"<pre style='overflow-x:auto'>{escape(code)}</pre>" if code else ""
        head = " ".join(filter(None, (self.place, text)))
        rows = "".join(
            f"<tr><th scope='row' style='text-align:left;vertical-align:top;padding:0 1em 0 0;"
            f"font-weight:normal;opacity:.75;background:none'>{label}</th>"
            f"<td style='text-align:left;padding:0;background:none'>{_html(text)}</td></tr>"
            for label, text in self.rows.items()
        )
        table = f"<table style='margin:2px 0;border:0'>{rows}</table>" if rows else ""
        note = f"<div style='opacity:.75'>{_html(self.note)}</div>" if self.note else ""
        printed = (
            f"<details open><summary>{wording('it_printed')}</summary>"
            f"<pre>{escape(self.printed.rstrip())}</pre></details>"
        )
        return (
            f'<div role="group" aria-label="Verdict: {escape(self.title)}" style="border-left:4px '
            f'solid var(--jp-{colour}-color1,#757575);padding:2px 10px">{mark} '
            f"<strong>{escape(self.title)}:</strong> {_html(head)}{code}{table}{note}"
            f"{printed if self.printed.strip() else ''}</div>"
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self.display, "text/plain": str(self)}


def _html(text: str) -> str:
    return re.sub(r"`(.+?)`", r"<code>\1</code>", escape(text))


def say(name: str, step: int | None = None, /, **values: Any) -> Verdict:
    """Make the verdict of a sentence by its name, with values in its braces."""
    kind, text, hint = SENTENCES[name]
    text, hint = (" ".join(part.format(**values).split()) for part in (text, hint))
    if kind in MARKS or kind in UNJUDGED:
        return Verdict(kind, together(text, hint), step=step)
    return Verdict(kind, wrong=text, hint=hint, step=step)


def say_mistake(sentence: str, identifier: str | None = None, step: int | None = None) -> Verdict:
    """Make the verdict of a usual wrong answer: what is wrong, and what to do behind a colon."""
    wrong, hint = with_hint(sentence)
    mistakes = (identifier,) if identifier else ()
    return Verdict("mistake", wrong=wrong, hint=hint, step=step, mistakes=mistakes)


def with_hint(sentence: str) -> tuple[str, str]:
    """Split a sentence into what is wrong and a hint, which follows a colon or is a question."""
    plain = CODE.sub(lambda code: "x" * len(code[0]), re.sub(r"\([^)]*\)", _blank, sentence))
    if found := re.search(r": (?=\w+ |`|x)", plain):
        at = found.start()
        hint = sentence[at + 2 :]
        name = re.match(r"(?!a )\w\b", hint)  # a name of one letter keeps its case
        return f"{sentence[:at]}.", hint if name else f"{hint[0].upper()}{hint[1:]}"
    *others, last = re.split(r"(?<=[.?!]) (?=[A-Z`0-9])", sentence)
    return (" ".join(others), last) if others and last.endswith("?") else (sentence, "")


def _blank(found: re.Match) -> str:
    return "x" * len(found[0])


def without_code(verdict: Verdict) -> Verdict:
    """Return a verdict whose hint has no code: the first wrong try does not show the answer."""
    parts = re.split(r"(?<=[.?!]) ", verdict.hint)
    return replace(verdict, hint=" ".join(part for part in parts if not CODE.search(part)))


def honestly(judge: Callable[..., Verdict], *arguments: Any) -> Verdict:
    """Run a judge, and report an error of the judge itself as ours, not as the learner's.

    Where the environment variable ELEVEN_STEPS_STRICT is set, as in our tests, it is raised.
    """
    try:
        return judge(*arguments)
    except Exception as error:
        if os.environ.get("ELEVEN_STEPS_STRICT"):
            raise
        return say("check_failed", error=f"{type(error).__name__}: {error}")


# The words


def step_named(step: int) -> str:
    """Return a step's number and name, as a message writes them."""
    return f"{step} ({STEPS[step - 1]})"


def together(*sentences: str) -> str:
    """Join sentences; empty ones are left out."""
    return " ".join(filter(None, sentences))


def listed(names: Sequence[str], quote: str = "`") -> str:
    """Join names as a sentence lists them: `a`, `b` and `c`."""
    *others, last = (f"{quote}{name}{quote}" for name in names)
    return " and ".join(filter(None, (", ".join(others), last)))


def described(thing: Any, rows: bool = True) -> str:
    """Describe an object that is not the expected number, tensor or, if rows, matrix."""
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


def nearest(name: str, names: Iterable[str]) -> str:
    """Return the name most like a given one; "" if none is."""
    lowered = {known.lower(): known for known in reversed([*names])}
    near = difflib.get_close_matches(name.lower(), lowered, 1, 0.7)
    return lowered[near[0]] if near else ""


def sized(shape: tuple[int, ...]) -> str:
    """Describe a shape in words: one number, a row, a matrix."""
    if shape == (1,):
        return wording("row_of_one")
    name = ("one_number", "row", "matrix", "of_shape")[min(len(shape), 3)]
    return wording(name, size=" x ".join(map(str, shape)), shape=shape)
