"""Depth that is folded: a line a heading, a click away, run with all the rest."""

import re

import lab as course
import nbformat
import pytest
from lab_page import NOTEBOOKS, open_notebook, put, run_all
from playwright.sync_api import expect
from waits import resize, settle, soon

VIEW = next(path for path in NOTEBOOKS if path.stem == "03_view")
CELLS = nbformat.read(VIEW, as_version=4).cells
HEADINGS = [i for i, cell in enumerate(CELLS) if "jp-MarkdownHeadingCollapsed" in cell.metadata]
UNSAVED = ".jp-Document.jp-mod-dirty, .lm-DockPanel .jp-mod-dirty"


@pytest.fixture(scope="module")
def name(folder, lab, tmp_path_factory):
    """The name of a learner's copy, as `make lab` makes it."""
    copy = tmp_path_factory.mktemp("mine") / f"my_{VIEW.name}"
    course.copy(VIEW, copy)
    return put(folder, copy)


@pytest.fixture
def cells(lab, page, name):
    """The cells of the notebook, opened."""
    open_notebook(page, lab, name)
    cells = page.locator(".jp-Notebook .jp-Cell")
    expect(cells).to_have_count(len(CELLS))
    return cells


def check_lines(cells, headings):
    """Find headings, each a line, with how many cells it hides."""
    lines = cells.page.locator(".jp-showHiddenCellsButton:visible")
    expect(lines).to_have_count(len(headings))
    for i in headings:
        heading = cells.nth(i).locator("h3")
        expect(heading).to_contain_text(CELLS[i].source.removeprefix("### "))
        assert heading.bounding_box()["height"] < 40, "more than a line"
        expect(cells.nth(i + 1)).to_be_hidden()


def test_below_deeper_are_only_headings_and_what_nobody_touched_closes(cells, name):
    def check():
        seen = [i for i in range(HEADINGS[0], len(CELLS)) if cells.nth(i).is_visible()]
        assert seen == [*HEADINGS, len(CELLS) - 1]  # the way on

    soon(check, seconds=5)
    page = cells.page
    page.wait_for_timeout(1000)  # nothing tells that it will not ask later
    assert not page.locator(UNSAVED).count(), "an untouched notebook asks to be saved"
    tab = page.locator(".lm-DockPanel-tabBar .lm-TabBar-tab", has_text=name)
    tab.hover()
    tab.locator(".lm-TabBar-tabCloseIcon").click()
    expect(tab).to_have_count(0)
    assert not page.locator(".jp-Dialog").count()


def test_keys_and_run_all_unfold_nothing_a_click_does(cells):
    page = cells.page
    resize(page, 1280, 800)
    cells.first.click()
    first = page.locator(".jp-CodeCell:visible .jp-InputPrompt:not(.jp-Placeholder-prompt)")
    many = first.count()
    page.locator(".jp-Notebook").press("Escape")
    for i in range(HEADINGS[0] + len(HEADINGS)):  # as fast as keys come, once a picture is there
        page.keyboard.press("Shift+Enter")
        if i == HEADINGS[0] - 2:
            expect(page.locator("[data-stage]")).to_have_count(1)
        if CELLS[i].source.startswith("sliders.explore_stage("):  # what was just run is in sight
            soon(check_top, page)
    check_lines(cells, HEADINGS)
    ran = [text for text in first.all_inner_texts() if re.search(r"\[[*\d]+\]", text)]
    assert many and len(ran) == many
    run_all(page)
    check_lines(cells, HEADINGS)
    prompts = page.locator(".jp-CodeCell .jp-InputPrompt:not(.jp-Placeholder-prompt)")
    expect(prompts.filter(has_text=re.compile(r"\[[ *]\]"))).to_have_count(0)
    above, below = HEADINGS[:2]
    cells.nth(above).locator(".jp-showHiddenCellsButton").click()
    for i in range(above + 1, below):
        expect(cells.nth(i)).to_be_visible()
    code = next(i for i in range(above, below) if CELLS[i].cell_type == "code")
    expect(cells.nth(code).locator("svg[role=img], img[alt]").first).to_be_visible()
    expect(cells.nth(code).locator(".jp-InputPrompt").first).to_have_text(re.compile(r"\[\d+\]"))
    expect(cells.nth(below + 1)).to_be_hidden()
    settle(page)
    cells.nth(above).locator(".jp-collapseHeadingButton").click()
    expect(cells.nth(above + 1)).to_be_hidden()


def check_top(page):
    """A stage is in sight as a whole, or from its top where it is higher than the room."""
    room = page.locator(".jp-WindowedPanel-outer").bounding_box()
    stage = page.locator("[data-stage]").bounding_box()
    above = stage["y"] - room["y"]
    below = room["height"] - above - stage["height"]
    assert above >= 0 and (below >= 0 or above < 40), (above, below)
