"""Helpers work where they are installed, and importing them does nothing else."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOOLS = sorted(path.stem for path in (ROOT / "tools").glob("*.py"))
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for package in ("eleven_steps", "helpers")
    for path in sorted((ROOT / package).rglob("*.py"))
]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Install the package as pip install . does, from a copy: a build leaves files behind."""
    source = tmp_path_factory.mktemp("source")
    for name in ("helpers", "eleven_steps", "data"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE", "LICENSE-texts"):
        shutil.copy(ROOT / name, source)
    target = tmp_path_factory.mktemp("installed")
    subprocess.run([*pip(), "--target", str(target), "."], cwd=source, check=True)
    return target


def pip(*first):
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--no-compile", "--quiet"]
    command = [sys.executable, "-m", "pip", *first, "--disable-pip-version-check"]
    return [*command, "install", *options]


def run(code, folder, *paths):
    """Run code in a new process in a folder, with paths to import from, and return its prints."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))}
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, cwd=folder, env=environment, text=True, capture_output=True, check=True
    ).stdout


@pytest.mark.nightly
def test_an_installed_package_works_away_from_the_checkout(installed, tmp_path):
    code = """
import eleven_steps
from eleven_steps.helpers.attention import MultiHeadAttention
from eleven_steps.helpers.examples import DATA, load_example, load_whiteboard
from eleven_steps.pictures import draw_map
from eleven_steps.beyond.sizes import load_models
from eleven_steps.helpers.trace import trace
print(eleven_steps.__file__)
print(DATA)
mha = MultiHeadAttention(6, 6, 6, 0.0, num_heads=2)
print(draw_map(trace(mha, load_whiteboard())).svg[:4], len(load_models()) > 1)
print(load_example("words").rows["embedding"][0])
"""
    file, data, drawn, word = run(code, tmp_path, installed).splitlines()
    assert Path(file).is_relative_to(installed) and Path(data).is_relative_to(installed)
    assert drawn == "<svg True" and word
    assert {p.name for p in Path(data).iterdir()} == {p.name for p in (ROOT / "data").iterdir()}


@pytest.mark.nightly
def test_a_notebook_finds_helpers_where_the_folder_itself_is_installed(tmp_path):
    """As requirements.txt does, with -e: it is found, behind any other of that name."""
    source = tmp_path / "course"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".*", "__pycache__", "notebooks"))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "v"], check=True)
    (packages,) = (tmp_path / "v").glob("lib/python*/site-packages")
    (packages / "ours.pth").write_text(str(Path(pytest.__file__).parents[1]))
    python = str(tmp_path / "v" / "bin" / "python")
    subprocess.run([*pip("--python", python), "-e", "."], cwd=source, check=True)
    code = "import helpers.trace as t, eleven_steps.helpers.trace as u; print(t is u, t.__file__)"
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    here = {"cwd": tmp_path, "env": bare, "text": True, "capture_output": True, "check": True}
    again = subprocess.run([python, "-c", code], **here)
    assert again.stdout == f"True {source / 'helpers' / 'trace.py'}\n"
    (tmp_path / "helpers.py").write_text("print('theirs')")
    code = "import helpers, eleven_steps.checks"
    again = subprocess.run([python, "-c", code], **here)
    assert again.stdout == "theirs\n"


@pytest.mark.nightly
def test_importing_has_no_side_effects(tmp_path):
    """No file, no variable, no random number; the checks bring no library of pictures."""
    code = f"""
import os, sys, tempfile, torch
sys.dont_write_bytecode = True
large = "charts", "run.notebook", "errors", "sliders"
quick = [name for name in {MODULES} if not any(each in name for each in large)]
before = dict(os.environ), os.getcwd(), torch.get_rng_state(), torch.is_grad_enabled()
for name in quick:
    __import__(name)
print({{"matplotlib", "ipywidgets", "IPython"}} & set(sys.modules))
for name in {MODULES + TOOLS}:
    __import__(name)
after = dict(os.environ), os.getcwd(), torch.get_rng_state(), torch.is_grad_enabled()
print(before[:2] == after[:2], torch.equal(before[2], after[2]), before[3] == after[3])
print({{k: v for k, v in after[0].items() if before[0].get(k) != v}})
print(os.listdir(tempfile.gettempdir()))
"""
    (tmp_path / "temporary").mkdir()
    (tmp_path / "here").mkdir()
    known = set(ROOT.glob("*")) | set((ROOT / "tools").glob("*"))
    place = f"import tempfile; tempfile.tempdir = {str(tmp_path / 'temporary')!r}\n"
    quick, same, changed, files = run(
        place + code, tmp_path / "here", ROOT, ROOT / "tools", ROOT / "tests" / "browser"
    ).splitlines()
    assert quick == "set()"
    assert (same, changed) == ("True True True", "{}")
    assert files == "[]" and not list((tmp_path / "here").iterdir())
    assert known == set(ROOT.glob("*")) | set((ROOT / "tools").glob("*"))
