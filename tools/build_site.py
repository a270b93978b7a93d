"""Write the course as web pages to site/: they open from a folder, without network or kernel.

Usage: python tools/build_site.py [--to FOLDER] [NOTEBOOK ...], all of notebooks/ unless named.

A page shows the stored outputs of a notebook. Its sliders come from a new run: their pictures and
links lie in the page, and assets/embed.js, a copy of tools/site_assets/, brings them to life.
"""

import argparse
import asyncio
import re
import shutil
import sys
from pathlib import Path

from nbconvert import HTMLExporter
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_notebook
from renew import NOTEBOOKS, VIEW, client, for_each, nothing_done, read

ROOT = NOTEBOOKS.parent
ASSETS = ROOT / "tools" / "site_assets"
STYLES = ("index.css", "theme-light.css", "theme-dark.css")  # of nbconvert's lab template
PICTURE = re.compile(r"!\[.*?\]\((.+?\.svg)\)")
TO_NOTEBOOK = re.compile(r'href="(?:notebooks/)?(\w+)\.ipynb(?=["#])')
ABOUT = """
These pages show the course as it ran. Sliders move; code does not run here: for that, and for
checks of your own answers, install the course. Begin with [the first notebook]({first}).
"""


def main() -> int:
    """Write the pages of the notebooks named on the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--to", type=Path, default=ROOT / "site", metavar="FOLDER")
    parser.add_argument("notebooks", nargs="*", type=Path)
    options = parser.parse_args()
    with nothing_done():
        failures = build(options.notebooks or sorted(NOTEBOOKS.glob("*.ipynb")), options.to)
    return failures > 0


def build(notebooks: list[Path], site: Path) -> int:
    """Write index.html, a page for each notebook and what they load; return how many failed."""
    assets = site / "assets"
    assets.mkdir(parents=True, exist_ok=True)
    for name in ("embed.js", "embed.js.LICENSE.txt", "pages.css", "touch.js"):
        shutil.copy(ASSETS / name, assets)
    templates = HTMLExporter().environment
    for name in STYLES:
        style, *_ = templates.loader.get_source(templates, f"static/{name}")
        (assets / name).write_text(style, encoding="utf-8")
    (site / "index.html").write_text(page(front_page(), "index"), encoding="utf-8")

    async def write(path: Path) -> str:
        written = site / f"{path.stem}.html"
        written.write_text(page(await with_widgets(path), path.stem), encoding="utf-8")
        return str(written)

    return asyncio.run(for_each(notebooks, write))


async def with_widgets(path: Path) -> NotebookNode:
    """Return a stored notebook with the live widgets of a new run.

    Raises:
        ValueError: a widget has no stored output that shows the same.
    """
    notebook, ran = read(path), read(path)
    await client(ran, path, store_widget_state=True).async_execute()
    for cell, new in zip(notebook.cells, ran.cells, strict=True):
        stored = {o.data.get("text/plain"): o.data for o in cell.get("outputs", []) if "data" in o}
        for live in (o.data for o in new.get("outputs", []) if VIEW in o.get("data", {})):
            if live["text/plain"] not in stored:
                raise ValueError("it is not stored as it runs now: make notebooks")
            stored[live["text/plain"]][VIEW] = live[VIEW]
    if "widgets" in ran.metadata:
        notebook.metadata.widgets = ran.metadata.widgets
    return notebook


def front_page() -> NotebookNode:
    """Return what index.html shows: the README's beginning and its table of notebooks."""
    readme = (ROOT / "README.md").read_text("utf-8")
    beginning, *sections = re.split("^(?=## )", readme, flags=re.MULTILINE)
    (table,) = (section for section in sections if section.startswith("## The notebooks\n"))
    # Drawn in the page itself, a picture takes the page's colours.
    beginning = PICTURE.sub(
        lambda link: f"<div>{(ROOT / link[1]).read_text('utf-8')}</div>", beginning
    )
    about = ABOUT.format(first=f"notebooks/{min(NOTEBOOKS.glob('*.ipynb')).name}")
    return new_notebook(cells=[new_markdown_cell(beginning + about + table)])


def page(notebook: NotebookNode, name: str) -> str:
    """Return a notebook as the web page name.html, which loads nothing but ./assets/."""
    title = re.match("# (.+)", notebook.cells[0].source)
    notebook.metadata.title = title[1] if title else name
    exporter = HTMLExporter(
        extra_template_paths=[str(ASSETS)],
        template_file="page.html.j2",
        exclude_anchor_links=True,
    )
    html, _ = exporter.from_notebook_node(notebook, {"metadata": {"name": name}})
    html = html.replace('href="../README.md"', 'href="index.html"')
    return TO_NOTEBOOK.sub(r'href="\1.html', html)


if __name__ == "__main__":
    sys.exit(main())
