"""Write the course as web pages to site/: they open from a folder, without network or kernel.

Usage: python tools/site/build_site.py [--to FOLDER] [--without-solutions] [--lite FOLDER]
[NOTEBOOK ...], all of notebooks/ unless named.

A page shows the stored outputs of a notebook. Its sliders come from a new run: their pictures and
scripts lie in the page, and assets/alive.js, a copy of tools/site/assets/, starts them.
"""

import argparse
import asyncio
import functools
import re
import shutil
import sys
from collections.abc import Iterable, Set
from itertools import pairwise
from pathlib import Path

from latex2mathml.converter import convert
from nbconvert import HTMLExporter
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_notebook

# course.py is in the folder above, and the questions are in tools/bank.
sys.path.extend(str(Path(__file__).parents[1] / part) for part in ("", "bank"))
from formats import questions_page
from renew import COURSE, NOTEBOOKS, VIEW, as_shipped, client, for_each, read
from site_front import STATE, front_page, title_of
from write_bank import by_step

ROOT = NOTEBOOKS.parent
ASSETS = Path(__file__).with_name("assets")
STYLES = ("index.css", "theme-light.css", "theme-dark.css")  # of nbconvert's lab template
ICON = re.compile(r"[\w-]+:\s*url\(data:[^)]*\)[^;}]*;?")  # JupyterLab's icons, which no page shows
SPACE = re.compile(r"/\*.*?\*/|\s+", re.DOTALL)  # comments and indents, which no browser needs
BARE = {f"exclude_{part}": True for part in ("anchor_links", "input_prompt", "output_prompt")}
# nbconvert lets Tab stop at every cell and output. stills.js adds a stop where an output scrolls.
STOP = re.compile(
    r'(<div class="[^"]*\bjp-(?:Cell-inputWrapper|OutputArea-output)\b[^>]*) tabindex="0"'
)
TO_NOTEBOOK = re.compile(r'href="(?:notebooks/|beyond/|\.\./)*(\w+)\.ipynb(?=["#])')
VERBATIM = re.compile(r"(^(?:```|~~~).*?^(?:```|~~~)|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
FORMULA = re.compile(r"\$\$(.+?)\$\$|\$([^$\n]+)\$", re.DOTALL)
PREFACE = "00_tensors"  # an introduction to torch, which comes before the evening
# A page has no kernel, so it leaves out cells with the tag "lab", sentences that ask the reader to
# run a cell, and verdicts on exercises that nobody has answered.
LAB_ONLY, SOLUTION, DEEPER = "lab", "solution", "deeper"
LITE = "lite"  # the folder in the site where the course runs in a browser
ONLY_READ = frozenset({LAB_ONLY})
SENTENCE = r"(?:`[^`\n]*`|[^.`\n])*"
RUNNING = re.compile(rf" ?(?<![^\s>])[A-Z]{SENTENCE}\b[Rr]un the cell\b{SENTENCE}\.(?=\s|$)")
BEFORE = re.compile(r"(?<=efore you) run (?:on|the cell|it)\b")
ASLEEP = re.compile(r"<p>[^<]*\b[Rr]un the cell\b[^<]*</p>")  # the sentence under a stored film
UNANSWERED = re.compile("not (answered|repaired) yet")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--to", type=Path, default=ROOT / "site", metavar="FOLDER")
    parser.add_argument("--without-solutions", action="store_true", help="leave out the solutions")
    parser.add_argument(
        "--lite", type=Path, metavar="FOLDER", help="the folder that make lite has written"
    )
    parser.add_argument("notebooks", nargs="*", type=Path)
    options = parser.parse_args()
    with as_shipped():
        left_out = {LAB_ONLY, *([SOLUTION] if options.without_solutions else [])}
        if options.lite:
            shutil.copytree(options.lite, options.to / LITE, dirs_exist_ok=True)
        failures = build(options.notebooks or COURSE.values(), options.to, left_out)
    return failures > 0


def begin(site: Path) -> None:
    """Write index.html, questions.html, glossary.html and the assets that all pages load."""
    load_into(site / "assets")
    front = {"index": front_page(ROOT), "questions": questions_page(by_step())}
    for name, made in {**front, "glossary": glossary()}.items():
        (site / f"{name}.html").write_text(page(made, name), encoding="utf-8")


def load_into(assets: Path) -> None:
    assets.mkdir(parents=True, exist_ok=True)
    for name in ("alive.js", "copy.js", "pages.css", "questions.js", "stills.js"):
        shutil.copy(ASSETS / name, assets)
    for name in ("pictures/wide.css", "sliders/lab.css", "sliders/fit.css", "sliders/fit.js"):
        shutil.copy(ROOT / "eleven_steps" / name, assets)
    templates = HTMLExporter().environment
    for name in STYLES:
        style, *_ = templates.loader.get_source(templates, f"static/{name}")
        (assets / name).write_text(SPACE.sub(" ", ICON.sub("", style)), encoding="utf-8")


def glossary() -> NotebookNode:
    """Return the glossary as a notebook of one cell, with an anchor for each term."""
    first, *terms = (NOTEBOOKS / "glossary.md").read_text("utf-8").split("\n## ")
    heads = (term.partition("\n") for term in terms)
    anchored = [f'<h2 id="{h.replace(" ", "-")}">{h}</h2>\n{said}' for h, _, said in heads]
    return new_notebook(cells=[new_markdown_cell("\n".join([first, *anchored]))])


def build(notebooks: Iterable[Path], site: Path, left_out: Set[str] = ONLY_READ) -> int:
    """Write index.html, a page for each notebook and their assets; return how many failed."""
    begin(site)

    async def write(path: Path) -> str:
        written = site / f"{path.stem}.html"
        lite = (site / LITE).is_dir()
        made = page(await with_widgets(path), path.stem, left_out, lite)
        written.write_text(made, encoding="utf-8")
        return str(written)

    return asyncio.run(for_each(notebooks, write))


async def with_widgets(path: Path) -> NotebookNode:
    """Return a stored notebook with the live widgets of a new run.

    Raises:
        ValueError: a widget has no stored output that shows the same, or no script of its own.
    """
    notebook, ran = read(path), read(path)
    await client(ran, path, store_widget_state=True).async_execute()
    every = ran.metadata.get("widgets", {}).get(STATE, {}).get("state", {})
    # A widget of anywidget has its own script, which alive.js starts.
    kept = {name: one for name, one in every.items() if one["model_module"] == "anywidget"}
    for cell, new in zip(notebook.cells, ran.cells, strict=True):
        stored = {o.data.get("text/plain"): o.data for o in cell.get("outputs", []) if "data" in o}
        for live in (o.data for o in new.get("outputs", []) if VIEW in o.get("data", {})):
            if live["text/plain"] not in stored:
                raise ValueError("it is not stored as it runs now: make notebooks")
            if live[VIEW]["model_id"] not in kept:
                raise ValueError("it shows a widget that has no script of its own")
            stored[live["text/plain"]][VIEW] = live[VIEW]
    if kept:
        notebook.metadata.widgets = {STATE: {"state": kept}}
    return notebook


def page(
    notebook: NotebookNode, name: str, left_out: Set[str] = ONLY_READ, lite: bool = False
) -> str:
    """Return a notebook as the web page name.html, which loads nothing but ./assets/.

    Args:
        notebook: with its stored outputs, and with widgets if it has any.
        name: the page's name without .html.
        left_out: tags of the cells to leave out.
        lite: whether the site has the folder LITE, so that the page can link to the notebook there.
    """
    title = re.match("# (.+)", notebook.cells[0].source)
    notebook.metadata.title = title[1] if title else name
    notebook.cells = [to_read(cell) for cell in notebook.cells if not left_out & {*tags(cell)}]
    close_folds(notebook.cells)
    about = {"metadata": {"name": name, **around(name)}}
    if lite and name in COURSE:
        place = COURSE[name].relative_to(NOTEBOOKS).as_posix()
        about["metadata"]["lite"] = f"{LITE}/lab/index.html?path={place}"
    html, _ = exporter().from_notebook_node(notebook, about)
    html = STOP.sub(r"\1", html)
    html = re.sub(r'href="(?:\.\./)+README.md"', 'href="index.html"', html)
    html = re.sub(r'href="(?:notebooks/|\.\./)*glossary\.md', 'href="glossary.html', html)
    return TO_NOTEBOOK.sub(r'href="\1.html', html)


@functools.cache
def exporter() -> HTMLExporter:
    """Return the exporter of all pages. It is made once, because reading templates takes long."""
    return HTMLExporter(extra_template_paths=[str(ASSETS)], template_file="page.html.j2", **BARE)


def close_folds(cells: list[NotebookNode]) -> None:
    """Mark the last cell of each folded section, after which the page closes its <details>."""
    open_before = False
    for before, cell in pairwise([*cells, new_markdown_cell("## ")]):
        open_before |= DEEPER in tags(before)
        if open_before and (DEEPER in tags(cell) or cell.source.startswith("## ")):
            before.metadata.closes, open_before = True, False


def around(name: str) -> dict[str, str]:
    """Return names and titles of the previous and the next notebook, if there are any."""
    names = sorted(COURSE, key=lambda one: one != PREFACE)
    if name not in names:
        return {}
    place = names.index(name)
    found = {"before": names[:place][-1:], "after": names[place + 1 :][:1]}
    found = {which: one[0] for which, one in found.items() if one}
    titles = {f"{which}_title": title_of(COURSE[one]) for which, one in found.items()}
    return found | titles


def tags(cell: NotebookNode) -> list[str]:
    return cell.metadata.get("tags", [])


def to_read(cell: NotebookNode) -> NotebookNode:
    """Return a cell for a page without a kernel: formulas as MathML, no verdicts."""
    if cell.cell_type == "code":
        cell.outputs = [output for output in cell.outputs if not UNANSWERED.search(words(output))]
        for output in cell.outputs:
            if "text/html" in output.get("data", {}):
                output.data["text/html"] = ASLEEP.sub("", output.data["text/html"])
        return cell
    parts = VERBATIM.split(cell.source)
    parts[::2] = [FORMULA.sub(mathml, part) for part in parts[::2]]
    cell.source = RUNNING.sub("", BEFORE.sub(" read on", "".join(parts)))
    return cell


def words(output: NotebookNode) -> str:
    return output.get("text", "") or output.get("data", {}).get("text/plain", "")


def mathml(formula: re.Match) -> str:
    block, inline = formula.groups()
    return convert(block or inline, display="block" if block else "inline")


if __name__ == "__main__":
    sys.exit(main())
