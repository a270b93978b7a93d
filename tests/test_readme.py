"""The pages tell the truth: pictures, links, commands, tests that they name, the notebooks."""

import html
import re
from pathlib import Path

import pytest
import renew

from eleven_steps.beyond.checkpoints import load_sentence
from eleven_steps.beyond.grammar import WORDS
from eleven_steps.beyond.grammar import read as tokens
from eleven_steps.pictures import HEAD_COLOURS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_moving_picture_shows_the_numbers_of_the_model():
    read, drawn = load_sentence(), (ROOT / "docs" / "story.svg").read_text("utf-8")
    at = {step.name: step.tensors for step in read.steps}
    for score in at["scores"]["scores"][0, read.head, -1].tolist():
        assert f">{score:.1f}</text>".replace("-", "−") in drawn
    shares = at["softmax"]["weights"][0, read.head, -1].tolist()
    for word, share in zip(read.words, shares, strict=True):
        assert (f">{word} {share:.0%}</text>" in drawn) == (share > 0.01)
    chances = read.model(tokens(" ".join(read.words)))[0, -1].softmax(-1)
    said = f"The model's next word: “{WORDS[chances.argmax()]}”, with {chances.max():.0%}"
    assert html.escape(said) in drawn and HEAD_COLOURS[read.head] in drawn


PAGES = [page for folder in (".", "docs") for page in (ROOT / folder).glob("[!C]*.md")]
PAGES += [ROOT / "CONTRIBUTING.md"]  # the CHANGELOG may name what is no more
PAGES += [*(ROOT / ".github/workflows").glob("*.yml")]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
CODE = [path for folder in ("tests", "eleven_steps") for path in (ROOT / folder).rglob("*.py")]
DEFINED = set(re.findall(r"^def (\w+)", "".join(p.read_text("utf-8") for p in CODE), re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_commands_and_tests_that_a_page_names_exist(page):
    text = page.read_text("utf-8")
    links = {link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text)} - {""}
    links = {link for link in links if ":" not in link}
    assert [link for link in links if not page.parent.joinpath(link).exists()] == []
    assert set(re.findall(r"`make ([a-z-]+)", text)) <= TARGETS
    assert set(re.findall(r"`((?:test|check)_\w+)`", text)) <= DEFINED
    files = re.findall(r"(?:`|tests/)((?:browser/)?test_\w+\.py)", text)
    assert [name for name in files if not (ROOT / "tests" / name).is_file()] == []


def test_every_notebook_is_in_the_table():
    listed = re.findall(r"^\| \[(\w+)\]\(notebooks/(?:beyond/)?\1\.ipynb\)", README, re.MULTILINE)
    assert sorted(listed) == sorted(renew.COURSE)


def test_one_version_everywhere():
    """A tag makes a release of the version at the top of the CHANGELOG."""
    newest = re.search(r"^## (\S+) \(20", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)[
        1
    ]
    assert f'version = "{newest}"' in (ROOT / "pyproject.toml").read_text("utf-8")
    assert f"version: {newest}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
