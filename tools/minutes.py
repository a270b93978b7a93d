"""Compute how long each notebook takes, and write the minutes into README, plan and headings.

Usage: python tools/minutes.py [--write]

The rule, for a reader who does every exercise on the way:

    prose            200 words a minute, folded answers and hints included, solutions not
    code             10 seconds a line, blank lines, the set-up cell and solutions aside; a line
                     that stood in an earlier notebook 2
    printed output   2 seconds a line, 12 lines of an output at most
    a picture        20 seconds; a film under sliders 90; the stage 45, which comes again each step
    an exercise      3 minutes; one with pencil and paper 5; the test 15, the whole class 45

An evening ends at the heading "Deeper"; a notebook without one belongs to no evening. Each heading
folded below it says in its own line how long it takes. Its exercises
are lines that were read a minute before: 2 minutes each, and 10 the whole class.
"""

import argparse
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import renew
from nbformat import NotebookNode

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "README.md", ROOT / "docs" / "teaching.md"
WORDS = 200  # words a minute
LINE, PRINTED, PICTURE, FILM, STAGE = 10, 2, 20, 90, 45  # seconds
MOST = 12  # lines of an output that count
LONGER = {"by_hand": 5, "the_test": 15, "your_class": 45}  # minutes of an exercise
SHORT = {"your_class": 10}  # in an evening
FOLD = "## Deeper"
SAID = re.compile(r",? \d+ minutes?$", re.MULTILINE)  # minutes at the end of a folded heading
CHECKED = re.compile(r'\bcheck\("([\w.]+\.\d+)"')

# In the README each notebook; in the plan for teachers each week, and each part of the evening.
ROW = re.compile(
    r"^(\| \[(\w+)\]\(notebooks/(?:beyond/)?\2\.ipynb\) \| .* \| )\d* \| \d+( \|)$", re.MULTILINE
)
WEEK = re.compile(r"^(\| week \d+ \| (.*) \| )\d+ \| \d+( \|)$", re.MULTILINE)
PART = re.compile(r"^\| \d:\d\d \| (\d+)( \| (.*?) \| .*)$", re.MULTILINE)
SUM = re.compile(r"(One evening, )\d+( minutes)")
NAME = re.compile(r"\b\d\d_\w+")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="into pages and headings")
    options, every = parser.parse_args(), both()
    sums = tuple(map(sum, zip(*every.values(), strict=True)))
    print("evening  whole")
    for name, (evening, whole) in {**every, "": sums}.items():
        print(f"{evening or '':7} {whole:6}  {name}".rstrip())
    if options.write:
        for page in PAGES:
            page.write_text(in_page(page.read_text("utf-8"), every), "utf-8")
        for path, notebook in in_headings():
            path.write_text(renew.normal_form(notebook), "utf-8")


def course() -> Iterator[tuple[Path, NotebookNode, set[str]]]:
    """Yield each notebook with the lines of code that a reader has seen before it."""
    known: set[str] = set()
    for path in renew.COURSE.values():
        notebook = renew.read(path)
        yield path, notebook, known
        known |= {line for cell in notebook.cells for line in lines_of(cell)}


def both() -> dict[str, tuple[int, int]]:
    """Return the minutes of each notebook by name: of its evening part, and of the whole."""
    every = {}
    for path, notebook, known in course():
        cells = notebook.cells
        fold = next((i for i, cell in enumerate(cells) if cell.source.startswith(FOLD)), 0)
        evening = minutes(cells[:fold], known, SHORT, 2) if fold else 0
        every[path.stem] = evening, minutes(cells, known)
    return every


def in_headings() -> Iterator[tuple[Path, NotebookNode]]:
    """Yield the notebooks whose folded headings have wrong minutes, corrected."""
    for path, notebook, known in course():
        cells, before = notebook.cells, [cell.source for cell in notebook.cells]
        folds = [i for i, cell in enumerate(cells) if "deeper" in cell.metadata.get("tags", [])]
        for start, end in pairwise([*folds, len(cells)]):
            count = minutes(cells[start:end], known)
            heading = SAID.sub("", cells[start].source)
            mark = "" if heading.endswith("?") else ","
            cells[start].source = f"{heading}{mark} {count} minute{'s' * (count > 1)}"
        if [cell.source for cell in cells] != before:
            yield path, notebook


def minutes(
    cells: list[NotebookNode], known: set[str], longer: dict[str, int] = LONGER, exercise: int = 3
) -> int:
    """Return the minutes that cells of a notebook take; known lines of code were read before.

    longer: minutes of the exercises that take others than all the rest.
    """
    aside = {"solution", "set-up"}
    cells = [cell for cell in cells if not aside & {*cell.metadata.get("tags", [])}]
    words = sum(len(words_of(cell.source)) for cell in cells if cell.cell_type == "markdown")
    seconds = sum(PRINTED if line in known else LINE for c in cells for line in lines_of(c))
    seconds += sum(seconds_of(output) for cell in cells for output in cell.get("outputs", []))
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    groups = [name.partition(".")[0] for name in {*CHECKED.findall(code)}]
    asked = sum(longer.get(group, exercise) for group in groups)
    return max(1, round(words / WORDS + seconds / 60 + asked))


def lines_of(cell: NotebookNode) -> list[str]:
    code = cell.source.splitlines() if cell.cell_type == "code" else []
    return [line.strip() for line in code if line.strip()]


def words_of(text: str) -> list[str]:
    """Return the words of a piece of Markdown, its marks and links' targets left out."""
    text = re.sub(r"\]\([^)]*\)|<[^>]+>", " ", SAID.sub("", text))
    return re.findall(r"[^\W_][\w.'-]*", text)


def seconds_of(output: NotebookNode) -> int:
    data = output.get("data", {})
    text = output.get("text") or output.get("evalue") or data.get("text/plain", "")
    if text.partition("\n")[2].startswith("the stage:"):
        return STAGE
    if "image/svg+xml" in data or "image/png" in data:
        return FILM if re.search(r"^\d+ positions \(", text, re.MULTILINE) else PICTURE
    return PRINTED * min(MOST, len(text.splitlines()))


def in_page(text: str, every: dict[str, tuple[int, int]]) -> str:
    """Return a page with these minutes in its tables, and the sum of the evening.

    In class is the evening; of a notebook that belongs to none, half. Of what stands after "or"
    one takes the same. The evening's parts begin where those before them end.
    """
    now = 0

    def row(match: re.Match) -> str:
        evening, whole = every[match[2]]
        return f"{match[1]}{evening or ''} | {whole}{match[3]}"

    def week(match: re.Match) -> str:
        both = [every[name] for name in NAME.findall(match[2].partition(" or ")[0])]
        in_class = sum(evening or round(whole / 2) for evening, whole in both)
        return f"{match[1]}{in_class} | {sum(whole for _, whole in both) - in_class}{match[3]}"

    def part(match: re.Match) -> str:
        nonlocal now
        start = f"{now // 60}:{now % 60:02}"
        took = sum(every[name][0] for name in NAME.findall(match[3])) or int(match[1])  # a break
        now += took
        return f"| {start} | {took}{match[2]}"

    text = PART.sub(part, WEEK.sub(week, ROW.sub(row, text)))
    return SUM.sub(rf"\g<1>{sum(evening for evening, _ in every.values())}\g<2>", text)


if __name__ == "__main__":
    main()
