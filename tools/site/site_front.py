"""Make the first page of the site: a sentence, a link to begin, the stage, a card per notebook."""

import re
import tomllib
from pathlib import Path

from formats import inline
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from renew import COURSE, VIEW, read

from eleven_steps import sliders

TEXTS = tomllib.loads(Path(__file__).with_name("front.toml").read_text("utf-8"))
TITLE = re.compile(r"^# (.+)", re.MULTILINE)
ROW = re.compile(
    r"^\| \[(\w+)\]\(notebooks/[\w/]+\.ipynb\) \| .+? \| (\d*) \| (\d+) \|$", re.MULTILINE
)
STATE = "application/vnd.jupyter.widget-state+json"
KIND = {"model_module": "anywidget", "model_name": "AnyModel"}


def front_page(root: Path) -> NotebookNode:
    """Return index.html as a notebook: prose, the stage, a card for each row of README's table."""
    readme = (root / "README.md").read_text("utf-8")
    rows = ROW.findall(readme)
    stage = sliders.explore_stage("softmax", "both", answered=True, large=True)
    page = new_notebook(
        cells=[
            new_markdown_cell(TEXTS["hero"].format(first=rows[0][0])),
            alive(stage),
            new_markdown_cell(cards(rows)),
            new_markdown_cell(TEXTS["about"] + launch(root)),
        ]
    )
    kept = {stage.model_id: {**KIND, "state": stage.get_state()}}
    page.metadata.widgets = {STATE: {"state": kept}}
    return page


def launch(root: Path) -> str:
    """Return a sentence with links to Binder and Colab, or "" if the course has no address.

    The address is the entry Repository of [project.urls] in pyproject.toml, on GitHub.
    """
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    address = project.get("urls", {}).get("Repository", "")
    name = address.removeprefix("https://github.com/").removesuffix(".git").strip("/")
    return TEXTS["launch"].format(name=name, tag=f"v{project['version']}") if address else ""


def alive(live: sliders.Live) -> NotebookNode:
    """Return a cell whose output is a live picture, or its still if scripts are off."""
    view = {"model_id": live.model_id, "version_major": 2, "version_minor": 0}
    data = {VIEW: view, "image/svg+xml": live.still.svg, "text/plain": live.still.words}
    return new_code_cell(id="stage", outputs=[new_output("display_data", data)])


def cards(rows: list[tuple[str, str, str]]) -> str:
    """Return a card for each notebook: first those of the evening, then all others.

    rows: names, minutes of the evening part or "", and minutes of the whole notebook.
    """
    evening = [(name, minutes) for name, minutes, _ in rows if minutes]
    beyond = [(name, whole) for name, minutes, whole in rows if not minutes]
    total = sum(int(minutes) for _, minutes in evening)
    headings = f"One evening, {total} minutes", "Everything else, as you like"
    return "\n\n".join(
        f'## {heading}\n\n<ol class="cards">{"".join(card(*row) for row in group)}</ol>'
        for heading, group in zip(headings, (evening, beyond), strict=True)
    )


def card(name: str, minutes: str) -> str:
    title, asked = title_of(COURSE[name]), TEXTS["asked"][name]
    return (
        f'<li><a href="notebooks/{name}.ipynb"><strong>{inline(title)}</strong>'
        f"<span>{inline(asked)}</span><small>{minutes} minutes</small></a></li>"
    )


def title_of(path: Path) -> str:
    return TITLE.search(read(path).cells[0].source)[1]
