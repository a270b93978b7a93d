"""A key that turns: three ways lead to its dot product, and no name covers another."""

import itertools
import math
import re

import pytest

from eleven_steps import sliders
from eleven_steps.pictures import Arrow, draw_vectors
from eleven_steps.pictures.svg import CHARACTER
from eleven_steps.sliders.words import SENTENCES, meaning_at

PLACES = sliders.explore_angle().pictures  # by degrees and length


@pytest.mark.parametrize(("degrees", "length"), PLACES)
def test_three_ways_lead_to_one_dot_product(degrees, length):
    svg = PLACES[degrees, length].svg
    found = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    lines = [each.replace("\N{NO-BREAK SPACE}", " ") for each in found[-3:]]
    dot = f"{3 * length * math.cos(math.radians(degrees)) + 1e-9:.2f}"
    assert found[0] == f"query . key = {dot}"
    for line in lines:
        way, _, result = line.partition("  ")[2].strip().rpartition(" = ")
        made = eval(way.replace(" x ", "*"), {"cos": lambda each: math.cos(math.radians(each))})
        assert result == dot and made == pytest.approx(float(dot), abs=0.021)
    assert len(names(svg)) == 2 and not over_each_other(svg)


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


def test_no_name_stands_over_another_at_tips_that_are_near():
    arrows = [Arrow("bank alone", (1, 1), "dashed"), Arrow("bank", (1.67, 1.14), "strong")]
    svg = draw_vectors(arrows, "near").svg
    assert len(names(svg)) == 2 and not over_each_other(svg)


@pytest.mark.parametrize("sentence", SENTENCES)
def test_no_name_stands_over_another_while_a_sentence_is_read(sentence):
    for words_read in range(len(SENTENCES[sentence].split())):
        svg = meaning_at(sentence, words_read).svg
        assert len(names(svg)) > 1 and not over_each_other(svg), words_read
