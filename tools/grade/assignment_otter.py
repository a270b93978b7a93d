"""Write notebooks as otter-grader assignments, and let `otter assign` make the students' version.

Usage: python tools/grade/assignment_otter.py [--folder assignment_otter] [NOTEBOOK ...]

For each notebook with exercises: a master, from which otter makes student/ and autograder/, with
the zip that `otter run` and Gradescope take. Our check is the only test of an exercise, and fails
with its sentence. Like nbgrader, otter runs what is handed in beside the answers, and believes it.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import nbformat
from assignment import asked, solutions_of, solved, with_exercises
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook, new_raw_cell
from results import possible

sys.path.append(str(Path(__file__).parents[1]))  # what all tools share stands one floor up
from renew import COURSE, NOTEBOOKS

FOLDER = NOTEBOOKS.parent / "assignment_otter"
CONFIG = """# ASSIGNMENT CONFIG
init_cell: true
check_all_cell: false
export_cell: false
solutions_pdf: false
template_pdf: false
generate: true
tests:
  ok_format: false
"""


def question(cell: NotebookNode, solutions: list[str]) -> list[NotebookNode]:
    """Return an exercise as otter's cells: what is asked with its solution, and the test of it."""
    identifier, name, place = asked(cell.source)
    lines, plain = cell.source.splitlines(), identifier.replace(".", "_")
    before, call = lines[: place - 1], lines[place - 1 :]
    region = ["# BEGIN SOLUTION NO PROMPT", *solved(solutions, name).splitlines(), "# END SOLUTION"]
    test = (
        f"def test_{plain}(check, {name}):\n"
        f'    said = check("{identifier}", {name}, record=False)\n'
        f"    assert said, said.message"
    )
    return [
        new_raw_cell(f"# BEGIN QUESTION\nname: {plain}\npoints: {possible(identifier)}"),
        new_raw_cell("# BEGIN SOLUTION"),
        new_code_cell("\n".join([*before, *region, *call])),
        new_raw_cell("# END SOLUTION"),
        new_raw_cell("# BEGIN TESTS"),
        new_code_cell(test),
        new_raw_cell("# END TESTS"),
        new_raw_cell("# END QUESTION"),
    ]


def master(notebook: NotebookNode) -> NotebookNode:
    """Return a notebook in otter's own format."""
    cells = [new_raw_cell(CONFIG)]
    for number, cell in enumerate(notebook.cells):
        if "solution" in cell.metadata.get("tags", []):
            continue
        if cell.cell_type == "code" and asked(cell.source):
            cells += question(cell, solutions_of(notebook.cells[number + 1 :]))
        elif cell.cell_type == "code":
            cells.append(new_code_cell(cell.source, metadata=cell.metadata))
        else:
            cells.append(nbformat.from_dict(cell))
    return new_notebook(cells=cells, metadata=notebook.metadata)


def otter(folder: Path, *words: str) -> int:
    """Run a command of otter in a folder; what is done there is nobody's progress."""
    own = {"ELEVEN_STEPS_PROGRESS": str(folder.absolute() / "progress.json")}
    command = [sys.executable, "-m", "otter", *words]
    return subprocess.run(command, cwd=folder, env=os.environ | own).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("notebooks", nargs="*", type=Path)
    options = parser.parse_args()
    failed = 0
    paths = options.notebooks or COURSE.values()
    for name, notebook in with_exercises(paths).items():
        place = options.folder / Path(name).stem
        place.mkdir(parents=True, exist_ok=True)
        nbformat.write(master(notebook), place / name)
        failed += otter(place, "assign", name, "dist") != 0
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
