"""Softmax as a lever: its numbers at each moment are torch's, wherever a hand has put them."""

import random

import alone
import pytest
import torch
from axe import check_axe
from playwright.sync_api import expect
from test_stage_in_browser import address, opened, stage  # noqa: F401

from eleven_steps import sliders

WORDS = ["an", "old", "red", "boat"]
SCORES = torch.tensor([[2.0, 0, 0, 0], [1.5, -3, 0, 0], [0.3, 2.2, 5, 0], [-4.0, 3, 1, 0.5]])
SCORES = SCORES.masked_fill(torch.ones(4, 4).triu(diagonal=1).bool(), -torch.inf)
BEGIN = f"Object.assign(window, {{ leverAt, keptOf }}); {alone.BEGIN}"
NUMBERS = "all => all.map(each => each.textContent.replace('−', '-').replace('∞', 'inf'))"


@pytest.fixture(params=[1280, pytest.param(390, marks=pytest.mark.nightly)])
def lever(chromium, request, tmp_path):
    """The lever on the words of a red boat, in a page without a kernel; it moves at once."""
    widget = sliders.explore_lever(SCORES, WORDS, divisor=2.0)
    page = chromium.new_page(viewport={"width": request.param, "height": 844})
    page.emulate_media(reduced_motion="reduce")
    yield alone.visit(page, alone.write(tmp_path, widget, BEGIN)).locator(".alone")
    assert page.faults == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.close()


def moments(masked, divisor, kept):
    """What a row of scores is at each moment, after its scores: by torch."""
    scaled = masked / divisor
    weights = torch.softmax(scaled, dim=-1)
    return [masked, scaled, (scaled - scaled.max()).exp(), weights, weights * kept]


@pytest.mark.parametrize("lever", [1280], indirect=True)
def test_its_numbers_at_every_moment_are_those_of_torch(lever):
    generator, asked, wanted = random.Random(3), [], []
    for _ in range(40):
        row = [generator.uniform(-9, 9) for _ in range(generator.randint(1, 8))]
        divisor, kept = generator.uniform(0.5, 16), [generator.choice([0, 2]) for _ in row]
        state = {"scores": row, "masked": row, "divisor": divisor, "kept": kept}
        asked += [[moment, state] for moment in range(1, 6)]
        wanted += moments(torch.tensor(row, dtype=torch.double), divisor, torch.tensor(kept))
    found = lever.page.evaluate("all => all.map(([t, row]) => leverAt(t, row).numbers)", asked)
    for made, right in zip(found, wanted, strict=True):
        assert torch.allclose(torch.tensor(made, dtype=torch.double), right, atol=1e-9)


def test_a_bar_the_divisor_and_the_row_are_moved_and_the_weights_follow(lever):
    page, title = lever.page, lever.locator(".title")
    bars, numbers = lever.locator(".bar"), lever.locator(".number")

    def check(row, divisor, moment, kept=1):
        right = moments(torch.tensor(row), divisor, kept)[moment - 1].tolist()
        shown = [float(each) for each in numbers.evaluate_all(NUMBERS)]
        assert shown == pytest.approx(right, abs=0.0051)

    def go(name):
        lever.get_by_role("button", name=name).click()
        expect(lever.get_by_role("button", name=name)).to_have_attribute("aria-pressed", "true")

    row = SCORES[3].tolist()
    high = lever.bounding_box()["height"]
    for moment, name in enumerate(("mask", "divide", "exp", "sum to 1"), 1):
        go(name)
        check(row, 2, moment)
        assert lever.bounding_box()["height"] == high, "something jumps"
        check_axe(page)
    expect(title).to_have_text("“boat” attends to “old”: 59 %")
    go("mask")
    for _ in range(8):
        bars.nth(2).press("ArrowUp")
    row[2] = round(row[2] + 8 * 10 / 40, 2)
    check(row, 2, 1)
    box = bars.nth(0).locator(".hit").bounding_box()
    page.mouse.move(box["x"] + 10, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 10, box["y"])
    page.mouse.up()
    dragged = float(bars.nth(0).get_attribute("aria-valuenow"))
    assert dragged > row[0] + 1
    row[0] = dragged
    go("sum to 1")
    check(row, 2, 4)
    slider = lever.get_by_role("slider", name="divide by")
    slider.fill("0")
    check(row, 1, 4)
    slider.fill("0.7")  # near the root it sticks
    check(row, 2, 4)
    bars.nth(0).press("Escape")
    row[0] = SCORES[3, 0].item()
    check(row, 2, 4)
    go("dropout")
    kept = torch.tensor(page.evaluate("Array.from(keptOf(4))"))
    assert set(kept.tolist()) == {0, 2}
    check(row, 2, 5, kept)
    lever.get_by_role("button", name="Back to the start").click()
    lever.get_by_role("button", name="red").click()
    go("mask")
    check(SCORES[2].tolist(), 2, 1)
    expect(bars.nth(3)).to_have_attribute("aria-disabled", "true")
    go("sum to 1")
    expect(title).to_have_text("“red” attends to “red”: 75 %")


def test_on_the_stage_it_moves_the_weights_the_context_and_the_next_word(page, stage):  # noqa: F811
    page.emulate_media(reduced_motion="reduce")
    page.get_by_role("button", name="all heads").click()
    page.evaluate("stage.row = { layer: 1, h: 1, r: 5 }, stage.playhead.show(7)")
    expect(stage.locator(".next")).to_contain_text("Bert0.99")
    bars, weight = stage.locator(".lever .bar"), stage.locator("[data-cell='weights.0.1.5.0']")
    expect(bars).to_have_count(6)
    before = page.evaluate("Array.from(stage.made[8].context)")
    for _ in range(6):
        bars.nth(0).press("Shift+ArrowUp")
    shown = float(weight.get_attribute("data-value"))
    masked = torch.tensor(page.evaluate("Array.from(stage.made[6].masked.slice(66, 72))"))
    right = torch.softmax(masked / 21**0.5, dim=-1)
    assert shown == pytest.approx(right[0].item(), abs=1e-6) and shown > 0.9
    expect(stage.locator(".title")).to_contain_text("What if masked[0, 1, 5, 0] were")
    expect(stage.locator(".title")).to_contain_text("“met” gives")
    expect(stage.locator(".next")).not_to_contain_text("Bert0.99")
    assert page.evaluate("Array.from(stage.made[8].context)") != before
    stage.get_by_role("slider", name="divide by").fill("2.5")
    assert float(weight.get_attribute("data-value")) != shown
    expect(stage.locator(".title")).to_contain_text("What if the divisor were")
    page.keyboard.press("Escape")
    assert float(weight.get_attribute("data-value")) == pytest.approx(shown)
    stage.get_by_role("button", name="exp").click()
    expect(stage).to_have_attribute("data-answered", "false")
    stage.get_by_role("button", name="dropout").click()
    expect(stage).to_have_attribute("data-answered", "true")
    kept = page.evaluate("Array.from(keptOf(72)).slice(66)")
    shown = page.evaluate("Array.from(stage.made[7].weights.slice(66, 72))")
    assert shown == pytest.approx((right * torch.tensor(kept)).tolist(), abs=1e-6)
    check_axe(page)
    assert page.faults == []
