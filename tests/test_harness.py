"""Each single fault in a notebook turns its cell red; that of the course stays green as it is."""

import asyncio
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
import matplotlib.pyplot as plt
from IPython.display import SVG, display

def svg(digit):
    return SVG(f"<svg xmlns='http://www.w3.org/2000/svg'><text>{digit}</text></svg>")

def png(digit):
    plt.figure(figsize=(1, 1))
    plt.title(digit)
"""


def code(old, new):
    """Return a fault: the code does something else than when it was stored."""
    return lambda cell: cell.update(source=cell.source.replace(old, new))


def stored(change):
    """Return a fault: other outputs are stored than were made."""
    return lambda cell: cell.update(outputs=change(cell.outputs))


def text_moved_up(outputs):
    outputs[0].text += outputs[2].text
    return outputs[:2]


# What is wrong: the cell, its tag if any, the fault, and what the failure must say.
FAULTS = {
    "a printed digit": ("print(0.1234)", code("4", "5"), "mismatch 'stdout'"),
    "a digit in a PNG": ("png(7)", code("7", "8"), "mismatch 'image/png'"),
    "a stored PNG too few": ("png(1)", stored(lambda o: o[:-1]), "Unexpected output"),
    "another order": ("print(1)\nsvg(1)", stored(lambda o: o[::-1]), "order of outputs"),
    "another place": (
        "print(1)\ndisplay(svg(1))\nprint(2)",
        stored(text_moved_up),
        "number of outputs",
    ),
    "never executed": ("value = 1", lambda c: c.update(execution_count=None), "make notebooks"),
    "not raised": (
        "1 / 0  # raises-exception",
        lambda c: c.update(outputs=[], source="pass"),
        "raised nothing",
    ),
    "a value no longer hidden": ("1 + 2;", code(";", ""), "Unexpected output"),
    "measured, without output": (
        "time.time()  # nbval-ignore-output",
        stored(lambda o: o[:-1]),
        "order of outputs",
    ),
}


def cell(source):
    source, _, tag = source.partition("  # ")
    return new_code_cell(source, metadata={"tags": [tag]} if tag else {})


pytestmark = pytest.mark.nightly  # conftest.py changes rarely, and nbval is pinned


def test_each_fault_turns_its_cell_red_and_no_other(tmp_path):
    faulty = tmp_path / "faulty.ipynb"
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
    said = {
        case.get("name"): "".join(f.text for f in case.iter("failure"))
        for case in ElementTree.parse(folder / "report.xml").iter("testcase")
    }
    assert said["Cell 0"] == "" and len(said) == len(FAULTS) + 1
    for place, (fault, (_, _, told)) in enumerate(FAULTS.items(), start=1):
        assert told in said[f"Cell {place}"], fault
