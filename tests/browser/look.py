"""Look at pictures in a page, drawn inline or shown as images: words, size of text, contrast."""

import functools

from playwright.sync_api import Browser, Page
from waits import soon

# For every picture: its words, the size of its smallest text on the screen, its overflow, and the
# least contrast between a text and what lies behind it (the ground, and the tint of a cell).
MEASURE = """pictures => pictures.map(svg => {
  const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
  const blend = (under, over, alpha) => under.map((u, i) => u + (over[i] - u) * alpha);
  const light = c => [0.2126, 0.7152, 0.0722].reduce((sum, weight, i) => {
    const v = c[i] / 255;
    return sum + weight * (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  }, 0);
  const box = svg.getBoundingClientRect();
  const scale = box.width / svg.viewBox.baseVal.width;
  const ground = numbers(getComputedStyle(svg.querySelector('rect')).fill).slice(0, 3);
  const seen = each => !each.closest('[display=none]'); // Chromium calls such shapes visible
  const shapes = [...svg.querySelectorAll('path, rect, circle')].filter(seen);
  let small = 99, contrast = 99;
  for (const text of svg.querySelectorAll('text')) {
    if (!text.textContent.trim() || !seen(text)) continue;
    const look = getComputedStyle(text), ink = numbers(look.fill);
    small = Math.min(small, parseFloat(look.fontSize) * scale);
    const place = text.getBoundingClientRect();
    const point = svg.createSVGPoint();
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
  return {label: svg.getAttribute('aria-label'), small, contrast,
          overflow: box.right - (svg.closest('.jp-OutputArea-output') ?? document.documentElement)
            .getBoundingClientRect().right};
})"""

# Every image: whether it is there, its words, its overflow, and how much it was scaled.
IMAGES = """images => images.map(image => {
  const box = image.getBoundingClientRect();
  const area = image.closest('.jp-OutputArea-output') ?? document.documentElement;
  return {source: image.src, label: image.alt, shown: image.complete && image.naturalWidth > 0,
          scale: box.width / image.naturalWidth,
          overflow: box.right - area.getBoundingClientRect().right};
})"""

# For every drawing or image of one: how high its lowest letters are, where what scrolls it ends,
# and how much of it cannot be scrolled into sight.
PLACED = """pictures => pictures.map(picture => {
    const box = picture.getBoundingClientRect();
    const scale = box.width / (picture.viewBox?.baseVal.width ?? picture.naturalWidth);
    const sizes = picture.viewBox
      ? [...picture.querySelectorAll('text')].filter(text => text.textContent.trim())
        .map(text => parseFloat(getComputedStyle(text).fontSize)) : [0];
    let holder = picture.parentElement;
    while (holder !== document.body && !/auto|scroll/.test(getComputedStyle(holder).overflowX))
      holder = holder.parentElement;
    const frame = holder.getBoundingClientRect();
    return {label: picture.getAttribute('aria-label') ?? picture.alt,
            text: Math.min(...sizes) * scale, image: picture.src, right: frame.right,
            cut: box.right - (frame.left + holder.scrollWidth - holder.scrollLeft),
            scale, sideways: picture.parentElement.classList.contains('sideways'),
            focus: picture.parentElement.tabIndex};
})"""
DRAWN = "data:image/svg+xml;base64,"


def look(page: Page, where: str = ".jp-OutputArea-output") -> list[dict]:
    """Measure every picture in sight inside what the selector finds; images in both schemes."""
    found = page.locator(f"{where} svg[role=img]:visible").evaluate_all(MEASURE)
    for image in page.locator(f"{where} img:visible").evaluate_all(IMAGES):
        source = image.pop("source")
        assert image["shown"], f"an image that is not there: {image['label']}"
        inside = {"small": 99, "contrast": 99}
        if source.startswith(DRAWN):
            both = [drawing(page.context.browser, source, scheme) for scheme in ("light", "dark")]
            inside = {key: min(one[key] for one in both) for key in inside}
        found.append(image | inside | {"small": inside["small"] * image["scale"]})
    return found


def check_whole(page: Page, where: str = ".jp-OutputArea-output") -> list[dict]:
    """Find all pictures in sight legible, and each whole or scrolled by itself; return them."""
    return soon(_whole, page, where)


def _whole(page, where):
    width = page.viewport_size["width"]
    pictures = page.locator(f"{where} :is(svg[role=img], img[alt]):visible").evaluate_all(PLACED)
    for picture in pictures:
        source = picture.pop("image", None)
        if source and source.startswith(DRAWN):
            inside = drawing(page.context.browser, source, "light")
            picture["text"] = inside["small"] * picture["scale"]
        elif source:
            continue  # a photograph has no texts to measure
        assert picture["text"] >= 10.9, picture
        assert picture["cut"] <= 1 and picture["right"] <= width + 1, picture
    return pictures


@functools.cache
def drawing(browser: Browser, source: str, scheme: str) -> dict:
    """Measure an SVG that stands alone, in light or dark."""
    page = browser.new_page(color_scheme=scheme)
    try:
        page.goto(source)
        return page.locator("svg[role=img]").evaluate_all(MEASURE)[0]
    finally:
        page.close()


def see(page: Page, where: str = ".jp-OutputArea-output") -> list[dict]:
    """Find every picture in sight named, legible and whole, and return them."""

    def check():
        pictures = look(page, where)
        for picture in pictures:
            assert picture["label"], "a picture without words"
            assert picture["small"] >= 11, picture
            assert picture["contrast"] >= 4.5, picture
            assert picture["overflow"] <= 0.5, picture
        return pictures

    return soon(check)
