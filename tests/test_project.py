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
    *(
        path
        for folder in ("helpers", "eleven_steps", "tools", "bench", "tests")
        for path in (ROOT / folder).rglob("*.py")
    ),
]
LOCAL = {"helpers", "eleven_steps"} | {path.stem for path in OURS}


def requirements(name):
    """Return the lines of a file of requirements that ask for something."""
    lines = (ROOT / name).read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


COURSE, DEV = requirements("requirements.txt"), requirements("requirements-dev.txt")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))

# The rooms, and which rooms each may import.
MAY_IMPORT = {
    "helpers": set(),
    "eleven_steps": set(),
    "pictures": set(),
    "beyond": {"helpers", "pictures"},
    "sliders": {"beyond", "helpers", "pictures"},
    "run": {"beyond", "helpers"},
    "know": {"beyond", "helpers", "run"},
    "name": {"helpers", "know", "progress", "run"},
    "progress": {"know", "pictures"},
    "checks": {"know", "name", "progress"},
}
# Inside helpers hardly anything is imported.
HELPERS_IMPORT = {"helpers.trace": {"helpers.attention"}}
# Checks draw one thing only: what is done.
PICTURES_OF_CHECKS = {
    "eleven_steps.pictures.done.draw_progress",
    "eleven_steps.pictures.Picture",
}
NETWORK = {"ftplib", "http", "httpx", "requests", "socket", "ssl", "urllib", "urllib3"}

LONGEST = 300  # lines of a file
LONGER = {"helpers.attention"}  # reads as the course did, from top to bottom
DATA = {"eleven_steps.checks.know.exercises.since_tasks"}

# What notebooks, tools and bench import of a package: what its face lists.
FACES = {
    room: set(import_module(f"eleven_steps.{room}").__all__)
    for room in ("checks", "pictures", "sliders")
}
OWN_FACE = {"eleven_steps.pictures.charts"}  # brings matplotlib: imported by its own name
ABOVE = [
    path
    for folder in ("tools", "bench", "notebooks")
    for path in sorted((ROOT / folder).rglob("*.[pi]*y*"))
    if path.suffix in (".py", ".ipynb") and ".ipynb_checkpoints" not in path.parts
]

GRAPH = draw_imports.modules()
OURS_IN = {
    draw_imports.name_of(path): path
    for package in draw_imports.PACKAGES
    for path in (ROOT / package).rglob("*.py")
}


def imports(nodes):
    """Return what import statements among nodes name."""
    return set(draw_imports.imported(nodes))


def tree(path):
    return ast.parse(path.read_text("utf-8"))


def test_the_rooms_are_those_that_stand_there():
    assert {draw_imports.room(module) for module in GRAPH} == set(MAY_IMPORT)
    assert not GRAPH["helpers"] and not GRAPH["eleven_steps"]


def test_rooms_import_what_they_may():
    for module, others in GRAPH.items():
        room, names = draw_imports.room(module), imports(ast.walk(tree(OURS_IN[module])))
        assert {draw_imports.room(other) for other in others} <= MAY_IMPORT[room] | {room}, module
        outside = NETWORK | {"tools", "bench", "notebooks", "tests"}
        assert not {name.split(".")[0] for name in names} & outside, module
        if module.startswith("eleven_steps.checks"):
            drawn = {name for name in names if name.startswith("eleven_steps.pictures")}
            assert drawn <= PICTURES_OF_CHECKS, module


def test_helpers_hardly_import_each_other():
    among = {module: others for module, others in GRAPH.items() if module.startswith("helpers.")}
    assert {module: others for module, others in among.items() if others} == HELPERS_IMPORT


def test_a_file_can_be_read_in_one_sitting():
    lengths = {
        module: len(path.read_text("utf-8").splitlines())
        for module, path in OURS_IN.items()
        if module not in LONGER | DATA
    }
    assert {module: lines for module, lines in lengths.items() if lines > LONGEST} == {}


def test_modules_import_each_other_in_no_circle():
    TopologicalSorter(GRAPH).prepare()


def public(name):
    """Say whether what an import names is a module, or belongs to the public face of a room."""
    if name in OWN_FACE or name.rpartition(".")[0] in OWN_FACE:
        return True
    package, *rest = name.split(".")
    if package == "eleven_steps" and rest and rest[0] in FACES:
        if len(rest) == 1:
            return rest[0] != "checks"
        return len(rest) == 2 and rest[1] in FACES[rest[0]]
    if not rest:
        return True  # says where the rooms lie
    module = any(name in (other, other.rpartition(".")[0]) for other in GRAPH)
    return module or name.rpartition(".")[0] in GRAPH and not rest[-1].startswith("_")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("eleven_steps.checks.check", True),
        ("eleven_steps.checks.progress", False),
        ("eleven_steps.checks.progress.draw_progress", False),
        ("eleven_steps.checks", False),
        ("eleven_steps.sliders", True),
        ("eleven_steps.sliders.run", True),
        ("eleven_steps.sliders.film.legal", False),
        ("eleven_steps.pictures.charts.draw_growth", True),
        ("eleven_steps.pictures.storage.place", False),
        ("eleven_steps.beyond.variants.Rope", True),
        ("eleven_steps.beyond.nowhere.anything", False),
        ("helpers.attention._Causal", False),
        ("helpers.nowhere.anything", False),
    ],
)
def test_a_room_has_a_public_face(name, says):
    assert public(name) is says


@pytest.mark.parametrize("path", ABOVE, ids=lambda path: path.name)
def test_notebooks_and_tools_import_the_public_face(path):
    ours = {name for name in imports_of(path) if name.split(".")[0] in draw_imports.PACKAGES}
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
    needed = [*OURS_IN.values(), *notebooks, ROOT / "tools" / "lab.py"]
    assert distributions_of(set().union(*map(imports_of, needed))) <= set(pinned(COURSE))


def test_the_package_declares_what_it_imports():
    needed = distributions_of(set().union(*map(imports_of, OURS_IN.values())))
    declared = {re.match(r"[a-z0-9-]+", each)[0] for each in PROJECT["project"]["dependencies"]}
    assert needed == declared <= set(pinned(COURSE))


def test_every_package_is_installed():
    folders = {path.parent for path in OURS_IN.values()}
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
