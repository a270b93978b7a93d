"""Lines to break by hand, and a class that speaks, in a page without a kernel: mouse and keys."""

from xml.etree import ElementTree

import alone
import pytest
from axe import check_axe
from playwright.sync_api import expect

from eleven_steps import sliders
from eleven_steps.checks import read_class, wrong_class, wrong_lines
from helpers.attention import MultiHeadAttention

SVG_TEXT, SVG_PATH = (f"{{http://www.w3.org/2000/svg}}{tag}" for tag in ("text", "path"))


@pytest.fixture
def show(page, tmp_path):
    """Open a widget of one trait in a page of its own: show(widget) returns its place."""

    return lambda widget: alone.visit(page, alone.write(tmp_path, widget))


def test_a_line_is_broken_by_hand(page, show):
    place = show(sliders.break_step(wrong_lines("softmax")))
    lamps, (divisor, axis) = place.locator("section"), place.get_by_role("combobox").all()
    high = place.bounding_box()["height"]

    def notices(*expected):
        for lamp, each in zip(lamps.all(), expected, strict=True):
            expect(lamp).to_have_attribute("data-notices", each)
        assert place.bounding_box()["height"] == high, "something jumps"

    notices("false", "false", "false")
    divisor.select_option(index=1)  # sqrt(d_out)
    notices("false", "true", "false")
    expect(place.locator("td.differs")).to_have_count(10)
    expect(place.locator(".count")).to_contain_text("1 of them turned only one lamp red")
    axis.select_option(index=1)
    notices("false", "true", "true")
    axis.select_option(index=0)
    notices("false", "true", "false")
    expect(place.locator(".count")).to_contain_text("1 of them turned only one lamp red")
    check_axe(page)
    place.get_by_text("Back to the right lines").click()
    notices("false", "false", "false")
    assert not page.faults


def test_a_class_speaks_once_it_is_right(page, show):
    place = show(sliders.explore_class(read_class(wrong_class("softmax_over_queries"))))
    stage, marked = place.locator("[data-stage]"), place.locator(".cells .wrong:visible")
    for state, many in (("done", 6), ("wrong", 1), ("dark", 4)):
        expect(stage.locator(f".tiles .{state}")).to_have_count(many)
    expect(stage).to_have_attribute("data-step", "7")
    expect(marked).to_have_count(12)
    expect(place.locator(".finale")).to_have_count(0)
    stage.locator("[data-cell='weights.0.0.0.0']").hover()
    expect(stage.locator(".card")).to_contain_text("weights[0, 0, 0, 0] = 0.34: right is 1.00")
    playhead = stage.get_by_role("slider", name="Playhead")
    playhead.press("ArrowRight")  # no further than it is right
    expect(stage).to_have_attribute("data-step", "7")
    playhead.press("Home")
    expect(stage).to_have_attribute("data-step", "1")
    playhead.press("End")
    expect(stage).to_have_attribute("data-step", "7")
    place = show(sliders.explore_class(read_class(wrong_class("heads_interleaved"))))
    expect(stage).to_have_attribute("data-step", "10")
    assert marked.count() > 0
    stage.get_by_role("slider", name="Playhead").press("ArrowLeft")  # what is ticked is right
    expect(stage).to_have_attribute("data-step", "9")
    expect(marked).to_have_count(0)
    reading = read_class(wrong_class("view_straight"))  # in its own shape, (1, 2, 3, 3)
    place = show(sliders.explore_class(reading))
    own = stage.locator("[data-cell='queries.0.1.2.0']")
    wanted = reading.steps[2].tensors["queries"][0, 1, 2, 0].item()
    assert float(own.get_attribute("data-value")) == pytest.approx(wanted, abs=1e-6)
    place = show(sliders.explore_class(read_class(MultiHeadAttention)))
    next_word = place.locator(".next")
    with page.expect_download() as saved:
        place.get_by_role("button", name="Save as a card to share").click()
    card = ElementTree.parse(saved.value.path()).getroot()
    written = [text.text for text in card.iter(SVG_TEXT)]
    assert written[:2] == ["My attention reads:", "Anna"] and "Bert" in written[-2]
    assert "Next word: Bert, 0.99" in written[-1] and len(list(card.iter(SVG_PATH))) > 5
    expect(next_word).to_contain_text("Bert0.99")
    arcs, heads = place.locator(".sentence path"), place.locator(".heads button")
    before = arcs.count()
    heads.nth(4).click()
    expect(next_word).to_contain_text("was Bert 0.99")
    assert arcs.count() < before
    heads.nth(4).press("Enter")  # on again
    place.get_by_role("button", name="The eleven steps of this sentence").click()
    expect(stage.locator(".tiles .done")).to_have_count(11)
    place.get_by_role("button", name="check by hand").click()
    expect(stage.locator(".code")).to_contain_text("self.W_query")
    check_axe(page)
    assert not page.faults
