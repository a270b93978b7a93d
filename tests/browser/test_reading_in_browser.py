"""What is read in JupyterLab: source in colours, short errors, formulas, the strip of steps."""

import pytest
from lab_page import close, make_dark, open_notebook, run_all

SHORT = 10  # lines of an error: the learner's own, and the message
COLOURS = "code => [...code.querySelectorAll('span')].map(e => getComputedStyle(e).color)"


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


def check_source(page):
    """The forward pass has eleven numbers in its margin and more than two colours."""
    code = page.locator(".highlight", has_text="def forward").first
    assert code.locator("a").all_inner_texts() == [str(number) for number in range(1, 12)]
    assert "record(" not in code.inner_text()
    assert len(set(code.evaluate(COLOURS))) > 3


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
