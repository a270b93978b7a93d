"""Look at pictures in a page, drawn inline or shown as images: words, size of text, contrast."""

import functools

from playwright.sync_api import Browser, Page
from waits import in_page, soon

# For every picture: its words, the size of its smallest text on the screen, where what scrolls it
# ends, how much of it cannot be scrolled into sight, and if it is asked for the least contrast
# between a text and what lies behind it (the ground, and the tint of a cell).
MEASURE = in_page("measure")
DRAWN = "data:image/svg+xml;base64,"


def look(page: Page, where: str = ".jp-OutputArea-output", contrasts: bool = True) -> list[dict]:
    """Measure every picture in sight inside what the selector finds; images in both schemes."""
    pictures = page.locator(f"{where} :is(svg[role=img], img):visible")
    found = pictures.evaluate_all(MEASURE, contrasts)
    for picture in found:
        source = picture.pop("source")
        assert picture["shown"], f"an image that is not there: {picture['label']}"
        if source.startswith(DRAWN):  # a photograph has no texts to measure
            both = [drawing(page.context.browser, source, scheme) for scheme in ("light", "dark")]
            picture["small"] = min(one["small"] for one in both) * picture["scale"]
            picture["contrast"] = min(one["contrast"] for one in both)
    return found


@functools.cache
def drawing(browser: Browser, source: str, scheme: str) -> dict:
    """Measure an SVG that stands alone, in light or dark."""
    page = browser.new_page(color_scheme=scheme)
    try:
        page.goto(source)
        return page.locator("svg[role=img]").evaluate_all(MEASURE, True)[0]
    finally:
        page.close()


def see(page: Page, where: str = ".jp-OutputArea-output", contrasts: bool = True) -> list[dict]:
    """Find every picture in sight named, legible, and whole or scrolled; return them."""
    width = page.viewport_size["width"]

    def check():
        pictures = look(page, where, contrasts)
        for picture in pictures:
            assert picture["label"], "a picture without words"
            assert picture["small"] >= 10.9, picture
            assert picture["contrast"] >= 4.5, picture
            assert picture["cut"] <= 1 and picture["right"] <= width + 1, picture
        return pictures

    return soon(check)


def check_whole(page: Page, where: str = ".jp-OutputArea-output") -> list[dict]:
    """Find the same where only its room has changed: contrast is not measured again."""
    return see(page, where, contrasts=False)
