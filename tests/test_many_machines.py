"""What measures attention over processes: the script for torchrun, and what models would need."""

import os
import subprocess
import sys
from pathlib import Path

import bench_processes
import many_machines
import pytest

from eleven_steps.beyond.sizes import load_models, write_bytes

TOOLS = Path(many_machines.__file__).parent
MODELS = {model.name: model for model in load_models()}

pytestmark = pytest.mark.nightly


def test_torchrun_runs_the_script():
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    script = [str(TOOLS / "many_machines.py"), "--size", "1", "16", "12", "4", "--rounds", "1"]
    own = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
    own |= {"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {}
    done = subprocess.run(run + script, env=os.environ | own, capture_output=True, text=True)
    first, *ways = done.stdout.splitlines()
    assert first.startswith("2 processes, gloo"), done.stderr
    for way, line in zip(("heads", "tokens"), ways, strict=True):
        assert line.startswith(f"by {way:<7}equal to 1e-4: True")
        assert line.endswith(f" {16 * 12 * 4:,} bytes sent in a forward")  # at two, once out


@pytest.mark.parametrize(
    ("name", "gpus", "how"),
    [
        ("GPT-3 largest", 8, (8, 1)),
        ("GPT-3 largest", 64, (32, 2)),  # 64 does not divide 96 heads
        ("GPT-2 largest", 8, (1, 8)),  # 25 heads
        ("GPT-2 smallest", 64, (4, 16)),
    ],
)
def test_heads_are_cut_as_far_as_they_go(name, gpus, how):
    assert bench_processes.split(MODELS[name].num_heads, gpus) == how


def test_what_gpt3_needs_on_eight_gpus():
    how, weights, work, sent, _ = bench_processes.needed(MODELS["GPT-3 largest"], 8)
    assert how == "8 x 1"
    # Four matrices d x d with biases in each of 96 layers, 2 bytes a number, an eighth of them.
    assert weights == write_bytes(96 * (4 * 12288**2 + 4 * 12288) * 2 // 8)
    assert work == f"{96 * (4 * 2048 * 12288**2 + 2 * 2048**2 * 12288) / 8 / 1e9:,.1f}"
    assert sent == write_bytes(96 * 2 * 7 * 2048 * 12288 * 2 // 8)


def test_by_tokens_alone_only_keys_and_values_travel():
    _, _, _, sent, _ = bench_processes.needed(MODELS["GPT-2 largest"], 8)
    assert sent == write_bytes(48 * 7 * 2 * (1024 // 8) * 1600 * 2)


def test_the_table_of_this_machine_is_measured():
    cells = bench_processes.grown([2], (1, 16, 12, 4))
    assert list(cells) == ["2, by heads", "2, by tokens"]
    assert all(sent == "768 bytes" for _, _, sent in cells.values())
