"""Numbers that are touched, by mouse, by keyboard and by finger; dragged, and without a kernel."""

import functools

import pytest
from axe import check_axe
from lab_page import check_no_commands, close, make_dark, open_7, open_notebook, run_all
from playwright.sync_api import expect
from waits import resize, settle, soon, turn

from eleven_steps import sliders
from eleven_steps.pictures import reach_all, tell, written
from eleven_steps.sliders.touch import linears
from helpers.trace import trace

SET_UP = "import torch\ntorch.set_num_threads(1)\nfrom eleven_steps import sliders"
SOURCES = (SET_UP, "sliders.explore_numbers()")
QUERY, WEIGHT, OUT = 18 + 13, 18 + 9 * 18 + 2 * 18 + 7, 305

# Which cells the frames of a mark lie on, by their numbers.
FRAMED = """board => {
  const starts = %s, boxes = {};
  for (const group of board.querySelectorAll('[data-tensor]')) {
    [...group.firstChild.children].forEach((box, k) => {
      const at = box.getBoundingClientRect();
      boxes[starts[group.dataset.tensor] + Number(group.dataset.first) + k] =
        [at.x + at.width / 2, at.y + at.height / 2];
    });
  }
  const within = name => Object.entries(boxes).filter(([i, [x, y]]) => {
    const path = board.querySelector('.mark-' + name);
    if (!path.getAttribute('d')) return false;
    const point = board.querySelector('svg').createSVGPoint();
    [point.x, point.y] = [x, y];
    return path.isPointInFill(point.matrixTransform(path.getScreenCTM().inverse()));
  }).map(([i]) => Number(i));
  return {from: within('from'), to: within('to'), own: within('own'), veil: within('veil'),
          pair: within('pair')};
}"""


# How far the outline of what has the focus lies inside its cell's output, at each side.
ROOM = """e => {
  const {outlineWidth, outlineOffset} = getComputedStyle(e);
  const out = parseFloat(outlineWidth) + parseFloat(outlineOffset);
  const box = e.getBoundingClientRect();
  const area = e.closest('.jp-OutputArea-output').getBoundingClientRect();
  return [box.left - area.left, box.top - area.top, area.right - box.right,
          area.bottom - box.bottom].map(room => room - out);
}"""


@pytest.fixture(scope="module")
def touched():
    """The picture that the page shows, made here."""
    return sliders.explore_numbers()


@functools.cache
def reach():
    """Which numbers each one comes from, as the picture begins."""
    own = sliders.explore_numbers()
    return reach_all(trace(own.mha, own.x))


@pytest.fixture
def board(opened):
    """The picture in JupyterLab, made anew, its kernel running, the mouse elsewhere."""
    opened.mouse.move(5, 5)
    return run(opened)


def run(page):
    """Run all cells, wait until the picture answers, and return it."""
    run_all(page)
    page.locator(".touch .board.live").wait_for()
    settle(page)
    return page.locator(".touch .board")


def cell(board, touched, i):
    """Locate the cell of a number."""
    starts = sorted(touched.book["starts"].items(), key=lambda pair: pair[1])
    key, start = [pair for pair in starts if pair[1] <= i][-1]
    for group in board.locator(f"[data-tensor='{key}']").all():
        first = start + int(group.get_attribute("data-first"))
        boxes = group.locator("> g").first.locator("path")
        if first <= i < first + boxes.count():
            return boxes.nth(i - first)
    raise LookupError(f"number {i} is not drawn")


def check_marked(board, touched, i):
    """Find a number framed with all its kin and no others, and told of."""
    ways = {"from": reach()[i], "to": reach()[:, i]}
    reached = {name: way.nonzero().flatten().tolist() for name, way in ways.items()}
    expected = {name: [j for j in each if j != i] for name, each in reached.items()}
    kin = {i, *expected["from"], *expected["to"]}
    rest = [j for j in range(touched.book["count"]) if j not in kin]

    def check():
        shown = board.evaluate(FRAMED % touched.book["starts"])
        assert shown == expected | {"own": [i], "veil": rest, "pair": []}
        words = [line.strip() for line in board.locator(".card p").all_inner_texts()]
        assert words == list(touched.told[i])
        assert board.locator(".card").is_visible()

    soon(check)


def check_free(board):
    expect(board.locator(".card")).to_be_hidden()
    expect(board.locator(".mark-veil")).to_have_attribute("d", "")


@pytest.mark.browser
def test_by_mouse(board, touched):
    page = board.page
    for i in (QUERY, WEIGHT, OUT, 4):
        cell(board, touched, i).hover()
        check_marked(board, touched, i)
    page.mouse.move(5, 5)
    check_free(board)
    cell(board, touched, WEIGHT).click()
    cell(board, touched, WEIGHT - 1).hover()
    turn(page)
    check_marked(board, touched, WEIGHT)  # it is pinned
    board.press("Escape")
    check_free(board)


# Writes down each text that the second line of the card gets, with the pair that is framed then.
RECORD = """board => {
  const seen = board.seen = [], line = board.querySelector('.card').children[1];
  new MutationObserver(() => seen.push([line.textContent, (%s)(board).pair]))
    .observe(line, {childList: true, characterData: true, subtree: true});
}"""


@pytest.mark.browser
def test_a_dot_product_is_a_gesture(board, touched):
    score = 18 + 9 * 18 + 3  # head 0, query 1, key 0
    cell(board, touched, score).click()
    check_marked(board, touched, score)
    whole = touched.told[score][1]
    terms = whole.rpartition(" = ")[0].split(" + ")
    pairs = [sorted(pair) for pair in touched.book["pairs"][str(score)]]
    board.evaluate(RECORD % (FRAMED % touched.book["starts"]))
    board.press("Enter")

    def check():
        seen = board.evaluate("board => board.seen")
        assert [pair for _, pair in seen] == [*pairs, []]
        for k, (text, _) in enumerate(seen[:-1]):
            assert text.startswith(" + ".join(terms[: k + 1])) and text.count(" x ") == k + 1
        assert seen[-1][0] == whole

    soon(check)
    check_marked(board, touched, score)


@pytest.mark.browser
def test_by_keyboard(board, touched):
    page = board.page
    board.focus()
    assert board.evaluate("e => e.matches(':focus-visible')")
    assert min(board.evaluate(ROOM)) >= 0, "the cell cuts the outline off"
    board.press("ArrowRight")
    check_marked(board, touched, 0)
    expect(board.locator(".card")).to_have_attribute("aria-live", "polite")
    for key, i in (("ArrowRight", 1), ("ArrowDown", 7), ("ArrowLeft", 6), ("ArrowDown", 12)):
        board.press(key)
        check_marked(board, touched, i)
    board.press("Enter")
    page.mouse.move(*centre(cell(board, touched, 3)))
    turn(page)
    check_marked(board, touched, 12)
    board.press("Escape")
    check_free(board)
    check_no_commands(page, board)


@pytest.mark.browser
def test_by_finger(serve, phone, touched):
    resize(phone, 800, 1000)
    open_notebook(phone, serve("touch_finger.ipynb", SOURCES), "touch_finger.ipynb")
    board = run(phone)
    cell(board, touched, QUERY).tap()
    check_marked(board, touched, QUERY)
    own, finger = sliders.explore_numbers(), phone.context.new_cdp_session(phone)
    x, y = centre(cell(board, own, 8))
    for kind, far in (("Start", 0), *(("Move", 10 * i) for i in range(1, 6)), ("End", None)):
        points = [] if far is None else [{"x": x + far, "y": y}]
        finger.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": points})
    own.x.view(-1)[8] += 0.5
    compare(board, own)


def centre(box):
    box.scroll_into_view_if_needed()
    at = box.bounding_box()
    return at["x"] + at["width"] / 2, at["y"] + at["height"] / 2


def texts(board):
    """Return every number as the page writes it, in order of the drawing."""
    return board.locator("[data-tensor] > g:last-child text").all_text_contents()


@pytest.mark.browser
def test_a_drag_changes_what_depends_on_it(board):
    page, own = board.page, sliders.explore_numbers()
    for i in (8, 1):
        x, y = centre(cell(board, own, i))
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + 60, y, steps=12)
        page.mouse.up()
        own.x.view(-1)[i] += 0.6
        compare(board, own)
        check_told(board, own, i)
        board.press("Escape")
    board.focus()
    board.press("ArrowRight")
    for key, step in (("+", 0.1), ("+", 0.1), ("-", -0.1)):
        board.press(key)
        own.x.view(-1)[0] += step
        compare(board, own)


@pytest.mark.browser
def test_no_key_is_lost_and_the_right_button_drags_nothing(board):
    page, own = board.page, sliders.explore_numbers()
    board.focus()
    board.press("ArrowRight")
    board.evaluate(  # faster than answers come
        """board => { for (let k = 0; k < 14; k++) board.dispatchEvent(
            new KeyboardEvent("keydown", {key: "+", bubbles: true, repeat: true})); }"""
    )
    own.x.view(-1)[0] += 1.4
    compare(board, own)
    x, y = centre(cell(board, own, 8))
    page.mouse.move(x, y)
    page.mouse.down(button="right")
    page.mouse.move(x + 60, y, steps=5)
    page.mouse.up(button="right")
    page.mouse.move(5, 5)
    check_free(board)
    board.press("ArrowRight")
    board.press("-")  # asked after a drag, it would be answered after it
    own.x.view(-1)[0] -= 0.1
    compare(board, own)


def compare(board, own):
    """Find every number of the page equal to what our own forward gives."""
    expected = sorted(text for text, _ in written(trace(own.mha, own.x)))

    def check():
        assert sorted(texts(board)) == expected, "not every number followed"

    soon(check)


def check_told(board, own, i):
    told = tell(trace(own.mha, own.x), linears(own.mha))[i]
    expect(board.locator(".card p").first).to_have_text(told.words)


@pytest.mark.browser
def test_without_a_kernel_numbers_stay_and_the_picture_says_so(serve, touched, page):
    open_notebook(page, serve("touch_alone.ipynb", SOURCES), "touch_alone.ipynb")
    board = run(page)
    close(page)
    before = texts(board)
    board.focus()
    board.press("ArrowRight")
    board.press("+")
    page.get_by_text("Nothing can be dragged here, for no kernel answers.").wait_for()
    turn(page)
    assert texts(board) == before
    check_marked(board, touched, 0)


@pytest.mark.browser
def test_nothing_wrong_by_axe(board, touched):
    page = board.page
    cell(board, touched, QUERY).click()
    for dark in (True, False):
        make_dark(page, dark)
        check_axe(page, ".touch")


@pytest.mark.browser
def test_notebook_7(serve, touched, page):
    open_7(page, serve("touch_7.ipynb", SOURCES), "touch_7.ipynb")
    board = run(page)
    cell(board, touched, QUERY).hover()
    check_marked(board, touched, QUERY)
