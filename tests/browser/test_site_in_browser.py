"""The web pages from a folder, without network or kernel: pictures, sliders, links, folds."""

import os
import subprocess
import sys

import build_site
import nbformat
import pytest
from lab_page import NOTEBOOKS
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
    for path in SOME:
        cells = nbformat.read(path, as_version=4).cells
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
        for width in 1280, 1024, 640:
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate(OVERFLOW) <= 0
        page.set_viewport_size({"width": 1280, "height": 900})
    assert faults == []


def check_folds(page, cells):
    """Open every answer, hint and solution by keyboard."""
    prose = "".join(cell.source for cell in cells if cell.cell_type == "markdown")
    code = [cell.metadata.get("tags", []) for cell in cells if cell.cell_type == "code"]
    folds = page.locator("main details")
    assert folds.count() == prose.count("<details>") + sum("solution" in tags for tags in code)
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
    assert page.get_by_text("Numbers cannot be dragged here, for no kernel runs.").count() == 1
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
