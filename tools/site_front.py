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
ROW = re.compile(r"^\| \[(\w+)\]\(notebooks/\w+\.ipynb\) \| (.+?) \| (\d+) \|$", re.MULTILINE)
# What a step's notebook answers.
ASKED = {
    "01_shape": "How many numbers does a sentence become?",
    "02_project": "What does a token ask, and what does it offer?",
    "03_view": "How do six features become two heads without one number moving?",
    "04_transpose": "Why must the heads come first?",
    "05_scores": "How well does one token fit what another looks for?",
    "06_mask": "What may a token not see, and how is it hidden?",
    "07_softmax": "How do scores become shares?",
    "08_context": "What does a token take from those it looks at?",
    "09_reformat": "How does a token get its heads back?",
    "10_combine": "Why can the heads not be joined without a copy?",
    "11_out_proj": "Where do the heads first talk to each other?",
}
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
    """Return the card of one notebook: its title, what it answers or does, its minutes."""
    title = TITLE.search(read(NOTEBOOKS / f"{name}.ipynb").cells[0].source)[1]
    asked = ASKED.get(name, what[0].upper() + what[1:])
    return (
        f'<li><a href="notebooks/{name}.ipynb"><strong>{marked(title)}</strong>'
        f"<span>{marked(asked)}</span><small>{minutes} minutes</small></a></li>"
    )


def marked(text: str) -> str:
    """Return a line of Markdown as HTML: its code, and nothing else, is marked."""
    return re.sub(r"`(.+?)`", r"<code>\1</code>", escape(text, quote=False))
