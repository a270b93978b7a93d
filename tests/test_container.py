"""What containers and Binder read says the same as the rest, and does what it says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.sign import NotebookNotary

ROOT = Path(__file__).parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
LINES = re.sub(r"\\\n", " ", DOCKERFILE).splitlines()
ORDERS = [line.split(maxsplit=1) for line in LINES if line and not line.startswith("#")]


def orders(name):
    return [rest for order, rest in ORDERS if order == name]


def test_a_container_has_the_python_of_the_course():
    (python,) = re.findall(r"python=([\d.]+)", (ROOT / "environment.yml").read_text("utf-8"))
    assert orders("FROM") == [f"python:{python}-slim"]


def test_a_container_copies_what_exists_and_all_that_is_installed():
    copied = {name for rest in orders("COPY") for name in rest.split()[:-1]}
    assert all((ROOT / name).exists() for name in copied)
    packages = re.findall(r'^    "(helpers)', (ROOT / "pyproject.toml").read_text("utf-8"), re.M)
    assert {*packages, "data", "notebooks", "tools", "requirements.txt"} <= copied


def test_nothing_runs_as_root_and_nothing_is_installed_after_that():
    names = [order for order, _ in ORDERS]
    assert orders("USER") == ["learner"]
    after = names[names.index("USER") + 1 :]
    assert "RUN" not in after and "COPY" not in after and "USER" not in after
    assert any("PIP_NO_INDEX=1" in rest for rest in orders("ENV"))


def test_a_container_starts_the_course_with_progress_in_the_learners_folder():
    (start,) = orders("CMD")
    assert '"tools/lab.py"' in start and (ROOT / "tools" / "lab.py").is_file()
    (volume,) = orders("VOLUME")
    settings = " ".join(orders("ENV")).split()
    assert f"ELEVEN_STEPS_PROGRESS={volume}/progress.json" in settings
    assert f"HOME={volume}" in settings, "what JupyterLab writes stands elsewhere, or nowhere"
    assert f"ln -s {volume} my_notebooks" in DOCKERFILE


def test_the_pins_of_torch_are_those_of_the_course():
    assert "grep '^torch==' requirements.txt" in DOCKERFILE
    assert len(re.findall(r"^torch==", (ROOT / "requirements.txt").read_text("utf-8"), re.M)) == 1


def test_binder_finds_what_it_reads_in_its_folder_and_not_the_dockerfile():
    # Beside a Dockerfile repo2docker reads nothing else; where there is such a folder, it alone.
    folder = ROOT / "binder"
    found = {path.name for path in folder.iterdir()}
    assert found == {"postBuild", "requirements.txt", "runtime.txt"}
    (python,) = re.findall(r"python=([\d.]+)", (ROOT / "environment.yml").read_text("utf-8"))
    assert (folder / "runtime.txt").read_text("utf-8").split() == [f"python-{python}"]
    lines = (folder / "requirements.txt").read_text("utf-8").splitlines()
    assert [line for line in lines if not line.startswith("#")] == ["-r ../requirements.txt"]
    assert (folder / ".." / "requirements.txt").is_file()


@pytest.mark.nightly
@pytest.mark.skipif(os.name == "nt", reason="a shell script")
def test_what_binder_runs_trusts_the_notebooks_and_lays_down_the_settings(tmp_path):
    for name in ("helpers", "notebooks", "tools", "binder"):
        (tmp_path / name).symlink_to(ROOT / name)
    # Its own prefix, so that nothing here changes.
    own = tmp_path / "environment"
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(
        f'#!/bin/sh\ncase "$*" in *sys.prefix*) echo {own};; *) exec {sys.executable} "$@";; esac\n'
    )
    (tmp_path / "bin" / "jupyter").write_text(f'#!/bin/sh\nexec {sys.executable} -m jupyter "$@"\n')
    for script in (tmp_path / "bin").iterdir():
        script.chmod(0o755)
    data = tmp_path / "data"
    env = os.environ | {
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "JUPYTER_DATA_DIR": str(data),
    }
    script = tmp_path / "binder" / "postBuild"
    done = subprocess.run([script], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    settings = own / "share" / "jupyter" / "lab" / "settings" / "overrides.json"
    ours = ROOT / "tools" / "jupyterlab" / "labconfig" / "default_setting_overrides.json"
    assert settings.read_text("utf-8") == ours.read_text("utf-8")
    config = "jupyter_server_config.py"
    assert (own / "etc" / "jupyter" / config).read_text("utf-8") == (
        ROOT / "tools" / "jupyterlab" / config
    ).read_text("utf-8")
    with NotebookNotary(data_dir=str(data)) as notary:
        for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
            assert notary.check_signature(nbformat.read(path, nbformat.NO_CONVERT)), path.name


def test_tests_that_the_statement_on_accessibility_names_exist():
    said = (ROOT / "docs" / "accessibility.md").read_text("utf-8")
    named = set(re.findall(r"`((?:test|check)_\w+)`", said))
    sources = "".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("*.py"))
    assert len(named) > 8 and not [name for name in named if f"def {name}(" not in sources]
    files = set(re.findall(r"`(?:tests/)?((?:browser/)?test_\w+\.py)`", said))
    assert files and all((ROOT / "tests" / name).is_file() for name in files)
