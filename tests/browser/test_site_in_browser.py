"""The web pages from a folder, without network or kernel: pictures, sliders, links, folds."""

import os
import subprocess
import sys

import build_site
import nbformat
import pytest
from lab_page import NOTEBOOKS
from look import check_whole
from test_notebooks_in_browser import (
    AXE,
    check_errors,
    check_films,
    check_pictures,
    check_pictures_before_running,
)

# Two that follow each other, one with sliders in sliders. WHOLE_SITE=1 takes all, and minutes.
SOME = [
    path
    for path in NOTEBOOKS
    if path.stem in {"04_transpose", "05_scores"} or "WHOLE_SITE" in os.environ
]
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The address of a folder with the pages of some notebooks."""
    folder = tmp_path_factory.mktemp("site")
    subprocess.run([sys.executable, build_site.__file__, "--to", folder, *SOME], check=True)
    return folder.as_uri()


@pytest.mark.browser
def test_site(site, page):
    faults = []
    page.context.set_offline(True)
    page.on("request", lambda r: r.url.startswith((site, "data:", "blob:")) or faults.append(r.url))
    page.on("requestfailed", lambda request: faults.append(request.url))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(f"{site}/index.html")
    check_front(page)
    for path in SOME:
        cells = nbformat.read(path, as_version=4).cells
        cells = [cell for cell in cells if "lab" not in cell.metadata.get("tags", [])]
        code = [cell for cell in cells if cell.cell_type == "code"]
        page.locator(f"a[href='{path.stem}.html']").last.click()
        page.wait_for_load_state()
        check_folds(page, cells)
        check_pictures_before_running(page, code)
        check_errors(page, code)
        check_films(page, code)
        check_touch(page)
        assert not page.locator("img.jupyter-widget:visible").count()  # the film stands there
        for scheme in "dark", "light":
            page.emulate_media(color_scheme=scheme)
            check_pictures(page, code)
            check_everything(page)
        for width in 1280, 1024, 640, 390:
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate(OVERFLOW) <= 0
        check_phone(page)
        page.set_viewport_size({"width": 1280, "height": 900})
    assert faults == []


def check_phone(page):
    """Everything can be read at 390 px: laid out anew, or scrolled on its own."""
    page.wait_for_timeout(500)
    assert check_whole(page, "main")


def check_front(page):
    """The first page: its map moves by finger, on a phone its cards stand one below the other."""
    page.set_viewport_size({"width": 390, "height": 844})
    handle = page.locator(".film [role=slider]:visible").nth(1)
    track = page.locator(".film .noUi-target:visible").nth(1).bounding_box()
    shown = (
        "() => [...document.querySelectorAll('.film svg')].find(e => e.checkVisibility()).ariaLabel"
    )
    before = page.evaluate(shown)
    drag(page, handle.bounding_box(), track["x"] + track["width"])
    page.wait_for_function(f"before => ({shown})() !== before", arg=before)
    assert "d_out = 12" in page.evaluate(shown)
    check_phone(page)
    assert page.evaluate(OVERFLOW) <= 0
    lefts = page.locator(".cards li").evaluate_all("all => all.map(e => e.offsetLeft)")
    assert len(set(lefts)) == 1
    page.set_viewport_size({"width": 1280, "height": 900})
    check_everything(page)


def drag(page, box, x):
    """Drag from the middle of a box to x with one finger."""
    touch = page.context.new_cdp_session(page)
    start, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    send = lambda kind, *points: touch.send(  # noqa: E731
        "Input.dispatchTouchEvent", {"type": kind, "touchPoints": list(points)}
    )
    send("touchStart", {"x": start, "y": y})
    for part in range(1, 11):
        send("touchMove", {"x": start + (x - start) * part / 10, "y": y})
    send("touchEnd")


def check_folds(page, cells):
    """Open every answer, hint and solution by keyboard."""
    prose = "".join(cell.source for cell in cells if cell.cell_type == "markdown")
    code = [cell.metadata.get("tags", []) for cell in cells if cell.cell_type == "code"]
    folds = page.locator("main details")
    folded = sum("solution" in tags or "set-up" in tags for tags in code)
    assert folds.count() == prose.count("<details>") + folded
    for fold in folds.all():
        assert not fold.locator("> :not(summary)").first.is_visible()
        fold.locator("summary").press("Enter")
        assert fold.locator("> :not(summary)").first.is_visible()


def check_touch(page):
    """Point at a number by keyboard, and find it said that none can be dragged without a kernel."""
    board = page.locator(".touch .board")
    board.press("ArrowRight")
    assert board.locator(".card p").first.inner_text().startswith("x[0, 0, 0] = 0.43 at step 1")
    assert board.locator(".mark-to").get_attribute("d")
    assert page.get_by_text("Nothing can be dragged here, for no kernel answers.").count() == 1
    board.press("Escape")
    for glide in page.locator(".touch:has(.controls)").all():
        glide.locator("input").press("End")
        assert glide.locator(".moves[transform]").count()
        glide.locator("input").press("Home")


def check_everything(page):
    """Find nothing wrong in the page by any rule that axe knows."""
    page.evaluate(AXE)
    found = page.evaluate("axe.run({preload: false})")["violations"]  # nothing is fetched
    assert [(p["id"], node["html"]) for p in found for node in p["nodes"]] == []
