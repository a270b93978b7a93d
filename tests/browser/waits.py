"""Waiting for a page: until it has followed what was done to it, however slow the machine is.

A page follows in its own time, so nothing is looked at once, right after an act: a check is
repeated until it finds nothing wrong. A time-out here is for a page that hangs, and no test of
speed.
"""

import time
from pathlib import Path

from playwright.sync_api import Browser, Error, Page, expect

PATIENCE = 60  # seconds for what takes one on a quiet machine
LONG = 5 * PATIENCE  # seconds for a notebook, whose cells may train

expect.set_options(timeout=1000 * PATIENCE)


def in_page(name: str) -> str:
    """Return a script of scripts/, a function that runs in a page."""
    return Path(__file__).with_name("scripts").joinpath(f"{name}.js").read_text("utf-8")


def soon(check, *args, seconds: float = PATIENCE):
    """Repeat check(*args) until it asserts nothing more; return what it returned."""
    deadline, pause = time.monotonic() + seconds, 0.01
    while True:
        try:
            return check(*args)
        except (AssertionError, Error):
            if time.monotonic() > deadline:
                raise
        time.sleep(pause)
        pause = min(2 * pause, 0.2)


def until(condition, complaint: str, seconds: float = PATIENCE) -> None:
    """Wait until condition() is true."""

    def check():
        assert condition(), f"{complaint} within {seconds:g} s"

    soon(check, seconds=seconds)


def turn(page: Page) -> None:
    """Let a page draw two frames: by then it has heard what was done to it, and answered.

    For what must not happen. What takes a kernel takes longer than that.
    """
    page.evaluate("() => new Promise(go => requestAnimationFrame(() => requestAnimationFrame(go)))")


# Says whether all that has a place in the page kept it for some frames; frames come later where a
# machine is slow, so that this is no length of time.
STILL = in_page("still")

# Whether JupyterLab's panels fill the window: each is placed in pixels by a script, some time after
# the window has a new size. Elsewhere the browser does it.
FILLED = in_page("filled")


def settle(page: Page) -> None:
    """Wait until panels and pictures stand still."""
    assert page.evaluate(STILL, PATIENCE), "the page does not come to rest"


def resize(page: Page, width: int, height: int | None = None) -> None:
    """Give the window a size, and wait until all in it has taken its new place."""
    height = height or page.viewport_size["height"]
    page.set_viewport_size({"width": width, "height": height})
    page.wait_for_function(FILLED, arg=[width, height])
    settle(page)


def visit(browser: Browser, width: int = 1280, height: int = 900, **options) -> Page:
    """Open a window of its own, patient with what is done in it; its context is to be closed."""
    context = browser.new_context(viewport={"width": width, "height": height}, **options)
    context.set_default_timeout(1000 * PATIENCE)
    return context.new_page()
