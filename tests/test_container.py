"""What containers and Binder read says the same as the rest, and does what it says."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.sign import NotebookNotary

ROOT = Path(__file__).parents[1]


@pytest.mark.nightly
@pytest.mark.skipif(os.name == "nt", reason="a shell script")
def test_what_binder_runs_trusts_the_notebooks_and_lays_down_the_settings(tmp_path):
    for name in ("helpers", "eleven_steps", "notebooks", "tools", "binder"):
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
        for path in sorted((ROOT / "notebooks").rglob("*.ipynb")):
            assert notary.check_signature(nbformat.read(path, nbformat.NO_CONVERT)), path.name
