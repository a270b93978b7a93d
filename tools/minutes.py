"""Compute how long each notebook takes, and say so in the README and in the first notebook.

Usage: python tools/minutes.py [--write]

The rule, for a learner who reads everything and does every exercise:

    prose            200 words a minute, folded answers and hints included, solutions not
    code             10 seconds a line, blank lines, the set-up cell and solutions aside
    printed output   2 seconds a line, 12 lines of an output at most
    a picture        20 seconds; a film under sliders 90
    an exercise      3 minutes; one with pencil and paper 5; the test 15, the whole class 45

The sum is rounded to 5 minutes.
"""

import argparse
import re
from pathlib import Path

import renew
from nbformat import NotebookNode

ROOT = Path(__file__).parents[1]
README, START = ROOT / "README.md", "00_start_here"
WORDS = 200  # a minute
LINE, PRINTED, PICTURE, FILM = 10, 2, 20, 90  # seconds
MOST = 12  # lines of an output that are read
EXERCISE = 3  # minutes
LONGER = {"by_hand": 5, "the_test": 15, "your_class": 45}  # minutes
STEP = 5  # minutes that are told apart
CHECKED = re.compile(r'\bcheck\("([\w.]+\.\d+)"')

ROW = re.compile(r"^(\| \[(\w+)\]\(notebooks/\2\.ipynb\) \| .* \| )\d+( \|)$", re.MULTILINE)
SENTENCE = re.compile(r"(With all its exercises a step takes )\d+ to \d+( minutes)")


def main() -> None:
    """Print the minutes of every notebook; write them down where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="into the README and the notebook")
    found = every()
    for name, each in found.items():
        print(f"{each:4} {name}")
    print(f"{sum(found.values()) / 60:4.0f} hours")
    if parser.parse_args().write:
        README.write_text(in_readme(README.read_text("utf-8"), found), "utf-8")
        path = renew.NOTEBOOKS / f"{START}.ipynb"
        path.write_text(in_start(path.read_text("utf-8"), found), "utf-8")


def every() -> dict[str, int]:
    """Return the minutes of each notebook by its name, in order."""
    paths = sorted(renew.NOTEBOOKS.glob("*.ipynb"))
    return {path.stem: minutes(renew.read(path)) for path in paths}


def minutes(notebook: NotebookNode) -> int:
    """Return the minutes that a notebook takes, rounded."""
    cells = [c for c in notebook.cells if "solution" not in c.metadata.get("tags", [])]
    code = [cell for cell in cells if cell.cell_type == "code"]
    words = sum(len(words_of(c.source)) for c in cells if c.cell_type == "markdown")
    lines = sum(len([each for each in c.source.splitlines() if each.strip()]) for c in code[1:])
    seconds = LINE * lines + sum(seconds_of(each) for c in code for each in c.outputs)
    whole = words / WORDS + seconds / 60 + sum(map(minutes_of, exercises(code)))
    return max(STEP, STEP * round(whole / STEP))


def words_of(text: str) -> list[str]:
    """Return the words of a piece of Markdown, its marks and links' targets left out."""
    text = re.sub(r"\]\([^)]*\)|<[^>]+>", " ", text)
    return re.findall(r"[^\W_][\w.'-]*", text)


def seconds_of(output: NotebookNode) -> int:
    """Return the seconds to look at an output."""
    data = output.get("data", {})
    text = output.get("text") or output.get("evalue") or data.get("text/plain", "")
    if "image/svg+xml" in data or "image/png" in data:
        return FILM if re.search(r"^\d+ positions \(", text, re.MULTILINE) else PICTURE
    return PRINTED * min(MOST, len(text.splitlines()))


def exercises(code: list[NotebookNode]) -> set[str]:
    """Return the identifiers of the exercises that cells hand to check."""
    return {name for cell in code for name in CHECKED.findall(cell.source)}


def minutes_of(identifier: str) -> int:
    """Return the minutes of an exercise."""
    return LONGER.get(identifier.partition(".")[0], EXERCISE)


def in_readme(text: str, found: dict[str, int]) -> str:
    """Return the README with these minutes in its table."""
    return ROW.sub(lambda row: f"{row[1]}{found[row[2]]}{row[3]}", text)


def in_start(text: str, found: dict[str, int]) -> str:
    """Return the first notebook with the shortest and the longest of the eleven steps."""
    steps = [each for name, each in found.items() if re.match(r"0[1-9]_|1[01]_", name)]
    return SENTENCE.sub(rf"\g<1>{min(steps)} to {max(steps)}\g<2>", text)


if __name__ == "__main__":
    main()
