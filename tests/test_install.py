"""Each broken state of an installation is found, and reported with what helps."""

import os
import subprocess
import sys
from pathlib import Path

import install
import lab
import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """An environment without pip, in a folder as people name theirs: venv was interrupted."""
    folder = tmp_path / "Meine Übung (2)" / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return folder


def complete(environment):
    """Give an environment the one part of pip that is looked for."""
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "pip.py").touch()
    assert install.find_fault(environment) == ""


posix = pytest.mark.skipif(os.name == "nt", reason="an environment has other folders there")


@posix
def test_an_environment_that_is_half_made_is_found(environment):
    assert "making it was interrupted" in install.find_fault(environment)


@posix
def test_an_environment_whose_python_is_gone_is_found(environment):
    complete(environment)
    python = environment / "bin" / "python"
    python.unlink()
    python.symlink_to("/nowhere/python3.11")
    assert "is gone" in install.find_fault(environment)


@posix
def test_an_environment_in_a_folder_that_was_renamed_is_found(environment):
    complete(environment)
    moved = environment.parent.rename(environment.parent.with_name("Übung")) / ".venv"
    assert f"{moved} was made as {environment}" in install.find_fault(moved)


def run_installer(*arguments, python=sys.executable):
    command = [python, ROOT / "tools" / "install.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


@posix
def test_a_broken_environment_is_rebuilt_once(environment, tmp_path):
    nothing = tmp_path / "requirements.txt"
    nothing.touch()
    first, second = (run_installer(nothing, "--into", environment) for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert "interrupted. The environment is rebuilt." in first.stdout
    assert (second.returncode, second.stdout) == (0, "")


def test_what_cannot_be_written_is_reported_with_the_option_that_helps(tmp_path, monkeypatch):
    """A file where a folder is expected: no user may write there, not even root."""
    file = tmp_path / "file"
    file.touch()
    done = run_installer("--into", file / ".venv")
    assert done.returncode and "cannot be written" in done.stderr and "--notebooks" in done.stderr
    monkeypatch.setattr(sys, "argv", ["lab.py", "--notebooks", str(file / "mine")])
    with pytest.raises(SystemExit, match='cannot be written.*OPTIONS="--notebooks DIR"'):
        lab.main()


def test_jupyter_gets_another_home_where_the_own_cannot_be_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(tmp_path / "missing"))
    lab.keep_home_in(tmp_path)
    assert os.environ["HOME"] == str(tmp_path / ".home")
    assert "home folder cannot be written" in capsys.readouterr().out


@posix
def test_make_takes_a_python_whose_path_has_a_space(tmp_path):
    python = tmp_path / "my python" / "python3"
    python.parent.mkdir()
    python.write_text('#!/bin/sh\necho "asked: $*"\n')
    python.chmod(0o755)
    stamp = tmp_path / "v" / "installed"
    command = ["make", "--silent", f"PYTHON={python}", f"VENV={stamp.parent}", stamp]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == f"asked: tools/install.py requirements.txt --into {stamp.parent}\n"


def test_a_python_that_is_too_new_is_refused_in_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["install.py", "--into", str(tmp_path / "v")])
    monkeypatch.setattr(sys, "version_info", (3, 15, 0))
    assert install.main().startswith("The course runs on Python 3.11 to 3.14, but ")


def test_an_import_of_what_is_gone_says_how_to_get_the_new_notebook():
    for gone in "eleven_steps.beyond.gone import it", "eleven_steps.checks import gone":
        with pytest.raises(ImportError, match="make lab then adds the new one"):
            exec(f"from {gone}", {})
