"""Tips and bars that are dragged: by mouse, by finger, by keyboard, and without a kernel."""

import re
import subprocess
import sys
from html import unescape

import build_site
import pytest
import torch
from lab_page import NOTEBOOKS, close, make_dark, open_notebook, run_all, serving, until
from test_notebooks_in_browser import AXE

from helpers import sliders
from helpers.examples import load_example

SET_UP = """import torch
torch.set_num_threads(1)
from helpers import sliders
from helpers.examples import load_example"""
WORDS = ["the", "ducks", "were", "swimming", "near", "the", "bank"]
MIX = f"""words = load_example("words")
table = dict(zip(words.rows["embedding"], words["embedding"], strict=True))
x = torch.stack([table[word] for word in {WORDS}])
sliders.explore_mix({WORDS}, x, "bank")"""
SHARES = "sliders.explore_shares(torch.tensor([4.0, -2.4, 8.0, 0.8]))"
NONE = "Nothing can be dragged here, for no kernel answers."
MIXED, ANGLE, BARS = range(3)


def own(which):
    """The picture that the page shows, made here."""
    words = load_example("words")
    table = dict(zip(words.rows["embedding"], words["embedding"], strict=True))
    x = torch.stack([table[word] for word in WORDS])
    return [
        lambda: sliders.explore_mix(WORDS, x, "bank"),
        sliders.explore_angle,
        lambda: sliders.explore_shares(torch.tensor([4.0, -2.4, 8.0, 0.8])),
    ][which]()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The address of a notebook with all that can be dragged."""
    sources = SET_UP, MIX, "sliders.explore_angle()", SHARES
    with serving(tmp_path_factory.mktemp("drag"), "drag.ipynb", sources) as address:
        yield address


def run(page, address):
    """Open the notebook, run it, wait until all rings stand, and return the pictures."""
    open_notebook(page, address, "drag.ipynb")
    run_all(page)
    pictures = page.locator(".drag")
    until(lambda: pictures.locator(".handle:visible").count() == 7, 30, "not all rings stand")
    return pictures.all()


@pytest.fixture
def dragged(served, page):
    """What can be dragged, in JupyterLab, its kernel running."""
    yield run(page, served)
    close(page)


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
    svg = picture.locator("svg")
    until(
        lambda: svg.get_attribute("aria-label") == now.picture.words,
        5,
        f"not {now.picture.words!r}, but {svg.get_attribute('aria-label')!r}",
    )
    shown = [each.strip() for each in svg.locator("text").all_text_contents()]
    assert shown == [unescape(each) for each in re.findall("<text[^>]*>([^<]*)<", now.picture.svg)]
    box, size = svg.bounding_box(), scale(picture)
    deeper = 18 * max(svg.locator("text").first.locator("tspan").count() - 1, 0)
    for ring, handle in zip(picture.locator(".handle").all(), now.handles, strict=True):
        at = ring.bounding_box()
        x, y = at["x"] + at["width"] / 2 - box["x"], at["y"] + at["height"] / 2 - box["y"]
        where = [handle.origin[0] + handle.value[0] * handle.unit[0]]
        where += [deeper + handle.origin[1] - handle.value[1] * handle.unit[1]]
        assert [x / size, y / size] == pytest.approx(where, abs=1.5)
        assert ring.get_attribute("aria-valuetext") == handle.says


def told(ring):
    """Return where a tip is, as it says."""
    return [
        float(each) for each in re.findall(r"-?\d+\.\d+", ring.get_attribute("aria-valuetext"))
    ][:2]


def near(ring, values):
    """Say whether a tip is at values, to a pixel or two of a finger."""
    return told(ring) == pytest.approx(values, abs=0.06)


def pull(page, ring, right, down):
    """Drag with the mouse, in pixels of the page."""
    x, y = centre(ring)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + right, y + down, steps=12)
    page.mouse.up()


@pytest.mark.browser
def test_by_mouse(dragged, page):
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
def test_bars_and_their_scale_by_mouse(dragged, page):
    bars, drag = dragged[BARS], own(BARS)
    size = scale(bars)
    values = [list(each) for each in drag.values]
    rings = bars.locator(".handle")
    pull(page, rings.nth(1), 40, -70 * size)  # sideways it does not go
    values[1] = [0, 2.6]
    compare(bars, drag, values)
    pull(page, rings.nth(4), 7 * drag.handles[4]["unit"][0] * size, 25)
    values[4] = [8, 0]
    compare(bars, drag, values)


@pytest.mark.browser
def test_a_button_leads_back_to_the_start(dragged):
    for which in (MIXED, BARS):
        picture, drag = dragged[which], own(which)
        back = picture.get_by_role("button", name="Back to the start")
        assert back.is_disabled()
        picture.locator(".handle").first.press("ArrowUp")
        until(back.is_enabled, 5, "there is no way back")
        back.press("Enter")
        compare(picture, drag, drag.start)
        until(back.is_disabled, 5, "there is a way back from the start")


@pytest.mark.browser
def test_by_keyboard(dragged, page):
    ring = dragged[MIXED].locator(".handle")
    ring.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowUp", "ArrowLeft", "ArrowDown", "ArrowDown"):
        ring.press(key)
    compare(dragged[MIXED], own(MIXED), [[1.1, 0.9]])
    assert ring.evaluate("e => e.matches(':focus-visible')"), "the picture took the focus away"
    cells = page.locator(".jp-Cell").count()
    for key in "ddbx":  # commands of a notebook, elsewhere
        ring.press(key)
    assert page.locator(".jp-Cell").count() == cells
    bars, drag = dragged[BARS], own(BARS)
    values = [list(each) for each in drag.values]
    bars.locator(".handle").first.focus()
    for key in ("ArrowUp", "ArrowRight", "Tab", "End", "Tab", "Home", "Tab", "Tab"):
        page.keyboard.press(key)
    for _ in range(14):  # faster than answers come
        page.keyboard.press("ArrowRight")
    values[0], values[1], values[2], values[4] = [0, 5], [0, 10], [0, -4], [8, 0]
    compare(bars, drag, values)


@pytest.mark.browser
def test_by_finger_on_a_phone(served, chromium):
    context = chromium.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
    page = context.new_page()
    pictures = run(page, served)
    page.keyboard.press("Control+b")  # closes the file browser
    page.wait_for_timeout(500)
    finger = context.new_cdp_session(page)
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
        until(lambda r=ring, v=values: near(r, v), 5, f"the tip is not at {values}")
        compare(pictures[which], drag, [told(ring)])
        box = ring.bounding_box()  # in sight; long lines below the plane may have to be scrolled
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390
    close(page)
    context.close()


@pytest.mark.browser
def test_without_a_kernel_it_stays_and_says_so(served, page):
    pictures = run(page, served)
    close(page)
    before = pictures[ANGLE].locator("svg").get_attribute("aria-label")
    ring = pictures[ANGLE].locator(".handle")
    ring.press("ArrowUp")
    pictures[ANGLE].get_by_text(NONE).wait_for()
    assert pictures[ANGLE].locator("svg").get_attribute("aria-label") == before
    assert ring.get_attribute("aria-disabled") == "true"


@pytest.mark.browser
def test_nothing_wrong_by_axe(dragged, page):
    for dark in (True, False):
        make_dark(page, dark)
        page.evaluate(AXE)
        found = page.evaluate("axe.run({include: [['.drag']]})")["violations"]
        assert [(p["id"], node["html"]) for p in found for node in p["nodes"]] == []


@pytest.mark.browser
def test_a_web_page_shows_how_it_begins_and_says_that_nothing_is_dragged(tmp_path, page):
    (why,) = [path for path in NOTEBOOKS if path.stem == "00_why_attention"]
    subprocess.run([sys.executable, build_site.__file__, "--to", tmp_path, why], check=True)
    page.context.set_offline(True)
    page.goto(f"{tmp_path.as_uri()}/{why.stem}.html")
    pictures = page.locator(".drag")
    until(lambda: pictures.count() == 2, 20, "not both pictures stand")
    for picture, drag in zip(pictures.all(), (own(ANGLE), own(MIXED)), strict=True):
        assert picture.locator("svg").get_attribute("aria-label") == drag.handled.picture.words
        assert picture.get_by_text(NONE).is_visible()
        assert not picture.locator(".handle:visible, button:visible").count()
    page.evaluate(AXE)
    found = page.evaluate("axe.run({preload: false, include: [['.drag']]})")["violations"]
    assert [(p["id"], node["html"]) for p in found for node in p["nodes"]] == []
