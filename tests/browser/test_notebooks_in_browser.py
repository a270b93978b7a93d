"""Every notebook as a learner meets it: opened, run, its sliders moved by keyboard, both themes."""

from pathlib import Path

import nbformat
import pytest
import torch
from lab_page import NOTEBOOKS, close, open_notebook, run_all, until, walk

from helpers import sliders

AXE = (Path(__file__).parent / "axe.min.js").read_text()
SVG = "image/svg+xml"
ERRORS = "[data-mime-type='application/vnd.jupyter.stderr']"  # errors and warnings alike

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
  const shapes = [...svg.querySelectorAll('path, rect, circle')];
  let small = 99, contrast = 99;
  for (const text of svg.querySelectorAll('text')) {
    if (!text.textContent.trim()) continue;
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
          overflow: box.right - svg.closest('.jp-OutputArea-output').getBoundingClientRect().right};
})"""


@pytest.mark.browser
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(lab, page, path):
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    open_notebook(page, lab, path.name)
    check_pictures_before_running(page, code)
    run_all(page)
    check_errors(page, code)
    check_films(page, code)
    check_pictures(page, code)
    check_names(page)
    page.set_viewport_size({"width": 1024, "height": 900})
    check_nothing_is_cut(page)
    page.set_viewport_size({"width": 640, "height": 450})  # 1280 x 900 at a zoom of 200 %
    check_nothing_is_cut(page)
    page.set_viewport_size({"width": 1280, "height": 900})
    make_dark(page)
    check_pictures(page, code)
    close(page)


def outputs(page, index):
    """Locate the outputs of a code cell."""
    return page.locator(".jp-CodeCell").nth(index).locator(".jp-OutputArea-output")


def pictures_in_sight(cell):
    """Count the pictures that a cell shows; a solution is folded."""
    if "solution" in cell.metadata.get("tags", []):
        return 0
    return sum(SVG in output.get("data", {}) for output in cell.outputs)


def check_pictures_before_running(page, code):
    for index, cell in enumerate(code):
        stored = pictures_in_sight(cell)
        pictures = outputs(page, index).locator("svg[role=img]")
        until(lambda p=pictures, n=stored: p.count() >= n, 10, f"no picture of {cell.source}")


def check_errors(page, code):
    for index, cell in enumerate(code):
        intended = "raises-exception" in cell.metadata.get("tags", [])
        errors = page.locator(".jp-CodeCell").nth(index).locator(ERRORS)
        if intended:
            errors.wait_for()
        assert errors.count() == intended, cell.source


def check_films(page, code):
    for index, cell in enumerate(code):
        if not cell.source.startswith("sliders.explore_"):
            continue
        film = film_of(code, index)
        svgs = page.evaluate(AS_THE_PAGE_HAS_IT, [p.svg for p in film.pictures.values()])
        expected = dict(zip((tuple(map(str, p)) for p in film.pictures), svgs, strict=True))
        shown = {
            tuple(one["position"]): one["pictures"]
            for one in walk(outputs(page, index).locator(".film"))
        }
        assert shown == {position: [svg] for position, svg in expected.items()}, cell.source


def film_of(code, index):
    """Make the film of a cell here; where it needs them, run the cells before it first."""
    names = {"sliders": sliders}
    try:
        return eval(code[index].source, names)
    except NameError:
        with torch.no_grad():  # leaves this process's own setting as it was
            for cell in code[:index]:
                exec(cell.source, names)
        return eval(code[index].source, names)


AS_THE_PAGE_HAS_IT = """svgs => svgs.map(svg => {
  const holder = document.createElement('div');
  holder.innerHTML = svg;
  return holder.innerHTML;
})"""


def check_pictures(page, code):
    measured = page.locator(".jp-OutputArea-output svg[role=img]:visible").evaluate_all(MEASURE)
    stored = [cell for cell in code if pictures_in_sight(cell)]
    assert len(measured) >= len(stored)
    for picture in measured:
        assert picture["label"], "a picture without words"
        assert picture["small"] >= 11, picture
        assert picture["contrast"] >= 4.5, picture
        assert picture["overflow"] <= 0.5, picture


def check_names(page):
    page.evaluate(AXE)
    rules = ["aria-input-field-name", "aria-valid-attr-value", "image-alt", "svg-img-alt", "label"]
    found = page.evaluate(
        "rules => axe.run({include: [['.jp-OutputArea-output']]}, {runOnly: rules})", rules
    )
    assert [(p["id"], node["html"]) for p in found["violations"] for node in p["nodes"]] == []
    if page.locator(".jp-OutputArea-output svg[role=img]").count():
        assert "svg-img-alt" in {rule["id"] for rule in found["passes"]}


def check_nothing_is_cut(page):
    wide = page.locator(".jp-WindowedPanel-outer").first
    assert wide.evaluate("e => e.scrollWidth - e.clientWidth") <= 0
    for picture in page.locator(".jp-OutputArea-output svg[role=img]:visible").evaluate_all(
        MEASURE
    ):
        assert picture["overflow"] <= 0.5, picture


def make_dark(page):
    page.get_by_role("menuitem", name="Settings", exact=True).click()
    page.get_by_text("Theme", exact=True).hover()
    page.get_by_text("JupyterLab Dark", exact=True).click()
    page.wait_for_selector("body[data-jp-theme-light=false]", state="attached")
    page.wait_for_timeout(300)
