"""Every sentence of the checks is there once, somebody uses it, and its braces are filled."""

import ast
from pathlib import Path
from string import Formatter

from eleven_steps.checks.sentences import SENTENCES
from helpers.trace import STEPS

CHECKS = Path(__file__).resolve().parents[1] / "eleven_steps" / "checks"
USERS = [*CHECKS.rglob("*.py"), *(CHECKS.parents[1] / "tools" / "grade").glob("*.py")]
FILES = [[*ast.walk(ast.parse(path.read_bytes()))] for path in USERS]
HINTS = {f"hint_{step}" for step in STEPS}  # of the step at which something is wrong


def names(node):
    """The names that an argument may come to, where it is a text, or one of two."""
    if isinstance(node, ast.IfExp):
        return names(node.body) | names(node.orelse)
    return {node.value} if isinstance(node, ast.Constant) else set()


CALLS = [
    (node, names(node.args[0]))
    for file in FILES
    for node in file
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("say", "wording")
]


def test_every_name_that_is_said_is_there():
    assert {name for _, said in CALLS for name in said} - SENTENCES.keys() == set()


def test_every_sentence_is_said_by_somebody():
    constants = [node.value for file in FILES for node in file if isinstance(node, ast.Constant)]
    written = {value for value in constants if type(value) is str}
    assert SENTENCES.keys() - written - HINTS == set()
    assert SENTENCES.keys() >= HINTS


def test_every_brace_is_filled():
    for call, said in CALLS:
        given = {word.arg for word in call.keywords}
        for name in said:
            sentence = SENTENCES[name]
            asked = Formatter().parse(f"{sentence.text} {sentence.hint}")
            assert None in given or {field for _, field, _, _ in asked if field} <= given, name
