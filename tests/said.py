"""What the checks say to known answers, whole, as a person has read it: a TOML file for each test.

An answer stands there as a learner types it, and behind it what is said. A new one gets any text;
RENEW_SAID=1 in the environment writes down what is said now, and `git diff` is read.
"""

import itertools
import linecache
import os
import re
import tomllib
from pathlib import Path

from eleven_steps.checks import check_attention

FOLDER = Path(__file__).parent / "said"
numbers = itertools.count()


def answers(name):
    """The answers of a file, each with what was read."""
    return tomllib.loads((FOLDER / f"{name}.toml").read_text("utf-8"))


def as_read(name, said):
    """Return what was read of these answers; with RENEW_SAID write down what is said now."""
    path = FOLDER / f"{name}.toml"
    if os.environ.get("RENEW_SAID"):
        path.parent.mkdir(exist_ok=True)
        lines = (f"{quoted(answer)} = {quoted(message)}\n" for answer, message in said.items())
        path.write_text("".join(lines), "utf-8")
    read = answers(name)
    return {answer: read[answer] for answer in said}


def quoted(text):
    """Return a text as TOML has it, in quotation marks that it does not hold if that goes."""
    if "'" not in text and "\n" not in text:
        return f"'{text}'"
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def typed(source, scope, mode="exec"):
    """Run what a learner types in a cell; tracebacks know its lines, as IPython keeps them."""
    file = f"<cell {next(numbers)}>"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    return eval(compile(source, file, mode), scope)


def verdict_on(source, scope):
    """What is said of a class as it is typed, `Base, {"hide": ...}`: a class and other parts.

    Behind them may stand the change that it has, or a dictionary of what is told besides.
    """
    base, parts, *more = typed(source, {**scope}, "eval")
    told = (
        more[0]
        if more and isinstance(more[0], dict)
        else dict(zip(["variant"], more, strict=False))
    )
    verdict = check_attention(type("Mine", (base,), parts) if parts else base, **told)
    said = f"{verdict.mistake or verdict.kind}: {verdict}"
    return re.sub(r"Line \d+, |(?<=line) \d+", "", said)  # that of a test's file
