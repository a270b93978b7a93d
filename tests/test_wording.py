"""Every sentence stands once, is said by somebody, and gets what its braces ask for."""

import ast
import itertools
import re
import tomllib
from pathlib import Path
from string import Formatter

import pytest

from eleven_steps.checks.judge.tell import EXPLAINED
from eleven_steps.checks.know.catalogue import LINES, MISTAKES, OTHER_LINES, edited_source
from eleven_steps.checks.know.catalogue import VARIANT_MISTAKES as CHANGED
from eleven_steps.checks.know.sentences import OPTIONS, SENTENCES
from eleven_steps.checks.run.variant import Variant

CHECKS = Path(__file__).resolve().parents[1] / "eleven_steps" / "checks"
KNOWN = {**MISTAKES, **CHANGED, **SENTENCES}
STEP = re.compile(r"not_\d+")  # what a step would have made and is not there


def called(nodes):
    """Every call of say and wording: the names it may say, and the values that it gives."""
    for node in nodes:
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("say", "wording"):
            names = [n.value for n in leaves(node.args[0]) if isinstance(n, ast.Constant)]
            yield names, {word.arg for word in node.keywords}


def leaves(node):
    """What a conditional expression, or a choice with or, may come to."""
    if isinstance(node, ast.IfExp):
        return leaves(node.body) + leaves(node.orelse)
    if isinstance(node, ast.BoolOp):
        return [leaf for each in node.values for leaf in leaves(each)]
    return [node]


def braces(name):
    """What a sentence asks for; a mistake asks for nothing, and may be told with a case."""
    text = SENTENCES[name].text if name in SENTENCES else ""
    fields = {field for _, field, _, _ in Formatter().parse(text) if field}
    return fields - OPTIONS.keys()


def unsaid(nodes):
    """Sentences that code only compares or looks up, or not at all; "rows" is "differs_rows"."""
    asked = [node for node in nodes if isinstance(node, ast.Compare)]
    asked += [node.slice for node in nodes if isinstance(node, ast.Subscript)]
    asked = {leaf for node in asked for leaf in ast.walk(node)}
    written = {node.value for node in nodes if isinstance(node, ast.Constant) and node not in asked}
    written.update(EXPLAINED.values())
    every = SENTENCES.keys() - written
    return {n for n in every if n.removeprefix("differs_") not in written and not STEP.fullmatch(n)}


def misfilled(calls):
    """Names that are said with a value too few, or a value that none of them asks for."""
    for names, values in calls:
        asked = [braces(name) for name in names if name in SENTENCES]
        alone = all(name in SENTENCES for name in names)
        odd = alone and not values - {"case"} <= set().union(*asked)
        if asked and None not in values and (odd or not all(each <= values for each in asked)):
            yield names


def test_what_is_said_is_known_and_what_is_known_is_said():
    trees = (ast.parse(path.read_bytes()) for path in CHECKS.rglob("*.py"))
    nodes = [node for tree in trees for node in ast.walk(tree)]
    calls = [*called(nodes)]
    said = {name for names, _ in calls for name in names}
    assert said <= KNOWN.keys(), "say() names what no file of checks/know holds"
    assert not unsaid(nodes), "these stand in sentences.toml, and nobody says them"
    assert not list(misfilled(calls)), "these are not given what stands in their braces"


def test_no_name_and_no_sentence_stands_twice():
    kinds = tomllib.loads((CHECKS / "know" / "sentences.toml").read_text("utf-8")).values()
    names = [name for table in kinds for names in table.values() for name in names]
    assert len([*names, *MISTAKES, *CHANGED]) == len(KNOWN)
    texts = [getattr(said, "text", "") or said.sentence for said in KNOWN.values()]
    assert len(texts) == len({*texts})


@pytest.mark.parametrize(
    ("file", "lines", "mistakes"),
    [("mistakes.toml", LINES, MISTAKES), ("changes.toml", OTHER_LINES, CHANGED)],
)
def test_every_named_line_is_used_and_every_edit_fits(file, lines, mistakes):
    text = (CHECKS / "know" / file).read_text("utf-8").partition("\n\n[lines]\n")[2]
    edited = set(itertools.chain.from_iterable(each.edits for each in mistakes.values()))
    assert lines.keys() <= edited | {*re.findall(r"\$(\w+)", text)}
    for name, mistake in mistakes.items():
        source = edited_source(variant=Variant.of(mistake.change))
        places = {lines.get(old, old): new for old, new in mistake.edits.items()}
        assert all(source.count(old) == 1 and new != old for old, new in places.items()), name
