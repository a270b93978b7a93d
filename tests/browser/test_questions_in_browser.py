"""The site's page of questions: answered by keyboard, with nothing wrong by axe."""

import re

import build_site
import one_page
import pytest
from axe import check_axe
from bank import make
from playwright.sync_api import expect
from waits import visit
from write_bank import by_step

EACH_FORM = "scores.table", "scores.line", "class.symptom"  # a table, a line, words


def few_questions():
    """Variants of each form in place of all: of those the page is long, and no other."""
    return {"5 scores": [[make(name, seed) for seed in range(3)] for name in EACH_FORM]}


@pytest.fixture(
    scope="module",
    params=[(1280, few_questions), (390, few_questions),
            pytest.param((1280, by_step), marks=pytest.mark.nightly)],
)  # fmt: skip
def opened(tmp_path_factory, chromium, request):
    """The page of questions, on a screen and on a phone, offline."""
    folder, (width, asked) = tmp_path_factory.mktemp("questions"), request.param
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build_site, "by_step", asked)
        build_site.begin(folder)
    page = visit(chromium, width, 844)
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


def test_the_sheet_prints_on_one_page_and_fits_a_phone(chromium):
    page = visit(chromium, 390, 844)
    page.set_content(one_page.page())
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    check_axe(page)
    for paper in ("A4", "Letter"):
        assert len(re.findall(rb"/Type /Page\b(?!s)", page.pdf(format=paper))) == 1
    page.context.close()
