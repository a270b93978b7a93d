"""A film holds only legal positions, draws each of them, and shows the one its sliders say."""

import json
import re

import pytest
import torch
from renew import VIEW
from traitlets import TraitError

from eleven_steps import sliders
from eleven_steps.beyond.variants import VariantAttention
from eleven_steps.checks import progress, read_class, wrong_lines
from eleven_steps.pictures import Picture
from helpers.trace import STEPS

NUMBER = r">(-?\d\.\d\d)<"  # in a cell


def before(step):
    """Name the step whose tensors a step is given."""
    return STEPS[max(STEPS.index(step) - 1, 0)]


ARGUMENTS = {
    "explore_checkpoints": ("Anna met Bert . the dog runs . Anna met",),
    "explore_cache": (
        VariantAttention(3, 16, context_length=12, dropout=0.0, num_heads=4).eval(),
        torch.linspace(-1, 1, 18).view(1, 6, 3),
    ),
}
NO_FILMS = "stage", "class", "lever"
EXPLORE = [name for name in sorted(vars(sliders)) if name.startswith("explore_")]
EXPLORE = [name for name in EXPLORE if not name.endswith(NO_FILMS)]
every_film = pytest.mark.parametrize("name", EXPLORE)


@pytest.fixture(scope="module")
def films():
    """Draw every film once."""
    return {name: getattr(sliders, name)(*ARGUMENTS.get(name, ())) for name in EXPLORE}


def say(**values):
    """Draw a picture that says which position it is for."""
    told = " ".join(f"{name}={value}" for name, value in values.items())
    return Picture("", 10 + 10 * sum(map(float, values.values())), 20, told, "A position.")


@every_film
def test_every_position_of_every_film_is_drawn_as_its_own_at_one_width(films, name):
    film = films[name]
    drawn = {position: picture.svg for position, picture in film.pictures.items()}
    assert 1 < len(drawn) <= 40 and len(set(drawn.values())) == len(drawn)
    assert film.start == film.position and film.start in drawn
    assert dict(zip(map(tuple, film.positions), film.svgs, strict=True)) == drawn
    assert len({picture.width for picture in film.pictures.values()}) == 1
    assert film.pictures[film.start].width <= 848 and sum(map(len, drawn.values())) < 2_000_000


def test_later_choices_depend_on_earlier_ones():
    film = sliders.film(say, d_out=(2, 3), num_heads=lambda d_out: range(1, d_out + 1))
    assert list(film.pictures) == [(2, 1), (2, 2), (3, 1), (3, 2), (3, 3)]
    titles = [picture.title for picture in film.pictures.values()]
    assert titles[2] == "d_out=3 num_heads=1" and film.start == (2, 1)


@pytest.fixture
def turning():
    """Return a film whose second slider has what its first one leaves."""
    heads = {4: (1, 2, 4), 6: (1, 2, 3, 6)}
    return sliders.film(
        say, {"d_out": 6, "num_heads": 2}, d_out=(4, 6), num_heads=lambda d_out: heads[d_out]
    )


def test_later_sliders_stay_where_they_may_or_go_where_they_began(turning):
    turning.d_out = 4
    assert turning.position == (4, 2)
    turning.num_heads = 4
    turning.d_out = 6
    assert turning.position == (6, 2)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("num_heads", 4, "num_heads is 4: expected one of 1, 2, 3, 6 where d_out is 6"),
        ("num_heads", None, "num_heads is None: expected one of"),
        ("d_out", "six", "d_out is 'six': expected one of 4, 6$"),
    ],
)
def test_what_is_not_legal_is_said_and_moves_nothing(turning, name, value, says):
    with pytest.raises(TraitError, match=says):
        setattr(turning, name, value)
    assert turning.position == (6, 2)


def test_a_page_moves_several_sliders_at_once_or_none(turning):
    turning.set_state({"num_heads": 4, "d_out": 4})
    assert turning.position == (4, 4)
    with pytest.raises(TraitError, match="num_heads is 5"):
        turning.set_state({"num_heads": 5, "d_out": 6})
    assert turning.position == (4, 4)


def test_a_page_gets_what_it_needs_to_move_without_a_kernel(turning):
    state = turning.get_state()
    assert state["names"] == ("d_out", "num_heads") and state["d_out"] == 6
    # From (4, 4), the third position, to (4, 4) or (6, 2), and to 1, 2 or 4 heads.
    assert state["moves"][2] == [[2, 4], [0, 1, 2]]
    assert state["labels"][1] == "number of heads (num_heads)"
    assert "render" in state["_esm"] and ".film" in state["_css"]
    assert len(state["svgs"]) == len(state["positions"]) == 7


def more(widget):
    widget.data = widget.data | {"more": 1}


STORED = {  # what answers, and a change that is out of sight at first
    "film": (lambda: sliders.film(say, head=(0, 1)), lambda film: setattr(film, "svgs", [])),
    "stage": (lambda: sliders.explore_stage("context"), more),
    "lever": (lambda: sliders.explore_lever(torch.tensor([4.0, -2.4])), more),
    "lines": (lambda: sliders.break_step(wrong_lines("reformat")), more),
    "class": (lambda: sliders.explore_class(read_class(None)), more),
}


@pytest.mark.parametrize("name", STORED)
def test_what_is_stored_is_a_still_and_words_with_a_hash_over_all_that_is_shown(name):
    make, change = STORED[name]
    widget = make()
    bundle, still = widget._repr_mimebundle_(), widget.still._repr_mimebundle_()
    text = bundle["text/plain"]
    assert text == repr(widget) == repr(make()) and text.startswith(widget.still.words)
    assert bundle["image/svg+xml"] == still["image/svg+xml"]
    assert still["text/html"] in bundle["text/html"]
    assert (VIEW in bundle) is ("Run the cell to move it." in bundle["text/html"])
    change(widget)
    assert repr(widget) != text


@pytest.mark.parametrize("number", range(1, 12))
def test_what_is_stored_of_a_stage_does_not_answer_its_question(number):
    """Before the press a step's new tensor is in no picture, no text and no number of the page."""
    step = STEPS[number - 1]
    stage = sliders.explore_stage(step, "both")
    assert not stage.data["answered"] and "?" in stage.still.title
    stored = " ".join(map(str, stage._repr_mimebundle_().values()))
    made, given = (
        set(re.findall(NUMBER, sliders.stage.still(s).svg)) for s in (step, before(step))
    )
    assert not (made - given) & set(re.findall(NUMBER, stored))
    assert f"Before step {number}, {step}" in repr(stage)


@pytest.mark.parametrize(
    "act",
    [
        sliders.explore_blocks,
        lambda: sliders.explore_stage("mask", "both"),
        lambda: sliders.break_step(wrong_lines("reformat")),
    ],
)
def test_random_numbers_are_left_alone(act):
    before = torch.random.get_rng_state()
    repr(act())
    assert torch.equal(torch.random.get_rng_state(), before)


def test_what_is_done_is_ticked_and_not_stored(tmp_path, monkeypatch):
    path = tmp_path / "progress.json"
    monkeypatch.setenv(progress.VARIABLE, str(path))
    for done, ticks in ((["mask.2", "mask.3"], []), (["mask.1"], ["mask"])):
        path.write_text(json.dumps({"course": progress.COURSE, "done": done}))
        stage = sliders.explore_stage("mask", done=progress.steps_done())
        assert stage.data["done"] == ticks and repr(stage) == repr(sliders.explore_stage("mask"))
    path.write_text("{")
    assert progress.steps_done() == set(), "a broken file is no reason for an error"
