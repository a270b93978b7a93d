"""Films as a learner meets them: moved by a cell, on a phone, zoomed, after a restart."""

import pytest
from lab_page import check_no_commands, close, fold_files, open_notebook, run_all
from look import check_whole
from playwright.sync_api import expect
from waits import in_page, resize, settle, soon, until, visit

SOURCES = [
    "import torch\ntorch.set_num_threads(1)\nfrom helpers import trace\n"
    "from eleven_steps import sliders\n"
    "from eleven_steps.pictures import draw_map\nmha, _ = sliders.run()",
    "blocks = sliders.explore_blocks()\nblocks",
    "sliders.explore_models()",
    "sliders.explore_meaning()",
    "draw_map(trace.trace(mha, sliders.tokens()))",
    "blocks.num_heads = 3",
    "try:\n    blocks.head = 4\nexcept Exception as error:\n    print(error)",
    "blocks.position",
    "blocks.num_heads = 6\nprint('below\\n' * 40)",
]
PICTURES = 4
UNSAVED = ".jp-Document.jp-mod-dirty, .lm-DockPanel .jp-mod-dirty"

# Where the parts of each slider in sight stand, from the left and the top of the film.
PARTS = in_page("parts")

# Whether a still fits, and whether it says that it is wider than the page.
HINT = """e => [e.scrollWidth <= e.clientWidth, getComputedStyle(e, '::before').height !== '0px']"""


@pytest.fixture(scope="module")
def page(chromium, serve):
    """A page with a finger, with films and a still, its cells run, no list of files."""
    page = visit(chromium, 1280, 844, has_touch=True)
    open_notebook(page, serve("films.ipynb", SOURCES), "films.ipynb")
    run_all(page)
    expect(page.locator(".film")).to_have_count(PICTURES - 1)
    fold_files(page)
    yield page
    close(page)
    page.context.close()


def test_a_cell_moves_a_film_and_sees_it_moved(page):
    cells, film = page.locator(".jp-CodeCell"), page.locator(".film").first
    says = "head is 4: expected one of 0, 1, 2 where num_heads is 3"
    expect(cells.nth(6)).to_contain_text(says)
    expect(cells.nth(7)).to_contain_text("(3, 0)")
    expect(film.locator("output")).to_have_text(["6", "0"])
    film.get_by_label("head", exact=True).press("End")
    expect(film.locator("output")).to_have_text(["6", "5"])
    cells.nth(7).locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    expect(cells.nth(7)).to_contain_text("(6, 5)")


def test_keys_save_and_go_from_slider_to_slider(page):
    handles = page.locator(".film").first.locator("input:visible")
    handles.first.press("ArrowLeft")
    expect(page.locator(UNSAVED), "running changed nothing").not_to_have_count(0)
    handles.first.press("Control+s")
    expect(page.locator(UNSAVED), "Ctrl+S on a handle saved nothing").to_have_count(0)
    check_no_commands(page, handles.first)
    page.keyboard.press("Tab")  # the values beside handles are no text fields
    expect(handles.nth(1)).to_be_focused()


def check_room(film, width):
    """Label and value share a line; on a narrow page the track has the next one to itself."""
    for slider in film.evaluate(PARTS):
        label, value, track = slider["label"], slider["value"], slider["track"]
        assert label["top"] < value["bottom"] and value["top"] < label["bottom"]
        assert min(label["left"], value["right"], track["left"], track["right"]) >= 0
        assert label["width"] > 60 and value["width"] > 6 and track["width"] > 100
        assert (track["top"] >= label["bottom"] - 1) is (width < 700), width


@pytest.mark.parametrize("width", (1280, pytest.param(640, marks=pytest.mark.nightly), 390))
def test_every_number_can_be_read_nothing_is_cut_and_nothing_jumps(page, width):
    resize(page, width)
    pictures = page.locator(".jp-OutputArea-output :is(svg[role=img], img[alt]):visible")
    expect(pictures).to_have_count(PICTURES)
    placed = check_whole(page)
    assert len(placed) == PICTURES
    for picture in placed:
        assert picture["focus"] == (0 if picture["sideways"] else -1), picture
        assert not (width == 1280 and picture["sideways"])
    still = page.locator(".wide:has(img)").evaluate(HINT)
    assert still == [width == 1280, width < 1280]
    for film in page.locator(".film").all():
        soon(check_room, film, width)
        heights = [round(film.bounding_box()["height"])]  # before anything is touched
        for handle in film.locator("input:visible").all():
            for key in ("Home", "ArrowRight", "End"):
                handle.press(key)
                settle(page)  # each position's picture is made when it is asked for
                heights.append(round(film.bounding_box()["height"]))
        assert max(heights) - min(heights) <= 2, "what follows jumped"


def test_sliders_stay_in_sight_and_move_without_the_kernel(page):
    film = page.locator(".film").first
    tall = film.bounding_box()["height"]
    resize(page, 1280, 500)
    film.evaluate("film => film.scrollIntoView()")
    film.hover()
    page.mouse.wheel(0, tall / 2)
    panel = page.locator(".jp-WindowedPanel-outer").first

    def check():
        top = panel.bounding_box()["y"]
        assert film.bounding_box()["y"] < top - tall / 4, "it is not scrolled"
        handles = film.locator("input:visible").all()
        tops = [handle.bounding_box()["y"] - top for handle in handles]
        assert tops == sorted(tops) and tops[0] >= 0 and tops[-1] < 100, tops
        assert min(b - a for a, b in zip(tops, tops[1:], strict=False)) > 20

    soon(check)
    settle(page)
    check()
    resize(page, 1280, 900)
    page.get_by_role("menuitem", name="Kernel", exact=True).click()
    page.get_by_text("Restart Kernel…", exact=True).click()
    with page.expect_response(lambda response: "/restart" in response.url):
        page.get_by_role("button", name="Confirm Kernel Restart").click()
    page.locator("text=Python 3 (ipykernel) | Idle").wait_for()
    settle(page)
    shown = "film => film.querySelector('svg').outerHTML"
    before = film.evaluate(shown)
    film.locator("input:visible").first.press("ArrowLeft")
    until(lambda: film.evaluate(shown) != before, "without its kernel it does not move")
