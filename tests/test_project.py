"""The set-up holds together: one list of dependencies, one direction of imports, safe copies."""

import ast
import re
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter
from importlib import import_module
from importlib.metadata import packages_distributions
from pathlib import Path

import draw_imports
import lab
import pytest
import renew
import student
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

ROOT = Path(__file__).parents[1]
OURS = [
    ROOT / "conftest.py",
    *(p for d in ("helpers", "tools", "tests") for p in (ROOT / d).rglob("*.py")),
]
LOCAL = {"helpers"} | {path.stem for path in OURS}
REQUIREMENTS = [
    line
    for line in (ROOT / "requirements.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]

# The rooms of helpers, and which rooms each may import.
MAY_IMPORT = {
    "attention": set(),
    "examples": set(),
    "pictures": set(),
    "timing": set(),
    "trace": {"attention"},
    "gpt2": {"attention"},
    "sizes": {"attention", "examples"},
    "sliders": {"attention", "examples", "pictures", "sizes", "trace"},
    "checks": {"attention", "examples", "pictures", "trace"},
}
# Checks draw one thing only: what is done.
PICTURES_OF_CHECKS = {"helpers.pictures.progress.draw_progress", "helpers.pictures.Picture"}
NETWORK = {"ftplib", "http", "httpx", "requests", "socket", "ssl", "urllib", "urllib3"}

# What notebooks and tools import: a whole room, or what it says is public.
CHECKS = {"check", "check_attention", "wrong_class", "show_lines"}
FACES = {
    **{room: set(import_module(f"helpers.{room}").__all__) for room in ("pictures", "sliders")},
    "checks": CHECKS,
}
OWN_FACE = {"helpers.pictures.charts"}  # brings matplotlib: imported by its own name

GRAPH = draw_imports.modules()
HELPERS = {draw_imports.name_of(path): path for path in (ROOT / "helpers").rglob("*.py")}


def imports(nodes):
    """Return what import statements among nodes name."""
    return set(draw_imports.imported(nodes))


def tree(path):
    return ast.parse(path.read_text("utf-8"))


def test_the_rooms_are_those_that_stand_there():
    assert {draw_imports.room(module) for module in GRAPH if "." in module} == set(MAY_IMPORT)
    assert not GRAPH["helpers"], "helpers itself imports nothing"


@pytest.mark.parametrize("module", sorted(set(HELPERS) - {"helpers"}))
def test_helpers_import_what_they_may(module):
    room, names = draw_imports.room(module), imports(ast.walk(tree(HELPERS[module])))
    assert {draw_imports.room(other) for other in GRAPH[module]} <= MAY_IMPORT[room] | {room}
    assert not {name.split(".")[0] for name in names} & (NETWORK | {"tools", "notebooks", "tests"})
    if room == "checks":
        drawn = {name for name in names if name.startswith("helpers.pictures")}
        assert drawn <= PICTURES_OF_CHECKS


def test_helpers_import_each_other_in_no_circle():
    TopologicalSorter(GRAPH).prepare()


def public(name):
    """Say whether what an import names is a room, or belongs to the public face of one."""
    if name in OWN_FACE or name.rpartition(".")[0] in OWN_FACE:
        return True
    _, room, *rest = name.split(".")
    if room not in MAY_IMPORT or len(rest) > 1:
        return False
    if not rest:
        return room != "checks"
    return rest[0] in FACES[room] if room in FACES else not rest[0].startswith("_")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("helpers.checks.check", True),
        ("helpers.checks.progress", False),
        ("helpers.checks.progress.draw_progress", False),
        ("helpers.checks", False),
        ("helpers.sliders", True),
        ("helpers.sliders.run", True),
        ("helpers.sliders.film.controls", False),
        ("helpers.pictures.charts.draw_growth", True),
        ("helpers.pictures.memory.place", False),
        ("helpers.attention._Causal", False),
        ("helpers.nowhere.anything", False),
    ],
)
def test_a_room_has_a_public_face(name, says):
    assert public(name) is says


@pytest.mark.parametrize(
    "path",
    [path for d in ("tools", "notebooks") for path in sorted((ROOT / d).glob("*.[pi]*y*"))],
    ids=lambda path: path.name,
)
def test_notebooks_and_tools_import_the_public_face(path):
    sources = [path.read_text("utf-8")]
    if path.suffix == ".ipynb":
        sources = [cell.source for cell in renew.read(path).cells if cell.cell_type == "code"]
    names = {name for source in sources for name in imports(ast.walk(ast.parse(source)))}
    ours = {name for name in names if name.split(".")[0] == "helpers"}
    assert not {name for name in ours if not public(name)}


def test_every_direct_dependency_is_pinned():
    used = {name.split(".")[0] for path in OURS for name in imports(tree(path).body)}
    distributions = packages_distributions()
    direct = {
        distributions[name][0].lower().replace("_", "-")
        for name in used - set(sys.stdlib_module_names) - LOCAL
    }
    assert REQUIREMENTS[-1] == "-e ."
    assert all(re.fullmatch(r"[a-z0-9-]+==[\d.]+", line) for line in REQUIREMENTS[:-1])
    assert direct <= {line.partition("==")[0] for line in REQUIREMENTS[:-1]}


def test_conda_gets_the_same_environment():
    environment = (ROOT / "environment.yml").read_text("utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    workflow = (ROOT / ".github/workflows/test.yml").read_text("utf-8")
    listed = re.findall(r"^ +- (?!pip:|conda-forge)(.+)", environment, re.MULTILINE)
    (python,) = re.findall(r'python-version: "(.+)"', workflow)
    assert listed == [f"python={python}", "pip", "-r requirements.txt"]
    assert project["requires-python"] == f">={python}"


def test_a_second_run_does_not_install_again(tmp_path):
    def plan():
        command = ["make", "--dry-run", "test", f"VENV={tmp_path}"]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert "pip install" in plan()
    (tmp_path / "installed").touch()
    assert "pip install" not in plan()
    assert "pytest" in plan()


def test_copies_are_never_overwritten(tmp_path):
    course, mine = tmp_path / "notebooks", tmp_path / "my_notebooks"
    course.mkdir()
    (course / "00.ipynb").write_text("ours")
    (course / "01.ipynb").write_text("ours")
    mine.mkdir()
    (mine / "00.ipynb").write_text("yours")
    assert lab.copy_missing(course, mine) == [mine / "00.ipynb", mine / "01.ipynb"]
    assert (mine / "00.ipynb").read_text() == "yours"
    assert (mine / "01.ipynb").read_text() == "ours"


def test_git_ignores_what_learners_and_students_get():
    ignored = (ROOT / ".gitignore").read_text("utf-8").splitlines()
    assert {f"{lab.MINE.name}/", f"{student.STUDENT.name}/", ".venv/"} <= set(ignored)


def test_student_copies_have_no_solutions():
    tag = {"tags": ["solution"]}
    cells = [
        new_markdown_cell("your turn"),
        new_markdown_cell("#### Solution", metadata=tag),
        new_code_cell("42", metadata=tag),
        new_code_cell("answer = ..."),
    ]
    notebook = new_notebook(cells=cells)
    left = student.without_solutions(notebook)
    assert [cell.source for cell in left.cells] == ["your turn", "answer = ..."]
    assert len(notebook.cells) == 4
