"""A film holds only legal positions, draws each of them, and shows the one its sliders say."""

import inspect

import ipywidgets
import pytest
import torch

from eleven_steps import sliders
from eleven_steps.beyond.variants import VariantAttention
from eleven_steps.pictures import Picture

ARGUMENTS = {
    "explore_running": (torch.tensor([1.0, 2, 0, 3]), torch.arange(8.0).view(4, 2)),
    "explore_memory": ("project.queries", "view.queries"),
    "explore_storage": ("transpose.queries", "context.context"),
    "explore_moments": ("Anna met Bert . the dog runs . Anna met",),
    "explore_cache": (
        VariantAttention(3, 16, context_length=12, dropout=0.0, num_heads=4).eval(),
        torch.linspace(-1, 1, 18).view(1, 6, 3),
    ),
}
EXPLORE = [
    name for name, _ in inspect.getmembers(sliders, inspect.isfunction) if name[:8] == "explore_"
]
NO_FILMS = {
    *("explore_arcs", "explore_motion", "explore_numbers", "explore_sentence", "explore_source"),
    *("explore_angle", "explore_mix", "explore_shares"),  # in test_drag.py
}
EXPLORE = [name for name in EXPLORE if name not in NO_FILMS]
every_film = pytest.mark.parametrize("name", EXPLORE)


@pytest.fixture(scope="module")
def films():
    """Draw every film once, on one thread: the tensors are tiny."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield {name: getattr(sliders, name)(*ARGUMENTS.get(name, ())) for name in EXPLORE}
    torch.set_num_threads(threads)


@pytest.fixture
def links(monkeypatch):
    """Record what is linked to what, as (source widget, target widget)."""
    made = []
    monkeypatch.setattr(ipywidgets, "jslink", lambda a, b: made.append((a, b)))
    return made


def say(**values):
    """Draw a picture that says which position it is for."""
    told = " ".join(f"{name}={value}" for name, value in values.items())
    return Picture("", 10 + 10 * sum(map(float, values.values())), 20, told, "A position.")


def parts(widget):
    yield widget
    for child in getattr(widget, "children", ()):
        yield from parts(child)


def reach(widget, position):
    """Return the HTML that stands at a position, walking down as its sliders would lead."""
    if isinstance(widget, ipywidgets.HTML):
        return widget
    control, below = widget.children
    if isinstance(control, ipywidgets.SelectionSlider):
        below = below.children[control.options.index(position[0])]
    return reach(below, position[1:])


@every_film
def test_every_position_of_every_film_is_drawn_at_one_width(films, name):
    film = films[name]
    assert 1 < len(film.pictures) <= 40
    assert len({picture.width for picture in film.pictures.values()}) == 1
    assert film.start in film.pictures
    for position, picture in film.pictures.items():
        assert reach(film.children[0], position).value == picture.svg
    assert sum(isinstance(w, ipywidgets.HTML) for w in parts(film.children[0])) == len(
        film.pictures
    )


@every_film
def test_a_film_fits_its_notebook(films, name):
    pictures = films[name].pictures.values()
    assert sum(len(picture.svg) for picture in pictures) < 2_000_000
    assert all(picture.width <= 848 for picture in pictures)


@every_film
def test_a_position_is_told_apart_in_the_picture_itself(films, name):
    drawn = [picture.svg for picture in films[name].pictures.values()]
    assert len(set(drawn)) == len(drawn)


@every_film
def test_the_sliders_begin_where_the_film_says(films, name):
    widget, film = films[name].children[0], films[name]
    for value in film.start:
        control, below = widget.children
        widget = below
        if isinstance(control, ipywidgets.SelectionSlider):
            assert control.value == value and below.selected_index == control.index
            widget = below.children[below.selected_index]
    assert widget.value == film.pictures[film.start].svg


def test_only_divisors_of_d_out_are_offered(films):
    for name in ("explore_view", "explore_map"):
        film = films[name]
        at = film.names.index("d_out"), film.names.index("num_heads")
        chosen = {(p[at[0]], p[at[1]]) for p in film.pictures}
        widths = {d_out for d_out, _ in chosen}
        assert chosen == {(d, h) for d in widths for h in range(1, d + 1) if d % h == 0}


def test_later_choices_depend_on_earlier_ones():
    film = sliders.film(say, d_out=(2, 3), num_heads=lambda d_out: range(1, d_out + 1))
    assert list(film.pictures) == [(2, 1), (2, 2), (3, 1), (3, 2), (3, 3)]
    titles = [picture.title for picture in film.pictures.values()]
    assert titles[2] == "d_out=3 num_heads=1" and film.start == (2, 1)


def test_each_slider_moves_the_stack_under_it_and_its_twins(links):
    film = sliders.film(say, {"a": 2, "c": 5}, a=(1, 2), c=(4, 5))
    every = [w for w in parts(film) if isinstance(w, ipywidgets.SelectionSlider)]
    stacks = [w for w in parts(film) if isinstance(w, ipywidgets.Stack)]
    assert len(every) == len(stacks) == 3
    pairs = {(id(a[0]), id(b[0])) for a, b in links}
    for widget in parts(film):
        if isinstance(widget, ipywidgets.VBox) and isinstance(
            widget.children[0], every[0].__class__
        ):
            slider, stack = widget.children
            assert (id(slider), id(stack)) in pairs
    twins = [w for w in every if w.description == "c"]
    assert (id(twins[0]), id(twins[1])) in pairs and len(links) == 4
    assert {(a[1], b[1]) for a, b in links} == {("index", "selected_index"), ("index", "index")}
    assert film.start == (2, 5)


def test_a_slider_with_one_value_is_a_label():
    film = sliders.film(say, num_heads=(1,), head=(0, 1))
    label = film.children[0].children[0]
    assert isinstance(label, ipywidgets.Label) and label.value == "number of heads (num_heads): 1"


@pytest.mark.parametrize(
    ("positions", "says"),
    [
        ({"head": ()}, "head have 0 positions: from 1 to 40 make a film"),
        ({"head": range(41)}, "head have 41 positions"),
        ({"d_out": (1, 2), "head": lambda d_out: ()}, "d_out, head have 0 positions"),
    ],
)
def test_too_few_or_too_many_positions_make_no_film(positions, says):
    with pytest.raises(ValueError, match=says):
        sliders.film(say, **positions)


def test_forty_positions_make_a_film():
    assert len(sliders.film(say, head=range(40)).pictures) == 40


def test_one_position_that_cannot_be_drawn_fails_the_film():
    def draw(head):
        return say(head=1 // (head - 2))

    with pytest.raises(ZeroDivisionError):
        sliders.film(draw, head=range(4))


def test_the_text_names_all_positions_and_changes_with_any_picture():
    plain = sliders.film(say, head=(0, 1), query=(0, 1))
    text = plain._repr_mimebundle_()["text/plain"]
    assert "head=0 query=0 A position." in text
    assert "4 positions (head, query): 0 0, 0 1, 1 0, 1 1" in text

    def other(head, query):
        picture = say(head=head, query=query)
        if head * query:
            return Picture("<g/>", picture.width, 20, picture.title, picture.description)
        return picture

    changed = repr(sliders.film(other, head=(0, 1), query=(0, 1)))
    assert changed != text and changed.splitlines()[:2] == text.splitlines()[:2]
    assert repr(sliders.film(say, head=(0, 1), query=(0, 1))) == text


def test_a_film_brings_its_view_a_still_picture_and_words():
    film = sliders.film(say, {"head": 1}, head=(0, 1))
    bundle = film._repr_mimebundle_()
    still = film.pictures[1,]
    assert bundle["image/svg+xml"] == still.svg
    words = "Run the cell to move it."
    assert bundle["text/html"] == f"{still._repr_mimebundle_()['text/html']}<p>{words}</p>"
    assert "application/vnd.jupyter.widget-view+json" in bundle


def test_films_leave_the_random_numbers_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    sliders.explore_attention()
    assert torch.equal(torch.rand(3), expected)


def test_pieces_of_storage_are_counted_in_the_title(films):
    title = films["explore_storage"].pictures[3, 1].title
    assert title == "Head 1 of 3 reads 3 pieces before step context, 1 piece after it"
    assert films["explore_storage"].start == (2, 0)
