"""Words that are pointed at, by mouse, by keyboard and by finger; in a page without a kernel."""

import re
import subprocess
import sys

import build_site
import pytest
from axe import check_axe
from lab_page import NOTEBOOKS, check_no_commands, make_dark, open_folds, open_notebook, run_all
from look import see
from playwright.sync_api import expect
from waits import resize, settle, soon, turn, until

from eleven_steps import sliders
from eleven_steps.beyond.moments import load_sentence

SOURCES = (
    "import torch\ntorch.set_num_threads(1)\nfrom eleven_steps import sliders\n"
    "from eleven_steps.beyond import moments",
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


@pytest.fixture
def arcs(opened):
    """The picture in JupyterLab, made anew, the mouse elsewhere."""
    opened.mouse.move(5, 5)
    run_all(opened)
    return drawn(opened)


def drawn(page):
    """Wait until the picture stands, and return it."""
    arcs = page.locator(".arcs")
    arcs.locator(".sheet").wait_for()
    settle(page)
    return arcs


def word(arcs, i, head=1):
    """Locate the place of a word in the drawing of a head."""
    return arcs.locator(f".word[data-word='{i}']").nth(head)


def check_shown(arcs, told, i):
    """Find one word's arcs and numbers, in both heads, and its words."""

    def check():
        assert arcs.evaluate(SHOWN) == {"reads": [i, i], "shares": [i, i]}
        assert arcs.locator(".told > [aria-live] p").all_inner_texts() == told[i]

    soon(check)


@pytest.mark.browser
def test_by_mouse(arcs, told):
    page = arcs.page
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
    turn(page)
    check_shown(arcs, told, MET)
    expect(arcs.locator(".help")).to_have_text(re.compile("^This word is pinned"))
    word(arcs, BERT).click()
    check_shown(arcs, told, BERT)
    word(arcs, BERT).click()
    word(arcs, ANNA).hover()
    check_shown(arcs, told, ANNA)  # it was free


@pytest.mark.browser
def test_by_keyboard(arcs, told):
    page = arcs.page
    sheet, card = arcs.locator(".sheet"), arcs.locator(".told > [aria-live]")
    page.locator(".jp-CodeCell").nth(1).locator(".jp-InputPrompt").click()
    for _ in range(30):
        page.keyboard.press("Tab")
        if sheet.evaluate("e => e.matches(':focus-visible')"):
            break
    else:
        raise AssertionError("Tab does not come here")
    expect(card).to_have_attribute("aria-live", "polite")
    for key, i in (("ArrowLeft", 4), ("Home", 0), ("ArrowLeft", 0), ("ArrowRight", 1), ("End", 5)):
        sheet.press(key)
        check_shown(arcs, told, i)
    sheet.press("Home")
    sheet.press("Enter")
    word(arcs, BERT).hover()
    turn(page)
    check_shown(arcs, told, ANNA)
    sheet.press("Escape")
    check_shown(arcs, told, LAST)
    sheet.press("ArrowLeft")
    page.keyboard.press("Tab")
    check_shown(arcs, told, LAST)
    expect(card).to_have_attribute("aria-live", "off")
    check_no_commands(page, sheet)


@pytest.mark.browser
def test_by_finger(serve, phone, told):
    resize(phone, 800, 1000)
    open_notebook(phone, serve("arcs_finger.ipynb", SOURCES), "arcs_finger.ipynb")
    run_all(phone)
    arcs = drawn(phone)
    for i in BERT, MET:
        word(arcs, i).tap()
        check_shown(arcs, told, i)
    word(arcs, MET).tap()
    check_shown(arcs, told, LAST)


@pytest.mark.browser
def test_nothing_wrong_by_axe_or_to_the_eye(arcs, told):
    page = arcs.page
    for dark in (True, False):
        make_dark(page, dark)
        for i in (LAST, BERT):
            word(arcs, i).hover()
            check_shown(arcs, told, i)
            assert see(page)
        check_axe(page, ".arcs")


@pytest.mark.browser
def test_without_a_kernel(tmp_path, page, told):
    path = next(each for each in NOTEBOOKS if each.stem == "08_context")
    subprocess.run([sys.executable, build_site.__file__, "--to", tmp_path, path], check=True)
    page.context.set_offline(True)
    page.goto((tmp_path / f"{path.stem}.html").as_uri())
    open_folds(page)
    arcs = drawn(page)
    check_shown(arcs, told, LAST)
    word(arcs, BERT).hover()
    check_shown(arcs, told, BERT)
    for key in ("Home", "Enter"):
        arcs.locator(".sheet").press(key)
    page.mouse.move(5, 5)
    check_shown(arcs, told, ANNA)
    resize(page, 390, 844)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    check_axe(page, ".arcs")


@pytest.mark.browser
def test_the_first_sentence_answers_before_anything_is_run(page, lab):
    open_notebook(page, lab, "00_start_here.ipynb")
    until(lambda: len(page.frames) > 1, "the stored picture does not stand")
    stored = page.frames[-1]
    for way in ("hover", "focus"):
        for i in MET, LAST:
            getattr(stored.locator(f'.word[data-word="{i}"]').last, way)()
            shown = stored.locator("svg").evaluate(SHOWN)
            assert shown == {"reads": [i, i], "shares": [i, i]}
        page.mouse.move(0, 0)
