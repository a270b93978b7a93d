"""Say what was found: a sentence by its name, with sizes behind letters and what else it needs."""

import difflib
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from eleven_steps.checks.know.catalogue import MISTAKES, VARIANT_MISTAKES
from eleven_steps.checks.know.sentences import SENTENCES
from eleven_steps.checks.name.outcome import Finding
from eleven_steps.checks.run.cases import MAIN, Case
from eleven_steps.checks.run.isolate import Failure, type_name


def say(name: str, step: int | None = None, /, **values: Any) -> Finding:
    """Say what was found.

    Args:
        name: a mistake of the catalogue, or a name in SENTENCES.
        step: where it was found, if not at its usual step; a mistake has few steps it can be at.
        values: what stands in the braces of the sentence; case for a mistake, whose sizes it is
            told with.
    """
    if mistake := MISTAKES.get(name) or VARIANT_MISTAKES.get(name):
        step = step if step in mistake.steps else mistake.step
        sentence = with_numbers(mistake.sentence, values.get("case", MAIN))
        return Finding(step, sentence, name, "mistake")
    usual, sentence, kind = SENTENCES[name]
    return Finding(step or usual, sentence.format(**values), kind=kind)


def say_raised(what: str, failure: Failure, case: Case, step: int | None = None) -> Finding:
    """Say what a learner's function or forward raised, and which letters its sizes are."""
    line = f", in the line `{failure.line}`" if failure.line else ""
    values = {"what": what, "error": failure.text, "where": case.where, "line": line}
    found = say("raises", step, **values)
    return replace(found, text=together(found.text, legend(failure.text, case)))


def letters(case: Case) -> str:
    """The lecture's letters and their sizes in one line, b aside."""
    return ", ".join(f"{name} = {size}" for name, size in case.letters.items() if name != "b")


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


def legend(text: str, case: Case) -> str:
    """Say which letters the sizes in an error's text are, where all sizes differ."""
    sizes = {size: name for name, size in case.letters.items()}
    text = re.sub(r"(pos|position|argument|dim|dimension) \d+", "", text)  # these are no sizes
    told = dict.fromkeys(int(each) for each in re.findall(r"\b\d+\b", text))
    named = [f"{size} is {sizes[size]}" for size in told if size in sizes and size > 1]
    distinct = len(sizes) == len(case.letters) and "TypeError" not in text  # which counts arguments
    return f"Here {', '.join(named)}." if named and distinct else ""


def from_notebook(used: dict[str, list]) -> str:
    """Name what a function reads of the notebook, as use.readings found it."""
    return ", ".join(f"`{name}` of the notebook, {what}" for name, what in used["names"])


def dropped(used: dict[str, list]) -> str:
    """Say which result the code makes and drops."""
    names = used["dropped"]
    return f"The result of `{names[0]}` is dropped: give it a name." if names else ""


def came(thing: Any, rows: bool = True) -> str:
    """Say what was handed over in place of a number, a tensor or, if rows, a matrix."""
    kind, each = type(thing), thing
    if kind not in (list, tuple):
        return f"of type {type_name(thing)}"
    if rows and thing and all(type(row) in (list, tuple) for row in thing):
        lengths = dict.fromkeys(str(len(row)) for row in thing)
        if len(lengths) > 1:
            return f"a {kind.__name__} of rows of {' and '.join(lengths)} numbers"
        each = [number for row in thing for number in row]
    odd = (f" with a {type_name(e)} in it" for e in each if type(e) not in (int, float))
    return f"a {kind.__name__}{next(odd, '')}"


def sized(shape: tuple[int, ...]) -> str:
    """Say how many numbers there are."""
    wide = " x ".join(map(str, shape))
    plain = f"a row of {wide} number{'s' * (wide != '1')}"
    return ("one number", plain, f"a {wide} matrix", f"of shape {shape}")[min(len(shape), 3)]


def unknown(identifier: Any, names: Iterable[str]) -> str:
    """Say that there is no such exercise, and name the nearest."""
    if type(identifier) is not str:
        return 'an exercise is named by a text, "scores.1" for one.'
    near = difflib.get_close_matches(identifier.lower(), list(names), n=1, cutoff=0.4)
    meant = f" Do you mean {near[0]!r}?" if near else ' They are called "scores.1" and the like.'
    return f"there is no exercise {identifier[:30]!r}.{meant}"
