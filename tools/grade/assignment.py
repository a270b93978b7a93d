"""Write an nbgrader assignment, and let nbgrader make the students' version of it.

Usage: make assignment, or: python tools/grade/assignment.py [--folder assignment]
       [--name week3] [--due "2027-03-01 18:00"] [--own-numbers logins.csv]
       [NOTEBOOK ...], 05_scores for one; all unless named

The folder is an nbgrader course, and may hold many assignments. source/NAME holds the notebooks
with their exercises, each with its solution and, after it, a locked cell in which our check is the
autograder test. release/NAME is what students get, once `nbgrader generate_assignment` has run. The
test fails with the sentence that check says, so that nbgrader's feedback is the course's. Unlike
tools/grade/grade.py, nbgrader runs what students hand in beside the answers, and believes it.

With --own-numbers each student on the roster gets problems of 15_by_hand with numbers that nobody
else has: own/NAME/LOGIN holds their notebooks, and the tests judge by the folder's login.
"""

import argparse
import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import nbformat
from named import Roster
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from own_numbers import cells_of, for_one, found_there, own
from results import BY_STEPS, possible

sys.path.append(str(Path(__file__).parents[1]))  # what all tools share stands one floor up
from renew import COURSE, NOTEBOOKS, read

FOLDER = NOTEBOOKS.parent / "assignment"
NAME = "eleven_steps"
CHECKED = re.compile(r"\bcheck\(\s*f?[\"']")
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"

CONFIG = f'''"""An nbgrader course: run nbgrader in this folder."""

import os
import shutil
import tempfile
from pathlib import Path

import nbformat

# What students did is no progress of the one who grades them.
os.environ["ELEVEN_STEPS_PROGRESS"] = os.path.join(tempfile.gettempdir(), "{NAME}_graded.json")

c = get_config()  # noqa: F821
c.CourseDirectory.course_id = "{NAME}"
c.ClearSolutions.code_stub = {{"python": ""}}  # the stub stands before the solution
c.ExecutePreprocessor.timeout = 30  # seconds a cell
c.OverwriteCells.add_missing_cells = True  # tests that a student has deleted

# nbgrader grades nothing of a student of whom one file is cut off.
for path in sorted(Path("submitted").glob("*/*/*.ipynb")):
    try:
        nbformat.read(path, 4)
    except Exception as error:
        aside = path.with_suffix(".unreadable")
        path.replace(aside)
        shutil.copy(Path("release", *path.parts[-2:]), path)
        print(f"{{aside}} cannot be read ({{type(error).__name__}}): an empty one takes its place")
'''
PROGRESS = """# What you have done is kept beside this notebook.
import os

os.environ.setdefault("ELEVEN_STEPS_PROGRESS", "progress.json")"""
SHEET = "sheet"  # the tag of what holds for the numbers of the sheet alone
WHOSE = "The numbers of {which} below are those of {name}. Nobody else has them."
SAY = """import sys
from eleven_steps.checks import check

raised = getattr(sys, "last_value", None)
told = f"the cell of this exercise raises {{type(raised).__name__}}: {{raised}}."
assert "{name}" in {names}, told
said = check("{identifier}", {names}["{name}"], record=False)
"""


def asked(source: str) -> tuple[str, str, int] | None:
    """Return what a cell asks for: the exercise, the name of the answer, and check's line.

    None where the cell hands no name to check.
    """
    for line in ast.parse(source).body:
        match line:
            case ast.Expr(
                value=ast.Call(
                    func=ast.Name("check"), args=[ast.Constant(str(identifier)), ast.Name(name)]
                )
            ) if identifier.count(".") == 1:
                return identifier, name, line.lineno
    return None


def solved(sources: list[str], name: str) -> str:
    """Return solutions as code that leaves the answer under its name, and does not check it."""
    lines = []
    for source in sources:
        kept = source.splitlines()
        for line in reversed(ast.parse(source).body):
            answer = proven(line)
            if answer is None:
                continue
            written = ast.get_source_segment(source, answer)
            kept[line.lineno - 1 : line.end_lineno] = [f"{name} = {written}"] * (written != name)
        lines += kept
    return "\n".join(lines).strip("\n")


def proven(line: ast.stmt) -> ast.expr | None:
    """Return what a line asserts to be a right answer, if it does."""
    match line:
        case ast.Assert(test=ast.Call(func=ast.Name("check"), args=[_, answer])):
            return answer
    return None


def exercise(cell: NotebookNode, solutions: list[str]) -> list[NotebookNode]:
    """Return an exercise as nbgrader's: what is asked, with its solution, and the test of it."""
    identifier, name, place = asked(cell.source)
    lines = cell.source.splitlines()
    before, call = lines[: place - 1], lines[place - 1 :]
    region = [BEGIN, *solved(solutions, name).splitlines(), END]
    answer = new_code_cell("\n".join([*before, *region, *call]))
    answer.metadata.nbgrader = told(identifier, "answer", grade=False, solution=True, locked=False)
    test = new_code_cell(test_of(identifier, name))
    test.metadata.nbgrader = told(identifier, "test", grade=True, solution=False, locked=True)
    test.metadata.nbgrader["points"] = possible(identifier)
    return [answer, test]


def test_of(identifier: str, name: str) -> str:
    """Return nbgrader's test of an exercise; what a class of some right steps ends in is points."""
    said = SAY.format(identifier=identifier, name=name, names="globals()")
    if identifier.startswith(BY_STEPS):
        said += "print(said)\nassert said.reached, said.message\nsaid.reached"
    else:
        said += "assert said, said.message"
    return f"# The test of {identifier}, {possible(identifier)} point(s)\n{said}"


def told(identifier: str, kind: str, **flags: bool) -> dict:
    """Return what nbgrader wants to know of a cell."""
    return {"schema_version": 3, "grade_id": called(identifier, kind), "task": False, **flags}


def called(identifier: str, kind: str) -> str:
    """Return what nbgrader calls the answer or the test of an exercise."""
    return f"{identifier.replace('.', '-')}-{kind}"


def source_version(notebook: NotebookNode, seeded: bool = False) -> NotebookNode:
    """Return a notebook as nbgrader's source: exercises with solutions and tests, no outputs.

    Where it is seeded, the tests of what has numbers of one's own find out whose they are.
    """
    cells = rewritten(notebook, exercise)
    for identifier in own("", "", identifiers(cells)) if seeded else ():
        for cell in cells:
            if cell.metadata.get("nbgrader", {}).get("grade_id") == called(identifier, "test"):
                cell.source = found_there(identifier, cell.source)
    return new_notebook(cells=cells, metadata=notebook.metadata)


def identifiers(cells: list[NotebookNode]) -> list[str]:
    """Return the exercises that cells ask for."""
    found = [asked(cell.source) for cell in cells if cell.cell_type == "code"]
    return [each[0] for each in found if each]


def with_own(notebook: NotebookNode, name: str, login: str, whose: str) -> NotebookNode:
    """Return the students' version with one student's numbers, and without the sheet's.

    Args:
        notebook: as nbgrader releases it.
        name: of the assignment.
        login, whose: the student's login, and what to call them.
    """
    copy = nbformat.from_dict(notebook)
    instead = own(name, login, identifiers(copy.cells))
    told = WHOSE.format(which=", ".join(instead), name=whose)
    cells = [new_markdown_cell(told)] * bool(instead)
    for cell in copy.cells:
        question = asked(cell.source) if cell.cell_type == "code" else None
        if question and question[0] in instead:
            given, cell.source = cells_of(instead[question[0]], question[1])
            cells.append(new_code_cell(given))
        elif SHEET in cell.metadata.get("tags", []):
            continue
        for identifier, asks in instead.items():
            cell.source = for_one(identifier, asks, cell.source)
        cells.append(cell)
    copy.cells = cells
    return copy


def rewritten(notebook: NotebookNode, written: Callable) -> list[NotebookNode]:
    """Return the cells of a notebook without outputs, each exercise as written in a grader's way.

    Args:
        written: takes the cell that asks and the code that solves it, and returns cells.
    """
    cells = [new_code_cell(PROGRESS)]
    for number, cell in enumerate(notebook.cells):
        if "solution" in cell.metadata.get("tags", []):
            continue
        cell = nbformat.from_dict(cell)
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        if cell.cell_type == "code" and asked(cell.source):
            cells += written(cell, solutions_of(notebook.cells[number + 1 :]))
        else:
            cells.append(cell)
    return cells


def solutions_of(cells: list[NotebookNode]) -> list[str]:
    """Return the code that solves the exercise before these cells: up to the next, or a problem."""
    found = []
    for cell in cells:
        if "solution" in cell.metadata.get("tags", []):
            found += [cell.source] * (cell.cell_type == "code")
        elif cell.cell_type == "code" and CHECKED.search(cell.source):
            break
    return found


def with_exercises(paths: Iterable[Path]) -> dict[Path, NotebookNode]:
    """Read the notebooks that ask for something."""
    every = {path: read(path) for path in paths}
    return {
        path: notebook
        for path, notebook in every.items()
        if any(cell.cell_type == "code" and asked(cell.source) for cell in notebook.cells)
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--name", default=NAME, help="of the assignment (%(default)s)")
    parser.add_argument("--due", metavar="DATE", help="as nbgrader reads it: '2027-03-01 18:00'")
    parser.add_argument("--own-numbers", type=Path, metavar="ROSTER", help="for each who is on it")
    parser.add_argument("notebooks", nargs="*", help="names or paths; all unless named")
    options = parser.parse_args()
    roster = Roster.read(options.own_numbers) if options.own_numbers else Roster()
    sources = options.folder / "source" / options.name
    sources.mkdir(parents=True, exist_ok=True)
    config = options.folder / "nbgrader_config.py"
    if not config.exists():  # the instructor's own settings stay
        config.write_text(CONFIG, "utf-8")
    asking = with_exercises(map(path_of, options.notebooks or COURSE))
    for path, notebook in asking.items():
        nbformat.write(source_version(notebook, bool(options.own_numbers)), sources / path.name)
    print(f"{len(asking)} notebooks in {sources}")
    status = nbgrader(options.folder, "generate_assignment", options.name, "--force")
    for person in roster.people if not status else ():
        place = options.folder / "own" / options.name / person.login
        place.mkdir(parents=True, exist_ok=True)
        for path in asking:
            released = read(options.folder / "release" / options.name / path.name)
            whose = f"{person.name} ({person.login})" if person.name else person.login
            written = with_own(released, options.name, person.login, whose)
            nbformat.write(written, place / path.name)
    if not status and options.due:
        due = f"--duedate={options.due}"
        status = nbgrader(options.folder, "db", "assignment", "add", options.name, due)
    return status


def path_of(notebook: str) -> Path:
    """Return the path of a notebook of the course, by its name or path."""
    path = Path(notebook)
    return COURSE.get(path.name.removesuffix(".ipynb"), path)


def nbgrader(folder: Path, *words: str) -> int:
    """Run a command of nbgrader in a course; it calls others that stand beside this Python."""
    beside = str(Path(sys.executable).parent)
    own = {"PATH": os.pathsep.join([beside, os.environ.get("PATH", "")])}
    command = [sys.executable, "-m", "nbgrader", *words]
    return subprocess.run(command, cwd=folder, env=os.environ | own).returncode


if __name__ == "__main__":
    sys.exit(main())
