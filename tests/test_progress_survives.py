"""Progress survives what befalls learners on a hub: killed kernels, tabs, disks, shared folders."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from eleven_steps.checks import check, progress
from eleven_steps.checks.judge.answers import EXERCISES

RECORD = """
import sys
from eleven_steps.checks import progress
for name in sys.argv[1:]:
    print(name, progress.record(name), flush=True)
"""
WRITE = 'echo "$KEPT" > "$0/progress.json"'
CHECK = 'from eleven_steps.checks import check; print(check("scores.2", 43)); check()'


def python(code, *words, path, inside=()):
    """Start Python on code with progress kept at path; inside, a command before it."""
    own = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), progress.VARIABLE: str(path)}
    return subprocess.Popen(
        [*inside, sys.executable, "-c", code, *words],
        env=os.environ | own,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def done(path):
    return json.loads(path.read_text("utf-8"))["done"]


@pytest.mark.nightly
def test_a_kernel_that_is_killed_while_it_writes_loses_nothing(tmp_path):
    path = tmp_path / "progress.json"
    for round_ in range(3):
        with python(RECORD, *(f"made.{round_}{i:03}" for i in range(900)), path=path) as kernel:
            kernel.stdout.readline()
            time.sleep(0.02 + 0.05 * round_)
            kernel.kill()
            told = [line.split()[0] for line in kernel.stdout]
        assert {f"made.{round_}000", *told} <= set(done(path))
    assert len(done(path)) < 2700, "it was never killed in the middle"


@pytest.mark.nightly
def test_two_tabs_at_once_lose_nothing(tmp_path):
    path, names = tmp_path / "progress.json", sorted(EXERCISES)
    tabs = [python(RECORD, *names[start::2], path=path) for start in (0, 1)]
    for tab in tabs:
        said, _ = tab.communicate()
        assert tab.returncode == 0, said
    assert sorted(done(path)) == names


def mounted(options):
    """Return a command that runs another beside a small disk at a folder, or skip."""
    inside = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    mount = f'mount -t tmpfs -o size=64k tmpfs "$0" && {options} exec "$@"'
    if not shutil.which("unshare"):
        pytest.skip("unshare is not there")
    trial = subprocess.run([*inside, 'mount -t tmpfs tmpfs "$0"', "/mnt"], capture_output=True)
    if trial.returncode:
        pytest.skip("nothing may be mounted here")
    return [*inside, mount]


@pytest.mark.nightly  # test_progress.py says at each push what is told
@pytest.mark.parametrize(
    ("options", "why"),
    [
        (
            '{ echo "$KEPT" > "$0/progress.json"; cat /dev/zero > "$0/full" 2>&-; :; } &&',
            "No space",
        ),
        ('mount -o remount,ro "$0" &&', "Read-only file"),
    ],
    ids=["a full disk", "a read-only home with nothing in it"],
)
def test_what_cannot_be_written_is_told_and_nothing_is_lost(options, why, tmp_path, monkeypatch):
    monkeypatch.setenv("KEPT", json.dumps({"course": progress.COURSE, "done": ["mask.2"]}))
    path = tmp_path / "progress.json"
    look = f"{CHECK}\nprint(open({str(path)!r}).read())" if "KEPT" in options else CHECK
    with python(look, path=path, inside=[*mounted(options), str(tmp_path)]) as kernel:
        said = kernel.stdout.read()
    assert kernel.returncode == 0 and "Traceback" not in said
    assert "✓ scores.2: " in said and f"Your progress is not written down: {path}: {why}" in said
    assert '"done": ["mask.2"]' in said or "KEPT" not in options


@pytest.mark.parametrize("there", [True, False])
def test_a_course_that_many_share_keeps_no_progress(there, tmp_path, monkeypatch):
    monkeypatch.delenv(progress.VARIABLE)
    monkeypatch.setenv("HOME", str(tmp_path / "ada"))
    monkeypatch.setattr(os, "access", lambda place, how: False)
    monkeypatch.setattr(Path, "exists", lambda place: there)
    assert progress.file() == tmp_path / "ada" / ".eleven_steps" / "progress.json"


def test_a_setting_may_name_a_place_in_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(progress.VARIABLE, "~/deep/progress.json")
    assert check("scores.2", 43).note == ""
    assert done(tmp_path / "deep" / "progress.json") == ["scores.2"]


def test_without_a_home_the_working_folder_keeps_it(monkeypatch):
    monkeypatch.delenv(progress.VARIABLE)
    monkeypatch.setattr(os, "access", lambda place, how: False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert progress.file() == Path(".eleven_steps", "progress.json")


def test_a_folder_without_locks_is_written_all_the_same(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def no_locks(handle, how):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    monkeypatch.setenv(progress.VARIABLE, str(tmp_path / "progress.json"))
    assert check("scores.2", 43).note == ""
    assert done(tmp_path / "progress.json") == ["scores.2"]
