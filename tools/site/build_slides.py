"""Write the evening as slides to slides/: they open from a folder, without network or kernel.

Usage: make slides, or: python tools/site/build_slides.py --reveal FOLDER [--to slides]

Each notebook becomes a row of slides: its introduction, Predict, the stage, and the exercise. The
key S shows the speaker notes: the minutes, and the rest of the notebook's text. FOLDER has
reveal.js, as npm installs it.
"""

import argparse
import ast
import re
import shutil
from collections.abc import Iterator
from itertools import count, takewhile
from pathlib import Path

import build_site
import minutes
from nbconvert import SlidesExporter
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_notebook
from renew import COURSE, VIEW, as_shipped, read
from site_front import KIND, STATE, alive

from eleven_steps import sliders

TITLE = "Eleven Steps to Multi-Head Attention"
SHOWN = ("## Predict", "## Your turn")
LEFT_OUT = {build_site.LAB_ONLY, build_site.SOLUTION}
LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")
NUMBERS = count()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--to", type=Path, default=build_site.ROOT / "slides", metavar="FOLDER")
    parser.add_argument("--reveal", type=Path, required=True, metavar="FOLDER")
    options = parser.parse_args()
    assets = options.to / "assets"
    for part in "dist", "plugin/notes":
        shutil.copytree(options.reveal / part, assets / "reveal.js" / part, dirs_exist_ok=True)
    shutil.copy(options.reveal / "LICENSE", assets / "reveal.js")
    build_site.load_into(assets)
    with as_shipped():
        (options.to / "index.html").write_text(slides(), encoding="utf-8")
    print(options.to / "index.html")


def slides() -> str:
    made, kept, start = new_notebook(metadata={"title": TITLE}), {}, 0
    for name, (evening, _) in minutes.both().items():
        if evening:
            cells = read(COURSE[name]).cells
            cells = takewhile(lambda cell: not cell.source.startswith(minutes.FOLD), cells)
            made.cells += row([*cells], f"Minutes {start} to {start + evening}.", kept)
            start += evening
    made.metadata.widgets = {STATE: {"state": kept}}
    exporter = SlidesExporter(
        extra_template_paths=[str(build_site.ASSETS)],
        template_file="slides.html.j2",
        reveal_url_prefix="assets/reveal.js",
        reveal_theme="white",
        **build_site.BARE,
    )
    return exporter.from_notebook_node(made, {"metadata": {"name": "index"}})[0]


def row(cells: list[NotebookNode], when: str, kept: dict) -> list[NotebookNode]:
    """Return the slides of one notebook with notes, and add the state of its stages to `kept`."""
    made, notes, shown = [typed(cells[0], "slide")], [when], False
    for cell in cells[1:]:
        heading = cell.cell_type == "markdown" and cell.source.startswith("## ")
        shown = cell.source.startswith(SHOWN) if heading else shown
        stage = next(stages(cell), None)
        if (heading and shown) or stage:
            made, notes = made + noted(notes), []
        if stage:
            kept[stage.model_id] = {**KIND, "state": stage.get_state()}
            made.append(typed(alive(stage), "subslide"))
        elif shown and not LEFT_OUT & set(build_site.tags(cell)):
            made.append(typed(cell, "subslide" if heading else "-"))
        elif cell.cell_type == "markdown" and not shown:
            notes.append(cell.source)
    return made + noted(notes)


def stages(cell: NotebookNode) -> Iterator[sliders.Live]:
    """Make the stages that a cell shows, without ticks at the steps that somebody has done."""
    for call in ast.walk(ast.parse(cell.source if cell.cell_type == "code" else "")):
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "explore_stage":
            kept = {k.arg: ast.literal_eval(k.value) for k in call.keywords if k.arg != "done"}
            yield sliders.explore_stage(*map(ast.literal_eval, call.args), **kept)


def noted(notes: list[str]) -> list[NotebookNode]:
    return [typed(new_markdown_cell("\n\n".join(notes)), "notes")] if notes else []


def typed(cell: NotebookNode, kind: str) -> NotebookNode:
    """Return a cell as a slide of some kind, without links and without outputs but a stage."""
    if cell.cell_type == "code":
        cell.outputs = [output for output in cell.outputs if VIEW in output.get("data", {})]
    else:
        cell.source = LINK.sub(r"\1", build_site.to_read(cell).source)
    cell.metadata.slideshow = {"slide_type": kind}
    cell.id = f"slide-{next(NUMBERS)}"
    return cell


if __name__ == "__main__":
    main()
