"""What follows from a handle's place is what the notebooks' own lines give, wherever it is."""

import itertools
import json
import math
import re

import numpy as np
import pytest
import renew
import torch

from eleven_steps import sliders
from eleven_steps.pictures.svg import CHARACTER, TITLE_HEIGHT, number
from eleven_steps.sliders.words import SENTENCES, meaning_at
from helpers.examples import load_example

WORDS = load_example("words")
VECTORS = dict(zip(WORDS.rows["embedding"], WORDS["embedding"], strict=True))
DUCKS = SENTENCES["ducks"].split()
X = torch.stack([VECTORS[word] for word in DUCKS])
MAKE = {
    "mix": lambda: sliders.explore_mix(DUCKS, X, "bank"),
    "angle": sliders.explore_angle,
}
TIPS = [(1.0, 1.0), (0.0, 0.0), (3.0, 3.0), (3.0, 0.0), (0.0, 2.35), (2.17, 0.4)]
every_one = pytest.mark.parametrize("name", MAKE)


@pytest.fixture
def ask():
    """Ask a picture as a page does, and return its answer."""
    turns = itertools.count()

    def asked(drag, values=None, **more):
        drag.asked = {"values": values or drag.values, "turn": next(turns)} | more
        return json.loads(json.dumps(drag.drawn))  # as it travels

    return asked


def drawn(answer):
    """Return what was drawn, whichever question it answers."""
    return {name: each for name, each in answer.items() if name != "turn"}


def texts(svg):
    found = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    return [each.replace("\N{NO-BREAK SPACE}", " ") for each in found]


def source(name, beginning):
    """Return the one cell of a notebook that begins so."""
    cells = renew.read(renew.COURSE[name]).cells
    (cell,) = [each.source for each in cells if each.source.startswith(beginning)]
    return cell


@pytest.mark.parametrize("tip", TIPS, ids=str)
def test_a_word_becomes_what_the_lines_of_the_notebook_make_of_it(ask, tip):
    moved = X.clone()
    moved[-1] = torch.tensor(tip)
    cell = source("00_why_attention", "sentence = [").splitlines()
    names = {"torch": torch, "x": moved, "example": WORDS}
    exec("\n".join(line for line in cell if line.startswith(("weights", "context"))), names)
    weights, context = (names[each][-1].tolist() for each in ("weights", "context"))
    y = (moved[-1] + names["context"][-1]).tolist()
    scores = (moved @ moved[-1] / math.sqrt(2)).tolist()
    shown = texts(ask(MAKE["mix"](), [tip])["svg"])
    table = [number(each) for pair in zip(scores, weights, strict=True) for each in pair]
    assert shown[-len(table) - 3 : -3] == table
    for line, vector in zip(shown[-3:], (context, tip, y), strict=True):
        assert line.endswith(f"({vector[0]:.2f}, {vector[1]:.2f})")
    assert shown[0].startswith(f"bank takes {max(weights):.2f} from ")


def test_a_word_without_length_takes_the_same_from_each(ask):
    shown = texts(ask(MAKE["mix"](), [[0, 0]])["svg"])
    assert shown.count("0.14") == len(DUCKS) and shown[0] == "bank takes 0.14 from every word"


@pytest.mark.parametrize("key", [(2.0, 1.5), (-3.0, 2.0), (3, -2), (0, -1.3), (-1, 0)], ids=str)
def test_three_ways_lead_to_one_dot_product(ask, key):
    shown = texts(ask(sliders.explore_angle(), [key])["svg"])
    dot = f"{3 * key[0] + 0.0:.2f}"
    assert shown[0] == f"query . key = {dot}"
    feature, cast, turned = shown[-3:]
    for line in (feature, cast, turned):
        way, _, result = line.partition("  ")[2].strip().rpartition(" = ")
        assert result == dot
        made = eval(way.replace(" x ", "*"), {"cos": lambda each: math.cos(math.radians(each))})
        assert made == pytest.approx(3 * key[0], abs=0.03)
    angle = np.degrees(np.arctan2(abs(key[1]), key[0]))
    assert f"cos({angle:.1f})" in turned


def test_a_key_without_length_has_no_angle(ask):
    answer = ask(sliders.explore_angle(), [[0, 0]])
    assert texts(answer["svg"])[-1] == "lengths and angle   without length there is no angle"
    assert "nan" not in answer["svg"].lower()


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


@pytest.mark.parametrize("name", ["mix", "angle"])
def test_no_name_stands_over_another_wherever_a_tip_is(name):
    drag = MAKE[name]()
    (handle,) = drag.handled.handles
    across, up = (np.linspace(*ends, 13) for ends in zip(handle.low, handle.high, strict=True))
    for tip in itertools.product(across, up):
        svg = drag.draw([list(map(float, tip))]).picture.svg
        assert len(names(svg)) > 1 and not over_each_other(svg), tip


@pytest.mark.parametrize("sentence", SENTENCES)
def test_no_name_stands_over_another_while_a_sentence_is_read(sentence):
    for words_read in range(len(SENTENCES[sentence].split())):
        svg = meaning_at(sentence, words_read).svg
        assert len(names(svg)) > 1 and not over_each_other(svg), words_read


@every_one
def test_the_paper_stays_as_large_as_it_is(ask, name):
    drag = MAKE[name]()
    size = re.compile(r'viewBox="([^"]*)"')
    every = [place for places in drag.places for place in places]
    sizes = {size.search(svg)[1] for svg in [drag.svg, *(place["svg"] for place in every)]}
    assert len(sizes) == 1 and 36 <= len(every) <= 40


@every_one
def test_what_a_page_shows_without_a_kernel_is_what_the_kernel_draws(ask, name):
    drag = MAKE[name]()
    for handle, places in zip(drag.handles, drag.places, strict=True):
        for end in ("low", "high"):  # both ends are there
            assert any(list(handle[end]) in place["values"] for place in places)
    for place in (each for places in drag.places for each in places[::7]):
        answer = ask(drag, place["values"])
        assert (answer["svg"], answer["says"]) == (place["svg"], place["says"])


@pytest.mark.parametrize("name", ["mix", "angle"])
@pytest.mark.parametrize("tip", [(1, 1), (0.5, 1.75), (3, 0)], ids=str)
def test_the_handle_lies_on_the_tip_that_it_moves(ask, name, tip):
    drag = MAKE[name]()
    svg = ask(drag, [tip])["svg"]
    tips = re.findall(r'<path d="M([\d.]+) ([\d.]+)L[^"]*z"', svg)
    handle = drag.handles[0]
    x = handle["origin"][0] + tip[0] * handle["unit"][0]
    y = handle["origin"][1] - tip[1] * handle["unit"][1]
    where = [(float(a) + 2, float(b) + TITLE_HEIGHT) for a, b in tips]
    assert any(math.dist((x, y), each) < 0.2 for each in where)


def test_no_handle_leaves_its_bounds_and_what_is_no_place_is_not_taken(ask):
    drag = MAKE["mix"]()
    assert ask(drag, [[9, -9]])["values"] == [[3, 0]]
    assert ask(drag, [[math.nan, 2]])["values"] == [[3, 2]]
    drag = sliders.explore_angle()
    assert ask(drag, [[-9, 9]])["values"] == [[-3, 2]]


def test_a_page_that_asks_for_nothing_gets_what_stands_there(ask):
    drag = MAKE["mix"]()
    first = ask(drag, turn=7)
    assert first["turn"] == 7
    assert first["svg"] == drag.svg and first["values"] == [[1, 1]]
    moved = ask(drag, [[2, 0.5]])
    assert moved["svg"] != drag.svg
    assert drawn(ask(drag)) == drawn(moved)
    assert torch.equal(X[-1], torch.ones(2)), "the notebook's own x stays"


@every_one
def test_what_is_stored_is_the_beginning_and_a_hash_over_its_places(name):
    drag = MAKE[name]()
    bundle = drag._repr_mimebundle_()
    assert bundle["image/svg+xml"] == drag.handled.picture.svg == drag.svg
    assert bundle["text/html"].endswith("<p>Run the cell to move it.</p>")
    assert repr(MAKE[name]()) == bundle["text/plain"]
    draw = drag.draw
    last = [list(drag.handled.handles[-1].high)]

    def other(values):
        return draw([[0.5, 0]] * len(values) if values[-1:] == last else values)

    drag.draw = other  # other at one end alone
    drag.places = drag.alone()
    assert repr(drag) != bundle["text/plain"]
