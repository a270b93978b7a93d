"""Sliders as a learner meets them: on a phone, after a restart, before anything is saved."""

import lab as course
import pytest
from lab_page import NOTEBOOKS, close, jupyterlab, open_notebook, run_all, until

START = next(path for path in NOTEBOOKS if path.stem == "00_start_here")
UNSAVED = ".jp-Document.jp-mod-dirty, .lm-DockPanel .jp-mod-dirty"

# Where the parts of each slider in sight stand, from the left and the top of the film.
PARTS = """film => [...film.querySelectorAll('.widget-slider')]
  .filter(slider => slider.checkVisibility()).map(slider => {
    const edge = film.getBoundingClientRect();
    const place = name => {
      const box = slider.querySelector(name).getBoundingClientRect();
      return {left: box.left - edge.left, right: edge.right - box.right, width: box.width,
              top: box.top - edge.top, bottom: box.bottom - edge.top};
    };
    return {label: place('label'), value: place('.widget-readout'),
            track: place('.noUi-target'), handle: place('[role=slider]'),
            chain: [slider, ...slider.querySelectorAll('*')]
              .some(e => e.matches('.jupyter-widgets-disconnected')
                         && getComputedStyle(e, '::before').display !== 'none')};
  })"""


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    """The address of a JupyterLab with a notebook as `make lab` copies it."""
    copy = tmp_path_factory.mktemp("copies") / START.name
    course.copy(START, copy)
    with jupyterlab(tmp_path_factory.mktemp("mine"), [copy]) as address:
        yield address


@pytest.mark.browser
def test_sliders(mine, page):
    open_notebook(page, mine, START.name)
    page.wait_for_timeout(1000)
    assert not page.locator(UNSAVED).count(), "an untouched notebook asks to be saved"
    run_all(page)
    page.keyboard.press("Control+b")  # the file browser leaves a phone no room
    check_save(page)
    check_tab(page)
    check_room(page)
    check_in_sight(page)
    check_restarted(page)
    close(page)


def check_save(page):
    handle = page.locator(".film [role=slider]:visible").first
    handle.press("ArrowRight")
    until(lambda: page.locator(UNSAVED).count(), 10, "running changed nothing")
    handle.press("Control+s")
    until(lambda: not page.locator(UNSAVED).count(), 10, "Ctrl+S on a handle saved nothing")
    cells = page.locator(".jp-Cell").count()
    handle.press("a")  # a letter is JupyterLab's command for another cell, but not from here
    page.wait_for_timeout(300)
    assert page.locator(".jp-Cell").count() == cells


def check_tab(page):
    """Tab goes from handle to handle: the values beside them are no text fields."""
    handles = page.locator(".film").first.locator("[role=slider]:visible")
    handles.first.focus()
    for handle in handles.all()[1:]:
        page.keyboard.press("Tab")
        assert handle.evaluate("handle => handle === document.activeElement")


def check_room(page):
    """Label and value share a line; on a narrow page the track has the next one to itself."""
    for width in 1280, 640, 390:
        page.set_viewport_size({"width": width, "height": 844})
        page.wait_for_timeout(300)
        for slider in page.locator(".film").first.evaluate(PARTS):
            label, value, track = slider["label"], slider["value"], slider["track"]
            assert label["top"] < value["bottom"] and value["top"] < label["bottom"]
            assert min(label["left"], value["right"], track["left"], track["right"]) >= 0
            assert label["width"] > 60 and value["width"] > 6 and track["width"] > 100
            assert (track["top"] >= label["bottom"] - 1) is (width < 700), width
    page.set_viewport_size({"width": 1280, "height": 900})


def check_in_sight(page):
    """While a tall picture is scrolled, all its sliders stay in sight, one below the other."""
    film = page.locator(".film").first
    tall = film.bounding_box()["height"]
    page.set_viewport_size({"width": 1280, "height": 500})
    film.evaluate("film => film.scrollIntoView()")
    film.hover()
    page.mouse.wheel(0, tall / 2)
    page.wait_for_timeout(500)
    panel = page.locator(".jp-WindowedPanel-outer").first.bounding_box()
    boxes = [h.bounding_box() for h in film.locator("[role=slider]:visible").all()]
    tops = [box["y"] - panel["y"] for box in boxes]
    assert tops == sorted(tops) and tops[0] >= 0 and tops[-1] < 100, tops
    assert min(b - a for a, b in zip(tops, tops[1:], strict=False)) > 20
    page.set_viewport_size({"width": 1280, "height": 900})


def check_restarted(page):
    """Without the kernel that made it a film shows no broken chain, stays aligned and moves."""
    film = page.locator(".film").first
    page.get_by_role("menuitem", name="Kernel", exact=True).click()
    page.get_by_text("Restart Kernel…", exact=True).click()
    page.get_by_role("button", name="Confirm Kernel Restart").click()
    page.locator(".jupyter-widgets-disconnected").first.wait_for(state="attached", timeout=30_000)
    sliders = film.evaluate(PARTS)
    assert not any(slider["chain"] for slider in sliders)
    assert len({slider["label"]["left"] for slider in sliders}) == 1
    shown = "film => [...film.querySelectorAll('svg')].find(e => e.checkVisibility()).outerHTML"
    before = film.evaluate(shown)
    film.locator("[role=slider]:visible").first.press("ArrowLeft")
    page.wait_for_timeout(500)
    assert film.evaluate(shown) != before
    page.wait_for_selector("text=Python 3 (ipykernel) | Idle", timeout=60_000)
