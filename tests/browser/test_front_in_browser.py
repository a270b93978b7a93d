"""The site's first page: a dot product that answers a click, and nothing wrong by axe."""

from pathlib import Path

import build_site
import pytest
from playwright.sync_api import expect

AXE = (Path(__file__).parent / "axe.min.js").read_text()
OPEN = "axe.run({preload: false})"  # nothing is fetched


@pytest.fixture(scope="module")
def front(tmp_path_factory):
    """The address of the first page, built without the others."""
    folder = tmp_path_factory.mktemp("front")
    build_site.begin(folder)
    return (folder / "index.html").as_uri()


@pytest.fixture(params=[1280, 390])
def opened(front, page, request):
    """The first page, on a screen and on a phone, offline."""
    page.set_viewport_size({"width": request.param, "height": 844})
    page.context.set_offline(True)
    page.goto(front)
    page.locator(".touch .board").wait_for()
    return page


@pytest.mark.browser
def test_a_score_is_made_pair_by_pair(opened):
    board = opened.locator(".touch .board")
    score = board.locator("[data-tensor='scores.scores'] > g").first.locator("path").nth(3)
    score.click()
    line = board.locator(".card p").last
    whole = line.inner_text()
    assert whole.count(" x ") == 3, "three features meet"
    assert board.locator(".mark-from").get_attribute("d"), "its row and its column are framed"
    score.click()
    assert line.inner_text().count(" x ") == 1
    assert board.locator(".mark-pair").get_attribute("d")
    expect(line).to_have_text(whole)
    board.press("Escape")
    expect(line).to_be_hidden()


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_wrong_by_axe(opened, scheme):
    opened.emulate_media(color_scheme=scheme)
    opened.evaluate(AXE)
    found = opened.evaluate(OPEN)["violations"]
    assert [(rule["id"], node["html"]) for rule in found for node in rule["nodes"]] == []
