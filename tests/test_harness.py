"""Each single fault in a notebook turns its cell red; that of the course stays green as it is."""

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import pytest
import renew
from nbformat.v4 import new_code_cell, new_notebook

ROOT = Path(__file__).parents[1]

SETUP = """
import time
import torch
import matplotlib.pyplot as plt
from IPython.display import SVG, display
from eleven_steps.pictures import Shown, draw_tensors
from eleven_steps.sliders import film

def svg(digit):
    return SVG(f"<svg xmlns='http://www.w3.org/2000/svg'><text>{digit}</text></svg>")

def png(digit):
    plt.figure(figsize=(1, 1))
    plt.title(digit)

def draw(number):
    return draw_tensors([Shown(torch.tensor([[float(number)]]), "x", "b d_in")], "one number")
"""
FILM = "film(lambda num_heads: draw(num_heads), num_heads=(1, 2, 3))"


def stored(old, new):
    """Return a fault: a text in the stored outputs is another."""

    def spoil(cell):
        outputs = json.dumps(cell.outputs)
        assert old in outputs
        cell.outputs = [nbformat.from_dict(o) for o in json.loads(outputs.replace(old, new))]

    return spoil


def code(old, new):
    """Return a fault: the code does something else than when it was stored."""

    def spoil(cell):
        assert old in cell.source
        cell.source = cell.source.replace(old, new)

    return spoil


def never_executed(cell):
    cell.outputs, cell.execution_count = [], None


def one_less(cell):
    cell.outputs.pop()


def reverse(cell):
    cell.outputs.reverse()


def text_moved_up(cell):
    before, picture, after = cell.outputs
    before.text += after.text
    cell.outputs = [before, picture]


def nothing_raised(cell):
    cell.outputs, cell.source = [], "pass"


# What is wrong: the cell, its tag if any, the fault, and what the failure must say.
FAULTS = {
    "a printed digit": ("print(0.1234)", stored("0.1234", "0.1235"), "mismatch 'stdout'"),
    "a digit in a PNG": ("png(7)", code("7", "8"), "mismatch 'image/png'"),
    "a stored PNG too few": ("png(1)", one_less, "Unexpected output"),
    "outputs in another order": ("print(1)\nsvg(1)", reverse, "order of outputs"),
    "a text at another place": (
        "print(1)\ndisplay(svg(1))\nprint(2)",
        text_moved_up,
        "number of outputs",
    ),
    "a cell never executed": ("value = 1", never_executed, "Execution count"),
    "an exception no longer raised": (
        "1 / 0  # raises-exception",
        nothing_raised,
        "raised nothing",
    ),
    "a value no longer hidden": ("1 + 2;", code(";", ""), "Unexpected output"),
    "a measured cell without output": (
        "time.time()  # nbval-ignore-output",
        one_less,
        "order of outputs",
    ),
    "a changed slider position": (FILM, code("draw(num_heads)", "draw(num_heads % 3)"), "mismatch"),
}


def cell(source):
    source, _, tag = source.partition("  # ")
    return new_code_cell(source, metadata={"tags": [tag]} if tag else {})


pytestmark = pytest.mark.nightly  # conftest.py changes rarely, and nbval is pinned


@pytest.fixture(scope="module")
def failures(tmp_path_factory):
    """Return what pytest says of each cell, by its number; "" where it passes."""
    faulty = tmp_path_factory.mktemp("notebooks") / "faulty.ipynb"
    cells = [new_code_cell(SETUP), *(cell(source) for source, _, _ in FAULTS.values())]
    nbformat.write(new_notebook(cells=cells), faulty)
    asyncio.run(renew.renew(faulty))

    notebook, folder = renew.read(faulty), faulty.parent
    for spoiled, (_, spoil, _) in zip(notebook.cells[1:], FAULTS.values(), strict=True):
        spoil(spoiled)
    nbformat.write(notebook, faulty)

    shutil.copy(ROOT / "conftest.py", folder)
    options = ["-c", ROOT / "pyproject.toml", "--rootdir=.", "--junitxml=report.xml", "--color=no"]
    subprocess.run([sys.executable, "-m", "pytest", *options, faulty], cwd=folder)
    return {
        case.get("name"): "".join(f.text for f in case.iter("failure"))
        for case in ElementTree.parse(folder / "report.xml").iter("testcase")
    }


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_red(failures, fault):
    place = list(FAULTS).index(fault) + 1
    assert FAULTS[fault][-1] in failures[f"Cell {place}"]


def test_fault_reddens_no_other_cell(failures):
    assert failures["Cell 0"] == "" and len(failures) == len(FAULTS) + 1
