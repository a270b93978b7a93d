"""Words with arcs, and code linked to its map, answer by style alone: before anything is run."""

import build_site
import nbformat
import pytest
from axe import check_axe
from lab_page import check_no_commands, fold_files, make_dark, open_notebook, put
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from playwright.sync_api import expect
from renew import METADATA
from test_site_in_browser import OVERFLOW, check_phone
from waits import in_page, resize, settle, soon, visit

from eleven_steps import sliders
from eleven_steps.beyond.moments import load_sentence
from eleven_steps.pictures import Head, tell_words
from eleven_steps.sliders.source import run_by_line, shown_code, tell

ANNA, MET, BERT, LAST = 0, 1, 2, 5
CODE = [line.strip() for line in shown_code().splitlines() if line.strip()]
REAL = load_sentence()
HEADS = [Head(each, k) for k, each in enumerate(REAL.steps[6].tensors["weights"][0])]
TOLD = tell_words(HEADS, REAL.words)
LINKED = sliders.explore_source()
LINES = tell(run_by_line(shown_code(), sliders.run()[0], sliders.tokens()))

# Which words' arcs are strong, and which words' numbers are seen; for each head.
STRONG = """el => {
  const of = (kind, holds) => [...el.querySelectorAll(kind)].filter(holds)
    .map(each => Number(each.dataset.word));
  return {reads: of('.reads', each => getComputedStyle(each).opacity === '1'),
          shares: of('.shares', each => getComputedStyle(each).visibility === 'visible')};
}"""

# The steps of what is framed in each way, code and cards apart; the part that is pointed at; words.
FRAMED = in_page("framed")
FREE = {way: [[], []] for way in ("own", "from", "to")} | {"here": [], "words": []}


@pytest.fixture(scope="module")
def notebook():
    """A notebook with both pictures as they are stored, between texts."""
    arcs = sliders.explore_arcs(REAL.steps[6].tensors["weights"][0], REAL.words)
    stored = [new_output("display_data", one._repr_mimebundle_()) for one in (arcs, LINKED)]
    cells = [new_markdown_cell("# Answers"), *(new_code_cell(outputs=[one]) for one in stored)]
    return new_notebook(cells=[*cells, new_markdown_cell("below " * 2000)], metadata=METADATA)


@pytest.fixture(scope="module")
def site(tmp_path_factory, notebook):
    """The address of the notebook as a web page."""
    folder = tmp_path_factory.mktemp("site")
    build_site.load_into(folder / "assets")
    copy = nbformat.from_dict(notebook)
    (folder / "answers.html").write_text(build_site.page(copy, "answers"), "utf-8")
    return (folder / "answers.html").as_uri()


@pytest.fixture(scope="module", params=["site", pytest.param("lab", marks=pytest.mark.nightly)])
def opened(request, chromium, tmp_path_factory, notebook):
    """Both pictures on a web page, and in JupyterLab, where nothing was run."""
    page = visit(chromium)
    if request.param == "site":
        page.goto(request.getfixturevalue("site"))
    else:
        path = tmp_path_factory.mktemp("answers") / "answers.ipynb"
        lab = request.getfixturevalue("lab")
        nbformat.write(notebook, path)
        put(request.getfixturevalue("folder"), path)
        open_notebook(page, lab, path.name)
        fold_files(page)
    yield page
    page.context.close()


@pytest.fixture
def page(opened):
    """That page, the mouse elsewhere and nothing chosen."""
    opened.locator("form").evaluate_all("all => all.forEach(form => form.reset())")
    opened.evaluate("document.activeElement.blur()")
    opened.mouse.move(5, 5)
    resize(opened, 1280, 900)
    return opened


def check_words(page, i):
    """Find one word's arcs and numbers, in both heads, and what is told of it."""
    arcs = page.locator(".arcs")

    def check():
        assert arcs.evaluate(STRONG) == {"reads": [i, i], "shares": [i, i]}
        assert arcs.locator(".told p:visible").all_inner_texts() == TOLD[i]

    soon(check)


def check_board(page, name=None):
    """Find a part lit up with its step, its neighbours framed, its words there, and no more."""
    expected = FREE
    if name:
        told = LINES[name]
        steps = {"own": [told["step"]], "from": told["from"], "to": told["to"]}
        expected = {way: [each] * 2 for way, each in steps.items()}
        expected |= {"here": [name], "words": told["words"]}

    def check():
        assert page.locator(".linked").evaluate(FRAMED) == expected

    soon(check)


def word(page, i, head=1):
    """Locate the place of a word in the drawing of a head."""
    return page.locator(f".arcs .part[data-word='{i}']").nth(head)


def tab_to(page, picture):
    """Press Tab until the focus is in a picture."""
    page.locator("h1").first.click()
    for _ in range(100):
        page.keyboard.press("Tab")
        if picture.evaluate("e => e.contains(document.activeElement)"):
            return
    raise AssertionError("Tab does not come here")


def test_a_word_answers_a_mouse_and_keys(page):
    arcs = page.locator(".arcs")
    check_words(page, LAST)
    high = arcs.bounding_box()["height"]
    for i, head in (BERT, 0), (MET, 1), (ANNA, 1):
        word(page, i, head).hover()
        check_words(page, i)
        assert arcs.bounding_box()["height"] == high, "what stands below jumps"
    page.mouse.move(5, 5)
    check_words(page, LAST)
    word(page, MET).click()
    word(page, BERT).hover()
    check_words(page, BERT)
    page.mouse.move(5, 5)
    check_words(page, MET)  # it was chosen
    tab_to(page, arcs)
    for key, i in (("ArrowRight", BERT), ("ArrowLeft", MET), ("ArrowLeft", ANNA)):
        page.keyboard.press(key)
        check_words(page, i)
    focused = arcs.locator("input:focus")
    assert focused.get_attribute("aria-label") == TOLD[ANNA][1]  # of the head that was clicked
    check_no_commands(page, focused)
    focused.press("Enter")  # no form is sent
    check_words(page, ANNA)


def test_a_line_lights_its_card_and_a_card_its_lines(page):
    board = page.locator(".linked")
    check_board(page)
    expect(board.locator(".help")).to_be_visible()
    parts = board.locator(".part")
    names = parts.evaluate_all("all => all.map(e => e.dataset.told)")
    for part, name in zip(parts.all(), names, strict=True):
        part.hover()
        check_board(page, name)
    page.mouse.move(5, 5)
    check_board(page)
    tab_to(page, board)
    check_board(page, names[0])
    for name in names[1:]:
        page.keyboard.press("ArrowDown")
        check_board(page, name)
    check_no_commands(page, board.locator("input:focus"))


def test_the_code_is_text_that_can_be_marked_and_copied(page):
    lines = page.locator(".linked .line")
    lines.nth(1).scroll_into_view_if_needed()
    start = lines.nth(1).bounding_box()
    page.mouse.move(start["x"] + 24, start["y"] + 9)
    page.mouse.down()
    end = lines.nth(12).bounding_box()
    page.mouse.move(end["x"] + end["width"] - 4, end["y"] + 9, steps=5)
    page.mouse.up()
    bare = [line.replace("# ", "").lstrip("0123456789 ") for line in CODE[1:13]]

    def check():
        marked = page.evaluate("getSelection().toString()").splitlines()
        found = [line.replace("# ", "").split() for line in marked if line.strip()]
        assert found == [line.split() for line in bare]

    soon(check)
    expect(page.locator(".linked :checked")).to_have_count(0)


def check_in_sight(place):
    """Find that all of a place can be seen."""
    box = place.bounding_box()
    assert box["y"] >= 0 and box["y"] + box["height"] <= place.page.viewport_size["height"] + 1


def check_beside(code, card, beside):
    """Find a card to the right of its code, or below it."""
    code, card = code.bounding_box(), card.bounding_box()
    assert (card["x"] >= code["x"] + code["width"]) is beside
    assert (card["y"] >= code["y"] + code["height"]) is not beside


def test_side_by_side_or_one_below_the_other_and_the_words_in_sight(page):
    board = page.locator(".linked")
    for width, beside in ((1280, True), (640, False), (390, False)):
        resize(page, width, 600)
        for step in (1, 5, 11):
            line = board.locator(f".line[data-told='step {step}']")
            line.scroll_into_view_if_needed()
            line.hover()
            check_board(page, f"step {step}")
            soon(check_in_sight, board.locator(".told"))
            both = (board.locator(f"{which}[data-step='{step}']") for which in (".code", ".card"))
            soon(check_beside, *both, beside)
        assert board.evaluate("e => e.scrollWidth <= e.clientWidth")
    if not page.url.startswith("http"):
        assert page.evaluate(OVERFLOW) <= 0
        check_phone(page)


def test_nothing_wrong_by_axe(page):
    for dark in (True, False):
        if page.url.startswith("http"):
            make_dark(page, dark)
        else:
            page.emulate_media(color_scheme="dark" if dark else "light")
        page.locator(".card[data-step='8']").hover()
        check_board(page, "step 8")
        check_axe(page, ".linked")
        word(page, BERT).hover()
        check_words(page, BERT)
        check_axe(page, ".arcs")


def test_by_finger(site, phone):
    phone.goto(site)
    settle(phone)
    for i in BERT, MET:
        word(phone, i).tap()
        check_words(phone, i)
    for which in (".line[data-told='step 5']", ".card[data-step='8']"):
        part = phone.locator(f".linked {which}")
        part.tap()
        check_board(phone, part.get_attribute("data-told"))
        soon(check_in_sight, phone.locator(".linked .told"))
