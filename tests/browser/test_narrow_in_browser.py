"""Pictures where there is little room: on a phone, in half a window, at a zoom of 200 %."""

import pytest
from lab_page import close, fold_files, open_notebook, run_all
from look import check_whole
from playwright.sync_api import expect
from waits import resize, settle, soon, visit

SOURCES = [
    "import torch\ntorch.set_num_threads(1)\nfrom helpers import trace\n"
    "from eleven_steps import sliders\n"
    "from eleven_steps.pictures import draw_map\nmha, _ = sliders.run()",
    "sliders.explore_blocks()",
    "sliders.explore_models()",
    "sliders.explore_meaning()",
    "sliders.explore_angle()",
    "draw_map(trace.trace(mha, sliders.tokens()))",
]
WIDTHS = (1280, 640, 390)


@pytest.fixture(scope="module")
def phone(chromium, serve):
    """A page with a finger, with all that moves and a still, its cells run, no list of files."""
    page = visit(chromium, 1280, 844, has_touch=True)
    open_notebook(page, serve("narrow.ipynb", SOURCES), "narrow.ipynb")
    run_all(page)
    expect(page.locator(".film")).to_have_count(4)
    fold_files(page)
    yield page
    close(page)
    page.context.close()


# Whether a still fits, and whether it says that it is wider than the page.
HINT = """e => [e.scrollWidth <= e.clientWidth, getComputedStyle(e, '::before').height !== '0px']"""


@pytest.mark.browser
@pytest.mark.parametrize("width", WIDTHS)
def test_every_number_can_be_read_and_nothing_is_cut(phone, width):
    resize(phone, width)
    pictures = phone.locator(".jp-OutputArea-output :is(svg[role=img], img[alt]):visible")
    expect(pictures).to_have_count(len(SOURCES) - 1)
    pictures = check_whole(phone)
    assert len(pictures) == len(SOURCES) - 1
    for picture in pictures:
        assert picture["focus"] == (0 if picture["sideways"] else -1), picture
    if width == 1280:
        assert not any(picture["sideways"] for picture in pictures)
    still = phone.locator(".wide:has(img)").evaluate(HINT)
    assert still == [width == 1280, width < 1280]


# Of pictures that fit: how far their title sticks out, and lines that begin inside a shape.
TITLES = """pictures => pictures.filter(e => !e.closest('.sideways')).map(svg => {
  const right = svg.getBoundingClientRect().right;
  const title = svg.querySelector(':scope > g > text').getBoundingClientRect();
  const cut = [...svg.querySelectorAll('tspan')].filter(e => /^[\\d, ]*\\)/.test(e.textContent));
  return [Math.max(0, Math.round(title.right - right)), cut.map(e => e.textContent)];
})"""


@pytest.mark.browser
def test_lines_are_broken_where_they_may_be(phone):
    pictures = phone.locator(".jp-OutputArea-output svg[role=img]:visible")

    seen = []

    def check():
        titles = pictures.evaluate_all(TITLES)
        assert [title for title in titles if title != [0, []]] == []
        seen.extend(titles)

    for width in range(390, 1290, 100):
        resize(phone, width)
        soon(check)
    assert seen  # on a phone every picture may be scrolled


@pytest.mark.browser
@pytest.mark.parametrize("width", WIDTHS)
def test_what_follows_a_film_does_not_jump_while_a_slider_moves(phone, width):
    resize(phone, width)
    for film in phone.locator(".film").all():
        heights = [round(film.bounding_box()["height"])]  # before anything is touched
        for handle in film.locator("input:visible").all():
            for key in ("Home", *["ArrowRight"] * 5):
                handle.press(key)
                settle(phone)  # each position's picture is made when it is asked for
                expect(film.locator("svg[role=img]:visible")).to_have_count(1)
                heights.append(round(film.bounding_box()["height"]))
        assert max(heights) - min(heights) <= 2, "what follows jumped"
