"""Numbers that are touched, by mouse, by keyboard and by finger; dragged, and without a kernel."""

import pytest
from lab_page import make_dark, open_notebook, serving, until
from test_notebooks_in_browser import AXE

from helpers import sliders
from helpers.pictures import reach_all, tell, written
from helpers.sliders.touch import linears
from helpers.trace import trace

SET_UP = "import torch\ntorch.set_num_threads(1)\nfrom helpers import sliders"
STEPS = ("transpose", "combine")  # one leaves the storage alone, one does not
MAKING = ("mask", "softmax", "context")  # they make new numbers
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


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The address of a notebook with the map to touch, in JupyterLab and in Notebook 7."""
    shown = [f"sliders.explore_motion('{step}')" for step in STEPS + MAKING]
    sources = [SET_UP, "sliders.explore_numbers()", *shown]
    with serving(tmp_path_factory.mktemp("touch"), "touch.ipynb", sources) as address:
        yield address


def run(page):
    """Run all cells, wait until the picture answers, and return it."""
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()
    page.locator(".touch .board.live").wait_for(timeout=60_000)
    page.locator(".touch .controls").last.wait_for()
    return page.locator(".touch .board")


@pytest.fixture
def board(served, page):
    """The picture in JupyterLab, its kernel running."""
    open_notebook(page, served, "touch.ipynb")
    return run(page)


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
    comes_from = reach_all(trace(touched.mha, touched.x))
    expected = {
        "from": comes_from[i].nonzero().flatten().tolist(),
        "to": comes_from[:, i].nonzero().flatten().tolist(),
    }
    expected = {name: [j for j in kin if j != i] for name, kin in expected.items()}
    shown = board.evaluate(FRAMED % touched.book["starts"])
    kin = {i, *expected["from"], *expected["to"]}
    rest = [j for j in range(touched.book["count"]) if j not in kin]
    assert shown == expected | {"own": [i], "veil": rest, "pair": []}
    words = [line.strip() for line in board.locator(".card p").all_inner_texts()]
    assert words == list(touched.told[i])
    assert board.locator(".card").is_visible()


def check_free(board):
    assert not board.locator(".card").is_visible()
    assert not board.locator(".mark-veil").get_attribute("d")


@pytest.mark.browser
def test_by_mouse(board, touched, page):
    for i in (QUERY, WEIGHT, OUT, 4):
        cell(board, touched, i).hover()
        check_marked(board, touched, i)
    page.mouse.move(5, 5)
    check_free(board)
    cell(board, touched, WEIGHT).click()
    cell(board, touched, WEIGHT - 1).hover()
    check_marked(board, touched, WEIGHT)  # it is pinned
    board.press("Escape")
    check_free(board)


@pytest.mark.browser
def test_a_dot_product_is_a_gesture(board, touched, page):
    score = 18 + 9 * 18 + 3  # head 0, query 1, key 0
    cell(board, touched, score).click()
    line = board.locator(".card p").last
    terms = touched.told[score][1].rpartition(" = ")[0].split(" + ")
    board.press("Enter")
    for k, pair in enumerate(touched.book["pairs"][str(score)]):
        until(lambda k=k: line.inner_text().count(" x ") == k + 1, 5, f"no pair {k}")
        assert line.inner_text().startswith(" + ".join(terms[: k + 1]))
        assert board.evaluate(FRAMED % touched.book["starts"])["pair"] == sorted(pair)
    until(lambda: line.inner_text() == touched.told[score][1], 5, "no sum")
    check_marked(board, touched, score)


@pytest.mark.browser
def test_by_keyboard(board, touched, page):
    board.focus()
    assert board.evaluate("e => e.matches(':focus-visible')")
    assert min(board.evaluate(ROOM)) >= 0, "the cell cuts the outline off"
    board.press("ArrowRight")
    check_marked(board, touched, 0)
    assert board.locator(".card").get_attribute("aria-live") == "polite"
    for key, i in (("ArrowRight", 1), ("ArrowDown", 7), ("ArrowLeft", 6), ("ArrowDown", 12)):
        board.press(key)
        check_marked(board, touched, i)
    board.press("Enter")
    page.mouse.move(*centre(cell(board, touched, 3)))
    check_marked(board, touched, 12)
    board.press("Escape")
    check_free(board)
    cells = page.locator(".jp-Cell").count()
    for key in "ddbx":  # commands of a notebook, elsewhere
        board.press(key)
    assert page.locator(".jp-Cell").count() == cells


@pytest.mark.browser
def test_by_finger(served, chromium, touched):
    context = chromium.new_context(viewport={"width": 800, "height": 1000}, has_touch=True)
    page = context.new_page()
    open_notebook(page, served, "touch.ipynb")
    board = run(page)
    cell(board, touched, QUERY).tap()
    check_marked(board, touched, QUERY)
    own, finger = sliders.explore_numbers(), context.new_cdp_session(page)
    x, y = centre(cell(board, own, 8))
    for kind, far in (("Start", 0), *(("Move", 10 * i) for i in range(1, 6)), ("End", None)):
        points = [] if far is None else [{"x": x + far, "y": y}]
        finger.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": points})
    own.x.view(-1)[8] += 0.5
    compare(board, own)
    context.close()


def centre(box):
    box.scroll_into_view_if_needed()
    at = box.bounding_box()
    return at["x"] + at["width"] / 2, at["y"] + at["height"] / 2


def texts(board):
    """Return every number as the page writes it, in order of the drawing."""
    return board.locator("[data-tensor] > g:last-child text").all_text_contents()


@pytest.mark.browser
def test_a_drag_changes_what_depends_on_it(board, page):
    own = sliders.explore_numbers()
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
def test_no_key_is_lost_and_the_right_button_drags_nothing(board, page):
    own = sliders.explore_numbers()
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
    page.wait_for_timeout(400)
    compare(board, own)


def compare(board, own):
    """Find every number of the page equal to what our own forward gives."""
    expected = sorted(text for text, _ in written(trace(own.mha, own.x)))
    until(lambda: sorted(texts(board)) == expected, 5, "not every number followed")


def check_told(board, own, i):
    told = tell(trace(own.mha, own.x), linears(own.mha))[i]
    assert board.locator(".card p").first.inner_text() == told.words


@pytest.mark.browser
def test_without_a_kernel_numbers_stay_and_the_picture_says_so(board, touched, page):
    page.evaluate(
        """async () => { for (const one of await (await fetch('/api/kernels')).json())
            await fetch('/api/kernels/' + one.id, {method: 'DELETE', headers:
              {'X-XSRFToken': document.cookie.match(/_xsrf=([^;]*)/)?.[1] ?? ''}}); }"""
    )
    before = texts(board)
    board.focus()
    board.press("ArrowRight")
    board.press("+")
    page.get_by_text("Nothing can be dragged here, for no kernel answers.").wait_for()
    assert texts(board) == before
    check_marked(board, touched, 0)


@pytest.mark.browser
def test_nothing_wrong_by_axe(board, touched, page):
    cell(board, touched, QUERY).click()
    for dark in (True, False):
        make_dark(page, dark)
        page.evaluate(AXE)
        found = page.evaluate("axe.run({include: [['.touch']]})")["violations"]
        assert [(p["id"], node["html"]) for p in found for node in p["nodes"]] == []


@pytest.mark.browser
def test_notebook_7(served, touched, page):
    page.goto(f"{served}/notebooks/touch.ipynb")
    page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
    board = run(page)
    cell(board, touched, QUERY).hover()
    check_marked(board, touched, QUERY)


def moving(page, index):
    """Return where the cells of a motion stand in its drawing: the tensor's, the storage's."""
    places = (
        page.locator(".touch:has(.controls)")
        .nth(index)
        .evaluate(
            """el => {
          const frame = el.querySelector('svg').getBoundingClientRect();
          return [...el.querySelectorAll('.moves')].map(cell => {
            const at = cell.getBoundingClientRect();
            return [at.x - frame.x, at.y - frame.y];
          });
        }"""
        )
    )
    return places[:18], places[18:]


def close_to(one, other):
    pairs = zip(sum(map(list, one), []), sum(map(list, other), []), strict=True)
    return all(abs(a - b) < 1 for a, b in pairs)


@pytest.mark.browser
@pytest.mark.parametrize("index", [0, 1], ids=STEPS)
def test_cells_glide_by_slider_and_by_button(board, page, index):
    motion = sliders.explore_motion(STEPS[index]).motion
    glide = page.locator(".touch:has(.controls)").nth(index)
    slider, button = glide.locator("input"), glide.locator("button")
    tensor, strip = moving(page, index)
    pairs = zip(tensor + strip, motion.ways, strict=True)
    expected = [(x + dx, y + dy) for (x, y), (dx, dy) in pairs]
    page.wait_for_timeout(300)
    assert moving(page, index) == (tensor, strip)  # still by default
    slider.focus()
    slider.press("End")
    ended = moving(page, index)
    assert close_to(ended[0] + ended[1], expected)
    assert close_to(ended[1], strip) is (STEPS[index] == "transpose")
    assert slider.get_attribute("aria-valuetext") == "after"
    slider.press("ArrowLeft")
    assert slider.get_attribute("aria-valuetext") == "99 percent of the way"
    slider.press("Home")
    assert moving(page, index) == (tensor, strip)
    button.press("Enter")
    until(lambda: 0 < float(slider.input_value()) < 1, 5, "it does not begin")
    until(lambda: slider.input_value() == "1", 5, "it does not end")
    assert close_to(moving(page, index)[0], ended[0])
    page.emulate_media(reduced_motion="reduce")
    button.click()
    assert slider.input_value() == "0" and moving(page, index) == (tensor, strip)
    slider.press("ArrowRight")
    assert slider.input_value() == "1"


@pytest.mark.browser
@pytest.mark.parametrize("index", range(len(MAKING)), ids=MAKING)
def test_scores_are_covered_and_shared_out_and_values_add_up(board, page, index):
    motion = sliders.explore_motion(MAKING[index]).motion
    glide = page.locator(".touch:has(.controls)").nth(len(STEPS) + index)
    slider, moves = glide.locator("input"), glide.locator(".moves")
    ends = [(dx, dy, *(wider or [1])) for dx, dy, *wider in motion.ways]
    old = boxes(glide)
    slider.focus()
    for key, share in (("End", 1), ("Home", 0)):
        slider.press(key)
        for (x, y, _), (now_x, now_y, now_wide), way in zip(old, boxes(glide), ends, strict=True):
            assert abs(x + share * way[0] - now_x) < 1 and abs(y + share * way[1] - now_y) < 1
            if MAKING[index] == "softmax":  # a bar is one pixel long
                assert abs(now_wide - (way[2] if share else 1)) < 0.1
    summed = glide.locator(".arriving")
    opacity = "all => all.map(each => getComputedStyle(each).opacity)"
    assert summed.evaluate_all(opacity) == ["0"] * summed.count()
    names = glide.locator(".before, .after")
    for share in ("0", "0.3", "0.5", "0.8", "1"):  # there is no moment without names
        slider.fill(share)
        before, after = (
            glide.locator(each).evaluate_all(opacity) for each in (".before", ".after")
        )
        assert set(before) == {"0" if float(share) >= 0.5 else "1"} and names.count()
        assert set(after) == {"1" if float(share) >= 0.5 else "0"}
    slider.fill("0.5")  # of three groups the first has arrived, the last has not begun
    assert len(set(summed.evaluate_all(opacity))) == (2 if MAKING[index] == "context" else 0)
    slider.press("End")
    assert summed.evaluate_all(opacity) == ["1"] * summed.count()
    assert moves.count() == len(motion.ways)


def boxes(glide):
    """Return left, top and width of what moves, in the drawing's own pixels."""
    return glide.evaluate(
        """el => {
          const svg = el.querySelector('svg'), frame = svg.getBoundingClientRect();
          const scale = svg.viewBox.baseVal.width / frame.width;
          return [...el.querySelectorAll('.moves')].map(cell => {
            const at = cell.getBoundingClientRect();
            return [at.x - frame.x, at.y - frame.y, at.width].map(one => one * scale);
          });
        }"""
    )
