"""The first page of the site: one sentence, the map to move, where to begin, a card a notebook."""

import re
from html import escape
from pathlib import Path

from ipywidgets.embed import dependency_state, embed_data
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from renew import NOTEBOOKS, VIEW, read

from helpers import sliders

TITLE = re.compile(r"^# (.+)", re.MULTILINE)
QUESTION = re.compile(r"^## Predict.*?^1\. (.+?)$", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| \[(\w+)\]\(notebooks/\w+\.ipynb\) \| (.+?) \| (\d+) \|$", re.MULTILINE)
STATE = "application/vnd.jupyter.widget-state+json"

HERO = """# Eleven Steps to Multi-Head Attention

<p class="lead">From a table of numbers to the block at the heart of every GPT, in eleven small
steps. You see every number, and move what makes it.</p>

<p><a class="begin" href="notebooks/{first}.ipynb">Begin</a></p>

## The whole of it, in eleven rows

Move the sliders: more tokens, wider outputs, more heads. Everything below follows.
"""
ABOUT = """## To do it yourself

Here the sliders move, and every number is one that the code printed. Code does not run on these
pages. In the course itself you change it, break it, and have your answers checked: get its
repository, and `make lab` opens it.
"""


def front_page(root: Path) -> NotebookNode:
    """Return index.html as a notebook: prose, the map with its sliders alive, a card a notebook.

    Args:
        root: the folder with the README, whose table of notebooks is shown.
    """
    readme = (root / "README.md").read_text("utf-8")
    rows = ROW.findall(readme)
    film = sliders.explore_map()
    every = embed_data(views=[film], state=dependency_state([film]))
    still = film.pictures[film.start]
    data = {
        VIEW: every["view_specs"][0],
        "image/svg+xml": still.svg,
        "text/plain": f"{still.title} {still.description}",
    }
    page = new_notebook(
        cells=[
            new_markdown_cell(HERO.format(first=rows[0][0])),
            new_code_cell("sliders.explore_map()", outputs=[new_output("display_data", data)]),
            new_markdown_cell(f"## The notebooks\n\n{cards(rows)}"),
            new_markdown_cell(ABOUT),
        ]
    )
    page.metadata.widgets = {STATE: every["manager_state"]}
    return page


def cards(rows: list[tuple[str, str, str]]) -> str:
    """Return a list with a card for each notebook: its title, a question from it, its minutes."""
    return f'<ol class="cards">{"".join(card(*row) for row in rows)}</ol>'


def card(name: str, what: str, minutes: str) -> str:
    """Return the card of one notebook; where it asks nothing at first, what happens there."""
    cells = read(NOTEBOOKS / f"{name}.ipynb").cells
    prose = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    title, asked = TITLE.search(prose), QUESTION.search(prose)
    return (
        f'<li><a href="notebooks/{name}.ipynb"><strong>{marked(title[1])}</strong>'
        f"<span>{marked(asked[1] if asked else what)}</span>"
        f"<small>{minutes} minutes</small></a></li>"
    )


def marked(text: str) -> str:
    """Return a line of Markdown as HTML: its code, and nothing else, is marked."""
    return re.sub(r"`(.+?)`", r"<code>\1</code>", escape(text, quote=False))
