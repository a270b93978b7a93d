"""The README tells the truth: its picture, its commands, its table of notebooks."""

import re
from pathlib import Path

import draw_imports
import pytest
import renew

from eleven_steps.pictures import draw_map
from eleven_steps.sliders import run, tokens
from helpers.trace import trace

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_map_is_drawn_by_the_course(tmp_path):
    mha, _ = run()
    now = draw_map(trace(mha, tokens())).svg + "\n"
    stored = ROOT / "docs" / "map.svg"
    drawn = tmp_path / "map.svg"
    drawn.write_text(now, encoding="utf-8")
    assert stored.read_text(encoding="utf-8") == now, f"look at {drawn}; if it is right, copy it"


def test_every_command_of_make_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    asked = set(re.findall(r"make ([a-z-]+)(?=`|  )", README))
    assert {"lab", "test"} <= asked <= targets


@pytest.mark.parametrize(
    "name", ["README.md", "CONTRIBUTING.md", "docs/design.md", "docs/teaching.md"]
)
def test_every_link_leads_to_a_file(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    links = {link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text)} - {""}
    assert links and not [
        link for link in links if not (ROOT / name).parent.joinpath(link).exists()
    ]


def test_the_drawing_of_imports_is_current_and_no_arrow_points_up():
    graph = draw_imports.modules()
    rooms = draw_imports.ROOMS
    arrows = draw_imports.arrows(graph)
    assert {draw_imports.room(module) for module in graph} == {*rooms, "eleven_steps"}
    assert arrows and all(rooms.index(a) < rooms.index(b) for a, b in arrows)
    now = draw_imports.draw(graph).svg + "\n"
    assert draw_imports.DRAWING.read_text("utf-8") == now, "run: python tools/draw_imports.py"
    assert now.count("marker-end") == len(arrows)


def test_every_notebook_is_in_the_table():
    listed = re.findall(r"^\| \[(\w+)\]\(notebooks/(?:beyond/)?\1\.ipynb\)", README, re.MULTILINE)
    assert listed == list(renew.COURSE)


def test_one_version_everywhere():
    """A tag makes a release of the version at the top of the CHANGELOG."""
    newest = re.search(r"^## (\S+) \(20", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)[
        1
    ]
    assert f'version = "{newest}"' in (ROOT / "pyproject.toml").read_text("utf-8")
    assert f"version: {newest}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
