"""The site's first page: a stage that answers a finger and a key, and nothing wrong by axe."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

import build_site
import pytest
from axe import check_axe
from playwright.sync_api import expect
from waits import visit


@pytest.fixture(scope="module")
def front(tmp_path_factory):
    """The address of the first page, built without the others."""
    folder = tmp_path_factory.mktemp("front")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build_site, "by_step", dict)  # no questions
        build_site.begin(folder)
    return (folder / "index.html").as_uri()


@pytest.fixture(params=[1280, pytest.param(390, marks=pytest.mark.nightly)])
def opened(front, chromium, request):
    """The first page, on a screen and on a phone, offline."""
    page = visit(chromium, request.param, 844)
    page.context.set_offline(True)
    page.goto(front)
    page.locator("[data-stage] .spoken button").first.wait_for()
    yield page
    page.context.close()


def test_nothing_is_wrong_by_axe_and_a_head_is_switched_off_and_on(opened):
    for scheme in "light", "dark":
        opened.emulate_media(color_scheme=scheme)
        check_axe(opened)
    assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")
    lefts = opened.locator(".cards li").evaluate_all("all => all.map(e => e.offsetLeft)")
    assert len(set(lefts)) == (2 if opened.viewport_size["width"] == 390 else 3)
    stage = opened.locator("[data-stage]")
    expect(stage.locator(".next")).to_contain_text("Bert0.99")
    said = stage.locator(".finding")
    expect(said).to_have_text("what followed: “met” attends to “Bert”, 100 %")
    words, completes = stage.locator(".spoken button"), stage.locator(".heads button").last
    assert words.first.bounding_box()["y"] < 844 and completes.bounding_box()["y"] < 844
    words.nth(4).click()  # its arcs
    expect(said).to_contain_text("“Anna” attends to")
    words.nth(5).press("Enter")
    completes.press("Enter")
    expect(stage.locator(".next")).to_contain_text("was Bert 0.99")
    completes.press("Enter")
    expect(stage.locator(".next")).to_contain_text("Bert0.99")
    stage.get_by_role("button", name="The eleven steps of this sentence").click()
    check_axe(opened)
    stage.get_by_role("button", name="all heads").click()
    stage.get_by_role("button", name="Arcs").click()
    expect(stage.locator(".next b:visible")).to_have_count(3)


# What a reader sees without scrolling: the lowest edge of the stage, and how large its words are.
SEEN = """stage => [stage.getBoundingClientRect().bottom, innerHeight,
  parseFloat(getComputedStyle(stage.querySelector('.spoken button')).fontSize)]"""


def test_the_steps_are_one_press_away(front, chromium):
    page = visit(chromium, 1280, 800, reduced_motion="reduce")
    page.goto(front)
    stage = page.locator("[data-stage]")
    bottom, high, font = stage.evaluate(SEEN)
    assert bottom <= high and font >= 32 and not page.evaluate("scrollY")
    check_axe(page)
    stage.get_by_role("button", name="The eleven steps of this sentence").click()
    expect(stage).to_have_attribute("data-step", "1")
    for step in range(1, 8):
        stage.get_by_role("button", name=f"Play step {step}").click()
        expect(stage).to_have_attribute("data-step", f"{step}")
        expect(stage).to_have_attribute("data-answered", "true")
    expect(stage.locator("[data-cell='weights.0.1.5.2']")).to_have_count(1)
    page.context.close()


def test_the_front_is_at_most_500_kb(front):
    folder = Path(unquote(urlsplit(front).path)).parent
    whole = [each for each in folder.rglob("*") if each.is_file() and each.suffix != ".html"]
    assert sum(each.stat().st_size for each in [*whole, folder / "index.html"]) <= 500_000
