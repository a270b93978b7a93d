"""Arrows have names, and no name covers another, a tip, or the edge of the picture."""

import itertools
import re

from eleven_steps import sliders
from eleven_steps.pictures import Arrow, draw_vectors
from eleven_steps.pictures.svg import CHARACTER
from eleven_steps.sliders.words import SENTENCES, meaning_at


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
    drawn = [draw_vectors(near, "near"), *sliders.explore_angle().pictures.values()]
    for sentence, words in SENTENCES.items():
        drawn += [meaning_at(sentence, words_read) for words_read in range(len(words.split()))]
    for picture in drawn:
        assert len(names(picture.svg)) > 1 and not over_each_other(picture.svg), picture.title
