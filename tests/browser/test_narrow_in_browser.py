"""Pictures where there is little room: on a phone, in half a window, at a zoom of 200 %."""

import re

import pytest
from lab_page import close, fold_files, open_notebook, run_all
from look import check_whole
from playwright.sync_api import expect
from waits import resize, settle, soon, until, visit

from eleven_steps import sliders
from eleven_steps.sliders.motion import MAKING, MOVING
from helpers.trace import trace

STEPS = [*MOVING, *MAKING]
SOURCES = [
    "import torch\ntorch.set_num_threads(1)\nfrom helpers import trace\n"
    "from eleven_steps import sliders\n"
    "from eleven_steps.pictures import draw_map\nmha, _ = sliders.run()",
    "sliders.explore_map()",
    "sliders.explore_numbers()",
    "sliders.explore_project()",
    'sliders.explore_memory("project.queries", "view.queries")',
    "sliders.explore_softmax()",
    *(f"sliders.explore_motion('{step}')" for step in STEPS),
    "draw_map(trace.trace(mha, sliders.tokens()))",
]
WIDTHS = (1280, 640, 390)


@pytest.fixture(scope="module")
def phone(chromium, serve):
    """A page with a finger, with all that moves and a still, its cells run, no list of files."""
    page = visit(chromium, 1280, 844, has_touch=True)
    open_notebook(page, serve("narrow.ipynb", SOURCES), "narrow.ipynb")
    run_all(page)
    page.locator(".touch .board.live").wait_for()
    expect(page.locator(".touch .controls")).to_have_count(len(STEPS))
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
    assert not phone.locator(".sideways .moves").count(), "a motion does not fit"
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

    def check():
        titles = pictures.evaluate_all(TITLES)
        assert len(titles) >= len(STEPS) - 2
        assert [title for title in titles if title != [0, []]] == []

    for width in range(390, 540, 20):
        resize(phone, width)
        soon(check)


PANELS = """board => [...board.querySelectorAll('rect[rx]')].map(rect => {
  const box = rect.getBoundingClientRect();
  return [Math.round(box.left), Math.round(box.top), Math.round(box.bottom)];
})"""


@pytest.mark.browser
def test_on_a_phone_each_step_has_a_row(phone):
    board = phone.locator(".touch .board")

    def check_rows(in_a_row):
        panels = board.evaluate(PANELS)
        assert len(panels) == 13
        assert len({left for left, _, _ in panels}) == in_a_row
        if in_a_row == 1:
            tops, bottoms = [panel[1] for panel in panels], [panel[2] for panel in panels]
            pairs = zip(tops[1:], bottoms, strict=False)
            assert all(below > above for below, above in pairs)

    for width, in_a_row in zip((1280, 760, 390), (3, 2, 1), strict=True):
        resize(phone, width)
        soon(check_rows, in_a_row)
    resize(phone, 1280)
    drawn = sliders.explore_numbers().svg
    until(lambda: board.locator("svg").get_attribute("viewBox") in drawn, "not as it was drawn")


def finger(page, *points):
    """Put a finger down, move it from point to point, and lift it."""
    touch = page.context.new_cdp_session(page)
    kinds = ["touchStart", *["touchMove"] * (len(points) - 1)]
    for kind, (x, y) in zip(kinds, points, strict=True):
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def middle(cell):
    """Return where the middle of a cell stands in the window."""
    cell.scroll_into_view_if_needed()
    box = cell.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


@pytest.mark.browser
def test_a_tap_points_a_finger_scrolls_and_drags(phone):
    resize(phone, 390)
    board = phone.locator(".touch .board")
    queries = board.locator("[data-tensor='view.queries'] > g:first-child path")
    phone.touchscreen.tap(*middle(queries.nth(1)))
    expect(board.locator(".card p").first).to_have_text(re.compile(r"^queries\[0, 0, 0, 1\] = "))
    board.press("Escape")
    x, y = middle(queries.first)
    finger(phone, *((x, y - 20 * i) for i in range(12)))
    until(lambda: queries.first.bounding_box()["y"] < y - 100, "a finger does not scroll")
    own = sliders.explore_numbers()
    x, y = middle(board.locator("[data-tensor='shape.x'] > g:first-child path").nth(8))
    finger(phone, *((x + 10 * i, y) for i in range(6)))
    own.x.view(-1)[8] += 0.5
    out = trace(own.mha, own.x)[-1].tensors["out"].flatten().tolist()
    shown = board.locator("[data-tensor='out_proj.out'] > g:last-child text")
    expect(shown).to_have_text([f"{each:.2f}" for each in out])


@pytest.mark.browser
@pytest.mark.parametrize("width", WIDTHS)
def test_what_follows_a_film_does_not_jump_while_a_slider_moves(phone, width):
    resize(phone, width)
    for film in phone.locator(".film").all():
        heights = [round(film.bounding_box()["height"])]  # before anything is touched
        for handle in film.locator("input:visible").all():
            for key in ("Home", *["ArrowRight"] * 5, "Home"):
                handle.press(key)
                settle(phone)  # each position's picture is made when it is asked for
                expect(film.locator("svg[role=img]:visible")).to_have_count(1)
                heights.append(round(film.bounding_box()["height"]))
        assert max(heights) - min(heights) <= 2, "what follows jumped"


TRANSFORMS = "all => all.map(each => each.getAttribute('transform'))"
# Press the button, and say where that leads at once, before anything can be animated.
PRESS = """glide => {
  glide.querySelector('button').click();
  return glide.querySelector('input').value;
}"""


@pytest.mark.browser
def test_motion_goes_all_the_way_on_a_phone_and_with_reduced_motion(phone):
    resize(phone, 390)
    for index, step in enumerate(STEPS):
        glide = phone.locator(".touch:has(.controls)").nth(index)
        slider, moves = glide.locator("input"), glide.locator(".moves")
        ways = sliders.explore_motion(step).narrow.ways
        expected = [
            f"translate({x:g} {y:g}) scale({(wider or [1])[0]:g} 1)" for x, y, *wider in ways
        ]
        slider.fill("1")
        until(lambda m=moves, e=expected: m.evaluate_all(TRANSFORMS) == e, f"{step} is not there")
        slider.fill("0")
        phone.emulate_media(reduced_motion="reduce")
        for end in ("1", "0"):
            assert glide.evaluate(PRESS) == end
        phone.emulate_media(reduced_motion="no-preference")
