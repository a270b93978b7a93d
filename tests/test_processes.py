"""Attention over several processes: equal to one, told when it cannot be, never left behind."""

import os
import signal
import subprocess
import sys
import threading
import time
from itertools import accumulate

import pytest
import torch
from kernels import FORKS, PRELOADED, Started
from kernels import processes as forks
from torch import distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import PrepareModuleInput, parallelize_module
from torch.profiler import profile

from eleven_steps.beyond import processes
from eleven_steps.beyond.processes import Processes
from eleven_steps.beyond.processes.travel import NOTEBOOK, pack
from eleven_steps.beyond.variants import GroupedHeads, VariantAttention
from helpers.attention import MultiHeadAttention

B, TOKENS, D_IN, D_OUT, HEADS = 2, 8, 10, 12, 4
ways = pytest.mark.parametrize("forward", ["forward_in_ring", "forward_by_exchange"])
linux = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")


@pytest.fixture(scope="module", params=[2, pytest.param(4, marks=pytest.mark.nightly)])
def group(request):
    """Processes, started once for all tests of this file, and forked as those of a notebook."""
    with pytest.MonkeyPatch.context() as patch:
        if FORKS:
            forks.set_forkserver_preload([*PRELOADED, "torch.distributed.tensor"])
            patch.setattr("subprocess.Popen", Started)
        group = Processes(request.param)
    with group:
        yield group


def made(num_kv_heads=None, bias=True):
    """Return an attention, whose heads share keys if so many are given, x, and what is right."""
    torch.manual_seed(123)
    mha = MultiHeadAttention(D_IN, D_OUT, TOKENS, 0.0, HEADS, bias)
    x = torch.randn(B, TOKENS, D_IN)
    if num_kv_heads:
        parts = [GroupedHeads(num_kv_heads)]
        mha = VariantAttention(D_IN, D_OUT, TOKENS, 0.0, HEADS, bias, parts)
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


def counted(module, x):
    with processes.Traffic() as traffic:
        found = passed(module, x)
    return found, traffic.calls, traffic.handed


def pass_copies(share, x):
    found = passed(share, x)
    before = share.W_key.weight.grad.clone()
    processes.add_up_copies(share)
    return found | grads(share), before


def pass_torchs(mha, x, at_once):
    mha = processes.parallelize(mha)
    if at_once:  # the projections share their input
        mesh, whole = init_device_mesh("cpu", (dist.get_world_size(),)), (Replicate(),)
        shared = PrepareModuleInput(input_layouts=whole, desired_input_layouts=whole)
        mha = parallelize_module(mha, mesh, shared)
    found, calls, _ = counted(mha, x)
    return {name: found[name] for name in found if not at_once or name in ("out", "x")}, calls


def pass_summed(x):
    from torch.distributed.nn.functional import all_reduce  # makes a folder as it is imported

    x = x.clone().requires_grad_()
    all_reduce(x).sum().backward()
    return x.grad


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


# Equal to one process


@pytest.mark.parametrize("bias", [False, True])
def test_heads_over_processes_equal_one_forward_and_back(group, bias):
    (mha, x, right), places = made(bias=bias), group.num_processes
    found = group.run(counted, x, shares=processes.share_heads(mha, places))
    for place, (ours, calls, handed) in enumerate(found):
        for name, numbers in ours.items():
            whole = right[name]
            if name.startswith("W_"):
                whole = whole.chunk(places)[place]
            elif name == "out_proj.weight":
                whole = whole.chunk(places, dim=1)[place]
            near(numbers, whole)
        assert ("out_proj.bias" in ours) is (place == 0)
        # One sum forward, of out, and one back, of the gradient of x.
        both = sum(processes.bytes_of_heads(B, TOKENS, d) for d in (D_IN, D_OUT))
        assert calls == {"all_reduce": 2} and handed == {"all_reduce": both}


@pytest.mark.parametrize(
    "at_once, calls", [pytest.param(False, 4, marks=pytest.mark.nightly), (True, 2)]
)
def test_torchs_own_cut_equals_one_forward_and_back(group, at_once, calls):
    """What 20_machines_1 says: one sum back for each projection, or one if they share an input."""
    mha, x, right = made()
    for ours, seen in group.run(pass_torchs, mha, x, at_once):
        for name, numbers in ours.items():
            near(numbers, right[name])
        assert seen["all_reduce"] == calls


def test_torchs_own_sum_with_a_gradient_takes_each_loss_for_another(group):
    """What 20_machines_1 says of torch.distributed.nn.functional.all_reduce."""
    for gradient in group.run(pass_summed, torch.ones(3)):
        assert gradient.tolist() == 3 * [group.num_processes]


@pytest.mark.parametrize("num_kv_heads", [1, 2, 4])
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


@ways
def test_the_future_does_not_reach_the_past(group, forward):
    mha, x, _ = made()
    outs = []
    for change in (0, 1):
        x[:, 5:] += change
        shares = processes.share_tokens(x, group.num_processes)
        found = group.run(pass_tokens, mha, forward, shares=shares)
        outs.append(torch.cat([here["out"] for here, _, _ in found], dim=1))
    before, after = outs
    assert torch.equal(before[:, :5], after[:, :5]) and not torch.equal(before[:, 5], after[:, 5])


def test_each_process_has_a_head_of_keys_at_least():
    assert [share.num_kv_heads for share in processes.share_heads(made(2)[0], 4)] == [1] * 4


# Bytes


def reduce_in_ring(part):
    """Add up over all processes with nothing but sends, and count what is sent."""
    place, places, sent = dist.get_rank(), dist.get_world_size(), 0
    pieces = list(part.clone().chunk(places))
    for turn in range(2 * (places - 1)):
        piece = pieces[(place - turn) % places]
        incoming, sent = processes.ring.pass_on(piece, 1), sent + piece.nbytes
        into = (place - turn - 1) % places
        pieces[into] = pieces[into] + incoming if turn < places - 1 else incoming
    return torch.cat(pieces), sent


@pytest.mark.nightly
def test_a_sum_round_a_ring_sends_as_many_bytes_as_said(group):
    parts = list(torch.randn(group.num_processes, 24))
    for total, sent in group.run(reduce_in_ring, shares=parts):
        assert torch.allclose(total, sum(parts), atol=1e-6)
        assert sent == processes.bytes_sent(24 * 4, group.num_processes)


def loopback():
    """Return how many bytes have left by the machine's loopback."""
    with open("/proc/net/dev") as lines:
        (line,) = (line for line in lines if line.strip().startswith("lo:"))
    return int(line.split()[9])


def sum_up(numbers):
    dist.all_reduce(torch.ones(numbers))
    dist.barrier()


def count_on_the_wire(places):
    """Return the bytes of an all-reduce of a million numbers, in all processes together."""
    counts = []
    with Processes(places) as group:
        for numbers in (1000, 1000, 1_001_000):
            before = loopback()
            group.run(sum_up, numbers)
            counts.append(loopback() - before)
    return counts[2] - counts[1]


def here():
    """Return an environment in which a new Python imports this file."""
    paths = [os.path.dirname(__file__), *filter(None, sys.path)]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}


@pytest.mark.nightly
@linux
def test_gloo_puts_on_the_wire_what_the_formula_says():
    inside = ["unshare", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$@"']
    try:
        subprocess.run([*inside, "-", "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("there is no network of one's own here")
    wire = "from test_processes import count_on_the_wire\nprint(count_on_the_wire(2))"
    command = [*inside, "-", sys.executable, "-c", wire]
    done = subprocess.run(command, env=here(), capture_output=True, text=True)
    said = 2 * processes.bytes_sent(4_000_000, 2)  # of both
    assert said <= int(done.stdout) <= 1.03 * said, done.stderr


# Memory


class Kept:
    """Add up the bytes that are kept for the way back, each storage once; weights do not count."""

    def __init__(self, weights):
        self.known = {weight.untyped_storage()._cdata: 0 for weight in weights}
        self.held = []  # so that no address is given twice
        self.hooks = torch.autograd.graph.saved_tensors_hooks(self.note, lambda tensor: tensor)

    def note(self, tensor):
        storage = tensor.untyped_storage()
        self.known.setdefault(storage._cdata, storage.nbytes())
        self.held.append(tensor)
        return tensor


def keep_for_the_way_back(x, mha, forward):
    kept = Kept(mha.parameters())
    with kept.hooks:
        getattr(processes, forward)(mha, x.clone().requires_grad_())
    return sum(kept.known.values())


@ways
def test_what_is_kept_grows_with_the_tokens_here_alone(group, forward):
    """x, queries, keys, values, context: twice the tokens keep twice as much, not four times."""
    kept = []
    for num_tokens in (256, 512):
        mha = MultiHeadAttention(16, 16, num_tokens, 0.0, 4)
        tokens = processes.share_tokens(torch.randn(1, num_tokens, 16), group.num_processes)
        kept.append(max(group.run(keep_for_the_way_back, mha, forward, shares=tokens)))
        assert kept[-1] <= 10 * tokens[0].nbytes
    assert kept[1] <= 2.01 * kept[0]


def hold(x, mha, forward):
    """Return the most bytes that a pass and its way back hold at once, weights not counted."""
    x = x.clone().requires_grad_()
    run = getattr(processes, forward) if forward else lambda mha, x: mha(x)
    with profile(profile_memory=True) as seen:
        run(mha, x).square().mean().backward()
    events = seen.profiler.kineto_results.events()
    return max(accumulate(event.nbytes() for event in events if event.name() == "[memory]"))


def test_at_the_fullest_moment_a_ring_holds_less_than_one_process(group):
    """A turn makes tables of tokens here x tokens here, a quarter of one process's with two."""
    mha, x = MultiHeadAttention(16, 16, 512, 0.0, 4), torch.randn(1, 512, 16)
    alone, places = hold(x, mha, ""), group.num_processes
    mha.zero_grad()
    found = group.run(hold, mha, "forward_in_ring", shares=processes.share_tokens(x, places))
    assert max(found) <= {2: 0.5, 4: 0.2}[places] * alone


# Functions that travel, and what they print


def test_a_function_of_a_notebook_travels_with_what_it_names(tmp_path):
    path = tmp_path / "cells.py"
    path.write_text(
        "import math\nfrom torch import nn\nfactor = 3\n\n"
        "def half(x):\n    return x / 2\n\n"
        "def told(x):\n    return [half(x) * factor, math.floor(x), nn.Linear.__name__]\n"
    )
    cells = {"__name__": NOTEBOOK}
    exec(compile(path.read_text(), str(path), "exec"), cells)
    luggage = pack(cells["told"])
    assert set(luggage.values) == {"factor"} and set(luggage.imports) == {"math", "nn"}
    assert luggage.unpack()(5.0) == [7.5, 5, "Linear"]


def prints():
    print("one", dist.get_rank())
    print("two", end="")


def test_what_is_printed_has_a_number(group, capsys):
    group.run(prints)
    printed = [
        f"process {n}: {what}" for n in range(group.num_processes) for what in (f"one {n}", "two")
    ]
    assert capsys.readouterr().out.splitlines() == printed


# Their end


def dies(how, where):
    prints()
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
    assert str(told.value) == f"process {where} of 2 {said}; the other was stopped as well"
    assert how != "raises" or "process 1: one 1\nprocess 1: two\n" in capsys.readouterr().out
    assert not any(map(runs, ours))
    with pytest.raises(RuntimeError, match=r"have ended: start Processes\(2\)"):
        group.run(dies, how, 0)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("before", "told"),
    [
        (
            "time.sleep(60)",
            r"no sign of life from process 1 within 20 .*\(process 0 answered\): all 2",
        ),
        (
            "worker.join = lambda **about: time.sleep(60)",
            "no meeting with processes 0, 1 within 20",
        ),
    ],
)
def test_a_process_that_never_starts_or_meets_is_told(monkeypatch, before, told):
    late = "import json, sys, time; from eleven_steps.beyond.processes import worker\n"
    late += f"if json.loads(sys.argv[1])['place'] == 1:\n    {before}\n"
    monkeypatch.setattr(processes.group, "WORK", late + "worker.main()")
    with pytest.raises(RuntimeError, match=told):
        Processes(2, seconds=20)


@pytest.mark.nightly
def test_an_interrupt_ends_them():
    group = Processes(1)
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        group.run(waits, 60)
    assert not group.running


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


@pytest.mark.nightly
def test_groups_do_not_get_in_each_others_way():
    with Processes(1) as one, Processes(1) as other:
        assert one.run(dist.get_rank) == other.run(dist.get_rank) == [0]
        with pytest.raises(ValueError, match="shares has 2 entries for 1 processes"):
            one.run(dist.get_rank, shares=[1, 2])


def waits_alone():
    if dist.get_rank() == 0:
        dist.all_reduce(torch.ones(1))


def test_who_never_joins_in_is_told(group):
    """The last of this file, because it ends the group."""
    with pytest.raises(RuntimeError) as told:
        group.run(waits_alone, seconds=1)
    # On a busy machine those that have nothing to wait for may not have answered either.
    told.match(
        rf"no answer from process(es)? 0.* within 1 seconds.*: all {group.num_processes} were "
        r"stopped\. Do all of them call the same collectives"
    )
    assert not group.running and repr(group) == f"{group.num_processes} processes, ended"
