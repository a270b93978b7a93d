"""Softmax as a lever: its numbers at each moment are torch's, wherever a hand has put them."""

import random

import alone
import pytest
import torch
from axe import check_axe
from playwright.sync_api import expect

from eleven_steps import sliders

WORDS = ["an", "old", "red", "boat"]
SCORES = [-4.0, 3.0, 1.0, 0.5]
BEGIN = f"Object.assign(window, {{ leverAt }}); {alone.BEGIN}"
NUMBERS = "all => all.map(each => each.textContent.replace('−', '-'))"


@pytest.fixture(params=[1280, pytest.param(390, marks=pytest.mark.nightly)])
def lever(chromium, request, tmp_path):
    """The lever on the words of a red boat, in a page without a kernel; it moves at once."""
    widget = sliders.explore_lever(torch.tensor(SCORES), WORDS, divisor=2.0)
    page = chromium.new_page(viewport={"width": request.param, "height": 844})
    page.emulate_media(reduced_motion="reduce")
    yield alone.visit(page, alone.write(tmp_path, widget, BEGIN))
    assert page.faults == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.close()


def moments(scores, divisor):
    """What a row of scores is at each moment: by torch."""
    scaled = scores / divisor
    return [scaled, scaled.exp(), torch.softmax(scaled, dim=-1)]


@pytest.mark.parametrize("lever", [1280], indirect=True)
def test_its_numbers_at_every_moment_are_those_of_torch(lever):
    generator = random.Random(3)
    for _ in range(40):
        row = [generator.uniform(-9, 9) for _ in range(generator.randint(1, 8))]
        divisor = generator.uniform(0.5, 16)
        found = lever.page.evaluate("([row, by]) => leverAt(row, by)", [row, divisor])
        for made, right in zip(found, moments(torch.tensor(row).double(), divisor), strict=True):
            assert torch.allclose(torch.tensor(made).double(), right, rtol=1e-5, atol=1e-9)


def test_a_bar_and_the_divisor_are_moved_and_the_weights_follow(lever):
    page, title = lever.page, lever.locator(".title")
    bars, numbers = lever.locator(".bar"), lever.locator(".number")
    row = list(SCORES)

    def check(divisor, moment):
        by = divisor if moment else 1  # nothing is divided before exp
        right = moments(torch.tensor(row), by)[moment].tolist()
        shown = [float(each) for each in numbers.evaluate_all(NUMBERS)]
        assert shown == pytest.approx(right, abs=0.0051, rel=0.01)

    def go(name):
        lever.get_by_role("button", name=name).click()
        expect(lever.get_by_role("button", name=name)).to_have_attribute("aria-pressed", "true")

    high = lever.bounding_box()["height"]
    for moment, name in enumerate(("scores", "exp", "sum to 1")):
        go(name)
        check(2, moment)
        assert lever.bounding_box()["height"] == high, "something jumps"
        check_axe(page)
    expect(title).to_have_text("It attends most to “old”: 59 %")
    go("scores")
    for _ in range(8):
        bars.nth(2).press("ArrowUp")
    row[2] = 1 + 8 * 8 / 40
    check(2, 0)
    box = bars.nth(0).locator(".hit").bounding_box()
    page.mouse.move(box["x"] + 10, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 10, box["y"])
    page.mouse.up()
    row[0] = float(bars.nth(0).get_attribute("aria-valuenow"))
    assert row[0] > SCORES[0] + 1
    go("sum to 1")
    check(2, 2)
    slider = lever.get_by_role("slider", name="divide by")
    slider.fill("0")
    check(1, 2)
    slider.fill("0.7")  # near the root it sticks
    check(2, 2)
    bars.nth(0).press("Escape")
    row[0] = SCORES[0]
    check(2, 2)
    lever.get_by_role("button", name="Back to the start").click()
    row = list(SCORES)
    check(2, 2)
