"""The README tells the truth: its picture, its commands, its table of notebooks."""

import re
from pathlib import Path

from helpers.pictures import draw_map
from helpers.sliders import run, tokens
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


def test_every_notebook_is_in_the_table():
    listed = re.findall(r"^\| \[(\w+)\]\(notebooks/\1\.ipynb\)", README, re.MULTILINE)
    assert listed == sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))
