"""The intuition before step 1: its words, its films and its pictures say what is true."""

import math
import re

import pytest
import renew
import torch
from torch import nn

from eleven_steps import sliders
from eleven_steps.sliders.words import SENTENCES
from helpers.examples import load_example

WORDS = load_example("words")
VECTORS = dict(zip(WORDS.rows["embedding"], WORDS["embedding"], strict=True))


def texts(picture):
    return re.findall(r"<text[^>]*>([^<]*)</text>", picture.svg)


def degrees(vector):
    return math.degrees(math.atan2(vector[1], vector[0]))


def in_context(words):
    """The first "bank" among words after one head without a mask, and its weights."""
    x = torch.stack([VECTORS[word] for word in words])
    weights = nn.functional.softmax(x @ x.T / math.sqrt(2), dim=1)[words.index("bank")]
    return VECTORS["bank"] + weights @ x @ WORDS["W_value"], weights


def test_context_moves_bank_one_way_in_each_sentence():
    turned = {name: in_context(said.split())[0] for name, said in SENTENCES.items()}
    assert degrees(turned["credit card"]) > 60 and degrees(turned["ducks"]) < 30


@pytest.mark.parametrize("sentence", SENTENCES)
def test_the_film_of_meaning_reads_word_by_word(sentence):
    words = SENTENCES[sentence].split()
    place = words.index("bank")
    film = sliders.explore_meaning()
    frames = {p[1]: picture for p, picture in film.pictures.items() if p[0] == sentence}
    assert list(frames) == list(range(len(words)))
    for count, picture in frames.items():
        others = [i for i in range(len(words)) if i != place][:count]
        read = sorted([place, *others])
        vector, weights = in_context([words[i] for i in read])
        shown = " ".join(word if i in read else "..." for i, word in enumerate(words))
        assert picture.title == f"{shown}: {degrees(vector):.0f} degrees"
        assert f"bank in context ({vector[0]:.2f}, {vector[1]:.2f})" in picture.description
        assert texts(picture)[-len(read) :] == [f"{weight:.2f}" for weight in weights]


IN_A_HEAD = ["02_project", "05_scores", "06_mask", "07_softmax", "08_context", "11_out_proj"]


@pytest.mark.parametrize("name", IN_A_HEAD)
def test_a_step_marks_its_place_in_the_head_that_was_written_first(name):
    """Steps 3, 4, 9 and 10 have no line in a single head."""
    why = [c.source for c in renew.read(renew.COURSE["00_why_attention"]).cells]
    head = next(source for source in why if source.startswith("def head(")).partition("\n\n\n")[0]
    told = "\n".join(c.source for c in renew.read(renew.COURSE[name]).cells)
    shown = re.search(r"^```python\n(def head\(.*?)\n```", told, re.MULTILINE | re.DOTALL)[1]
    lines = shown.splitlines()
    (place,) = (i for i, line in enumerate(lines) if "# <- this step" in line)
    code = lines[place].partition("# <- ")[0]
    lines[place : place + 1] = [code.rstrip()] * bool(code.strip())
    assert "\n".join(lines).partition("\n\n\n")[0] == head
