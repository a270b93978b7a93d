"""Words that are pointed at, by mouse, by keyboard and by finger; in a page without a kernel."""

import subprocess
import sys

import build_site
import pytest
from lab_page import NOTEBOOKS, make_dark, open_notebook, serving
from look import check_looks, look
from test_notebooks_in_browser import AXE

from helpers import sliders
from helpers.moments import load_sentence

SOURCES = (
    "import torch\ntorch.set_num_threads(1)\nfrom helpers import moments, sliders",
    'real = moments.load_sentence()\nreal_weights = real.steps[6].tensors["weights"]',
    "sliders.explore_arcs(real_weights[0], real.words)",
)
ANNA, MET, BERT, LAST = 0, 1, 2, 5
# Which words' arcs are strong, and which words' numbers are seen; for each head.
SHOWN = """el => {
  const of = (kind, holds) => [...el.querySelectorAll(kind)].filter(holds)
    .map(each => Number(each.dataset.word));
  return {reads: of('.reads', each => getComputedStyle(each).opacity === '1'),
          shares: of('.shares', each => getComputedStyle(each).display !== 'none')};
}"""


@pytest.fixture(scope="module")
def told():
    """What is told of each word, made here."""
    real = load_sentence()
    return sliders.explore_arcs(real.steps[6].tensors["weights"][0], real.words).told


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The address of a notebook with a sentence to point at."""
    with serving(tmp_path_factory.mktemp("arcs"), "arcs.ipynb", SOURCES) as address:
        yield address


def opened(page, served):
    """Open the notebook, run it, and return the picture."""
    open_notebook(page, served, "arcs.ipynb")
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()
    arcs = page.locator(".arcs")
    arcs.locator(".sheet").wait_for(timeout=60_000)
    return arcs


@pytest.fixture
def arcs(served, page):
    """The picture in JupyterLab."""
    return opened(page, served)


def word(arcs, i, head=1):
    """Locate the place of a word in the drawing of a head."""
    return arcs.locator(f".word[data-word='{i}']").nth(head)


def check_shown(arcs, told, i):
    """Find one word's arcs and numbers, in both heads, and its words."""
    assert arcs.evaluate(SHOWN) == {"reads": [i, i], "shares": [i, i]}
    assert arcs.locator(".told > [aria-live] p").all_inner_texts() == told[i]


@pytest.mark.browser
def test_by_mouse(arcs, told, page):
    check_shown(arcs, told, LAST)
    high = arcs.bounding_box()["height"]
    for i, head in (BERT, 0), (MET, 1), (ANNA, 1):
        word(arcs, i, head).hover()
        check_shown(arcs, told, i)
        assert arcs.bounding_box()["height"] == high, "what stands below jumps"
    page.mouse.move(5, 5)
    check_shown(arcs, told, LAST)
    word(arcs, MET).click()
    word(arcs, BERT).hover()
    check_shown(arcs, told, MET)
    assert arcs.locator(".help").inner_text().startswith("This word is pinned")
    word(arcs, BERT).click()
    check_shown(arcs, told, BERT)
    word(arcs, BERT).click()
    word(arcs, ANNA).hover()
    check_shown(arcs, told, ANNA)  # it was free


@pytest.mark.browser
def test_by_keyboard(arcs, told, page):
    sheet, card = arcs.locator(".sheet"), arcs.locator(".told > [aria-live]")
    page.locator(".jp-CodeCell").nth(1).locator(".jp-InputPrompt").click()
    for _ in range(30):
        page.keyboard.press("Tab")
        if sheet.evaluate("e => e.matches(':focus-visible')"):
            break
    else:
        raise AssertionError("Tab does not come here")
    assert card.get_attribute("aria-live") == "polite"
    for key, i in (("ArrowLeft", 4), ("Home", 0), ("ArrowLeft", 0), ("ArrowRight", 1), ("End", 5)):
        sheet.press(key)
        check_shown(arcs, told, i)
    sheet.press("Home")
    sheet.press("Enter")
    word(arcs, BERT).hover()
    check_shown(arcs, told, ANNA)
    sheet.press("Escape")
    check_shown(arcs, told, LAST)
    sheet.press("ArrowLeft")
    page.keyboard.press("Tab")
    check_shown(arcs, told, LAST)
    assert card.get_attribute("aria-live") == "off"
    cells = page.locator(".jp-Cell").count()
    for key in "ddbx":  # commands of a notebook, elsewhere
        sheet.press(key)
    assert page.locator(".jp-Cell").count() == cells


@pytest.mark.browser
def test_by_finger(served, chromium, told):
    context = chromium.new_context(viewport={"width": 800, "height": 1000}, has_touch=True)
    arcs = opened(context.new_page(), served)
    for i in BERT, MET:
        word(arcs, i).tap()
        check_shown(arcs, told, i)
    word(arcs, MET).tap()
    check_shown(arcs, told, LAST)
    context.close()


@pytest.mark.browser
def test_nothing_wrong_by_axe_or_to_the_eye(arcs, page):
    for dark in (True, False):
        make_dark(page, dark)
        for i in (LAST, BERT):
            word(arcs, i).hover()
            check_looks(look(page))
        page.evaluate(AXE)
        found = page.evaluate("axe.run({include: [['.arcs']]})")["violations"]
        assert [(p["id"], node["html"]) for p in found for node in p["nodes"]] == []


@pytest.mark.browser
def test_without_a_kernel(tmp_path, page, told):
    path = next(each for each in NOTEBOOKS if each.stem == "08_context")
    subprocess.run([sys.executable, build_site.__file__, "--to", tmp_path, path], check=True)
    page.context.set_offline(True)
    page.goto((tmp_path / f"{path.stem}.html").as_uri())
    arcs = page.locator(".arcs")
    arcs.locator(".sheet").wait_for()
    check_shown(arcs, told, LAST)
    word(arcs, BERT).hover()
    check_shown(arcs, told, BERT)
    for key in ("Home", "Enter"):
        arcs.locator(".sheet").press(key)
    page.mouse.move(5, 5)
    check_shown(arcs, told, ANNA)
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.evaluate(AXE)
    found = page.evaluate("axe.run({include: [['.arcs']]}, {preload: false})")["violations"]
    assert [(p["id"], node["html"]) for p in found for node in p["nodes"]] == []
