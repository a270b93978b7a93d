"""Steps as motion: cells that glide, are covered, shared out and added up, by slider and button."""

import pytest
from axe import check_axe
from lab_page import make_dark, run_all
from playwright.sync_api import expect
from waits import settle, soon, turn

from eleven_steps import sliders

SET_UP = "import torch\ntorch.set_num_threads(1)\nfrom eleven_steps import sliders"
STEPS = ("transpose", "combine")  # one leaves the storage alone, one does not
MAKING = ("mask", "softmax", "context")  # they make new numbers
SOURCES = [SET_UP, *(f"sliders.explore_motion('{step}')" for step in STEPS + MAKING)]


@pytest.fixture
def glides(opened):
    """The motions in JupyterLab, made anew."""
    opened.emulate_media(reduced_motion="no-preference")
    run_all(opened)
    glides = opened.locator(".touch:has(.controls)")
    expect(glides).to_have_count(len(STEPS + MAKING))
    settle(opened)
    return glides


# Where cells stand in their drawing: the tensor's, then the storage's.
PLACES = """glide => {
  const frame = glide.querySelector('svg').getBoundingClientRect();
  return [...glide.querySelectorAll('.moves')].map(cell => {
    const at = cell.getBoundingClientRect();
    return [at.x - frame.x, at.y - frame.y];
  });
}"""
# Writes down how far the slider is, whenever a frame of the motion is drawn.
RECORD = """glide => {
  const slider = glide.querySelector('input'), seen = glide.seen = [];
  new MutationObserver(() => seen.push(Number(slider.value)))
    .observe(slider, {attributeFilter: ['aria-valuetext']});
}"""
# Press the button, and say where that leads at once, before anything can be animated.
PRESS = """glide => {
  glide.querySelector('button').click();
  return glide.querySelector('input').value;
}"""


def close_to(one, other):
    pairs = zip(sum(map(list, one), []), sum(map(list, other), []), strict=True)
    return all(abs(a - b) < 1 for a, b in pairs)


def check_at(glide, places):
    """Find cells at places."""

    def check():
        assert close_to(glide.evaluate(PLACES), places)

    soon(check)


@pytest.mark.browser
@pytest.mark.parametrize("index", [0, 1], ids=STEPS)
def test_cells_glide_by_slider_and_by_button(glides, index):
    motion = sliders.explore_motion(STEPS[index]).motion
    glide = glides.nth(index)
    slider, button = glide.locator("input"), glide.locator("button")
    before = glide.evaluate(PLACES)
    after = [(x + dx, y + dy) for (x, y), (dx, dy) in zip(before, motion.ways, strict=True)]
    assert close_to(after[18:], before[18:]) is (STEPS[index] == "transpose")
    assert not close_to(after[:18], before[:18])
    turn(glides.page)
    assert glide.evaluate(PLACES) == before  # still by default
    expect(slider).to_have_value("0")
    slider.focus()
    slider.press("End")
    expect(slider).to_have_attribute("aria-valuetext", "after")
    check_at(glide, after)
    slider.press("ArrowLeft")
    expect(slider).to_have_attribute("aria-valuetext", "99 percent of the way")
    slider.press("Home")
    check_at(glide, before)
    glide.evaluate(RECORD)
    button.press("Enter")
    expect(slider).to_have_value("1")
    check_at(glide, after)
    seen = glide.evaluate("glide => glide.seen")
    assert seen == sorted(seen) and any(0 < share < 1 for share in seen), "it jumps"
    glides.page.emulate_media(reduced_motion="reduce")
    assert glide.evaluate(PRESS) == "0"
    check_at(glide, before)
    slider.press("ArrowRight")
    expect(slider).to_have_value("1")
    check_at(glide, after)


@pytest.mark.browser
@pytest.mark.parametrize("index", range(len(MAKING)), ids=MAKING)
def test_scores_are_covered_and_shared_out_and_values_add_up(glides, index):
    motion = sliders.explore_motion(MAKING[index]).motion
    glide = glides.nth(len(STEPS) + index)
    slider = glide.locator("input")
    ends = [(dx, dy, *(wider or [1])) for dx, dy, *wider in motion.ways]
    old = boxes(glide)
    summed = glide.locator(".arriving")

    def check_moved(share):
        for (x, y, _), (now_x, now_y, now_wide), way in zip(old, boxes(glide), ends, strict=True):
            assert abs(x + share * way[0] - now_x) < 1 and abs(y + share * way[1] - now_y) < 1
            if MAKING[index] == "softmax":  # a bar is one pixel long
                assert abs(now_wide - (way[2] if share else 1)) < 0.1

    def check_kinds(kinds):
        assert len(set(summed.evaluate_all(OPACITY))) == kinds

    slider.focus()
    for key, share in (("End", 1), ("Home", 0)):
        slider.press(key)
        soon(check_moved, share)
    expect_opacity(summed, "0")
    assert glide.locator(".before, .after").count()
    for share in ("0", "0.3", "0.5", "0.8", "1"):  # there is no moment without names
        slider.fill(share)
        expect_opacity(glide.locator(".before"), "0" if float(share) >= 0.5 else "1")
        expect_opacity(glide.locator(".after"), "1" if float(share) >= 0.5 else "0")
    slider.fill("0.5")  # of three groups the first has arrived, the last has not begun
    soon(check_kinds, 2 if MAKING[index] == "context" else 0)
    slider.press("End")
    expect_opacity(summed, "1")
    expect(glide.locator(".moves")).to_have_count(len(motion.ways))


OPACITY = "all => all.map(each => getComputedStyle(each).opacity)"


def expect_opacity(parts, opacity):
    """Find all parts so opaque."""

    def check():
        assert parts.evaluate_all(OPACITY) == [opacity] * parts.count()

    soon(check)


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


@pytest.mark.browser
def test_nothing_wrong_by_axe(glides):
    for dark in (True, False):
        make_dark(glides.page, dark)
        check_axe(glides.page, ".touch:has(.controls)")
