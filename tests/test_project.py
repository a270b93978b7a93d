"""The set-up holds together: one list of dependencies, one direction of imports, safe copies."""

import ast
import contextlib
import functools
import platform
import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import lab
import nbformat
import renew
import student
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

ROOT = Path(__file__).parents[1]
PACKAGES = "helpers", "eleven_steps"
FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for package in PACKAGES
    for path in (ROOT / package).rglob("*.py")
}
TOOLS = [path for folder in ("tools", "bench") for path in (ROOT / folder).rglob("*.py")]
NOTEBOOKS = sorted((ROOT / "notebooks").rglob("*.ipynb"))
OURS = [ROOT / "conftest.py", *FILES.values(), *TOOLS, *(ROOT / "tests").rglob("*.py")]

ROOMS = "asking", "checks", "sliders", "beyond", "pictures", "helpers"
OWN_FACE = "eleven_steps.pictures.charts"  # brings matplotlib: imported by its own name
# What some tools import also: the grader asks answers in other processes, the bank plants mistakes.
CHECKS = "eleven_steps.checks"
BESIDE = {
    "grade": (f"{CHECKS}.asking", f"{CHECKS}.verdict"),
    "bank": (f"{CHECKS}.asking", f"{CHECKS}.mistakes", f"{CHECKS}.reference"),
}


def sources(path):
    """Return the code of a Python file, or of the cells of a notebook."""
    if path.suffix == ".py":
        return [path.read_text("utf-8")]
    return [cell.source for cell in renew.read(path).cells if cell.cell_type == "code"]


@functools.cache
def imports_of(path):
    """Return what import statements name: "torch", "helpers.trace.STEPS"."""
    named = set()
    for node in ast.walk(ast.parse("\n\n".join(sources(path)))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            before = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            named |= {before + alias.name for alias in node.names}
    # The library has helpers inside itself.
    return {name.replace("eleven_steps.helpers", "helpers", 1) for name in named}


def room_of(module):
    return next((name for name in ROOMS if name in module.split(".")), "")


def test_the_drawing_of_imports_is_current():
    page = (ROOT / "docs" / "design.md").read_text("utf-8")
    lines = re.findall(r"^  (\w+) --> (.+)$", page, re.MULTILINE)
    drawn = {(room, other) for room, others in lines for other in others.split(" & ")}
    found = {(room_of(name), room_of(other)) for name in FILES for other in imports_of(FILES[name])}
    assert drawn == {(room, other) for room, other in found if room and other not in ("", room)}


def test_notebooks_and_tools_import_the_public_face():
    """Of these rooms what the __init__.py gathers, and no name that is private."""
    for path in TOOLS + NOTEBOOKS:
        own = OWN_FACE, *BESIDE.get(path.parent.name, ())
        for name in imports_of(path):
            module = name if name in FILES else name.rpartition(".")[0]
            inside = re.match(r"eleven_steps\.(checks|pictures|sliders)\.", module)
            assert not inside or module.startswith(own), (path, name)
            assert module not in FILES or "._" not in name, (path, name)


def requirements(name):
    """Return the lines of a file of requirements that ask for something."""
    lines = (ROOT / name).read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


COURSE, DEV, NIGHTLY = (
    requirements(f"requirements{which}.txt") for which in ("", "-dev", "-nightly")
)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
LOCAL = {*PACKAGES} | {path.stem for path in OURS}


@functools.cache
def provided():
    """What can be imported of each requirement that is installed, by its first name."""
    found = {}
    for name in pinned(COURSE + DEV + NIGHTLY):
        with contextlib.suppress(PackageNotFoundError):
            found |= {path.parts[0].removesuffix(".py"): name for path in files(name) or ()}
    return found


def distributions_of(names):
    """Return what has to be installed for names to be imported, as requirements spell it."""
    top = {name.split(".")[0] for name in names} - set(sys.stdlib_module_names) - LOCAL
    return {provided().get(name, name) for name in top}


def pinned(lines):
    return [line.partition("==")[0] for line in lines if not line.startswith("-")]


def test_every_direct_dependency_is_pinned_once():
    assert COURSE[-1] == "-e ." and DEV[0] == "-r requirements.txt"
    assert NIGHTLY[0] == "-r requirements-dev.txt"
    pins = COURSE[:-1] + DEV[1:] + NIGHTLY[1:]
    assert all(re.fullmatch(r"[a-z0-9-]+==[\d.]+", line) for line in pins)
    assert len(set(pinned(pins))) == len(pins)
    texts = "\n".join(path.read_text("utf-8") for path in OURS)
    at_the_top = set(re.findall(r"^(?:from|import) (\w+)", texts, re.MULTILINE))
    assert distributions_of(at_the_top) <= set(pinned(pins))


def test_the_course_lists_and_the_package_declares_what_they_import():
    needed = [*FILES.values(), *NOTEBOOKS, ROOT / "tools" / "lab.py"]
    assert distributions_of(set().union(*map(imports_of, needed))) <= set(pinned(COURSE))
    imported = distributions_of(set().union(*map(imports_of, FILES.values())))
    declared = {re.match(r"[a-z0-9-]+", each)[0] for each in PROJECT["project"]["dependencies"]}
    assert imported == declared <= set(pinned(COURSE))


def test_every_package_is_installed():
    packages = {".".join(path.parent.relative_to(ROOT).parts) for path in FILES.values()} - {
        "helpers"
    }
    inside = {f"eleven_steps.helpers{each}" for each in ("", ".data")}
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == packages | inside


def test_the_constraints_hold_every_pin():
    """They are made from the lists of requirements: their first lines say by which command."""
    locked = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    every = COURSE + DEV + NIGHTLY + requirements("requirements-class.txt")
    assert {line for line in every if line[0] != "-"} <= {*locked}
    assert not any("://" in line for line in locked)


def test_copies_are_never_overwritten(tmp_path):
    course, mine = tmp_path / "notebooks", tmp_path / "my_notebooks"
    (course / "beyond").mkdir(parents=True)
    for name in ("00", "01", "beyond/14"):
        nbformat.write(new_notebook(cells=[new_code_cell("ours")]), course / f"{name}.ipynb")
    mine.mkdir()
    (mine / "00.ipynb").write_text("yours")
    assert lab.copy_missing(course, mine) == [
        mine / f"{name}.ipynb" for name in ("00", "01", "beyond/14")
    ]
    assert (mine / "00.ipynb").read_text() == "yours"
    copy = nbformat.read(mine / "01.ipynb", as_version=4)
    assert [cell.source for cell in copy.cells] == ["ours"]
    assert copy.metadata.language_info["version"] == platform.python_version()
    assert lab.outdated(course, mine) == []
    nbformat.write(new_notebook(cells=[new_code_cell("newer")]), course / "01.ipynb")
    assert lab.copy_missing(course, mine) and lab.outdated(course, mine) == [Path("01.ipynb")]
    assert nbformat.read(mine / "01.ipynb", as_version=4).cells == copy.cells


def test_student_copies_have_no_solutions():
    tag = {"tags": ["solution"]}
    cells = [
        new_markdown_cell("your turn"),
        new_code_cell("# Solution\n42", metadata=tag),
        new_code_cell("answer = ..."),
    ]
    notebook = new_notebook(cells=cells)
    left = student.without_solutions(notebook)
    assert [cell.source for cell in left.cells] == ["your turn", "answer = ..."]
    assert len(notebook.cells) == 3
