"""Attention over several processes: equal to one, told when it cannot be, never left behind."""

import os
import signal
import subprocess
import sys
import time

import pytest
import torch
from kernels import FORKS, PRELOADED, Started
from kernels import processes as forks
from torch import distributed as dist

from eleven_steps.beyond import processes
from eleven_steps.beyond.processes import Processes
from eleven_steps.beyond.processes.travel import NOTEBOOK, pack
from eleven_steps.beyond.variants import GroupedHeads, VariantAttention
from helpers.attention import MultiHeadAttention

B, TOKENS, D_IN, D_OUT, HEADS = 2, 8, 10, 12, 4
ways = pytest.mark.parametrize("forward", ["forward_in_ring", "forward_by_exchange"])
linux = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")


@pytest.fixture(scope="module", autouse=True)
def forked():
    """Processes are forked as those of a notebook, so that a busy machine starts them at once."""
    with pytest.MonkeyPatch.context() as patch:
        if FORKS:
            forks.set_forkserver_preload([*PRELOADED, "torch.distributed.tensor"])
            patch.setattr("subprocess.Popen", Started)
        yield


@pytest.fixture(scope="module", params=[2, pytest.param(4, marks=pytest.mark.nightly)])
def group(request):
    """Processes, started once for all tests of this file."""
    with Processes(request.param) as group:
        yield group


def made(num_kv_heads=None):
    """Return an attention, whose heads share keys if so many are given, x, and what is right."""
    torch.manual_seed(123)
    mha = MultiHeadAttention(D_IN, D_OUT, TOKENS, 0.0, HEADS, True)
    x = torch.randn(B, TOKENS, D_IN)
    if num_kv_heads:
        parts = [GroupedHeads(num_kv_heads)]
        mha = VariantAttention(D_IN, D_OUT, TOKENS, 0.0, HEADS, True, parts)
    right = passed(mha, x)
    mha.zero_grad()
    return mha, x, right


def passed(module, x):
    """Return out and the gradients of x and of every parameter, by name."""
    x = x.clone().requires_grad_()
    out = module(x)
    out.square().mean().backward()
    return {"out": out.detach(), "x": x.grad} | grads(module)


def grads(module):
    return {name: weight.grad for name, weight in module.named_parameters()}


def pass_copies(share, x):
    found = passed(share, x)
    before = share.W_key.weight.grad.clone()
    processes.add_up_copies(share)
    return found | grads(share), before


def pass_tokens(x, mha, forward):
    x = x.clone().requires_grad_()
    with processes.Traffic() as traffic:
        out = getattr(processes, forward)(mha, x)
        (out.square().sum() / (B * TOKENS * D_OUT)).backward()
    for parameter in mha.parameters():
        dist.all_reduce(parameter.grad)
    return {"out": out, "x": x.grad} | grads(mha), traffic.calls, traffic.handed


def near(ours, right):
    assert ours.shape == right.shape
    assert (ours - right).abs().max() <= 1e-6


@pytest.mark.parametrize("num_kv_heads", [1, 2])
def test_copied_heads_of_keys_equal_one_forward_and_back(group, num_kv_heads):
    (mha, x, right), places = made(num_kv_heads), group.num_processes
    shares = processes.share_heads(mha, places)
    copies = max(1, places // num_kv_heads)
    assert {share.copies for share in shares} == {copies}
    for place, (ours, before) in enumerate(group.run(pass_copies, x, shares=shares)):
        near(ours["out"], right["out"])
        near(ours["x"], right["x"])
        near(ours["W_query.weight"], right["W_query.weight"].chunk(places)[place])
        for name in ("W_key.weight", "W_key.bias", "W_value.weight", "W_value.bias"):
            near(ours[name], right[name].chunk(places // copies)[place // copies])
        # A copy alone knows what the queries here ask for, no more.
        alone = torch.allclose(before, ours["W_key.weight"], atol=1e-6)
        assert alone is (copies == 1)


@pytest.mark.parametrize("num_kv_heads", [None, 1, 2])
@ways
def test_tokens_over_processes_equal_one_forward_and_back(group, forward, num_kv_heads):
    (mha, x, right), places = made(num_kv_heads), group.num_processes
    found = group.run(pass_tokens, mha, forward, shares=processes.share_tokens(x, places))
    for name in ("out", "x"):
        near(torch.cat([ours[name] for ours, _, _ in found], dim=1), right[name])
    key_heads = num_kv_heads or HEADS
    if forward == "forward_in_ring":
        sent = processes.bytes_of_ring(B, TOKENS, D_OUT * key_heads // HEADS, places)
        block = sent // (places - 1)  # and back once more, each with its gradient, then that home
        counts = {"send": 2 * places - 1}, {"send": (3 * places - 2) * block}
    else:
        features = D_OUT * max(key_heads, places) // HEADS  # a head of keys for each process
        sent = processes.bytes_of_exchange(B, TOKENS, D_OUT, places, features=features)
        counts = {"all_to_all": 8}, {"all_to_all": 2 * sent * places // (places - 1)}
    for ours, *seen in found:
        for name in right.keys() - {"out", "x"}:
            near(ours[name], right[name])
        assert tuple(seen) == counts


def here():
    """Return an environment in which a new Python imports this file."""
    paths = [os.path.dirname(__file__), *filter(None, sys.path)]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}


def test_a_function_of_a_notebook_travels_with_what_it_names(tmp_path):
    path, cells = tmp_path / "cells.py", {"__name__": NOTEBOOK}
    path.write_text(
        "import math\nfactor = 3\n\ndef half(x):\n    return x / 2\n\n"
        "def told(x):\n    return [half(x) * factor, math.floor(x)]\n"
    )
    exec(compile(path.read_text(), str(path), "exec"), cells)
    luggage = pack(cells["told"])
    assert set(luggage.values) == {"factor"} and luggage.unpack()(5.0) == [7.5, 5]


def dies(how, where):
    print("one", dist.get_rank())
    print("two", end="")
    if dist.get_rank() == where:
        if how == "raises":
            raise ValueError("no more heads")
        if how == "exits":
            os._exit(3)
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(torch.ones(1))


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("how", "where", "said"),
    [
        ("raises", 1, "raised ValueError: no more heads"),
        ("exits", 0, "ended with exit status 3"),
        ("is killed", 1, "was ended by SIGKILL"),
    ],
)
def test_a_process_that_ends_ends_the_other_with_one_sentence(how, where, said, capsys):
    group = Processes(2)
    ours, start = [process.pid for process in group.running], time.monotonic()
    with pytest.raises(RuntimeError) as told:
        group.run(dies, how, where)
    assert time.monotonic() - start < 10
    assert str(told.value) == f"process {where} of 2 {said}; all were stopped"
    assert how != "raises" or "process 1: one 1\nprocess 1: two\n" in capsys.readouterr().out
    assert not any(map(runs, ours))
    with pytest.raises(RuntimeError, match=r"have ended: start Processes\(2\)"):
        group.run(dies, how, 0)


def waits(seconds):
    time.sleep(seconds)


def runs(pid):
    """Say whether a process runs still; one that waits to be buried does not."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


PARENT = """
from eleven_steps.beyond.processes import Processes
from test_processes import waits
group = Processes(2)
print(*(process.pid for process in group.running), group.folder.name, flush=True)
group.run(waits, 60)
"""


@pytest.mark.nightly
@linux
def test_nothing_is_left_of_a_kernel_that_is_killed():
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=here()) as parent:
        *pids, folder = parent.stdout.readline().split()
        assert all(map(runs, pids))
        time.sleep(0.5)
        parent.kill()
    end = time.monotonic() + 10
    while any(map(runs, pids)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(map(runs, pids)) and not os.path.exists(folder)
