"""A notebook as a learner meets it: opened, run, its sliders moved by keyboard, both themes."""

import re

import nbformat
import pytest
import torch
from axe import ask_axe
from lab_page import NOTEBOOKS, check_film, make_dark, open_7, open_notebook, put, run_all, unfold
from look import check_whole, see
from playwright.sync_api import expect
from waits import in_page, resize, soon, until

from eleven_steps import sliders

SVG = "image/svg+xml"
STAGE = "sliders.explore_stage("
# A stage is a canvas, the others are pages of their own: no pictures to be read like the rest.
PAGES = re.compile(r"^sliders\.(explore_(stage|lever|class)|break_step)\(", re.MULTILINE)
PICTURE = "svg[role=img], img[alt]"
ERRORS = "[data-mime-type='application/vnd.jupyter.stderr']"  # errors and warnings alike
SHORT = 10  # lines of an error: the learner's own, and the message
COLOURS = "code => [...code.querySelectorAll('span')].map(e => getComputedStyle(e).color)"
# One whole step and the class at a push; test_films_in_browser.py and test_viewers.py look at the
# other kinds of pictures, and all notebooks are opened at night.
AT_A_PUSH = {"08_context", "12_the_class"}
EVERY = [
    pytest.param(path, id=path.stem, marks=[] if path.stem in AT_A_PUSH else pytest.mark.nightly)
    for path in NOTEBOOKS
]


@pytest.mark.parametrize("path", EVERY)
def test_notebook(lab, folder, page, path):
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    open_notebook(page, lab, put(folder, path))
    # It opens in the theme that the notebook before it was left in.
    dark = page.locator("body").get_attribute("data-jp-theme-light") == "false"
    unfold(page)
    check_hints_and_formulas(page, notebook.cells)
    check_pictures_before_running(page, code)
    run_all(page)
    check_errors(page, code)
    check_films(page, code)
    check_stages(page, code)
    check_pictures(page, code)
    check_names(page)
    resize(page, 1024, 900)
    check_nothing_is_cut(page)
    resize(page, 640, 450)  # 1280 x 900 at a zoom of 200 %
    check_nothing_is_cut(page)
    resize(page, 1280, 900)
    if path.stem == "12_the_class":
        check_error(page, "The size of tensor a (1024)")
        soon(check_source, page)
    make_dark(page, not dark)
    check_pictures(page, code)
    if path.stem == "12_the_class":
        soon(check_source, page)


def as_it_comes(route):
    """Hand JupyterLab its settings with the windowing that it has by itself."""
    got = route.fetch()
    text = re.sub(r'(windowingMode\\?": *\\?")none', r"\1contentVisibility", got.text())
    route.fulfill(response=got, body=text)


def test_a_cell_with_a_picture_is_styled_out_of_sight_as_well(serve, page):
    """JupyterLab leaves out what is far away, unless tests turn that off."""
    page.route(re.compile("/api/settings"), as_it_comes)
    sources = ["from eleven_steps import sliders", *["print('line\\n' * 99)"] * 2]
    open_notebook(page, serve("far.ipynb", [*sources, "sliders.explore_stage()"]), "far.ipynb")
    run_all(page)
    cells = page.locator(".jp-CodeCell")
    cells.first.scroll_into_view_if_needed()

    def check():
        ways = cells.evaluate_all("all => all.map(e => getComputedStyle(e).contentVisibility)")
        assert ways[2:] == ["auto", "visible"]

    soon(check)


@pytest.mark.nightly
def test_hints_and_solutions_in_notebook_7(lab, folder, page):
    (path,) = (each for each in NOTEBOOKS if each.stem == "05_scores")
    open_7(page, lab, put(folder, path))
    unfold(page)
    check_hints_and_formulas(page, nbformat.read(path, as_version=4).cells)


def check_hints_and_formulas(page, cells):
    """Hints and solutions are lines that a click unfolds; formulas are set."""
    prose = "".join(cell.source for cell in cells if cell.cell_type == "markdown")
    hints = page.locator(".jp-MarkdownOutput details", has=page.get_by_text("Hint", exact=True))
    expect(hints).to_have_count(prose.count("<summary>Hint</summary>"))
    for hint in hints.all():
        inside = hint.locator("> :not(summary)").first
        expect(inside).to_be_hidden()
        hint.locator("summary").click()
        expect(inside).to_be_visible()
    for index, cell in enumerate(each for each in cells if each.cell_type == "code"):
        if "solution" not in cell.metadata.get("tags", []):
            continue
        folded = page.locator(".jp-CodeCell").nth(index)
        line = folded.locator(".jp-InputPlaceholder")
        expect(line).to_have_text(re.compile(r"^\s*# Solution"))
        line.click()
        expect(folded.locator(".jp-InputArea-editor")).to_contain_text(cell.source.splitlines()[-1])
    formulas = page.locator(".jp-MarkdownOutput mjx-container")
    expect(formulas.first if "$" in prose else page.locator("h1").first).to_be_visible()
    expect(page.locator(".jp-MarkdownOutput", has_text="\\frac")).to_have_count(0)


def outputs(page, index):
    """Locate the outputs of a code cell."""
    return page.locator(".jp-CodeCell").nth(index).locator(".jp-OutputArea-output")


def pictures_in_sight(cell):
    """Count the pictures that a cell shows; a solution is folded."""
    if "solution" in cell.metadata.get("tags", []):
        return 0
    return sum(SVG in output.get("data", {}) for output in cell.outputs)


def check_pictures_before_running(page, code):
    for index, cell in enumerate(code):
        stored = pictures_in_sight(cell)
        pictures = outputs(page, index).locator(f"{PICTURE}, [data-stage], .lever")
        until(lambda p=pictures, n=stored: p.count() >= n, f"no picture of {cell.source}")


def check_errors(page, code):
    for index, cell in enumerate(code):
        intended = "raises-exception" in cell.metadata.get("tags", [])
        errors = page.locator(".jp-CodeCell").nth(index).locator(ERRORS)
        expect(errors, cell.source).to_have_count(int(intended))


def check_films(page, code, most=None):
    """Walk through all positions of the films, or of so many of them."""
    made = {index: film_of(code, index) for index, cell in enumerate(code)
            if cell.source.startswith("sliders.explore_")}  # fmt: skip
    films = [(index, film) for index, film in made.items() if isinstance(film, sliders.Film)]
    for index, film in films[:most]:
        check_film(outputs(page, index).locator(".film"), film)


def check_stages(page, code):
    """Find each stage with a number under the hand."""
    for index, cell in enumerate(code):
        if not cell.source.startswith(STAGE) or "large=True" in cell.source:
            continue
        # One word may show ribbons alone; its whiteboard has numbers at each step.
        if (by_hand := outputs(page, index).get_by_role("button", name="check by hand")).count():
            by_hand.click()
        number = outputs(page, index).locator("[data-cell].movable >> visible=true").first
        before = number.get_attribute("aria-valuetext")
        number.press("ArrowUp")
        expect(number).not_to_have_attribute("aria-valuetext", before)
        number.press("Escape")
        expect(number).to_have_attribute("aria-valuetext", before)


def film_of(code, index):
    """Make the film of a cell here; where it needs them, run the cells before it first."""
    names = {"sliders": sliders}
    try:
        return eval(code[index].source, names)
    except NameError:
        with torch.no_grad():  # leaves this process's own setting as it was
            for cell in code[:index]:
                exec(cell.source, names)
        return eval(code[index].source, names)


def check_pictures(page, code):
    drawn = [cell for cell in code if not PAGES.search(cell.source)]
    wanted = sum(pictures_in_sight(cell) > 0 for cell in drawn)
    until(lambda: len(see(page)) >= wanted, "not every picture is in sight")


def check_names(page):
    rules = ["aria-input-field-name", "aria-valid-attr-value", "image-alt", "svg-img-alt", "label"]

    def check():
        found = ask_axe(page, ".jp-OutputArea-output", rules)
        assert [(p["id"], node["html"]) for p in found["violations"] for node in p["nodes"]] == []
        passed = {rule["id"] for rule in found["passes"]}
        for kind, rule in {"svg[role=img]": "svg-img-alt", "img": "image-alt"}.items():
            seen = page.locator(f".jp-OutputArea-output {kind}:visible")
            assert rule in passed or not seen.count()

    soon(check)


WIDE = """e => e.scrollWidth <= e.clientWidth ? [] : [...e.querySelectorAll("*")]
  .filter(each => each.getBoundingClientRect().right > e.getBoundingClientRect().right)
  .slice(0, 5).map(each => each.outerHTML.slice(0, 200))"""


def check_nothing_is_cut(page):
    notebook = page.locator(".jp-WindowedPanel-outer").first

    def check():
        assert notebook.evaluate(WIDE) == []

    soon(check)
    check_whole(page)


# Every text of a piece of source, with its contrast to what lies behind it.
CONTRAST = in_page("contrast")


def check_source(page):
    """The forward pass has eleven numbers in its margin; all source has colours, legible ones."""
    badges = page.locator(".jp-OutputArea .highlight:visible a[aria-label^='step ']")
    assert badges.all_inner_texts() == [str(number) for number in range(1, 12)]
    every = page.locator(".jp-OutputArea .highlight:visible").all()
    assert len(every) == 2  # the constructor, forward
    for code in every:
        assert "record(" not in code.inner_text()
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
