"""Words that are pointed at, by mouse, by keyboard and by finger; nothing has to run for it."""

import subprocess
import sys

import build_site
import pytest
from axe import check_axe
from lab_page import NOTEBOOKS, check_no_commands, make_dark, open_folds, open_notebook, run_all
from look import see
from waits import resize, settle, soon

from eleven_steps.beyond.moments import load_sentence
from eleven_steps.pictures import Head, tell_words

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
          shares: of('.shares', each => getComputedStyle(each).visibility === 'visible')};
}"""


@pytest.fixture(scope="module")
def told():
    """What is told of each word, made here."""
    real = load_sentence()
    every = real.steps[6].tensors["weights"][0]
    return tell_words([Head(each, number) for number, each in enumerate(every)], real.words)


@pytest.fixture
def arcs(opened):
    """The picture in JupyterLab, made anew, the mouse elsewhere."""
    opened.mouse.move(5, 5)
    run_all(opened)
    return drawn(opened)


def drawn(page):
    """Wait until the picture stands, and return it."""
    arcs = page.locator(".arcs")
    arcs.wait_for()
    settle(page)
    return arcs


def word(arcs, i, head=1):
    """Locate the place of a word in the drawing of a head."""
    return arcs.locator(f".part[data-word='{i}']").nth(head)


def check_shown(arcs, told, i):
    """Find one word's arcs and numbers, in both heads, and its words."""

    def check():
        assert arcs.evaluate(SHOWN) == {"reads": [i, i], "shares": [i, i]}
        assert arcs.locator(".told p:visible").all_inner_texts() == told[i]

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
    check_shown(arcs, told, BERT)
    page.mouse.move(5, 5)
    check_shown(arcs, told, MET)  # it was chosen


@pytest.mark.browser
def test_by_keyboard(arcs, told):
    page = arcs.page
    page.locator(".jp-CodeCell").nth(1).locator(".jp-InputPrompt").click()
    for _ in range(30):
        page.keyboard.press("Tab")
        if arcs.evaluate("e => e.contains(document.activeElement)"):
            break
    else:
        raise AssertionError("Tab does not come here")
    check_shown(arcs, told, LAST)
    for key, i in (("ArrowLeft", 4), ("ArrowLeft", 3), ("ArrowRight", 4)):
        page.keyboard.press(key)
        check_shown(arcs, told, i)
    focused = arcs.locator("input:focus")
    assert focused.get_attribute("aria-label") == told[4][0]
    check_no_commands(page, focused)
    focused.press("Enter")  # no form is sent
    check_shown(arcs, told, 4)


@pytest.mark.browser
def test_by_finger(serve, phone, told):
    resize(phone, 800, 1000)
    open_notebook(phone, serve("arcs_finger.ipynb", SOURCES), "arcs_finger.ipynb")
    run_all(phone)
    arcs = drawn(phone)
    for i in BERT, MET:
        word(arcs, i).tap()
        check_shown(arcs, told, i)


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
    resize(page, 390, 844)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    check_axe(page, ".arcs")


@pytest.mark.browser
def test_the_first_sentence_answers_before_anything_is_run(page, lab, told):
    open_notebook(page, lab, "00_start_here.ipynb")
    arcs = drawn(page)
    for i in MET, LAST:
        word(arcs, i).hover()
        check_shown(arcs, told, i)
