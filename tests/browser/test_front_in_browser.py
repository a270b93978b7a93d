"""The site's first page: a dot product that answers a click, and nothing wrong by axe."""

import re

import build_site
import pytest
from axe import check_axe
from playwright.sync_api import expect
from waits import visit


@pytest.fixture(scope="module")
def front(tmp_path_factory):
    """The address of the first page, built without the others."""
    folder = tmp_path_factory.mktemp("front")
    build_site.begin(folder)
    return (folder / "index.html").as_uri()


@pytest.fixture(params=[1280, 390])
def opened(front, chromium, request):
    """The first page, on a screen and on a phone, offline."""
    page = visit(chromium, request.param, 844)
    page.context.set_offline(True)
    page.goto(front)
    page.locator(".touch .board").wait_for()
    yield page
    page.context.close()


@pytest.mark.browser
def test_a_score_is_made_pair_by_pair(opened):
    board = opened.locator(".touch .board")
    score = board.locator("[data-tensor='scores.scores'] > g").first.locator("path").nth(3)
    score.click()
    line = board.locator(".card p").last
    expect(line).to_have_text(re.compile(r".+ x .+ \+ .+ x .+ \+ .+ x .+ = .+"))
    whole = line.inner_text()
    expect(board.locator(".mark-from")).to_have_attribute("d", re.compile("M"))
    score.click()
    expect(board.locator(".mark-pair")).to_have_attribute("d", re.compile("M"))
    expect(line).to_have_text(whole)
    board.press("Escape")
    expect(line).to_be_hidden()


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_wrong_by_axe(opened, scheme):
    opened.emulate_media(color_scheme=scheme)
    check_axe(opened)
