"""The set-up holds together: one list of dependencies, one direction of imports, safe copies."""

import ast
import re
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path

import lab
import pytest
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

# What the first helpers may import; the others build on them as they need, in no circle.
MAY_IMPORT = {
    "attention": set(),
    "examples": set(),
    "pictures": set(),
    "charts": set(),
    "guard": set(),
    "trace": {"attention"},
    "mistakes": {"attention"},
    "gpt2": {"attention"},
    "variants": {"attention"},
    "since": {"examples", "pictures", "sliders", "trace", "variants"},
}
# What these need beyond torch, they import where they use it.
QUICK_TO_IMPORT = {"attention", "trace", "examples", "pictures"}
NETWORK = {"ftplib", "http", "httpx", "requests", "socket", "ssl", "urllib", "urllib3"}


def imports(nodes):
    """Return the modules that import statements among nodes name."""
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def tree(path):
    return ast.parse(path.read_text("utf-8"))


def helper_of(path):
    """Return which helper a file belongs to: a package of helpers counts as one."""
    return path.relative_to(ROOT / "helpers").parts[0].removesuffix(".py")


HELPERS = [path for path in OURS if path.is_relative_to(ROOT / "helpers")]


def siblings(path):
    """Return the other helpers that a helper's file imports."""
    modules = imports(ast.walk(tree(path)))
    helpers = {name.split(".")[1] for name in modules if name.startswith("helpers.")}
    return helpers - {helper_of(path)}


@pytest.mark.parametrize("path", HELPERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_helpers_import_what_they_may(path):
    helper, modules = helper_of(path), imports(ast.walk(tree(path)))
    assert siblings(path) <= MAY_IMPORT.get(helper, siblings(path))
    assert not {name.split(".")[0] for name in modules} & (NETWORK | {"tools", "notebooks"})
    if helper in QUICK_TO_IMPORT:
        at_the_top = {name.split(".")[0] for name in imports(tree(path).body)}
        assert not at_the_top & {"matplotlib", "ipywidgets", "IPython"}


def test_helpers_import_each_other_in_no_circle():
    graph = {}
    for path in HELPERS:
        graph.setdefault(helper_of(path), set()).update(siblings(path))
    TopologicalSorter(graph).prepare()


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
