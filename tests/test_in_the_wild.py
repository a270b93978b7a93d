"""Attention as packages ship it: every row runs, in the versions that it names, and is as told."""

import re
import subprocess
import sys

import in_the_wild
import pytest
from wild_rows import ROWS, TABLE

WRONG = [row for row in ROWS.values() if not row.is_right]
RIGHT = [row for row in ROWS.values() if row.is_right]
PINNED = re.compile(r"[\w-]+==\d[\w.]*")


def test_every_version_is_pinned():
    packages = {row.package for row in ROWS.values()} - {"torch"}
    packages |= {needed for name in TABLE["needs"] for needed in in_the_wild.needs(name)}
    assert packages and not [name for name in packages if not PINNED.fullmatch(name)]


@pytest.mark.parametrize("kind", ["not run", "unread", "failed", "right", "mistake"])
def test_a_row_that_could_not_run_is_not_as_expected(kind):
    said = {"kind": kind, "step": 7 if kind == "mistake" else None}
    assert in_the_wild.as_expected(RIGHT[0], said) is (kind == "right")
    assert in_the_wild.as_expected(WRONG[0], said) is (kind == "mistake")


def test_what_is_not_on_the_registry_or_not_asked_for_is_a_failure(monkeypatch, capsys):
    def unreachable(package):
        raise subprocess.CalledProcessError(1, "pip", stderr="no such package")

    monkeypatch.setattr(in_the_wild, "fetched", unreachable)
    for words in (["d2l"], ["nothing has this name"]):
        monkeypatch.setattr(sys, "argv", ["in_the_wild.py", *words])
        assert in_the_wild.main() == 1
    assert "not run" in capsys.readouterr().out


@pytest.mark.nightly
def test_all_rows_are_as_expected():
    try:
        in_the_wild.fetched("einops==0.8.2")
    except subprocess.CalledProcessError as error:
        pytest.skip(f"the registry cannot be reached: {error.stderr[-200:]}")
    ran = subprocess.run([sys.executable, in_the_wild.__file__], capture_output=True, text=True)
    assert not ran.returncode, ran.stdout + ran.stderr
    assert f"{len(ROWS)} of {len(ROWS)} rows as expected" in ran.stdout
