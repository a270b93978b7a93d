"""The web pages from a folder, without network or kernel: pictures, sliders, links, folds."""

import os
import subprocess
import sys

import nbformat
import pytest
from axe import check_axe
from lab_page import NOTEBOOKS
from look import check_whole
from playwright.sync_api import expect
from test_notebooks_in_browser import (
    check_errors,
    check_films,
    check_pictures,
    check_pictures_before_running,
    check_stages,
)
from waits import resize, settle, until

# One with a stage and one with a film.
SOME = ["00_start_here", "00_tensors"]
MORE = ["01_shape", "00_why_attention"]
# Without the questions, which take as long as the rest: test_questions_in_browser.py has them.
BUILD = """import build_site
build_site.by_step = dict
build_site.main()"""
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module", params=[SOME, pytest.param(MORE, marks=pytest.mark.nightly)])
def site(request, tmp_path_factory):
    """The address of a folder with the pages of some notebooks, and these."""
    paths = [path for path in NOTEBOOKS if path.stem in request.param]
    folder = tmp_path_factory.mktemp("site")
    own = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", BUILD, "--to", folder, *paths]
    subprocess.run(command, check=True, env=own)
    return folder.as_uri(), paths


def test_site(site, page):
    (site, paths), faults = site, []
    page.context.set_offline(True)
    page.on("request", lambda r: r.url.startswith((site, "data:", "blob:")) or faults.append(r.url))
    page.on("requestfailed", lambda request: faults.append(request.url))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(f"{site}/index.html")
    for path in paths:
        cells = nbformat.read(path, as_version=4).cells
        cells = [cell for cell in cells if "lab" not in cell.metadata.get("tags", [])]
        code = [cell for cell in cells if cell.cell_type == "code"]
        page.locator(f"a[href='{path.stem}.html']").last.click()
        page.wait_for_load_state()
        check_folds(page, cells)
        check_pictures_before_running(page, code)
        check_errors(page, code)
        check_films(page, code, most=1)  # all of them are walked through in JupyterLab
        check_stages(page, code)
        # Where a picture answers, its still is gone.
        expect(page.locator("img.jupyter-widget:visible")).to_have_count(0)
        for scheme in "dark", "light":
            page.emulate_media(color_scheme=scheme)
            check_pictures(page, code)
            check_axe(page)
        for width in 1280, 1024, 640, 390:
            resize(page, width, 900)
            until(lambda: page.evaluate(OVERFLOW) <= 0, f"wider than {width} px")
        check_phone(page)
        resize(page, 1280, 900)
    assert faults == []


def check_phone(page):
    """Everything can be read at 390 px: laid out anew, or scrolled on its own."""
    settle(page)
    # A stage sees to itself, and may be all there is.
    assert check_whole(page, "main") or page.locator("[data-stage]").count()


FOLDED = {"deeper", "picture", "set-up", "solution"}


def check_folds(page, cells):
    """Open every answer, hint and solution by keyboard."""
    prose = "".join(cell.source for cell in cells if cell.cell_type == "markdown")
    folds = page.locator("main details")
    folded = sum(bool(FOLDED & {*cell.metadata.get("tags", [])}) for cell in cells)
    expect(folds).to_have_count(prose.count("<details>") + folded)
    for fold in folds.all():
        inside = fold.locator("> :not(summary)").first
        expect(inside).to_be_hidden()
        fold.locator("> summary").press("Enter")
        expect(inside).to_be_visible()
