"""Depth that is folded: a line a heading, a click away, run with all the rest, never to be saved."""

import re

import lab as course
import nbformat
import pytest
from lab_page import NOTEBOOKS, open_notebook, put, run_all
from playwright.sync_api import expect
from waits import settle, turn

VIEW = next(path for path in NOTEBOOKS if path.stem == "03_view")
FOLDED = "jp-MarkdownHeadingCollapsed"
UNSAVED = ".jp-Document.jp-mod-dirty, .lm-DockPanel .jp-mod-dirty"


@pytest.fixture
def cells():
    """The notebook's cells."""
    return nbformat.read(VIEW, as_version=4).cells


@pytest.mark.browser
def test_depth_is_folded_runs_and_unfolds(lab, folder, page, cells, tmp_path):
    copy = tmp_path / f"my_{VIEW.name}"
    course.copy(VIEW, copy)  # as `make lab` copies it
    open_notebook(page, lab, put(folder, copy))
    headings = [i for i, cell in enumerate(cells) if FOLDED in cell.metadata]
    check_folded(page, cells, headings)
    check_closes_without_a_question(page, copy.name)
    open_notebook(page, lab, copy.name)
    run_all(page)
    check_folded(page, cells, headings)
    check_unfolds(page, cells, headings)


def check_folded(page, cells, headings):
    """Below "Deeper" find nothing but headings, each a line, with how many cells it hides."""
    every = page.locator(".jp-Notebook .jp-Cell")
    expect(every).to_have_count(len(cells))
    expect(page.locator(".jp-showHiddenCellsButton:visible")).to_have_count(len(headings))
    for i in range(headings[0], len(cells)):
        if i not in headings:
            expect(every.nth(i)).to_be_hidden()
            continue
        heading = every.nth(i).locator("h3")
        expect(heading).to_contain_text(cells[i].source.removeprefix("### ").replace("`", ""))
        assert heading.bounding_box()["height"] < 40, "more than a line"


def check_closes_without_a_question(page, name):
    """Close what nobody has touched."""
    page.wait_for_timeout(1000)  # nothing tells that it will not ask later
    assert not page.locator(UNSAVED).count(), "an untouched notebook asks to be saved"
    tab = page.locator(".lm-DockPanel-tabBar .lm-TabBar-tab", has_text=name)
    tab.locator(".lm-TabBar-tabCloseIcon").click()
    expect(tab).to_have_count(0)
    turn(page)
    assert not page.locator(".jp-Dialog").count()


def check_unfolds(page, cells, headings):
    """A click shows what is below a heading, run, and no more than that."""
    every = page.locator(".jp-Notebook .jp-Cell")
    first, second = headings[:2]
    every.nth(first).locator(".jp-showHiddenCellsButton").click()
    for i in range(first + 1, second):
        expect(every.nth(i)).to_be_visible()
    code = next(i for i in range(first, second) if cells[i].cell_type == "code")
    expect(every.nth(code).locator(".jp-InputPrompt").first).to_have_text(re.compile(r"\[\d+\]"))
    expect(every.nth(code).locator("svg[role=img], img[alt]")).to_be_visible()
    expect(every.nth(second + 1)).to_be_hidden()
    settle(page)
    every.nth(first).locator(".jp-collapseHeadingButton").click()
    expect(every.nth(first + 1)).to_be_hidden()
    # Also what is still folded has run.
    numbers = page.locator(".jp-CodeCell .jp-InputPrompt")
    expect(numbers.filter(has_text="[ ]")).to_have_count(0)
