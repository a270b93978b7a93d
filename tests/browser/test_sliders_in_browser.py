"""Sliders as a learner meets them: on a phone, after a restart, before anything is saved."""

import lab as course
import pytest
from lab_page import NOTEBOOKS, fold_files, open_notebook, put, run_all
from playwright.sync_api import expect
from waits import resize, settle, soon, turn, until

START = next(path for path in NOTEBOOKS if path.stem == "00_start_here")
UNSAVED = ".jp-Document.jp-mod-dirty, .lm-DockPanel .jp-mod-dirty"

# Where the parts of each slider in sight stand, from the left and the top of the film.
PARTS = """film => [...film.querySelectorAll('.sliders > div')].map(slider => {
    const edge = film.getBoundingClientRect();
    const place = name => {
      const box = slider.querySelector(name).getBoundingClientRect();
      return {left: box.left - edge.left, right: edge.right - box.right, width: box.width,
              top: box.top - edge.top, bottom: box.bottom - edge.top};
    };
    return {label: place('label'), value: place('output'), track: place('input')};
  })"""


@pytest.mark.browser
def test_sliders(lab, folder, page, tmp_path):
    copy = tmp_path / f"my_{START.name}"
    course.copy(START, copy)  # as `make lab` copies it
    open_notebook(page, lab, put(folder, copy))
    page.wait_for_timeout(1000)  # nothing tells that it will not ask later
    assert not page.locator(UNSAVED).count(), "an untouched notebook asks to be saved"
    run_all(page)
    fold_files(page)
    check_save(page)
    check_tab(page)
    check_room(page)
    check_in_sight(page)
    check_restarted(page)


def check_save(page):
    handle = page.locator(".film input:visible").first
    handle.press("ArrowRight")
    expect(page.locator(UNSAVED), "running changed nothing").not_to_have_count(0)
    handle.press("Control+s")
    expect(page.locator(UNSAVED), "Ctrl+S on a handle saved nothing").to_have_count(0)
    cells = page.locator(".jp-Cell").count()
    handle.press("a")  # a letter is JupyterLab's command for another cell, but not from here
    turn(page)
    assert page.locator(".jp-Cell").count() == cells


def check_tab(page):
    """Tab goes from handle to handle: the values beside them are no text fields."""
    handles = page.locator(".film").first.locator("input:visible")
    handles.first.focus()
    for handle in handles.all()[1:]:
        page.keyboard.press("Tab")
        expect(handle).to_be_focused()


def check_room(page):
    """Label and value share a line; on a narrow page the track has the next one to itself."""
    film = page.locator(".film").first

    def check(width):
        for slider in film.evaluate(PARTS):
            label, value, track = slider["label"], slider["value"], slider["track"]
            assert label["top"] < value["bottom"] and value["top"] < label["bottom"]
            assert min(label["left"], value["right"], track["left"], track["right"]) >= 0
            assert label["width"] > 60 and value["width"] > 6 and track["width"] > 100
            assert (track["top"] >= label["bottom"] - 1) is (width < 700), width

    for width in 1280, 640, 390:
        resize(page, width, 844)
        soon(check, width)
    resize(page, 1280, 900)


def check_in_sight(page):
    """While a tall picture is scrolled, all its sliders stay in sight, one below the other."""
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


def check_restarted(page):
    """Without the kernel that made it a film moves as before."""
    film = page.locator(".film").first
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


SOURCES = [
    "from eleven_steps import sliders\nview = sliders.explore_view()\nview",
    "view.num_heads = 3",
    "try:\n    view.num_heads = 4\nexcept Exception as error:\n    print(error)",
    "view.position",
    "view.d_out = 4",
]


@pytest.mark.browser
def test_a_cell_moves_a_film_and_sees_it_moved(opened):
    run_all(opened)
    cells, output = opened.locator(".jp-CodeCell"), opened.locator(".film output")
    says = "num_heads is 4: expected one of 1, 2, 3, 6 where d_out is 6"
    expect(cells.nth(2)).to_contain_text(says)
    expect(cells.nth(3)).to_contain_text("(6, 3)")
    expect(output).to_have_text(["4", "2"])
    opened.get_by_label("number of heads").press("End")
    expect(output).to_have_text(["4", "4"])
    cells.nth(3).locator(".cm-content").click()
    opened.keyboard.press("Control+Enter")
    expect(cells.nth(3)).to_contain_text("(4, 4)")
