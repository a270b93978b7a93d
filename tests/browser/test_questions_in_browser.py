"""The site's page of questions: answered by keyboard, with nothing wrong by axe."""

import build_site
import pytest
from axe import check_axe
from playwright.sync_api import expect
from waits import visit


@pytest.fixture(scope="module", params=[1280, 390])
def opened(tmp_path_factory, chromium, request):
    """The page of questions, on a screen and on a phone, offline."""
    folder = tmp_path_factory.mktemp("questions")
    build_site.begin(folder)
    page = visit(chromium, request.param, 844)
    page.context.set_offline(True)
    page.goto((folder / "questions.html").as_uri())
    page.locator("[role=status]").first.wait_for(state="attached")
    yield page
    page.context.close()


def test_arrows_move_enter_chooses_and_other_numbers_come(opened):
    question = opened.locator(".question").first
    shown = question.locator("fieldset:visible")
    expect(shown).to_have_count(1)
    options, said = shown.locator("input"), shown.locator("[role=status]")
    options.first.focus()
    for _ in range(3):
        opened.keyboard.press("ArrowDown")
    expect(options.last).to_be_checked()
    expect(said).to_be_empty()
    opened.keyboard.press("Enter")
    right = options.last.get_attribute("value") == "1"
    expect(said).to_contain_text("✓ Right." if right else "✗ No.")
    told = shown.locator("label span:last-child").last.text_content()
    assert said.text_content().endswith(told)
    options.and_(opened.locator("[value='1']")).click()
    expect(said).to_contain_text("✓ Right.")
    expect(opened.locator("[role=status]").first).to_have_text(f"{int(right)} of 1 right at once")
    before = shown.get_attribute("aria-labelledby")
    question.get_by_role("button").press("Enter")
    assert shown.get_attribute("aria-labelledby") != before
    expect(options.first).to_be_focused()
    expect(said).to_be_empty()
    assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for scheme in "light", "dark":
        opened.emulate_media(color_scheme=scheme)
        check_axe(opened)
