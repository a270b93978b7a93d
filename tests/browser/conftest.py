"""One JupyterLab and one Chromium for all the browser tests of a process."""

import os
from pathlib import Path

import pytest
from lab_page import CHROMIUM, QUIET, close, jupyterlab, put, write
from playwright.sync_api import sync_playwright
from waits import visit

FOLDER = Path(__file__).parent
# Whole notebooks and the site take longest.
LONG = ("test_notebooks_in_browser", "test_site_in_browser")


def pytest_collection_modifyitems(items):
    """Mark the tests of this folder; put long ones first, so that none is left alone in the end."""
    for item in items:
        if item.path.is_relative_to(FOLDER):
            item.add_marker("browser")
    items.sort(key=lambda item: not any(name in item.nodeid for name in LONG))


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
def folder(tmp_path_factory):
    """The folder that JupyterLab serves."""
    return tmp_path_factory.mktemp("lab")


@pytest.fixture(scope="session")
def lab(folder):
    """The address of a JupyterLab that serves what is put into the folder."""
    with jupyterlab(folder, ()) as address:
        yield address


@pytest.fixture(scope="session")
def serve(lab, folder, tmp_path_factory):
    """Serve another notebook of code cells: serve(name, sources) returns its address."""

    def serve(name, sources):
        put(folder, write(tmp_path_factory.mktemp("written") / name, sources))
        return lab

    return serve


@pytest.fixture
def page(chromium):
    """An empty page, 1280 px wide."""
    yield from visited(chromium)


@pytest.fixture
def phone(chromium):
    """An empty page on a phone, with a finger."""
    yield from visited(chromium, 390, 844, has_touch=True)


def visited(chromium, *size, **options):
    """Open a page, and in the end shut its kernel down and close it."""
    page = visit(chromium, *size, **options)
    yield page
    if page.url.startswith("http"):
        close(page)
    page.context.close()
