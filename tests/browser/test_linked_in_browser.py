"""Code and its map, linked: by mouse, keyboard and finger, in both directions; without a kernel."""

import subprocess
import sys

import build_site
import nbformat
import pytest
import renew
from lab_page import jupyterlab, make_dark, open_notebook
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from test_notebooks_in_browser import AXE
from test_site_in_browser import OVERFLOW, check_phone

from helpers import sliders
from helpers.sliders.source import shown_code

SET_UP = "import torch\ntorch.set_num_threads(1)\nfrom helpers import sliders"
LINES = [line for line in shown_code().splitlines() if line.strip()]

# The steps of what is framed in each way, code and cards apart; the part that is pointed at; words.
SHOWN = """board => {
  const at = which => [...board.querySelectorAll(which)].map(e => Number(e.dataset.step));
  const here = [...board.querySelectorAll('.here')].map(e => e.dataset.told);
  const words = board.querySelector('.words');
  return {own: [at('pre.own'), at('.card.own')], from: [at('pre.from'), at('.card.from')],
          to: [at('pre.to'), at('.card.to')], here,
          words: words.checkVisibility({visibilityProperty: true})
            ? [...words.children].map(e => e.textContent) : []};
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
def served(tmp_path_factory, path):
    """The address of the notebook, in JupyterLab and in Notebook 7."""
    with jupyterlab(tmp_path_factory.mktemp("served"), [path]) as address:
        yield address


def run(page):
    """Run all cells, and wait until code and map stand."""
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()
    page.locator(".linked .board").wait_for(timeout=60_000)


@pytest.fixture(params=["lab", "site"])
def board(request, page, path):
    """The picture in JupyterLab, and on a web page that no kernel stands behind."""
    if request.param == "lab":
        open_notebook(page, request.getfixturevalue("served"), path.name)
        page.keyboard.press("Control+b")  # the list of files takes room
        run(page)
    else:
        page.context.set_offline(True)
        page.goto(request.getfixturevalue("site"))
    page.locator(".linked .board").wait_for()
    return page.locator(".linked .board")


def check_told(board, linked, name):
    """Find a part lit up with its step, its neighbours framed, its words there, and no more."""
    told = linked.told[name]
    steps = {"own": [told["step"]], "from": told["from"], "to": told["to"]}
    shown = board.evaluate(SHOWN)
    here = shown.pop("here")
    assert here == [name]
    assert shown == {way: [each] * 2 for way, each in steps.items()} | {"words": told["words"]}


@pytest.mark.browser
def test_by_mouse_each_line_lights_its_card_and_each_card_its_lines(board, linked, page):
    assert board.evaluate(SHOWN) == FREE and board.locator(".help").is_visible()
    for part in board.locator("[data-told]").all():
        part.hover()
        check_told(board, linked, part.get_attribute("data-told"))
    page.mouse.move(5, 5)
    assert board.evaluate(SHOWN) == FREE
    card = board.locator(".card[data-step='7']")
    card.click()
    board.locator(".card[data-step='2']").hover()
    check_told(board, linked, "step 7")  # it is pinned
    assert card.get_attribute("aria-pressed") == "true"
    card.click()
    assert board.evaluate(SHOWN) == FREE


@pytest.mark.browser
def test_by_keyboard(board, linked, page):
    first = board.locator(".line[data-told]").first
    page.locator("h1").first.click()
    while not board.evaluate("e => e.contains(document.activeElement)"):
        page.keyboard.press("Tab")
    assert first.evaluate("e => e.matches(':focus-visible')")
    check_told(board, linked, "step 1")
    assert board.locator(".words").get_attribute("aria-live") == "polite"
    order = board.locator(".line[data-told]").evaluate_all("all => all.map(e => e.dataset.told)")
    for name in order[1:]:
        page.keyboard.press("ArrowDown")
        check_told(board, linked, name)
    page.keyboard.press("ArrowRight")
    check_told(board, linked, "step 11")
    assert board.locator(".card[data-step='11']").evaluate("e => e === document.activeElement")
    for step in range(10, 0, -1):
        page.keyboard.press("ArrowUp")
        check_told(board, linked, f"step {step}")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowDown")
    assert board.locator(":focus").inner_text().strip().startswith("queries = self.W_query(x)")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")  # to the map, whose own place is step 2
    assert board.locator(":focus").get_attribute("data-step") == "2"
    assert "Step 2" in board.evaluate(SHOWN)["words"][0]
    page.keyboard.press("Escape")
    assert board.evaluate(SHOWN) == FREE
    cells = page.locator(".jp-Cell").count()
    for key in "ddbx":  # commands of a notebook, elsewhere
        page.keyboard.press(key)
    assert page.locator(".jp-Cell").count() == cells


@pytest.mark.browser
def test_by_finger(served, chromium, linked, path):
    size = {"width": 390, "height": 844}
    context = chromium.new_context(viewport=size, has_touch=True)
    page = context.new_page()
    open_notebook(page, served, path.name)
    page.keyboard.press("Control+b")
    run(page)
    board = page.locator(".linked .board")
    for which in (".line[data-told='step 5']", ".card[data-step='8']"):
        board.locator(which).tap()
        check_told(board, linked, board.locator(which).get_attribute("data-told"))
        assert in_sight(board.locator(".foot"), size)
    board.locator(".card[data-step='8']").tap()
    assert board.evaluate(SHOWN) == FREE
    context.close()


def in_sight(place, size):
    """Say whether all of a place can be seen."""
    box = place.bounding_box()
    return box["y"] >= 0 and box["y"] + box["height"] <= size["height"] + 1


@pytest.mark.browser
def test_the_code_is_text_that_can_be_marked_and_copied(board, page):
    lines = board.locator(".line")
    lines.nth(1).scroll_into_view_if_needed()
    start = lines.nth(1).bounding_box()
    page.mouse.move(start["x"] + 46, start["y"] + 9)
    page.mouse.down()
    end = lines.nth(12).bounding_box()
    page.mouse.move(end["x"] + end["width"] - 4, end["y"] + 9, steps=5)
    page.mouse.up()
    marked = page.evaluate("getSelection().toString()").splitlines()
    found = [line.strip() for line in marked if line.strip()]
    expected = [line.strip() for line in LINES[1:13]]
    bare = [line.replace("# ", "").lstrip("0123456789 ") for line in expected]
    assert [line.replace("# ", "") for line in found] == bare
    assert not board.evaluate(SHOWN)["here"] or board.locator("[aria-pressed=true]").count() == 0


@pytest.mark.browser
def test_side_by_side_or_one_below_the_other_and_the_words_in_sight(board, linked, page):
    for width, beside in ((1280, True), (640, False), (390, False)):
        size = {"width": width, "height": 600}
        page.set_viewport_size(size)
        page.wait_for_timeout(300)
        for step in (1, 5, 11):
            line = board.locator(f".line[data-told='step {step}']")
            line.scroll_into_view_if_needed()
            line.hover()
            check_told(board, linked, f"step {step}")
            assert in_sight(board.locator(".foot"), size), (width, step)
            code, card = (
                board.locator(f"{which}[data-step='{step}']").bounding_box()
                for which in ("pre", ".card")
            )
            assert (card["x"] >= code["x"] + code["width"]) is beside
            assert (card["y"] >= code["y"] + code["height"]) is not beside
        assert board.evaluate("e => e.scrollWidth <= e.clientWidth")
    if not page.url.startswith("http"):
        assert page.evaluate(OVERFLOW) <= 0
        check_phone(page)


@pytest.mark.browser
def test_nothing_wrong_by_axe(board, page):
    lab = page.url.startswith("http")
    for dark in (True, False):
        if lab:
            make_dark(page, dark)
        else:
            page.emulate_media(color_scheme="dark" if dark else "light")
        board.locator(".card[data-step='8']").hover()
        page.evaluate(AXE)
        found = page.evaluate("axe.run({include: [['.linked']]}, {preload: false})")["violations"]
        assert [(p["id"], node["html"]) for p in found for node in p["nodes"]] == []


@pytest.mark.browser
def test_notebook_7(served, linked, page, path):
    page.goto(f"{served}/notebooks/{path.name}")
    page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
    run(page)
    board = page.locator(".linked .board")
    board.locator(".card[data-step='5']").hover()
    check_told(board, linked, "step 5")
