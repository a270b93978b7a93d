"""The web pages: one for each notebook, linked to each other, loading nothing from elsewhere."""

import re

import build_site
import pytest
import renew
from bank import make
from formats import questions_page
from page_read import Page
from site_front import TEXTS, front_page, launch
from write_bank import by_step

PATHS = list(renew.COURSE.values())
TITLES = [renew.read(path).cells[0].source.splitlines()[0][2:] for path in PATHS]
PAGES = {f"{path.stem}.html" for path in PATHS} | {"index.html", "questions.html", "glossary.html"}
MATH = re.compile(r"\$|\\[(\[]|\\begin")  # what MathJax would draw


def few_questions():
    """Make one question in place of all, which take as long as everything else here."""
    return {"5 scores": [[make("scores.table", 0)]]}


@pytest.fixture(scope="module")
def front():
    return front_page(build_site.ROOT)


SOME = [renew.COURSE[name] for name in ("00_start_here", "05_scores", "21_in_the_wild")]


@pytest.fixture(
    scope="module",
    params=[SOME, pytest.param(PATHS, marks=pytest.mark.nightly)],
    ids=["some", "all"],
)
def pages(front, request):
    """Return pages of the course by their names, as stored, without new sliders."""
    made = {path.stem: Page(build_site.page(renew.read(path), path.stem)) for path in request.param}
    kinds = by_step(1) if request.param is PATHS else few_questions()
    asked = build_site.page(questions_page(kinds), "questions")
    words = build_site.page(build_site.glossary(), "glossary")
    front = Page(build_site.page(front, "index"))
    return made | {"index": front, "questions": Page(asked), "glossary": Page(words)}


def test_links_lead_to_pages_and_all_that_is_loaded_lies_beside_them(pages, tmp_path):
    build_site.load_into(tmp_path / "assets")
    for name, page in pages.items():
        targets = {link.partition("#")[0] for link in page.links if "://" not in link} - {""}
        assert targets and targets <= PAGES, name
        words = {link.partition("#")[2] for link in page.links if link.startswith("glossary.html#")}
        assert all(f'<h2 id="{word}">' in pages["glossary"].html for word in words), name
        for source in page.loads:
            assert source.startswith("data:") or (tmp_path / source).is_file(), (name, source)


def test_every_column_has_a_name_and_formulas_need_no_mathjax(pages):
    for name, page in pages.items():
        assert not re.search(r"<th[^>]*>\s*</th>", page.html), name
        assert not MATH.search(page.prose), name


def test_pages_say_nothing_that_holds_only_where_code_runs(pages):
    for name, page in pages.items():
        assert not re.search(r"Shift and Enter|not (answered|repaired) yet", page.said), name
        assert not re.search(r"pip install|[Rr]un (this|the) cell", page.said), name
        assert not re.search(r"\b(In|Out)\s\[", page.said), name


def test_pages_lead_to_their_neighbours(pages):
    paths = sorted(PATHS, key=lambda path: path.stem != build_site.PREFACE)
    titles = [TITLES[PATHS.index(path)] for path in paths]
    for place, path in enumerate(paths):
        if path.stem not in pages:
            continue
        html = pages[path.stem].html
        around = re.findall(r'<a href="(\w+)\.html" rel="(prev|next)">(.+?)</a>', html)
        expected = [(paths[place - 1].stem, "prev", f"← {titles[place - 1]}")] if place else []
        for after, title in zip(paths[place + 1 : place + 2], titles[place + 1 :], strict=False):
            expected.append((after.stem, "next", f"{title} →"))
        assert around == expected * 2, "at the top and at the bottom"


def test_index_begins_with_a_sentence_and_the_stage_and_leads_to_every_notebook(pages):
    index, html = pages["index"], pages["index"].html
    away = {link for link in index.links if not link.startswith("#")}
    assert away == PAGES - {"index.html"}
    assert index.links[0] == min(PAGES), "the first link is to the first notebook"
    assert html.index('class="begin"') < html.index(renew.VIEW) < html.index('class="cards"')
    assert html.count("<li><a href=") == len(PATHS) == html.count(" minutes</small>")
    assert set(TEXTS["asked"]) == {path.stem for path in PATHS}
    assert all(question in html for question in TEXTS["asked"].values())
    assert "sliders.explore_stage(" not in html, "the code stays out of sight"


def test_an_exercise_says_where_it_runs():
    notebook = renew.COURSE["05_scores"]
    dead, lite = (build_site.page(renew.read(notebook), "05_scores", lite=has) for has in (0, 1))
    address = 'href="lite/lab/index.html?path=05_scores.ipynb">Run it in your browser'
    assert address not in dead and "<code>make lab</code> opens" in dead
    assert lite.count(address) == 2 + lite.count('class="try"') and 'class="try"' in dead


def test_solutions_can_be_left_out(pages):
    path = renew.COURSE["05_scores"]
    without = build_site.page(renew.read(path), path.stem, {"solution"})
    assert "# Solution" in pages[path.stem].html and "# Solution" not in without


def test_the_course_is_launched_from_the_one_address_that_is_filled_in(tmp_path):
    project = '[project]\nversion = "9.1"\n'
    (tmp_path / "pyproject.toml").write_text(project)
    assert launch(tmp_path) == ""
    urls = '[project.urls]\nRepository = "https://github.com/someone/course"\n'
    (tmp_path / "pyproject.toml").write_text(project + urls)
    for address in ("mybinder.org/v2/gh/someone/course/v9.1", "/github/someone/course/blob/v9.1/"):
        assert address in launch(tmp_path)
