"""Tips and bars that are dragged: by mouse, by finger, by keyboard, and without a kernel."""

import re
import subprocess
import sys
from html import unescape

import build_site
import pytest
import torch
from axe import check_axe
from lab_page import (
    NOTEBOOKS,
    check_no_commands,
    close,
    fold_files,
    make_dark,
    open_folds,
    open_notebook,
    run_all,
)
from playwright.sync_api import expect
from waits import settle, soon

from eleven_steps import sliders
from helpers.examples import load_example

SET_UP = """import torch
torch.set_num_threads(1)
from eleven_steps import sliders
from helpers.examples import load_example"""
WORDS = ["the", "ducks", "were", "swimming", "near", "the", "bank"]
MIX = f"""words = load_example("words")
table = dict(zip(words.rows["embedding"], words["embedding"], strict=True))
x = torch.stack([table[word] for word in {WORDS}])
sliders.explore_mix({WORDS}, x, "bank")"""
STAGE = "sliders.explore_stage()"  # its style stands on the same page
SOURCES = (SET_UP, STAGE, MIX, "sliders.explore_angle()")
NONE = "Without a kernel each ring moves alone, in steps."
MIXED, ANGLE = range(2)


def own(which):
    """The picture that the page shows, made here."""
    words = load_example("words")
    table = dict(zip(words.rows["embedding"], words["embedding"], strict=True))
    x = torch.stack([table[word] for word in WORDS])
    return [
        lambda: sliders.explore_mix(WORDS, x, "bank"),
        sliders.explore_angle,
    ][which]()


def label(svg):
    return unescape(re.search('aria-label="([^"]*)"', svg)[1])


@pytest.fixture
def dragged(opened):
    """What can be dragged, in JupyterLab, made anew, its kernel running."""
    opened.mouse.move(5, 5)
    return run(opened)


def run(page):
    """Run the notebook, wait until all rings stand, and return the pictures."""
    run_all(page)
    pictures = page.locator(".drag")
    expect(pictures.locator(".handle:visible")).to_have_count(2)
    settle(page)
    return pictures.all()


def centre(ring):
    ring.scroll_into_view_if_needed()
    box = ring.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def scale(picture):
    """Return how many pixels of the page are one of the drawing."""
    return picture.locator("svg").evaluate(
        "e => e.getBoundingClientRect().width / e.viewBox.baseVal.width"
    )


def compare(picture, drag, values):
    """Find the picture that Python draws for these places, and the rings where they belong."""
    now = drag.draw(values)
    drawn = [unescape(each) for each in re.findall("<text[^>]*>([^<]*)<", now.picture.svg)]

    def check():
        svg = picture.locator("svg")
        assert svg.get_attribute("aria-label") == now.picture.words
        assert [each.strip() for each in svg.locator("text").all_text_contents()] == drawn
        box, size = svg.bounding_box(), scale(picture)
        assert size, "it has not been shown yet"
        deeper = 18 * max(svg.locator("text").first.locator("tspan").count() - 1, 0)
        for ring, handle in zip(picture.locator(".handle").all(), now.handles, strict=True):
            at = ring.bounding_box()
            assert at, "it has not been shown yet"
            x, y = at["x"] + at["width"] / 2 - box["x"], at["y"] + at["height"] / 2 - box["y"]
            where = [handle.origin[0] + handle.value[0] * handle.unit[0]]
            where += [deeper + handle.origin[1] - handle.value[1] * handle.unit[1]]
            assert [x / size, y / size] == pytest.approx(where, abs=1.5)
            assert ring.get_attribute("aria-valuetext") == handle.says

    soon(check)


def told(ring):
    """Return where a tip is, as it says."""
    return [
        float(each) for each in re.findall(r"-?\d+\.\d+", ring.get_attribute("aria-valuetext"))
    ][:2]


def check_near(ring, values):
    """Find a tip at values, to a pixel or two of a finger."""
    assert told(ring) == pytest.approx(values, abs=0.06)


def pull(page, ring, right, down):
    """Drag with the mouse, in pixels of the page."""
    x, y = centre(ring)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + right, y + down, steps=12)
    page.mouse.up()


@pytest.mark.browser
def test_by_mouse(dragged):
    page = dragged[MIXED].page
    unit, size = own(MIXED).handles[0]["unit"][0], scale(dragged[MIXED])
    high = dragged[MIXED].bounding_box()["height"]
    ring = dragged[MIXED].locator(".handle")
    pull(page, ring, unit * size, -unit * size / 2)
    compare(dragged[MIXED], own(MIXED), [[2, 1.5]])
    pull(page, ring, 500, 0)  # no further than it goes
    compare(dragged[MIXED], own(MIXED), [[3, 1.5]])
    assert dragged[MIXED].bounding_box()["height"] == high
    unit, size = own(ANGLE).handles[0]["unit"][0], scale(dragged[ANGLE])
    pull(page, dragged[ANGLE].locator(".handle"), -3 * unit * size, 0)
    compare(dragged[ANGLE], own(ANGLE), [[-1, 1.5]])


@pytest.mark.browser
def test_a_button_leads_back_to_the_start(dragged):
    for which in (MIXED, ANGLE):
        picture, drag = dragged[which], own(which)
        back = picture.get_by_text("Back to the start")  # in its place also while it is hidden
        expect(back).to_be_disabled()
        picture.locator(".handle").first.press("ArrowUp")
        expect(back).to_be_enabled()
        back.press("Enter")
        compare(picture, drag, drag.start)
        expect(back).to_be_disabled()


@pytest.mark.browser
def test_by_keyboard(dragged):
    page = dragged[MIXED].page
    ring = dragged[MIXED].locator(".handle")
    ring.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowUp", "ArrowLeft", "ArrowDown", "ArrowDown"):
        ring.press(key)
    compare(dragged[MIXED], own(MIXED), [[1.1, 0.9]])
    assert ring.evaluate("e => e.matches(':focus-visible')"), "the picture took the focus away"
    check_no_commands(page, ring)


@pytest.mark.browser
def test_by_finger_on_a_phone(serve, phone):
    open_notebook(phone, serve("drag_finger.ipynb", SOURCES), "drag_finger.ipynb")
    pictures = run(phone)
    fold_files(phone)
    finger = phone.context.new_cdp_session(phone)
    for which, far, values in ((MIXED, (1, 1), [2, 2]), (ANGLE, (-2, -1), [0, 0.5])):
        drag, size = own(which), scale(pictures[which])
        unit = drag.handles[0]["unit"][0] * size
        x, y = centre(pictures[which].locator(".handle"))
        for part in range(12):
            right, up = (min(part, 10) / 10 * each * unit for each in far)
            kind = "Start" if not part else "Move" if part < 11 else "End"
            points = [] if kind == "End" else [{"x": x + right, "y": y - up}]
            finger.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": points})
        ring = pictures[which].locator(".handle")
        soon(check_near, ring, values)
        compare(pictures[which], drag, [told(ring)])
        box = ring.bounding_box()  # in sight; long lines below the plane may have to be scrolled
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390


@pytest.mark.browser
def test_without_a_kernel_it_moves_in_steps_and_says_so(serve, page):
    open_notebook(page, serve("drag_alone.ipynb", SOURCES), "drag_alone.ipynb")
    pictures = run(page)
    close(page)
    before = pictures[ANGLE].locator("svg").get_attribute("aria-label")
    ring = pictures[ANGLE].locator(".handle")
    ring.press("ArrowUp")
    pictures[ANGLE].get_by_text(f"{NONE} Run the cell to move them freely.").wait_for()
    ring.press("ArrowUp")
    expect(pictures[ANGLE].locator("svg")).not_to_have_attribute("aria-label", before)


@pytest.mark.browser
def test_nothing_wrong_by_axe(dragged):
    page = dragged[MIXED].page
    for dark in (True, False):
        make_dark(page, dark)
        check_axe(page, ".drag")


@pytest.mark.browser
def test_a_web_page_shows_how_it_begins_and_moves_in_steps(tmp_path, page):
    (why,) = [path for path in NOTEBOOKS if path.stem == "00_why_attention"]
    subprocess.run([sys.executable, build_site.__file__, "--to", tmp_path, why], check=True)
    page.context.set_offline(True)
    page.goto(f"{tmp_path.as_uri()}/{why.stem}.html")
    open_folds(page)
    pictures = page.locator(".drag").all()[-2:]
    for picture, drag in zip(pictures, (own(MIXED), own(ANGLE)), strict=True):
        expect(picture.get_by_text(NONE)).to_be_visible()
        svg = picture.locator("svg")
        expect(svg).to_have_attribute("aria-label", drag.handled.picture.words)
        picture.locator(".handle").press("Home")  # the lowest of its places
        expect(svg).to_have_attribute("aria-label", label(drag.places[0][0]["svg"]))
    check_axe(page, ".drag")
