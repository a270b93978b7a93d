"""Whom a word reads: arcs, numbers and words say what the softmax gave, and refuse what it cannot
have given."""

import re
import xml.etree.ElementTree as ET

import pytest
import torch

from eleven_steps import sliders
from eleven_steps.beyond.grammar import read
from eleven_steps.beyond.moments import load_moments, load_sentence
from eleven_steps.beyond.tiny import patterns
from eleven_steps.pictures import Head, draw_arcs, tell_words
from eleven_steps.pictures.reading import width_of
from eleven_steps.pictures.svg import head_colour

SVG = "{http://www.w3.org/2000/svg}"
LONG = "Anna met Bert . the dogs near the old tree run . Anna met"


@pytest.fixture(scope="module")
def real():
    return load_sentence()


@pytest.fixture(scope="module")
def weights(real):
    """The softmax of the real sentence, done here."""
    masked = real.steps[5].tensors["masked"][0]  # (num_heads, num_tokens, num_tokens)
    return torch.softmax(masked / real.layer.head_dim**0.5, dim=-1)


@pytest.fixture(scope="module")
def heads(real):
    every = real.steps[6].tensors["weights"][0]
    return [Head(each, number) for number, each in enumerate(every)]


def groups(picture, kind, i):
    """Return the groups of a kind that belong to a word, one a head."""
    svg = ET.fromstring(picture.svg)
    return [g for g in svg.iter() if g.get("class") == kind and g.get("data-word") == str(i)]


def numbers_of(group):
    return [int(text.text) for text in group.iter(f"{SVG}text")]


def test_the_row_of_numbers_is_the_softmax(real, heads, weights):
    drawn = draw_arcs(heads, real.words)
    for i in range(len(real.words)):
        rows = groups(drawn, "shares", i)
        expected = (100 * weights[:, i, : i + 1]).round().int().tolist()
        assert [numbers_of(row) for row in rows] == expected  # what comes later is left empty


def test_an_arc_leads_to_each_word_that_is_read_as_thick_as_its_share(real, heads, weights):
    drawn, wide = draw_arcs(heads, real.words), width_of(real.words)
    for i in range(len(real.words)):
        for head, group in enumerate(groups(drawn, "reads", i)):
            ends, lines = [], []
            for path in group.iter(f"{SVG}path"):
                if path.get("stroke-width"):
                    lines.append(float(path.get("stroke-width")))
                else:  # the tip stands on the word that is read
                    ends.append(float(re.search(r"L([\d.]+)", path.get("d"))[1]) // wide)
            row = weights[head, i]
            read_by_it = [j for j, share in enumerate(row) if round(100 * share.item())]
            assert ends == read_by_it
            assert lines == pytest.approx([1 + 4 * row[j].item() for j in read_by_it], abs=0.01)
            assert group[0].get("stroke") == group[0].get("fill") == head_colour(head)


def test_words_tell_what_the_softmax_gave(real, heads, weights):
    told = plain(tell_words(heads, real.words))
    assert len(told) == len(real.words)
    for i, lines in enumerate(told):
        for head, line in enumerate(lines):
            name, _, said = line.partition(" attends to ")
            assert name == f"head {head}: {called(real.words, i)}"
            left = weights[head, i].clone()
            for each in said.split(", "):
                who, share = re.fullmatch(r"(.+) (\d+) %", each).groups()
                if others := re.fullmatch(r"(\d+) others?", who):
                    assert int((left > 0).sum()) == int(others[1])
                    assert round(100 * left.sum().item()) == int(share)
                    continue
                words = [called(real.words, j) for j in range(len(real.words))]
                j = i if who == "itself" else words.index(who)
                assert j == left.argmax(), "the largest first"
                assert round(100 * left[j].item()) == int(share)
                left[j] = 0
    assert told[5][1] == 'head 1: "met" (word 5) attends to "Bert" 100 %'


def plain(told):
    """Return lines with spaces where no line may end: between each number and its sign."""
    assert not re.search(r"\d[ \n]%", str(told))
    return [[line.replace("\N{NO-BREAK SPACE}%", " %") for line in lines] for lines in told]


def called(words, i):
    return f'"{words[i]}"' + (f" (word {i})" if words.count(words[i]) > 1 else "")


def test_small_shares_are_told_as_a_sum():
    even = torch.full((7, 7), 1 / 7)
    told = plain(tell_words([Head(even, 0)], list("abcdefg")))
    most = 'head 0: "b" attends to "a" 14 %, itself 14 %, "c" 14 %, "d" 14 %, 3 others 43 %'
    assert told[1] == [most]


def test_the_last_word_stands_out_and_the_title_says_whom_it_reads(real, heads):
    drawn = draw_arcs(heads, real.words)
    for i in range(len(real.words)):
        last = i == len(real.words) - 1
        shown = [None if last else "none"] * 2
        assert [g.get("display") for g in groups(drawn, "shares", i)] == shown
        faded = [None if last else "0.15"] * 2
        assert [g.get("opacity") for g in groups(drawn, "reads", i)] == faded
    assert plain([[drawn.title]]) == [['Head 1: "met" (word 5) attends to "Bert" 100 %']]
    layered = [Head(heads[1].weights, 1, layer=1)]
    assert draw_arcs(layered, real.words).title.startswith('Layer 1, head 1: "met"')


def test_heads_of_the_trained_model_read_a_sentence():
    every = patterns(load_moments()[-1].model, read(LONG))
    arcs = sliders.explore_sentence(LONG, (0, 2), (1, 1))
    names = re.findall("<figcaption>(.*?)<", arcs.page)
    assert names == ["layer 0, head 2", "layer 1, head 1"]
    for i in range(14):
        rows = [numbers_of(row) for row in groups(arcs.still, "shares", i)]
        for row, weights in zip(rows, (every[0][0, 2], every[1][0, 1]), strict=True):
            assert row == (100 * weights[i, : i + 1]).round().int().tolist()
    assert sliders.explore_sentence("Anna met").page.count("<figcaption>") == 5  # every head
