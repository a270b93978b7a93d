"""The bank of questions: wrong options are computed with mistakes, and none equals another."""

import re
import zipfile
from xml.etree import ElementTree

import bank
import pytest
import torch
import write_bank
from bank import KINDS, WRITTEN, make
from formats import key, moodle, package

from eleven_steps.checks.mistakes import MISTAKES
from helpers.trace import STEPS

SEEDS = 4


def checked(name, seed):
    question = make(name, seed)
    texts = [option.text for option in question.options]
    assert len(texts) == len({*map(bank.coarse, texts)}) == 4, (name, seed)
    assert all(option.why and option.text.strip() for option in question.options)
    assert "{" not in question.text.replace("{*", "") and "{" not in "".join(texts)
    wrong = [each for each in question.options if each is not question.options[question.right]]
    if name in KINDS:
        assert all(MISTAKES[each.mistake].sentence in each.why for each in wrong)
    return question


@pytest.mark.parametrize("seeds", [2, pytest.param(160, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", KINDS)
def test_four_different_options_of_which_three_are_mistakes(name, seeds):
    made = [checked(name, seed) for seed in range(seeds)]
    found = {(each.text, frozenset(option.text for option in each.options)) for each in made}
    assert len(found) >= min(seeds, 100)


def numbers(block):
    return torch.tensor([[float(each) for each in row.split()] for row in block.splitlines()])


FOLLOWS = {  # what one works out from the tables that a question prints, by their names
    "project.queries": lambda x, W_query, W_key, W_value: x @ W_query.T,
    "project.keys": lambda x, W_query, W_key, W_value: x @ W_key.T,
    "view.table": lambda queries: queries[:, 2:],
    "scores.table": lambda queries, keys: queries @ keys.T,
    "mask.table": lambda scores: scores.masked_fill(torch.ones(3, 3).triu(1) > 0, -torch.inf),
    "softmax.table": lambda masked: (masked / 3**0.5).softmax(-1),
    "context.table": lambda weights, values, queries, keys: weights @ values,
    "combine.table": lambda *heads: torch.cat(heads, -1),
    "out_proj.table": lambda context, weight, bias: context @ weight.T + bias,
}


@pytest.mark.parametrize("name", FOLLOWS)
def test_the_right_table_follows_to_the_last_digit_from_the_numbers_that_are_printed(name):
    for seed in range(SEEDS):
        question = make(name, seed)
        given = re.findall(r"(?m)^.+:\n\n((?:    .+\n)+)", question.text)
        assert len(given) == len(KINDS[name].given)
        right = numbers(question.options[question.right].text)
        worked_out = FOLLOWS[name](*map(numbers, given))
        torch.testing.assert_close(worked_out.mul(100).round().div(100), right, msg=question.name)


def test_there_are_forty_kinds_and_twenty_questions_on_every_step():
    assert len(KINDS) >= 40 and len(WRITTEN) >= 20 and not KINDS.keys() & WRITTEN.keys()
    assert {name.partition(".")[0] for name in KINDS} == {*STEPS, "class"}
    for name in WRITTEN:
        checked(name, 0)


def test_both_tests_ask_the_same_of_other_numbers():
    before, after = write_bank.tests(0).values()
    assert {write_bank.step_of(each.kind) for each in before} == {*STEPS, "class"}
    assert len(before) == 12
    for one, other in zip(before, after, strict=True):
        assert one.kind == other.kind and one.tells == other.tells != ""
        said, others = ({o.text for o in each.options} for each in (one, other))
        assert "Error" not in "".join(said)  # torch's words diagnose nothing
        assert {o.mistake for o in one.options} == {o.mistake for o in other.options}, one.kind
        assert (one.text, said) != (other.text, others)
    told = key("Key", write_bank.tests(0))
    assert all(each.tells in told for each in before)
    assert f"1: pre-test {'ABCD'[before[0].right]}, post-test {'ABCD'[after[0].right]}" in told


def some():
    return [make(name, seed) for name in ("scores.table", "scores.line") for seed in (0, 1)]


def test_moodle_gets_a_category_for_each_kind_and_one_right_answer_each():
    root = ElementTree.fromstring(moodle(some(), "Top"))
    kinds = [each.get("type") for each in root]
    assert kinds == ["category", "multichoice", "multichoice"] * 2
    assert root[0].findtext("category/text") == "$course$/top/Top/scores/scores.table"
    for element, question in zip(
        root.findall("question[@type='multichoice']"), some(), strict=True
    ):
        answers = element.findall("answer")
        right = [each.get("fraction") for each in answers].index("100")
        assert right == question.right and len(answers) == 4
        assert all(each.findtext("feedback/text").startswith("<p>") for each in answers)


def test_a_package_names_every_file_that_it_holds(tmp_path):
    package(tmp_path / "a.zip", some(), "Scores & more")
    package(tmp_path / "b.zip", some(), "Scores & more")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        trees = {name: ElementTree.fromstring(archive.read(name)) for name in archive.namelist()}
    named = {each.get("href") for each in trees["imsmanifest.xml"].iterfind(".//{*}file")}
    assert named == trees.keys() - {"imsmanifest.xml"}
    drawn = trees["test.xml"].findall(".//{*}assessmentItemRef")
    assert {each.get("href") for each in drawn} == named - {"test.xml"}
    for question in some():
        item = trees[f"items/{question.name}.xml"]
        right = "ABCD"[question.right]
        assert item.findtext(".//{*}correctResponse/{*}value") == right
        scored = [
            rule.findtext(".//{*}match/{*}baseValue")
            for rule in item.iterfind(".//{*}responseCondition")
            if rule.findtext(".//{*}setOutcomeValue[@identifier='SCORE']/{*}baseValue") == "1"
        ]
        assert scored == [right]
