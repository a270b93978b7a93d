"""Waiting for a page: until it has followed what was done to it, however slow the machine is.

A page follows in its own time, so nothing is looked at once, right after an act: a check is
repeated until it finds nothing wrong. A time-out here is for a page that hangs, and no test of
speed.
"""

import time

from playwright.sync_api import Browser, Error, Page, expect

PATIENCE = 60  # seconds for what takes one on a quiet machine
LONG = 5 * PATIENCE  # seconds for a notebook, whose cells may train

expect.set_options(timeout=1000 * PATIENCE)


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
STILL = """seconds => new Promise(say => {
  const end = performance.now() + 1000 * seconds;
  let before = null, same = 0;
  const look = () => {
    const all = document.querySelectorAll('.lm-Widget, svg[role=img], img, .handle');
    const places = [...all].map(each => {
      const box = each.getBoundingClientRect();
      return [box.left, box.top, box.width, box.height].join(' ');
    });
    const now = [innerWidth, innerHeight, ...places].join();
    same = now === before ? same + 1 : 0;
    before = now;
    if (same === 6 || performance.now() > end) say(same === 6);
    else requestAnimationFrame(look);
  };
  look();
})"""

# Whether JupyterLab's panels fill the window: each is placed in pixels by a script, some time after
# the window has a new size. Elsewhere the browser does it.
FILLED = """([width, height]) => {
  const place = name => document.querySelector(name)?.getBoundingClientRect();
  if (innerWidth !== width || innerHeight !== height) return false;
  if (!place('#jp-top-panel')) return true;
  const dock = place('#jp-main-dock-panel'), notebook = place('.jp-NotebookPanel');
  return place('#jp-top-panel').right === width && place('#jp-bottom-panel').bottom === height &&
    Math.abs(dock.right - place('.jp-SideBar.jp-mod-right').left) <= 1 &&
    Math.abs(dock.right - notebook.right) < 10;
}"""


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
