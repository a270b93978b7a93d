"""Answers as learners type them, in TOML files with what a person has read of each.

A new one gets any text; RENEW_SAID=1 in the environment writes down what is said now, and
`git diff` is read.
"""

import itertools
import linecache
import os
import re
import tomllib
from pathlib import Path

FOLDER = Path(__file__).parent / "said"
LABELS = ("Wrong:", "You get:", "Expected:", "Hint:")  # of the rows of a message, in their order
MOST_WORDS = 60  # of a message, each piece of code and each size counted as one
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


def words(verdict):
    """Count the words of a message, each piece of code and each size as one."""
    return len(re.sub(r"`[^`]+`|\w+ = \d+", "one", verdict.message).split())


def assert_formed(verdict):
    """Assert that a message has the one form: a head, then its rows in order, and no empty one."""
    head, *rows = str(verdict).removesuffix(f"\n  {verdict.note}").split("\n")
    if head[0] == "?":  # A declaration to paste follows, as code.
        return
    assert head[0] in "✓✗→○" and head == head.strip() and verdict.message, verdict
    labels = [row[2:12].strip() for row in rows]
    assert labels == [label for label in LABELS if label in labels], verdict
    assert all(row[:2] == "  " and row[12:].strip() for row in rows), verdict
    assert verdict.passed is (head[0] == "✓") and (rows or head[0] != "✗" or verdict.text), verdict
    assert words(verdict) <= MOST_WORDS and verdict.display, verdict
