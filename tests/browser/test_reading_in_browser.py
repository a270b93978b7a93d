"""What is read in JupyterLab: source in colours, short errors, formulas, the strip of steps."""

import pytest
from lab_page import close, make_dark, open_notebook, run_all

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
    assert not first.locator(".jp-Cell-inputArea").is_visible(), "the set-up is not folded"
    run_all(page)
    check_source(page)
    check_error(page, "x has 7 tokens, but context_length is 6")
    check_strip(page)
    make_dark(page)
    check_source(page)
    close(page)


@pytest.mark.browser
def test_formulas(lab, page):
    open_notebook(page, lab, "00_why_attention.ipynb")
    formulas = page.locator(".jp-MarkdownOutput mjx-container")
    formulas.first.wait_for()
    assert formulas.count() >= 8
    assert not page.locator(".jp-MarkdownOutput", has_text="\\frac").count()
    close(page)


@pytest.mark.browser
@pytest.mark.parametrize("viewer", ["lab/tree", "notebooks"], ids=["JupyterLab", "Notebook 7"])
def test_hints_and_solutions_are_lines_that_a_click_unfolds(lab, page, viewer):
    page.goto(f"{lab}/{viewer}/05_scores.ipynb?reset")
    page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
    hints = page.locator(".jp-MarkdownOutput details", has=page.get_by_text("Hint", exact=True))
    lines = page.locator(".jp-InputPlaceholder", has_text="# Solution")
    assert hints.count() == lines.count() == 3
    for hint in hints.all():
        inside = hint.locator("> :not(summary)").first
        assert not inside.is_visible()
        hint.locator("summary").click()
        assert inside.is_visible()
    cells = page.locator(".jp-CodeCell")
    for index in [i for i, cell in enumerate(cells.all()) if cell.locator(lines).count()]:
        cell = cells.nth(index)
        line = cell.locator(".jp-InputPlaceholder")
        assert line.inner_text().strip() == "# Solution"
        line.click()
        assert "assert check(" in cell.locator(".jp-InputArea-editor").inner_text()
    close(page)


def check_source(page):
    """The forward pass has eleven numbers in its margin; all source has colours, legible ones."""
    code = page.locator(".linked .highlight", has_text="def forward")
    assert code.locator(".badge").all_inner_texts() == [str(number) for number in range(1, 12)]
    assert "record(" not in code.inner_text()
    every = page.locator(".jp-OutputArea .highlight").all()
    assert len(every) == 3  # two constructors, forward
    for code in every:
        assert len(set(code.evaluate(COLOURS))) > 3
        assert [(text, found) for text, found in code.evaluate(CONTRAST) if found < 4.5] == []


def check_error(page, message):
    """An error of the course ends at the line that caused it."""
    error = page.locator("[data-mime-type='application/vnd.jupyter.stderr']", has_text=message)
    lines = error.first.inner_text().strip().splitlines()
    assert len(lines) <= SHORT, lines
    assert any("mha(torch.rand(1, 7, 6))" in line for line in lines)


def check_strip(page):
    """A step's name in the strip opens its notebook."""
    page.locator("nav a[href*='03_view']").first.click()
    page.locator(".lm-TabBar-tabLabel", has_text="03_view.ipynb").wait_for()
    page.locator(".lm-TabBar-tabLabel", has_text="12_the_class.ipynb").click()
