"""What is read in JupyterLab: source in colours, short errors, formulas."""

import re

import pytest
from lab_page import make_dark, open_7, open_notebook, run_all, unfold
from playwright.sync_api import expect
from waits import resize, soon

SHORT = 10  # lines of an error: the learner's own, and the message
COLOURS = "code => [...code.querySelectorAll('span')].map(e => getComputedStyle(e).color)"
# Every text of a piece of source, with its contrast to what lies behind it.
CONTRAST = """code => {
  const pen = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const light = colours => {
    pen.clearRect(0, 0, 1, 1);
    for (const colour of colours) { pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1); }
    return [0.2126, 0.7152, 0.0722].reduce((sum, weight, i) => {
      const v = pen.getImageData(0, 0, 1, 1).data[i] / 255;
      return sum + weight * (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    }, 0);
  };
  const behind = e => e ? [...behind(e.parentElement), getComputedStyle(e).backgroundColor] : [];
  const own = e => [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
  return [code, ...code.querySelectorAll('*')].filter(own).map(e => {
    const ground = behind(e), ink = light([...ground, getComputedStyle(e).color]);
    const [high, low] = [ink, light(ground)].sort((a, b) => b - a);
    return [e.textContent, (high + 0.05) / (low + 0.05)];
  });
}"""


@pytest.mark.browser
def test_the_class(lab, page):
    open_notebook(page, lab, "12_the_class.ipynb")
    first = page.locator(".jp-CodeCell").first
    expect(first.locator(".jp-Cell-inputArea"), "the set-up is not folded").to_be_hidden()
    run_all(page)
    check_error(page, "The size of tensor a (1024)")
    for dark in (False, True):
        make_dark(page, dark)
        soon(check_source, page)


@pytest.mark.browser
def test_formulas(lab, page):
    open_notebook(page, lab, "00_why_attention.ipynb")
    unfold(page)
    formulas = page.locator(".jp-MarkdownOutput mjx-container")
    formulas.nth(7).wait_for()
    expect(page.locator(".jp-MarkdownOutput", has_text="\\frac")).to_have_count(0)


@pytest.mark.browser
@pytest.mark.parametrize("opens", [open_notebook, open_7], ids=["JupyterLab", "Notebook 7"])
def test_hints_and_solutions_are_lines_that_a_click_unfolds(lab, page, opens):
    opens(page, lab, "05_scores.ipynb")
    unfold(page)
    hints = page.locator(".jp-MarkdownOutput details", has=page.get_by_text("Hint", exact=True))
    lines = page.locator(".jp-InputPlaceholder", has_text="# Solution")
    expect(hints).to_have_count(3)
    expect(lines).to_have_count(3)
    for hint in hints.all():
        inside = hint.locator("> :not(summary)").first
        expect(inside).to_be_hidden()
        hint.locator("summary").click()
        expect(inside).to_be_visible()
    cells = page.locator(".jp-CodeCell")
    for index in [i for i, cell in enumerate(cells.all()) if cell.locator(lines).count()]:
        line = cells.nth(index).locator(".jp-InputPlaceholder")
        expect(line).to_have_text(re.compile(r"^\s*# Solution\s*$"))
        line.click()
        code = cells.nth(index).locator(".jp-InputArea-editor")
        expect(code).to_contain_text("assert check(")


@pytest.mark.browser
def test_shift_and_enter_do_not_fly_past_what_was_run(lab, page):
    open_notebook(page, lab, "01_shape.ipynb")
    resize(page, 1280, 800)
    page.locator(".jp-MarkdownCell").first.click()
    for _ in range(3):  # the title, the set-up, the stage
        page.keyboard.press("Shift+Enter")
    expect(page.locator(".jp-Cell.jp-mod-active")).to_contain_text("Predict")
    soon(check_top, page)


def check_top(page):
    """A stage is in sight as a whole, or from its top where it is higher than the room."""
    room = page.locator(".jp-WindowedPanel-outer").bounding_box()
    stage = page.locator("[data-stage]").bounding_box()
    above = stage["y"] - room["y"]
    below = room["height"] - above - stage["height"]
    assert above >= 0 and (below >= 0 or above < 40), (above, below)


def check_source(page):
    """The forward pass has eleven numbers in its margin; all source has colours, legible ones."""
    code = page.locator(".linked .highlight:visible")
    assert code.locator(".badge").all_inner_texts() == [str(number) for number in range(1, 12)]
    assert "record(" not in code.inner_text()
    every = page.locator(".jp-OutputArea .highlight:visible").all()
    assert len(every) == 3  # two constructors, forward
    for code in every:
        assert len(set(code.evaluate(COLOURS))) > 3
        assert [(text, found) for text, found in code.evaluate(CONTRAST) if found < 4.5] == []


def check_error(page, message):
    """An error of torch ends at the line that caused it."""
    error = page.locator("[data-mime-type='application/vnd.jupyter.stderr']", has_text=message)

    def check():
        lines = error.first.inner_text().strip().splitlines()
        assert len(lines) <= SHORT, lines
        assert any("scores.masked_fill(" in line for line in lines)

    soon(check)
