"""The set-up holds together: one list of dependencies, one direction of imports, safe copies."""

import ast
import platform
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
import nbformat
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


def requirements(name):
    """Return the lines of a file of requirements that ask for something."""
    lines = (ROOT / name).read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


COURSE, DEV = requirements("requirements.txt"), requirements("requirements-dev.txt")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))

# The rooms of helpers, and which rooms each may import.
MAY_IMPORT = {
    "attention": set(),
    "errors": set(),
    "examples": set(),
    "pictures": set(),
    "table": set(),
    "timing": set(),
    "trace": {"attention"},
    "gpt2": {"attention"},
    "sizes": {"attention", "examples"},
    "sentences": set(),
    "tiny": {"attention", "sentences", "trace"},
    "moments": {"attention", "examples", "pictures", "sentences", "tiny", "trace"},
    "sliders": {
        *("attention", "examples", "moments", "pictures", "sentences", "sizes", "tiny", "trace"),
        "variants",
    },
    "checks": {"attention", "examples", "pictures", "trace", "variants"},
    "variants": {"attention"},
    "processes": {"attention"},
    "since": {"examples", "trace", "variants"},
}
# Checks draw one thing only: what is done.
PICTURES_OF_CHECKS = {
    "helpers.pictures.progress.draw_progress",
    "helpers.pictures.steps.tell_done",
    "helpers.pictures.Picture",
}
NETWORK = {"ftplib", "http", "httpx", "requests", "socket", "ssl", "urllib", "urllib3"}

LONGEST = 300  # lines of a file
LONGER = {"helpers.attention"}  # reads as the course did, from top to bottom
DATA = {
    f"helpers.checks.{name}"
    for name in ("findings", "mistakes", "paper", "since_tasks", "tasks", "variant_mistakes")
}

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


@pytest.mark.parametrize("module", sorted(set(HELPERS) - LONGER - DATA))
def test_a_file_can_be_read_in_one_sitting(module):
    assert len(HELPERS[module].read_text("utf-8").splitlines()) <= LONGEST


def test_helpers_import_each_other_in_no_circle():
    TopologicalSorter(GRAPH).prepare()


def public(name):
    """Say whether what an import names is a room, or belongs to the public face of one."""
    if name in OWN_FACE or name.rpartition(".")[0] in OWN_FACE:
        return True
    if name == "helpers":
        return True  # says where the rooms lie
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
    ours = {name for name in imports_of(path) if name.split(".")[0] == "helpers"}
    assert not {name for name in ours if not public(name)}


def distributions_of(names):
    """Return what has to be installed for names to be imported, as requirements spell it."""
    known = packages_distributions()
    top = {name.split(".")[0] for name in names} - set(sys.stdlib_module_names) - LOCAL
    return {known[name][0].lower().replace("_", "-") for name in top}


def pinned(lines):
    return [line.partition("==")[0] for line in lines if not line.startswith("-")]


def sources(path):
    """Return the code of a Python file, or of the cells of a notebook."""
    if path.suffix == ".py":
        return [path.read_text("utf-8")]
    return [cell.source for cell in renew.read(path).cells if cell.cell_type == "code"]


def imports_of(path):
    return {name for source in sources(path) for name in imports(ast.walk(ast.parse(source)))}


def test_every_direct_dependency_is_pinned_once():
    assert COURSE[-1] == "-e ." and DEV[0] == "-r requirements.txt"
    pins = COURSE[:-1] + DEV[1:]
    assert all(re.fullmatch(r"[a-z0-9-]+==[\d.]+", line) for line in pins)
    assert len(set(pinned(pins))) == len(pins)
    at_the_top = {name for path in OURS for name in imports(tree(path).body)}
    assert distributions_of(at_the_top) <= set(pinned(pins))


def test_the_course_needs_only_what_it_lists():
    notebooks = sorted((ROOT / "notebooks").glob("*.ipynb"))
    needed = [*HELPERS.values(), *notebooks, ROOT / "tools" / "lab.py"]
    assert distributions_of(set().union(*map(imports_of, needed))) <= set(pinned(COURSE))


def test_the_package_declares_what_helpers_import():
    needed = distributions_of(set().union(*map(imports_of, HELPERS.values())))
    declared = {re.match(r"[a-z0-9-]+", each)[0] for each in PROJECT["project"]["dependencies"]}
    assert needed == declared <= set(pinned(COURSE))


def test_every_package_is_installed():
    folders = {path.parent for path in HELPERS.values()}
    packages = {".".join(folder.relative_to(ROOT).parts) for folder in folders}
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == packages | {"helpers.data"}


def test_conda_and_the_workflow_get_the_same_environment():
    environment = (ROOT / "environment.yml").read_text("utf-8")
    workflow = (ROOT / ".github/workflows/test.yml").read_text("utf-8")
    listed = re.findall(r"^ +- (?!pip:|conda-forge)(.+)", environment, re.MULTILINE)
    (python,) = re.findall(r'python-version: "(.+)"', workflow)
    assert listed == [f"python={python}", "pip", "-r requirements.txt"]
    assert PROJECT["project"]["requires-python"] == f">={python}"
    assert 'cache-dependency-path: "requirements*.txt"' in workflow


def test_a_second_run_does_not_install_again(tmp_path):
    def plan(target):
        command = ["make", "--dry-run", target, f"VENV={tmp_path}"]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout

    def installs(target):
        return re.findall(r"pip install.* -r (\S+)", plan(target))

    assert installs("lab") == ["requirements.txt"]
    assert installs("test") == ["requirements.txt", "requirements-dev.txt"]
    assert "takes a minute or two" in plan("lab")
    (tmp_path / "installed").touch()
    assert installs("lab") == [] and "lab.py" in plan("lab")
    assert installs("test") == ["requirements-dev.txt"]
    (tmp_path / "installed-dev").touch()
    assert installs("test") == [] and "pytest" in plan("test")


def test_copies_are_never_overwritten(tmp_path):
    course, mine = tmp_path / "notebooks", tmp_path / "my_notebooks"
    course.mkdir()
    for name in ("00", "01"):
        nbformat.write(new_notebook(cells=[new_code_cell("ours")]), course / f"{name}.ipynb")
    mine.mkdir()
    (mine / "00.ipynb").write_text("yours")
    assert lab.copy_missing(course, mine) == [mine / "00.ipynb", mine / "01.ipynb"]
    assert (mine / "00.ipynb").read_text() == "yours"
    copy = nbformat.read(mine / "01.ipynb", as_version=4)
    assert [cell.source for cell in copy.cells] == ["ours"]
    assert copy.metadata.language_info["version"] == platform.python_version()


def test_the_address_that_is_printed_opens_the_first_notebook(tmp_path):
    root, url = lab.opening(tmp_path / "00_start_here.ipynb")
    assert root == f"--ServerApp.root_dir={tmp_path}"
    assert url == "--LabApp.default_url=/lab/tree/00_start_here.ipynb"


def test_git_ignores_what_learners_and_students_get():
    ignored = (ROOT / ".gitignore").read_text("utf-8").splitlines()
    assert {f"{lab.MINE.name}/", f"{student.STUDENT.name}/", ".venv/"} <= set(ignored)


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
