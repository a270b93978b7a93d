"""Every notebook as a learner meets it: opened, run, its sliders moved by keyboard, both themes."""

from pathlib import Path

import nbformat
import pytest
import torch
from lab_page import NOTEBOOKS, close, make_dark, open_notebook, run_all, until, walk
from look import check_looks, check_whole, look

from helpers import sliders

AXE = (Path(__file__).parent / "axe.min.js").read_text()
SVG = "image/svg+xml"
PICTURE = "svg[role=img], img[alt]"
ERRORS = "[data-mime-type='application/vnd.jupyter.stderr']"  # errors and warnings alike


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
        pictures = outputs(page, index).locator(PICTURE)
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
        if not isinstance(film, sliders.Film):
            continue
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
    measured = look(page)
    assert len(measured) >= sum(pictures_in_sight(cell) > 0 for cell in code)
    check_looks(measured)


def check_names(page):
    page.evaluate(AXE)
    rules = ["aria-input-field-name", "aria-valid-attr-value", "image-alt", "svg-img-alt", "label"]
    found = page.evaluate(
        "rules => axe.run({include: [['.jp-OutputArea-output']]}, {runOnly: rules})", rules
    )
    assert [(p["id"], node["html"]) for p in found["violations"] for node in p["nodes"]] == []
    passed = {rule["id"] for rule in found["passes"]}
    for kind, rule in {"svg[role=img]": "svg-img-alt", "img": "image-alt"}.items():
        assert rule in passed or not page.locator(f".jp-OutputArea-output {kind}").count()


WIDE = """e => e.scrollWidth <= e.clientWidth ? [] : [...e.querySelectorAll("*")]
  .filter(each => each.getBoundingClientRect().right > e.getBoundingClientRect().right)
  .slice(0, 5).map(each => each.outerHTML.slice(0, 200))"""


def check_nothing_is_cut(page):
    assert page.locator(".jp-WindowedPanel-outer").first.evaluate(WIDE) == []
    check_whole(page)
