"""The first page of the site: a sentence, where to begin, the stage, the cards."""

import re
import sys
import tomllib
from html import escape
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

sys.path.append(str(Path(__file__).parents[1]))  # what all tools share stands one floor up
from renew import COURSE, VIEW, read

from eleven_steps import sliders

TITLE = re.compile(r"^# (.+)", re.MULTILINE)
ROW = re.compile(
    r"^\| \[(\w+)\]\(notebooks/[\w/]+\.ipynb\) \| .+? \| (\d*) \| (\d+) \|$", re.MULTILINE
)
# What a notebook answers.
ASKED = {
    "00_start_here": "What will you build, and why?",
    "00_tensors": "What do view and transpose do to a table of numbers?",
    "00_why_attention": '"An old red boat": how does the boat find out that it is red?',
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
    "12_the_class": "How do eleven steps fit into one short class?",
    "13_your_own_class": "Can you write it from an empty page?",
    "14_three_ways": "Three ways to build many heads: do they give the same numbers?",
    "15_by_hand": "Can you do it with pencil and paper?",
    "16_real_sizes": "How large is all this in GPT\u20112 and GPT\u20113?",
    "17_how_fast": "Where does the time go, and what saves it?",
    "18_heads_learn": "What does a head look for, once it has been trained?",
    "19_since_1": "What have today's models changed in the eleven steps?",
    "19_since_2": "Must a head look at everything, and must it always say something?",
    "19_since_3": "Why is a long chat not computed anew for each word?",
    "20_machines_1": "How do several machines share one attention?",
    "20_machines_2": "What if one text is too long for one machine?",
    "21_in_the_wild": "Which mistakes stood in code that everybody could read?",
    "22_torchs_own": "What does torch's module do with your parameters, and where does it differ?",
}
STATE = "application/vnd.jupyter.widget-state+json"
KIND = {"model_module": "anywidget", "model_name": "AnyModel"}

HERO = """# Eleven Steps to Multi-Head Attention

<p class="lead">A small trained model reads this sentence. Which words does the last one attend to?
Press another, swap one, switch a head off. Then build what does it, in eleven steps.
<a class="begin" href="notebooks/{first}.ipynb">Begin</a></p>
"""
ABOUT = """## Questions and words

[Questions with four options](questions.html), each of which knows what went wrong. The
[glossary](notebooks/glossary.md) says what the words mean.

## To do it yourself

Here the sliders move, and every number is one that the code printed. Code does not run on these
pages. In the course itself you change it, break it, and have your answers checked: get its
repository, and `make lab` opens it.

## Your own attention

Attention that is wrong trains in silence. The course's judge takes the class from your repository
as it stands, and says at which step it goes wrong:

```text
$ python -m eleven_steps.checks model.py:CausalSelfAttention
✗ model.py:CausalSelfAttention: wrong
  Step 7 (softmax): The scores are divided by the square root of d_out (40); it should be the square
  root of head_dim (8). Look at what the softmax is given.
```
"""

LAUNCH = """
Or run it elsewhere:
[on Binder](https://mybinder.org/v2/gh/{name}/{tag}?urlpath=lab/tree/notebooks/00_start_here.ipynb),
or [in Colab](https://colab.research.google.com/github/{name}/blob/{tag}/notebooks/00_start_here.ipynb),
where the course has to be installed first.
"""


def front_page(root: Path) -> NotebookNode:
    """Return index.html as a notebook: prose, the stage, a card a notebook.

    Args:
        root: the folder with the README, whose table of notebooks is shown.
    """
    readme = (root / "README.md").read_text("utf-8")
    rows = ROW.findall(readme)
    stage = sliders.explore_stage("softmax", "both", answered=True, large=True)
    page = new_notebook(
        cells=[
            new_markdown_cell(HERO.format(first=rows[0][0])),
            alive(stage),
            new_markdown_cell(cards(rows)),
            new_markdown_cell(ABOUT + launch(root)),
        ]
    )
    kept = {stage.model_id: {**KIND, "state": stage.get_state()}}
    page.metadata.widgets = {STATE: {"state": kept}}
    return page


def launch(root: Path) -> str:
    """Return a sentence with links that run the course elsewhere; "" where it has no address.

    The address is Repository of [project.urls] in pyproject.toml, of a repository on GitHub.
    """
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    address = project.get("urls", {}).get("Repository", "")
    name = address.removeprefix("https://github.com/").removesuffix(".git").strip("/")
    return LAUNCH.format(name=name, tag=f"v{project['version']}") if address else ""


def alive(live: sliders.Live) -> NotebookNode:
    """Return a cell whose output is a live picture, and without scripts a still."""
    view = {"model_id": live.model_id, "version_major": 2, "version_minor": 0}
    data = {VIEW: view, "image/svg+xml": live.still.svg, "text/plain": live.still.words}
    return new_code_cell(id="stage", outputs=[new_output("display_data", data)])


def cards(rows: list[tuple[str, str, str]]) -> str:
    """Return the notebooks of the evening, then those beyond, a card each; rows are name, minutes
    of the evening, if it has any, and of the whole."""
    evening = [(name, minutes) for name, minutes, _ in rows if minutes]
    beyond = [(name, whole) for name, minutes, whole in rows if not minutes]
    total = sum(int(minutes) for _, minutes in evening)
    headings = f"One evening, {total} minutes", "Beside it and beyond, as you like"
    return "\n\n".join(
        f'## {heading}\n\n<ol class="cards">{"".join(card(*row) for row in group)}</ol>'
        for heading, group in zip(headings, (evening, beyond), strict=True)
    )


def card(name: str, minutes: str) -> str:
    """Return the card of one notebook: its title, what it answers, its minutes."""
    title = title_of(COURSE[name])
    return (
        f'<li><a href="notebooks/{name}.ipynb"><strong>{marked(title)}</strong>'
        f"<span>{marked(ASKED[name])}</span><small>{minutes} minutes</small></a></li>"
    )


def title_of(path: Path) -> str:
    """Return the title of a notebook."""
    return TITLE.search(read(path).cells[0].source)[1]


def marked(text: str) -> str:
    """Return a line of Markdown as HTML: its code, and nothing else, is marked."""
    return re.sub(r"`(.+?)`", r"<code>\1</code>", escape(text, quote=False))
