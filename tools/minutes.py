"""Compute how long each notebook takes, and write the minutes into README, plan and headings.

Usage: python tools/minutes.py [--write]

The rule is for a reader who does every exercise on the way:

    prose            200 words a minute; folded answers and hints count, solutions do not
    code             10 seconds a line, or 2 seconds if an earlier notebook has the same line; blank
                     lines, the set-up cell and solutions do not count
    printed output   2 seconds a line, and at most 12 lines of each output
    a picture        20 seconds
    a film           90 seconds, for the sliders over it
    the stage        45 seconds, because the reader knows it from the step before
    an exercise      3 minutes; 5 with pencil and paper, 15 for the test, 45 for the whole class

The evening part of a notebook ends at the heading "Deeper", and a notebook without that heading is
not part of the evening. An exercise of the evening takes 2 minutes, because its lines have just
been read, and the whole class takes 10. Each folded heading below "Deeper" ends in its own minutes.
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
MOST = 12  # the largest number of lines of an output that count
LONGER = {"by_hand": 5, "the_test": 15, "your_class": 45}  # minutes by group of exercises
SHORT = {"your_class": 10}  # the same in the evening part
FOLD = "## Deeper"
SAID = re.compile(r",? \d+ minutes?$", re.MULTILINE)  # minutes at the end of a folded heading
CHECKED = re.compile(r'\bcheck\("([\w.]+\.\d+)"')

# Rows of tables: a notebook in the README, and in the plan for teachers a week and a part of the
# evening.
ROW = re.compile(
    r"^(\| \[(\w+)\]\(notebooks/(?:beyond/)?\2\.ipynb\) \| .* \| )\d* \| \d+( \|)$", re.MULTILINE
)
WEEK = re.compile(r"^(\| week \d+ \| (.*) \| )\d+ \| \d+( \|)$", re.MULTILINE)
PART = re.compile(r"^\| \d:\d\d \| (\d+)( \| (.*?) \| .*)$", re.MULTILINE)
SUM = re.compile(r"(One evening, )\d+( minutes)")
NAME = re.compile(r"\b\d\d_\w+")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--write", action="store_true", help="write the minutes into pages and headings"
    )
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
    """Return for each notebook the minutes of its evening part, or 0, and of all of it."""
    every = {}
    for path, notebook, known in course():
        cells = notebook.cells
        fold = next((i for i, cell in enumerate(cells) if cell.source.startswith(FOLD)), 0)
        evening = minutes(cells[:fold], known, SHORT, 2) if fold else 0
        every[path.stem] = evening, minutes(cells, known)
    return every


def in_headings() -> Iterator[tuple[Path, NotebookNode]]:
    """Correct the minutes in folded headings; yield each notebook that had a wrong one."""
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
    """Return the minutes that cells of a notebook take.

    Args:
        cells: any cells; solutions and the set-up do not count.
        known: lines of code that the reader has seen before.
        longer: minutes of an exercise by the name of its group.
        exercise: minutes of every other exercise.
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
    """Return the words of a piece of Markdown without its marks and the targets of links."""
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
    """Return a page with these minutes in its tables and in the sum of the evening.

    In the plan for teachers, the evening part of a notebook is done in class; of a notebook without
    one, half is. A notebook after "or" is a choice and is not counted. Each part of the evening
    starts when the parts before it end.
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
