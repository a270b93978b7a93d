"""Every sentence of the checks is there once, somebody uses it, and its braces are filled."""

import ast
from pathlib import Path
from string import Formatter

from eleven_steps.checks.sentences import SENTENCES
from eleven_steps.helpers.trace import STEPS

CHECKS = Path(__file__).resolve().parents[1] / "eleven_steps" / "checks"
USERS = [*CHECKS.rglob("*.py"), *(CHECKS.parents[1] / "tools" / "grade").glob("*.py")]
NODES = [node for path in USERS for node in ast.walk(ast.parse(path.read_bytes()))]
HINTS = {f"hint_{step}" for step in STEPS}  # of the step at which something is wrong


def texts(node):
    """The texts that an expression may come to, and those of a name that is given them."""
    if isinstance(node, ast.Name):
        values = [n.value for n in NODES if isinstance(n, ast.Assign) and _names(n) & {node.id}]
        return {text for value in values for text in texts(value)}
    inside = (n.value for n in ast.walk(node) if isinstance(n, ast.Constant))
    return {text for text in inside if type(text) is str}


def _names(assign):
    return {getattr(target, "id", "") for target in assign.targets}


CALLS = [
    (node, texts(node.args[0]) & {*SENTENCES} or texts(node.args[0]))
    for node in NODES
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("say", "wording")
    if node.args and not isinstance(node.args[0], ast.JoinedStr | ast.Starred)
]


def test_every_name_that_is_said_is_there():
    assert {name for _, names in CALLS for name in names} <= SENTENCES.keys()


def test_every_sentence_is_said_by_somebody():
    written = {n.value for n in NODES if isinstance(n, ast.Constant) and type(n.value) is str}
    assert SENTENCES.keys() - written - HINTS == set()
    assert SENTENCES.keys() >= HINTS


def test_every_brace_is_filled():
    for call, names in CALLS:
        given = {word.arg for word in call.keywords}
        for name in names:
            sentence = SENTENCES[name]
            asked = Formatter().parse(f"{sentence.text} {sentence.hint}")
            assert None in given or {field for _, field, _, _ in asked if field} <= given, name


def test_no_sentence_is_there_twice():
    every = [sentence.text for sentence in SENTENCES.values()]
    assert len(every) == len({*every})
