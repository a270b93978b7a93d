"""Code and its map, linked: by mouse, keyboard and finger, in both directions; without a kernel."""

import shutil
import subprocess
import sys

import build_site
import nbformat
import pytest
import renew
from axe import check_axe
from lab_page import (
    check_no_commands,
    fold_files,
    make_dark,
    open_7,
    open_notebook,
    put,
    run_all,
)
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from playwright.sync_api import expect
from test_site_in_browser import OVERFLOW, check_phone
from waits import resize, settle, soon

from eleven_steps import sliders
from eleven_steps.sliders.source import shown_code

SET_UP = "import torch\ntorch.set_num_threads(1)\nfrom eleven_steps import sliders"
LINES = [line for line in shown_code().splitlines() if line.strip()]

# The steps of what is framed in each way, code and cards apart; the part that is pointed at; words.
SHOWN = """board => {
  const all = which => [...board.querySelectorAll(which)], clear = 'rgba(0, 0, 0, 0)';
  const framed = look => ['.code', '.card'].map(which => all(`${which}[data-step]`)
    .filter(e => look(getComputedStyle(e))).map(e => Number(e.dataset.step)));
  const seen = e => e.checkVisibility({visibilityProperty: true});
  return {own: framed(s => s.outlineStyle === 'solid'), to: framed(s => s.borderStyle === 'dashed'),
          from: framed(s => s.borderStyle === 'solid' && s.borderTopColor !== clear
            && s.outlineStyle === 'none'),
          here: all('.line').filter(e => getComputedStyle(e).boxShadow !== 'none')
            .map(e => e.dataset.told),
          words: all('.told > div').filter(seen).flatMap(e => [...e.children])
            .map(e => e.textContent)};
}"""
FREE = {way: [[], []] for way in ("own", "from", "to")} | {"here": [], "words": []}


@pytest.fixture(scope="module")
def linked():
    """The picture that the page shows, made here."""
    return sliders.explore_source()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A notebook, run and stored, with code and map between texts."""
    path = tmp_path_factory.mktemp("linked") / "12_linked.ipynb"
    cells = [new_markdown_cell("# Linked"), new_code_cell(SET_UP)]
    cells += [new_code_cell("sliders.explore_source()"), new_markdown_cell("below " * 2000)]
    nbformat.write(new_notebook(cells=cells, metadata=renew.METADATA), path)
    subprocess.run([sys.executable, renew.__file__, path], check=True)
    return path


@pytest.fixture(scope="module")
def site(tmp_path_factory, path):
    """The address of the notebook as a web page."""
    folder = tmp_path_factory.mktemp("site")
    subprocess.run([sys.executable, build_site.__file__, "--to", folder, path], check=True)
    return (folder / f"{path.stem}.html").as_uri()


@pytest.fixture(scope="module")
def served(lab, folder, path):
    """The address of the notebook, in JupyterLab and in Notebook 7."""
    put(folder, path)
    return lab


@pytest.fixture(scope="module")
def opened(served, standing, path):
    """A page with the notebook in JupyterLab."""
    open_notebook(standing, served, path.name)
    fold_files(standing)
    return standing


@pytest.fixture(params=["lab", "site"])
def board(request, path):
    """The picture in JupyterLab, and on a web page that no kernel stands behind."""
    if request.param == "lab":
        page = request.getfixturevalue("opened")
        page.mouse.move(5, 5)
        resize(page, 1280, 900)
        return run(page)
    page = request.getfixturevalue("page")
    page.context.set_offline(True)
    page.goto(request.getfixturevalue("site"))
    return standing_board(page)


def run(page):
    """Run all cells, wait until code and map stand, and return them."""
    run_all(page)
    return standing_board(page)


def standing_board(page):
    """Wait until code and map stand, and return them."""
    board = page.locator(".linked")
    board.wait_for()
    settle(page)
    return board


def check_free(board):
    """Find nothing lit up."""
    check_shown(board, FREE)


def check_told(board, linked, name):
    """Find a part lit up with its step, its neighbours framed, its words there, and no more."""
    told = linked.told[name]
    steps = {"own": [told["step"]], "from": told["from"], "to": told["to"]}
    expected = {way: [each] * 2 for way, each in steps.items()}
    check_shown(board, expected | {"here": [name], "words": told["words"]})


def check_shown(board, expected):
    """Find lit up and said what is expected."""

    def check():
        assert board.evaluate(SHOWN) == expected

    soon(check)


@pytest.mark.browser
def test_by_mouse_each_line_lights_its_card_and_each_card_its_lines(board, linked):
    page = board.page
    check_free(board)
    expect(board.locator(".help")).to_be_visible()
    for part in board.locator(".part").all():
        part.hover()
        check_told(board, linked, part.get_attribute("data-told"))
    page.mouse.move(5, 5)
    check_free(board)
    board.locator(".card[data-step='7']").click()
    page.mouse.move(5, 5)
    check_told(board, linked, "step 7")  # it is chosen


@pytest.mark.browser
def test_by_keyboard(board, linked):
    page = board.page
    page.locator("h1").first.click()
    for _ in range(100):
        page.keyboard.press("Tab")
        if board.evaluate("e => e.contains(document.activeElement)"):
            break
    first = board.locator("input").first
    expect(first).to_be_focused()
    parts = board.locator(".part").evaluate_all("all => all.map(e => e.dataset.told)")
    check_told(board, linked, parts[0])
    for name in parts[1:]:
        page.keyboard.press("ArrowDown")
        check_told(board, linked, name)
    check_no_commands(page, board.locator("input:focus"))


@pytest.mark.browser
def test_by_finger(lab, folder, phone, linked, path, tmp_path):
    open_notebook(phone, lab, put(folder, shutil.copy(path, tmp_path / "12_finger.ipynb")))
    fold_files(phone)
    board = run(phone)
    for which in (".line[data-told='step 5']", ".card[data-step='8']"):
        board.locator(which).tap()
        check_told(board, linked, board.locator(which).get_attribute("data-told"))
        soon(check_in_sight, board.locator(".told"))


def check_in_sight(place):
    """Find that all of a place can be seen."""
    box = place.bounding_box()
    assert box["y"] >= 0 and box["y"] + box["height"] <= place.page.viewport_size["height"] + 1


@pytest.mark.browser
def test_the_code_is_text_that_can_be_marked_and_copied(board):
    page = board.page
    lines = board.locator(".line")
    lines.nth(1).scroll_into_view_if_needed()
    start = lines.nth(1).bounding_box()
    page.mouse.move(start["x"] + 24, start["y"] + 9)
    page.mouse.down()
    end = lines.nth(12).bounding_box()
    page.mouse.move(end["x"] + end["width"] - 4, end["y"] + 9, steps=5)
    page.mouse.up()
    expected = [line.strip() for line in LINES[1:13]]
    bare = [line.replace("# ", "").lstrip("0123456789 ") for line in expected]

    def check():
        marked = page.evaluate("getSelection().toString()").splitlines()
        found = [line.replace("# ", "").split() for line in marked if line.strip()]
        assert found == [line.split() for line in bare]

    soon(check)
    expect(board.locator(":checked")).to_have_count(0)


@pytest.mark.browser
def test_side_by_side_or_one_below_the_other_and_the_words_in_sight(board, linked):
    page = board.page
    for width, beside in ((1280, True), (640, False), (390, False)):
        resize(page, width, 600)
        for step in (1, 5, 11):
            line = board.locator(f".line[data-told='step {step}']")
            line.scroll_into_view_if_needed()
            line.hover()
            check_told(board, linked, f"step {step}")
            soon(check_in_sight, board.locator(".told"))
            code, card = (
                board.locator(f"{which}[data-step='{step}']") for which in (".code", ".card")
            )
            soon(check_beside, code, card, beside)
        assert board.evaluate("e => e.scrollWidth <= e.clientWidth")
    if not page.url.startswith("http"):
        assert page.evaluate(OVERFLOW) <= 0
        check_phone(page)


def check_beside(code, card, beside):
    """Find a card to the right of its code, or below it."""
    code, card = code.bounding_box(), card.bounding_box()
    assert (card["x"] >= code["x"] + code["width"]) is beside
    assert (card["y"] >= code["y"] + code["height"]) is not beside


@pytest.mark.browser
def test_nothing_wrong_by_axe(board, linked):
    page = board.page
    lab = page.url.startswith("http")
    for dark in (True, False):
        if lab:
            make_dark(page, dark)
        else:
            page.emulate_media(color_scheme="dark" if dark else "light")
        board.locator(".card[data-step='8']").hover()
        check_told(board, linked, "step 8")
        check_axe(page, ".linked")


@pytest.mark.browser
def test_notebook_7(lab, folder, page, linked, path, tmp_path):
    open_7(page, lab, put(folder, shutil.copy(path, tmp_path / "12_seven.ipynb")))
    board = run(page)
    board.locator(".card[data-step='5']").hover()
    check_told(board, linked, "step 5")
