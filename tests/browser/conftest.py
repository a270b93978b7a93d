"""One JupyterLab and one Chromium for all the browser tests of a process."""

import os

import pytest
from lab_page import CHROMIUM, NOTEBOOKS, QUIET, jupyterlab
from playwright.sync_api import sync_playwright


@pytest.fixture(scope="session")
def chromium():
    """Headless Chromium; where it is missing the tests are skipped, or fail if REQUIRE_BROWSER."""
    if not CHROMIUM:
        missing = "no chromium on this machine: install it (Debian: apt-get install chromium)"
        (pytest.fail if os.environ.get("REQUIRE_BROWSER") else pytest.skip)(missing)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    """The address of a JupyterLab that serves copies of all notebooks."""
    with jupyterlab(tmp_path_factory.mktemp("lab"), NOTEBOOKS) as address:
        yield address


@pytest.fixture
def page(chromium):
    """An empty page, 1280 px wide."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    yield context.new_page()
    context.close()
