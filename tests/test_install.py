"""Each broken state of an installation is found, and reported with what helps."""

import os
import subprocess
import sys
from pathlib import Path

import install
import lab
import pytest

ROOT = Path(__file__).parents[1]
# What the notebooks of the last release import.
LAST_RELEASE = """
eleven_steps: sliders
eleven_steps.beyond: moments processes sizes timing variants
eleven_steps.beyond.ablate: without_path
eleven_steps.beyond.gpt2: load_attention
eleven_steps.beyond.grammar: make_stories read write
eleven_steps.beyond.moments: load_facts load_moments look
eleven_steps.beyond.since: load_since show_change table_of_steps
eleven_steps.beyond.tiny: TinyModel measure patterns story_loss trace_layers without_head
eleven_steps.beyond.variants: GroupedHeads VariantAttention
eleven_steps.checks: check check_attention read_class show_lines steps_done wrong_class wrong_lines
eleven_steps.pictures: Arrow Shown charts draw_blocks draw_matrices draw_memory
eleven_steps.pictures: draw_product draw_source draw_tensors draw_vectors
eleven_steps.pictures.charts: draw_dots draw_growth draw_learning draw_squares
helpers: errors examples table
helpers.attention: CausalAttention FusedMultiHeadAttention MultiHeadAttention future_mask
helpers.attention: MultiHeadAttentionWrapper
helpers.examples: load_example load_second load_whiteboard
helpers.table: show_table
helpers.trace: step_source trace
"""


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


def test_a_copy_of_the_last_release_imports_or_says_how_to_get_the_new_one():
    for line in LAST_RELEASE.strip().splitlines():
        module, _, names = line.partition(": ")
        for name in names.split():
            try:
                exec(f"from {module} import {name}", {})
            except ImportError as error:
                assert "make lab then adds the new one" in str(error), (module, name)


def test_an_import_of_what_is_gone_says_how_to_get_the_new_notebook():
    for gone in "eleven_steps.beyond.gone import it", "eleven_steps.checks import gone":
        with pytest.raises(ImportError, match="make lab then adds the new one"):
            exec(f"from {gone}", {})
