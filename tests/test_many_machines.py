"""What measures attention over processes: the script for torchrun, and the benchmark."""

import subprocess
import sys
from pathlib import Path

import many_machines
import pytest

from eleven_steps.beyond.processes.group import environment

TOOLS = Path(many_machines.__file__).parent

pytestmark = pytest.mark.nightly


def torchrun(places, *options):
    """Return what the script prints, its errors, and torchrun's exit status."""
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    script = [f"--nproc-per-node={places}", str(TOOLS / "many_machines.py"), "--rounds", "1"]
    done = subprocess.run(
        [*run, *script, *options], env=environment(), capture_output=True, text=True
    )
    return done.stdout.splitlines(), done.stderr, done.returncode


def test_torchrun_runs_the_script():
    (first, *ways), errors, status = torchrun(2, "--size", "1", "16", "12", "4")
    assert first.startswith("2 processes, gloo") and status == 0, errors
    for way, line in zip(many_machines.SPLITS, ways, strict=True):
        assert line.startswith(f"by {way:<9}equal to 0.0001: True")
        assert line.endswith(f" {16 * 12 * 4:,} bytes sent in a forward")  # at two, once out
