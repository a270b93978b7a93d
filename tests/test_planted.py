"""Mistakes planted in the variants turn bench/prove.py red: a proof that cannot fail is none."""

import json
import subprocess
import sys

import planted
import pytest

from eleven_steps.beyond import variants

pytestmark = pytest.mark.nightly  # minutes, and transformers


@pytest.fixture(scope="module")
def verdicts():
    """{name of a mistake: whether a row turned red}, all from one process."""
    command = [sys.executable, "-W", "ignore", planted.__file__]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=1800)
    return dict(json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))


@pytest.mark.parametrize("name", planted.MISTAKES)
def test_a_planted_mistake_turns_a_row_red(verdicts, name):
    assert verdicts[name] is True


def test_each_part_has_a_mistake():
    """At least 26 in all, and one in each file that holds parts."""
    assert len(planted.MISTAKES) >= 26
    files = {
        kind.__module__.rpartition(".")[2] for kind in vars(variants).values() if callable(kind)
    }
    assert {file for file, *_ in planted.MISTAKES.values()} >= files - {"module"}
