"""Write notebooks as otter-grader assignments, and let `otter assign` make the students' version.

Usage: python tools/grade/assignment_otter.py [--folder assignment_otter] [NOTEBOOK ...]

For each notebook with exercises: a master, from which otter makes student/ and autograder/, with
the zip that `otter run` and Gradescope take. Our check is the only test of an exercise, and fails
with its sentence. Like nbgrader, otter runs what is handed in beside the answers, and believes it.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from textwrap import indent

import nbformat
from assignment import SAY, asked, path_of, rewritten, solved, with_exercises
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook, new_raw_cell
from results import BY_STEPS, possible

sys.path.append(str(Path(__file__).parents[1]))  # what all tools share stands one floor up
from renew import COURSE, NOTEBOOKS

FOLDER = NOTEBOOKS.parent / "assignment_otter"
PARTS = "pyproject.toml", "README.md", "LICENSE", "LICENSE-texts", "helpers", "eleven_steps", "data"
SPACES = " " * 4
CONFIG = """# ASSIGNMENT CONFIG
init_cell: true
check_all_cell: false
export_cell: false
solutions_pdf: false
template_pdf: false
generate: true
tests:
  ok_format: false
run_tests: false
"""
# What Gradescope installs: what notebooks import, and the course itself from beside the tests.
INSTALLED = """python_version: "{python}"
requirements: [{requirements}, ./files/{wheel}]
autograder_files: [{wheel}]
"""


def question(cell: NotebookNode, solutions: list[str]) -> list[NotebookNode]:
    """Return an exercise as otter's cells: what is asked with its solution, and the test of it."""
    identifier, name, place = asked(cell.source)
    lines, plain = cell.source.splitlines(), identifier.replace(".", "_")
    before, call = lines[: place - 1], lines[place - 1 :]
    region = ["# BEGIN SOLUTION NO PROMPT", *solved(solutions, name).splitlines(), "# END SOLUTION"]
    return [
        new_raw_cell(f"# BEGIN QUESTION\nname: {plain}\npoints: {possible(identifier)}"),
        new_raw_cell("# BEGIN SOLUTION"),
        new_code_cell("\n".join([*before, *region, *call])),
        new_raw_cell("# END SOLUTION"),
        new_raw_cell("# BEGIN TESTS"),
        *map(new_code_cell, tests_of(identifier, name)),
        new_raw_cell("# END TESTS"),
        new_raw_cell("# END QUESTION"),
    ]


def tests_of(identifier: str, name: str) -> list[str]:
    """Return otter's tests of an exercise: one, or one for each step of a class."""
    plain, most = identifier.replace(".", "_"), possible(identifier)
    said = SAY.format(identifier=identifier, name=name, names="env")
    if not identifier.startswith(BY_STEPS):
        return [f"def test_{plain}(env):\n{indent(said + 'assert said, said.message', SPACES)}"]
    # Each test asks for one step more of the same verdict.
    said = said.replace(
        "said = check(",
        f"kept = env.get('{plain}')\n"
        f"if kept is None or kept[0] is not env['{name}']:\n"
        f"    kept = env['{plain}'] = env['{name}'], check(",
    ).replace("record=False)", "record=False)\nsaid = kept[1]")
    return [
        f"def test_{plain}_step_{step}(env):\n"
        + indent(f"{said}assert said.reached >= {step}, said.message", SPACES)
        for step in range(1, most + 1)
    ]


def build_wheel(folder: Path) -> Path:
    """Build the course's wheel in an empty folder, from a copy: no old build gets into it."""
    (folder / "course").mkdir()
    for part in PARTS:
        place = NOTEBOOKS.parent / part
        (shutil.copytree if place.is_dir() else shutil.copy)(place, folder / "course" / part)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder)]
    subprocess.run([*pip, str(folder / "course")], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def installed(wheel: Path) -> str:
    """Return the part of otter's settings that says what is installed where it grades."""
    lines = (NOTEBOOKS.parent / "requirements.txt").read_text("utf-8").splitlines()
    pinned = [line for line in lines if "==" in line and not line.startswith("jupyter")]
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return INSTALLED.format(python=python, requirements=", ".join(pinned), wheel=wheel.name)


def assign(notebook: NotebookNode, name: str, folder: Path, wheel: Path) -> None:
    """Write the master of a notebook to a folder of its own, and let otter assign it."""
    from otter.assign import main as otter_assign  # in the class's environment alone

    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(wheel, folder)
    cells = [new_raw_cell(CONFIG + installed(wheel)), *rewritten(notebook, question)]
    for cell in cells:  # where a wheel is installed, helpers is a package of the library
        cell.source = re.sub(r"(?m)^from helpers\b", "from eleven_steps.helpers", cell.source)
    nbformat.write(new_notebook(cells=cells, metadata=notebook.metadata), folder / name)
    otter_assign(str(folder / name), str(folder / "dist"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("notebooks", nargs="*", help="names or paths; all unless named")
    options = parser.parse_args()
    asking = with_exercises(map(path_of, options.notebooks or COURSE))
    with tempfile.TemporaryDirectory() as place:
        wheel = build_wheel(Path(place))
        for path, notebook in asking.items():
            assign(notebook, path.name, options.folder / path.stem, wheel)
            print(options.folder / path.stem / "dist", flush=True)


if __name__ == "__main__":
    main()
