"""The intuition before step 1: its words, its films and its pictures say what is true."""

import itertools
import math
import re

import pytest
import renew
import torch
from torch import nn

from eleven_steps import sliders
from eleven_steps.pictures import Arrow, draw_vectors
from eleven_steps.pictures.svg import CHARACTER
from eleven_steps.sliders.words import SENTENCES, meaning_at
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


def names(svg):
    """Return each arrow's name with its left end, its right end and its line."""
    found = re.findall(r'<text x="(\S+)" y="(\S+)"( text-anchor="end")? paint.*?>(.*?)</text>', svg)
    ends = []
    for x, y, to_the_left, name in filter(lambda each: each[3], found):
        left = float(x) - (CHARACTER * len(name) if to_the_left else 0)
        ends.append((name, left, left + CHARACTER * len(name), float(y)))
    return ends


def over_each_other(svg):
    """Return the names that stand over each other or over a tip, or reach out of the picture."""
    clash = [
        (one[0], two[0])
        for one, two in itertools.combinations(names(svg), 2)
        if one[1] < two[2] and two[1] < one[2] and abs(one[3] - two[3]) < 12
    ]
    tips = [tuple(map(float, tip)) for tip in re.findall(r'd="M(\S+) (\S+)L[^"]*z"', svg)]
    clash += [
        (name, tip)
        for (name, left, right, y), tip in itertools.product(names(svg), tips)
        if left < tip[0] < right and y - 9 < tip[1] < y + 2
    ]
    return clash + [(name, left, y) for name, left, _, y in names(svg) if left < 0 or y < 10]


def test_no_name_stands_over_another():
    near = [Arrow("bank alone", (1, 1), "dashed"), Arrow("bank", (1.67, 1.14), "strong")]
    drawn = [draw_vectors(near, "near")]
    for sentence, words in SENTENCES.items():
        drawn += [meaning_at(sentence, words_read) for words_read in range(len(words.split()))]
    for picture in drawn:
        assert len(names(picture.svg)) > 1 and not over_each_other(picture.svg), picture.title
