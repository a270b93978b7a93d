"""Look at pictures in a page, drawn inline or shown as images: words, size of text, contrast."""

import functools

from playwright.sync_api import Browser, Page
from waits import soon

# For every picture: its words, the size of its smallest text on the screen, where what scrolls it
# ends, how much of it cannot be scrolled into sight, and if it is asked for the least contrast
# between a text and what lies behind it (the ground, and the tint of a cell).
MEASURE = """(pictures, contrasts) => pictures.map(picture => {
  const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
  const blend = (under, over, alpha) => under.map((u, i) => u + (over[i] - u) * alpha);
  const light = c => [0.2126, 0.7152, 0.0722].reduce((sum, weight, i) => {
    const v = c[i] / 255;
    return sum + weight * (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  }, 0);
  const box = picture.getBoundingClientRect();
  const scale = box.width / (picture.viewBox?.baseVal.width ?? picture.naturalWidth);
  const seen = each => !each.closest('[display=none]'); // Chromium calls such shapes visible
  const shapes = [...picture.querySelectorAll('path, rect, circle')].filter(seen);
  const ground = shapes[0] && numbers(getComputedStyle(shapes[0]).fill).slice(0, 3);
  let small = 99, contrast = 99;
  for (const text of picture.querySelectorAll('text')) {
    if (!text.textContent.trim() || !seen(text)) continue;
    const look = getComputedStyle(text), ink = numbers(look.fill);
    small = Math.min(small, parseFloat(look.fontSize) * scale);
    if (!contrasts) continue;
    const place = text.getBoundingClientRect();
    const point = picture.createSVGPoint();
    let under = ground;
    for (const shape of shapes.slice(1)) {
      const style = getComputedStyle(shape);
      if (style.fill === 'none' || !shape.getScreenCTM()) continue;
      point.x = (place.left + place.right) / 2;
      point.y = (place.top + place.bottom) / 2;
      if (shape.isPointInFill(point.matrixTransform(shape.getScreenCTM().inverse()))) {
        const fill = numbers(style.fill);
        under = blend(under, fill, parseFloat(style.fillOpacity) * (fill[3] ?? 1));
      }
    }
    const over = blend(under, ink, (ink[3] ?? 1) * parseFloat(look.fillOpacity));
    const [high, low] = [light(over), light(under)].sort((a, b) => b - a);
    contrast = Math.min(contrast, (high + 0.05) / (low + 0.05));
  }
  let holder = picture.parentElement ?? picture;
  while (holder.parentElement && !/auto|scroll/.test(getComputedStyle(holder).overflowX))
    holder = holder.parentElement;
  const frame = holder.getBoundingClientRect(), reach = holder.scrollWidth - holder.scrollLeft;
  return {label: picture.getAttribute('aria-label') ?? picture.alt, small, contrast, scale,
          source: picture.src ?? '', shown: picture.complete !== false && box.width > 0,
          right: frame.right, cut: box.right - frame.left - reach,
          sideways: picture.parentElement?.classList.contains('sideways'),
          focus: picture.parentElement?.tabIndex};
})"""
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
