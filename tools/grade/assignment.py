"""Write the course as an assignment for nbgrader or otter-grader.

Usage: make assignment, or: python tools/grade/assignment.py [--folder assignment]
       [--name week3] [--due "2027-03-01 18:00"] [--own-numbers logins.csv]
       [NOTEBOOK ...], 05_scores for one; all unless named
       make assignment-otter, or: python tools/grade/assignment.py --otter
       [--folder assignment_otter] [NOTEBOOK ...]

The only test of an exercise is the course's own check, and it fails with the message of the check,
so that students get the same feedback. Unlike tools/grade/grade.py, both graders run submissions in
the same process as the answers, and believe them.

For nbgrader the folder is a course, and may hold many assignments. source/NAME holds the notebooks
with their exercises, each with its solution and, after it, a locked cell with its test.
release/NAME is what students get. With --own-numbers each student on the roster gets problems of
15_by_hand with numbers that nobody else has: own/NAME/LOGIN holds their notebooks, and the tests
judge by the folder's login.

For otter each notebook has a folder with a master, from which otter makes student/ and autograder/,
with the zip that `otter run` and Gradescope take.
"""

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from textwrap import indent

import nbformat
from match_students import Roster
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_raw_cell

sys.path.append(str(Path(__file__).parents[1]))  # course.py is in the folder above
from own_numbers import cells_of, for_one, found_there, own
from renew import COURSE, NOTEBOOKS, read
from results import BY_STEPS, possible

NAME = "eleven_steps"
CHECKED = re.compile(r"\bcheck\(\s*f?[\"']")
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"  # nbgrader removes what is between them
OTTERS = "# BEGIN SOLUTION NO PROMPT", "# END SOLUTION"
TEXTS = tomllib.loads(Path(__file__).with_name("assignment.toml").read_text("utf-8"))
SHEET = "sheet"  # the tag of cells that are about the numbers of the published sheet
PARTS = "pyproject.toml", "README.md", "LICENSE", "LICENSE-texts", "helpers", "eleven_steps", "data"


# Exercises of a notebook, and their solutions


def asked(cell: NotebookNode) -> tuple[str, str, int] | None:
    """Return the exercise that a cell asks for, the name of the answer, and the line with check.

    None where the cell hands no name to check.
    """
    for line in ast.parse(cell.source).body if cell.cell_type == "code" else ():
        match line:
            case ast.Expr(
                value=ast.Call(
                    func=ast.Name("check"), args=[ast.Constant(str(identifier)), ast.Name(name)]
                )
            ) if identifier.count(".") == 1:
                return identifier, name, line.lineno
    return None


def solved(sources: list[str], name: str) -> str:
    """Return solutions as code that assigns the answer to its name without checking it."""
    lines = []
    for source in sources:
        kept = source.splitlines()
        for line in reversed(ast.parse(source).body):
            match line:
                case ast.Assert(test=ast.Call(func=ast.Name("check"), args=[_, answer])):
                    written = ast.get_source_segment(source, answer)
                    instead = [f"{name} = {written}"] * (written != name)
                    kept[line.lineno - 1 : line.end_lineno] = instead
        lines += kept
    return "\n".join(lines).strip("\n")


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
    every = {path: read(path) for path in paths}
    return {path: notebook for path, notebook in every.items() if any(map(asked, notebook.cells))}


def rewritten(notebook: NotebookNode, written: Callable) -> list[NotebookNode]:
    """Return the cells without outputs; written turns an exercise and its solutions into cells."""
    cells = [new_code_cell(TEXTS["progress"])]
    for number, cell in enumerate(notebook.cells):
        if "solution" in cell.metadata.get("tags", []):
            continue
        cell = nbformat.from_dict(cell)
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        following = notebook.cells[number + 1 :]
        cells += written(cell, solutions_of(following)) if asked(cell) else [cell]
    return cells


def answer_of(cell: NotebookNode, solutions: list[str], begin: str, end: str) -> NotebookNode:
    """Return the cell of an exercise, with its solution between two marks."""
    _, name, place = asked(cell)
    lines = cell.source.splitlines()
    region = [begin, *solved(solutions, name).splitlines(), end]
    return new_code_cell("\n".join([*lines[: place - 1], *region, *lines[place - 1 :]]))


# nbgrader


def exercise(cell: NotebookNode, solutions: list[str]) -> list[NotebookNode]:
    """Return an exercise for nbgrader: the cell with its solution, and the test."""
    identifier, name, _ = asked(cell)
    answer, test = answer_of(cell, solutions, BEGIN, END), new_code_cell(test_of(identifier, name))
    for made, kind in (answer, "answer"), (test, "test"):
        about = {"schema_version": 3, "grade_id": called(identifier, kind), "task": False}
        flags = {"grade": made is test, "solution": made is answer, "locked": made is test}
        made.metadata.nbgrader = about | flags
    test.metadata.nbgrader["points"] = possible(identifier)
    return [answer, test]


def called(identifier: str, kind: str) -> str:
    return f"{identifier.replace('.', '-')}-{kind}"


def test_of(identifier: str, name: str) -> str:
    """Return nbgrader's test of an exercise; a class gets a point for each of its right steps."""
    said = TEXTS["said"].format(identifier=identifier, name=name, names="globals()")
    if identifier.startswith(BY_STEPS):
        said += "print(said)\nassert said.reached, said.message\nsaid.reached"
    else:
        said += "assert said, said.message"
    return f"# The test of {identifier}, {possible(identifier)} point(s)\n{said}"


def source_version(notebook: NotebookNode, seeded: bool = False) -> NotebookNode:
    """Return a notebook as nbgrader's source: exercises with solutions and tests, no outputs.

    If it is seeded, tests of exercises with own numbers find out which student they belong to.
    """
    cells = rewritten(notebook, exercise)
    for identifier in own("", "", identifiers(cells)) if seeded else ():
        for cell in cells:
            if cell.metadata.get("nbgrader", {}).get("grade_id") == called(identifier, "test"):
                cell.source = found_there(identifier, cell.source)
    return new_notebook(cells=cells, metadata=notebook.metadata)


def identifiers(cells: list[NotebookNode]) -> list[str]:
    return [about[0] for about in map(asked, cells) if about]


def with_own(notebook: NotebookNode, name: str, login: str, whose: str) -> NotebookNode:
    """Return nbgrader's release with one student's numbers in place of those of the sheet."""
    copy = nbformat.from_dict(notebook)
    instead = own(name, login, identifiers(copy.cells))
    heading = TEXTS["whose"].format(which=", ".join(instead), name=whose)
    cells = [new_markdown_cell(heading)] * bool(instead)
    for cell in copy.cells:
        question = asked(cell)
        if question and question[0] in instead:
            given, cell.source = cells_of(instead[question[0]], question[1])
            cells.append(new_code_cell(given))
        elif SHEET in cell.metadata.get("tags", []):
            continue
        for identifier, asked_of_one in instead.items():
            cell.source = for_one(identifier, asked_of_one, cell.source)
        cells.append(cell)
    copy.cells = cells
    return copy


def nbgrader(folder: Path, *words: str) -> int:
    """Run a command of nbgrader in a course, with this Python's folder of commands on PATH."""
    commands = str(Path(sys.executable).parent)
    path = {"PATH": os.pathsep.join([commands, os.environ.get("PATH", "")])}
    command = [sys.executable, "-m", "nbgrader", *words]
    return subprocess.run(command, cwd=folder, env=os.environ | path).returncode


def for_nbgrader(asking: dict[Path, NotebookNode], options: argparse.Namespace) -> int:
    roster = Roster.read(options.own_numbers) if options.own_numbers else Roster()
    folder, name = options.folder or NOTEBOOKS.parent / "assignment", options.name
    sources, config = folder / "source" / name, folder / "nbgrader_config.py"
    sources.mkdir(parents=True, exist_ok=True)
    if not config.exists():  # never overwrite the instructor's settings
        shutil.copy(Path(__file__).with_name(config.name), config)
    for path, notebook in asking.items():
        nbformat.write(source_version(notebook, bool(options.own_numbers)), sources / path.name)
    print(f"{len(asking)} notebooks in {sources}")
    status = nbgrader(folder, "generate_assignment", name, "--force")
    for person in roster.people if not status else ():
        place = folder / "own" / name / person.login
        place.mkdir(parents=True, exist_ok=True)
        for path in asking:
            released = read(folder / "release" / name / path.name)
            whose = f"{person.name} ({person.login})" if person.name else person.login
            nbformat.write(with_own(released, name, person.login, whose), place / path.name)
    if not status and options.due:
        status = nbgrader(folder, "db", "assignment", "add", name, f"--duedate={options.due}")
    return status


# otter-grader


def question(cell: NotebookNode, solutions: list[str]) -> list[NotebookNode]:
    """Return an exercise as cells for otter: the cell with its solution, and the test."""
    identifier, name, _ = asked(cell)
    about = f"name: {identifier.replace('.', '_')}\npoints: {possible(identifier)}"
    return [
        new_raw_cell(f"# BEGIN QUESTION\n{about}"),
        new_raw_cell("# BEGIN SOLUTION"),
        answer_of(cell, solutions, *OTTERS),
        new_raw_cell("# END SOLUTION"),
        new_raw_cell("# BEGIN TESTS"),
        *map(new_code_cell, tests_of(identifier, name)),
        new_raw_cell("# END TESTS"),
        new_raw_cell("# END QUESTION"),
    ]


def tests_of(identifier: str, name: str) -> list[str]:
    """Return otter's tests of an exercise: one, or one for each step of a class."""
    plain, spaces = identifier.replace(".", "_"), " " * 4
    said = TEXTS["said"].format(identifier=identifier, name=name, names="env")
    if not identifier.startswith(BY_STEPS):
        return [f"def test_{plain}(env):\n{indent(said + 'assert said, said.message', spaces)}"]
    # Each test asks for one more step of the same verdict.
    said = said.replace(
        "said = check(",
        f"kept = env.get('{plain}')\n"
        f"if kept is None or kept[0] is not env['{name}']:\n"
        f"    kept = env['{plain}'] = env['{name}'], check(",
    ).replace("record=False)", "record=False)\nsaid = kept[1]")
    return [
        f"def test_{plain}_step_{step}(env):\n"
        + indent(f"{said}assert said.reached >= {step}, said.message", spaces)
        for step in range(1, possible(identifier) + 1)
    ]


def build_wheel(folder: Path) -> Path:
    """Build the course's wheel in an empty folder, from a copy without old builds."""
    (folder / "course").mkdir()
    for part in PARTS:
        place = NOTEBOOKS.parent / part
        (shutil.copytree if place.is_dir() else shutil.copy)(place, folder / "course" / part)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder)]
    subprocess.run([*pip, str(folder / "course")], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def for_otter(asking: dict[Path, NotebookNode], top: Path) -> None:
    """Write the master of each notebook to its own folder, and run otter assign."""
    from otter.assign import main as otter_assign  # installed in .venv-class only

    lines = (NOTEBOOKS.parent / "requirements.txt").read_text("utf-8").splitlines()
    pinned = [line for line in lines if "==" in line and not line.startswith("jupyter")]
    # Gradescope installs what notebooks import, and the course from the wheel next to the tests.
    about = {"python": ".".join(map(str, sys.version_info[:2])), "requirements": ", ".join(pinned)}
    template = Path(__file__).with_name("otter_config.yaml").read_text("utf-8")
    with tempfile.TemporaryDirectory() as place:
        wheel = build_wheel(Path(place))
        config = template.format(wheel=wheel.name, **about)
        for path, notebook in asking.items():
            folder = top / path.stem
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(wheel, folder)
            cells = [new_raw_cell(config), *rewritten(notebook, question)]
            for cell in cells:  # where a wheel is installed, helpers is a package of the library
                cell.source = re.sub(
                    r"(?m)^from helpers\b", "from eleven_steps.helpers", cell.source
                )
            master = new_notebook(cells=cells, metadata=notebook.metadata)
            nbformat.write(master, folder / path.name)
            otter_assign(str(folder / path.name), str(folder / "dist"))
            print(folder / "dist", flush=True)


def path_of(notebook: str) -> Path:
    path = Path(notebook)
    return COURSE.get(path.name.removesuffix(".ipynb"), path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--otter", action="store_true", help="for otter-grader, not nbgrader")
    parser.add_argument("--folder", type=Path, help="assignment, or assignment_otter")
    parser.add_argument("--name", default=NAME, help="of nbgrader's assignment (%(default)s)")
    parser.add_argument("--due", metavar="DATE", help="as nbgrader reads it: '2027-03-01 18:00'")
    parser.add_argument("--own-numbers", type=Path, metavar="ROSTER", help="for each who is on it")
    parser.add_argument("notebooks", nargs="*", help="names or paths; all unless named")
    options = parser.parse_args()
    asking = with_exercises(map(path_of, options.notebooks or COURSE))
    if options.otter:
        for_otter(asking, options.folder or NOTEBOOKS.parent / "assignment_otter")
        return 0
    return for_nbgrader(asking, options)


if __name__ == "__main__":
    sys.exit(main())
