"""The notebooks as a series: their order, links, headings, text alternatives and stored form."""

import ast
import contextlib
import functools
import io
import re
from pathlib import Path
from urllib.parse import unquote

import minutes
import pytest
import renew
import torch

from eleven_steps.checks import progress

read = functools.cache(renew.read)
PATHS = list(renew.COURSE.values())
NAMES = [path.name for path in PATHS]
LONGEST = 15  # lines of a code cell, but for a solution that is a whole class
LONGEST_SET_UP = 14  # statements
LARGEST = 1_500_000  # bytes; a notebook opens and shows on a code host without delay
TAGS = {"deeper", "lab", "nbval-ignore-output", "picture", "raises-exception", "set-up"}
TAGS |= {"sheet", "solution"}

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
PICTURE = re.compile(r"!\[([^\]]*)\]\(")
FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^(#{1,6}) +(.+?) *$", re.MULTILINE)
NETWORK = re.compile(r"https?:|ftp:|\bwww\.|urlopen|from_pretrained|\bpip install|\bgit clone")
NAMED = re.compile(
    r'\balt="\s*[^"\s]|aria-hidden="true"|^(?=.*role="img").*aria-label="\s*[^"\s]', re.DOTALL
)
LOADED = re.compile(r"""(?:src|data)=["']?(?:https?:)?//|url\(["']?(?:https?:)?//|@import""")

every_notebook = pytest.mark.parametrize("path", PATHS, ids=NAMES)


def code_cells(path):
    return [cell for cell in read(path).cells if cell.cell_type == "code"]


def prose(path):
    """Return the Markdown of a notebook without its fenced code."""
    texts = [cell.source for cell in read(path).cells if cell.cell_type == "markdown"]
    return FENCED.sub("", "\n\n".join(texts))


def unnamed(html):
    """Return the pictures of a piece of HTML or SVG that do not say what they show."""
    return [tag for tag in re.findall(r"<(?:img|svg)\b[^>]*>", html) if not NAMED.search(tag)]


@every_notebook
def test_links_lead_somewhere_and_to_the_neighbours(path):
    targets = [unquote(link) for link in LINK.findall(prose(path))]
    files = {link.partition("#")[0] for link in targets if ":" not in link} - {""}
    assert not [file for file in files if not (path.parent / file).exists()]
    place = NAMES.index(path.name)
    linked = {Path(file).name for file in files}
    assert set(NAMES[place + 1 : place + 2]) <= linked
    assert set(NAMES[max(place - 1, 0) : place]) <= linked
    last = [Path(link).name for link in LINK.findall(renew.read(path).cells[-1].source)]
    assert last[:1] == (NAMES[place + 1 : place + 2] or last[:1]), "Next leads on"


@every_notebook
def test_one_title_and_no_level_skipped(path):
    levels = [len(marks) for marks, _ in HEADING.findall(prose(path))]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in zip(levels, levels[1:], strict=False))


@every_notebook
def test_the_first_code_cell_sets_up_and_no_other_imports(path):
    first, *others = [cell.source for cell in code_cells(path)]
    tagged = [cell.source for cell in code_cells(path) if "set-up" in cell.metadata.get("tags", [])]
    assert tagged == [first], "the set-up, and nothing else, is folded as the set-up"
    assert len(ast.parse(first).body) <= LONGEST_SET_UP
    assert ";" not in first and not re.search(r"\), \w", first), "one statement a line"
    assert "import torch\n" in first and "torch.set_num_threads(1)" in first
    assert "errors.show_short()" in first, "errors of torch end at the learner's own line"
    where = [line for line in first.splitlines() if re.match("from (eleven|helpers)", line)]
    assert where[0].endswith("  # not found? see docs/teaching.md")  # a traceback shows this line
    off = any("set_grad_enabled(False)" in source for source in (first, *others))
    assert off is not (path.stem in ("13_your_own_class", "18_heads_learn"))  # these need gradients
    for source in others:
        nodes = ast.walk(ast.parse(source))
        assert not [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)], source


@every_notebook
def test_code_cells_are_short_and_take_turns_with_prose(path):
    run = 0
    for cell in read(path).cells:
        tags = cell.metadata.get("tags", [])
        is_code, is_solution = cell.cell_type == "code", "solution" in tags
        folded = is_solution or {"set-up", "picture"} & {*tags}  # to a line
        run = run + 1 if is_code and not folded else 0
        assert run < 3, f"three code cells in a row: {cell.source}"
        whole = is_solution and re.search("^class ", cell.source, re.MULTILINE)
        if is_code and "set-up" not in tags and not whole:
            assert len(cell.source.splitlines()) <= LONGEST + is_solution, cell.source
        said = {"solution": "# Solution", "picture": "# Code of the picture"}  # in the folded line
        assert all(cell.source.startswith(said[tag]) for tag in said.keys() & {*tags}), cell.source


STEP_NOTEBOOKS = [path for path in PATHS if re.match(r"0[1-9]_|1[01]_", path.name)]
EVENING = "00_start_here", "00_why_attention", "12_the_class", "13_your_own_class"
WALK = [path for path in PATHS if path in STEP_NOTEBOOKS or path.stem in EVENING]
SECTIONS = [
    "Predict",
    "The step",
    "Break it",
    "Your turn",
    "Same in the class",
    "Recap",
    "Deeper",
    "Next",
]


def parts(path):
    """Return the cells of a notebook's evening, and those behind its fold."""
    cells = read(path).cells
    fold = next(i for i, cell in enumerate(cells) if cell.source.startswith("## Deeper"))
    return cells[:fold], cells[fold:]


def words(cells):
    return sum(len(minutes.words_of(c.source)) for c in cells if c.cell_type == "markdown")


def test_an_evening_is_short_and_has_one_order():
    """One evening ends at the fold; hints and solutions count."""
    evenings = {path.stem: parts(path)[0] for path in STEP_NOTEBOOKS}
    for path in STEP_NOTEBOOKS:
        headings = [text for marks, text in HEADING.findall(prose(path)) if marks == "##"]
        assert headings == SECTIONS, path.name
    counts = {name: words(cells) for name, cells in evenings.items()}
    code = {name: sum(c.cell_type == "code" for c in cells) for name, cells in evenings.items()}
    assert max(counts.values()) <= 750 and sum(counts.values()) <= 7500, counts
    assert max(code.values()) <= 15 and sum(code.values()) <= 160, code


def test_nothing_before_predict_answers_it():
    """Neither text nor code shows a shape, a row of numbers or a call that an answer gives."""
    for path in WALK[1:]:  # the first asks nothing
        sources = [cell.source for cell in read(path).cells]
        place = next(i for i, source in enumerate(sources) if source.startswith("## Predict"))
        answers = sources[place].partition("<details>")[2]
        given = re.findall(r"[(\[]\d[\d., ]*[)\]]|(?<=`)\w+\(.*?\)(?=`)", answers)
        before = "\n".join(sources[:place])
        assert not [each for each in given if each in before], path.name


def test_progress_counts_the_exercises_of_the_evening():
    asked = [
        name
        for path in WALK
        for cell in parts(path)[0]
        if "solution" not in cell.metadata.get("tags", [])
        for name in re.findall(r'^check\("([\w.]+)"', cell.source, re.MULTILINE)
    ]
    assert asked == list(progress.EVENING)


def test_what_goes_deeper_is_folded():
    for path in WALK:
        evening, (_, *depth) = parts(path)
        assert not [cell.source for cell in evening if "deeper" in cell.metadata.get("tags", [])]
        for cell in depth:
            heading = cell.cell_type == "markdown" and cell.source.startswith("### ")
            assert heading == ("deeper" in cell.metadata.get("tags", [])), cell.source
            assert heading == cell.metadata.get("jp-MarkdownHeadingCollapsed", False)


def test_the_steps_are_plain_torch():
    """Without the course's own names the cells of a step still run, down to the exercise."""
    for path in STEP_NOTEBOOKS:
        namespace, evening = {"torch": torch}, parts(path)[0]
        stop = next(i for i, c in enumerate(evening) if c.source.startswith("## Your turn"))
        cells = [cell for cell in evening[:stop] if cell.cell_type == "code"][2:]
        ran = [cell for cell in cells if "raises-exception" not in cell.metadata.get("tags", [])]
        ran = [cell for cell in ran if not cell.source.startswith("sliders.")]  # a picture
        assert len(ran) >= 2, path.name
        with torch.no_grad(), contextlib.redirect_stdout(io.StringIO()):
            for cell in ran:
                exec(cell.source, namespace)


@every_notebook
def test_every_picture_has_a_text_alternative(path):
    text = prose(path)
    assert all(alternative.strip() for alternative in PICTURE.findall(text))
    assert not unnamed(text)
    for cell in code_cells(path):
        for data in (output.data for output in cell.outputs if "data" in output):
            html, svg = data.get("text/html", ""), data.get("image/svg+xml", "")
            assert not unnamed(html + svg), cell.source
            if "image/png" in data or "image/jpeg" in data:
                assert "<img" in html, f"an <img alt> must stand beside: {cell.source}"


@every_notebook
def test_no_network_is_needed(path):
    for cell in code_cells(path):
        assert not NETWORK.search(cell.source), cell.source
        assert not LOADED.search(str(cell.outputs)), cell.source


@every_notebook
def test_stored_executed_in_normal_form(path):
    stored = path.read_text("utf-8")
    assert stored == renew.normal_form(read(path)), f"run: make notebooks OPTIONS={path}"
    counts = [cell.execution_count for cell in code_cells(path) if cell.source.strip()]
    assert counts == list(range(1, len(counts) + 1))
    assert len(stored.encode()) < LARGEST


@every_notebook
def test_nothing_escapes_the_comparison(path):
    for cell in code_cells(path):
        assert set(cell.metadata.get("tags", [])) <= TAGS, cell.source
        assert "NBVAL_" not in cell.source, "nbval would obey this comment"
        assert not [output for output in cell.outputs if output.get("name") == "stderr"]
