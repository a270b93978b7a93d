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
from torch import distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import PrepareModuleInput, parallelize_module
from torch.profiler import profile

from eleven_steps.beyond import processes
from eleven_steps.beyond.processes import Processes
from eleven_steps.beyond.processes.travel import NOTEBOOK, pack
from eleven_steps.beyond.variants import GroupedHeads, Rope, VariantAttention
from helpers.attention import MultiHeadAttention

SIZES = 2, 8, 10, 12, 4  # b, num_tokens, d_in, d_out, num_heads
SPLIT = "W_query", "W_key", "W_value"


@pytest.fixture(scope="module", params=[2, pytest.param(4, marks=pytest.mark.nightly)])
def group(request):
    with Processes(request.param) as group:
        yield group


def made(bias=True):
    b, num_tokens, d_in, d_out, num_heads = SIZES
    torch.manual_seed(123)
    return MultiHeadAttention(d_in, d_out, num_tokens, 0.0, num_heads, bias), torch.randn(
        b, num_tokens, d_in
    )


def grouped(num_kv_heads, bias=True):
    """Return an attention whose heads share keys, as made() does."""
    mha, x = made(bias)
    parts = [GroupedHeads(num_kv_heads)]
    return VariantAttention(10, 12, 8, 0.0, 4, bias, parts), x


def passed(module, x):
    """Return out and the gradients of x and of every parameter, by name."""
    x = x.clone().requires_grad_()
    out = module(x)
    out.square().mean().backward()
    return {"out": out.detach(), "x": x.grad} | grads(module)


def grads(module):
    return {name: each.grad for name, each in module.named_parameters()}


def pass_share(share, x):
    with processes.Traffic() as traffic:
        found = passed(share, x)
    return found, traffic.calls, traffic.handed


def pass_copies(share, x):
    found = passed(share, x)
    before = share.W_key.weight.grad.clone()
    processes.add_up_copies(share)
    return found | grads(share), before


def pass_torchs(mha, x):
    mha = processes.parallelize(mha)
    with processes.Traffic() as traffic:
        found = passed(mha, x)
    return found, traffic.calls, traffic.handed


def pass_torchs_at_once(mha, x):
    mha = processes.parallelize(mha)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    whole = (Replicate(),)
    shared = PrepareModuleInput(input_layouts=whole, desired_input_layouts=whole)
    mha = parallelize_module(mha, mesh, shared)
    with processes.Traffic() as traffic:
        found = passed(mha, x)
    return found["out"], found["x"], traffic.calls


def pass_summed(x):
    from torch.distributed.nn.functional import all_reduce  # makes a folder as it is imported

    x = x.clone().requires_grad_()
    all_reduce(x).sum().backward()
    return x.grad


def pass_tokens(x, mha, forward):
    x = x.clone().requires_grad_()
    with processes.Traffic() as traffic:
        out = getattr(processes, forward)(mha, x)
        (out.square().sum() / 192).backward()  # 192: the numbers of the whole out, 2 x 8 x 12
    for parameter in mha.parameters():
        dist.all_reduce(parameter.grad)
    return {"out": out, "x": x.grad} | grads(mha), traffic.calls, traffic.handed


def near(ours, right):
    assert ours.shape == right.shape
    assert (ours - right).abs().max() <= 1e-6


@pytest.mark.parametrize("bias", [False, True])
def test_heads_over_processes_equal_one_forward_and_back(group, bias):
    mha, x = made(bias)
    right, places = passed(mha, x), group.num_processes
    mha.zero_grad()
    found = group.run(pass_share, x, shares=processes.share_heads(mha, places))
    for place, (ours, calls, handed) in enumerate(found):
        for name, numbers in ours.items():
            whole = right[name]
            if name.startswith(SPLIT):
                whole = whole.chunk(places)[place]
            elif name == "out_proj.weight":
                whole = whole.chunk(places, dim=1)[place]
            near(numbers, whole)
        assert ("out_proj.bias" in ours) is (place == 0)
        # One sum forward, of out, and one back, of the gradient of x.
        b, num_tokens, d_in, d_out, _ = SIZES
        back = processes.bytes_of_heads(b, num_tokens, d_in)
        assert calls == {"all_reduce": 2}
        assert handed["all_reduce"] == processes.bytes_of_heads(b, num_tokens, d_out) + back


@pytest.mark.nightly
def test_torchs_own_cut_equals_one_forward_and_back(group):
    mha, x = made()
    right = passed(mha, x)
    mha.zero_grad()
    for ours, calls, _ in group.run(pass_torchs, mha, x):
        for name, numbers in ours.items():
            near(numbers, right[name])
        assert calls == {"all_reduce": 4}  # one forward; back, one for each projection


@pytest.mark.parametrize("num_kv_heads", [1, 2, 4])
def test_copied_heads_of_keys_equal_one_forward_and_back(group, num_kv_heads):
    mha, x = grouped(num_kv_heads)
    right, places = passed(mha, x), group.num_processes
    mha.zero_grad()
    shares = processes.share_heads(mha, places)
    copies = max(1, places // num_kv_heads)
    assert {share.copies for share in shares} == {copies}
    for place, (ours, before) in enumerate(group.run(pass_copies, x, shares=shares)):
        near(ours["out"], right["out"])
        near(ours["x"], right["x"])
        near(ours["W_query.weight"], right["W_query.weight"].chunk(places)[place])
        for name in ("W_key", "W_value"):
            for kind in ("weight", "bias"):
                whole = right[f"{name}.{kind}"].chunk(places // copies)[place // copies]
                near(ours[f"{name}.{kind}"], whole)
        # A copy alone knows what the queries here ask for, no more.
        alone = torch.allclose(before, ours["W_key.weight"], atol=1e-6)
        assert alone is (copies == 1)


def test_heads_of_keys_that_cannot_be_cut_are_told():
    mha, _ = grouped(2)
    with pytest.raises(ValueError, match="num_kv_heads is 3 and num_processes is 2: one must be"):
        processes.check_shares(6, 2, 3)
    with pytest.raises(ValueError, match=r"Rope.*only GroupedHeads can be cut"):
        processes.share_heads(VariantAttention(8, 8, 8, 0.0, 2, parts=[Rope()]), 2)
    assert [share.num_kv_heads for share in processes.share_heads(mha, 4)] == [1] * 4


@pytest.mark.parametrize("num_kv_heads", [None, 1, 2])
@pytest.mark.parametrize("forward", ["forward_in_ring", "forward_by_exchange"])
def test_tokens_over_processes_equal_one_forward_and_back(group, forward, num_kv_heads):
    mha, x = grouped(num_kv_heads) if num_kv_heads else made()
    right, places = passed(mha, x), group.num_processes
    mha.zero_grad()
    shares = processes.share_tokens(x, places)
    found = group.run(pass_tokens, mha, forward, shares=shares)
    for name in ("out", "x"):
        near(torch.cat([ours[name] for ours, _, _ in found], dim=1), right[name])
    b, num_tokens, _, d_out, num_heads = SIZES
    key_heads = num_kv_heads or num_heads
    if forward == "forward_in_ring":
        features = d_out * key_heads // num_heads
        sent = processes.bytes_of_ring(b, num_tokens, features, places)
        block = sent // (places - 1)  # and back once more, each with its gradient, then that home
        counts = {"send": 2 * places - 1}, {"send": (3 * places - 2) * block}
    else:
        features = d_out * max(key_heads, places) // num_heads  # a head of keys for each process
        sent = processes.bytes_of_exchange(b, num_tokens, d_out, places, features=features)
        counts = {"all_to_all": 8}, {"all_to_all": 2 * sent * places // (places - 1)}
    for ours, *counted in found:
        for name in right.keys() - {"out", "x"}:
            near(ours[name], right[name])
        assert tuple(counted) == counts


@pytest.mark.parametrize("forward", ["forward_in_ring", "forward_by_exchange"])
def test_the_future_does_not_reach_the_past(group, forward):
    mha, x = made()
    other = x.clone()
    other[:, 5:] += 1
    before, after = (
        torch.cat(
            [here["out"] for here, _, _ in group.run(pass_tokens, mha, forward, shares=each)], 1
        )
        for each in (processes.share_tokens(x, group.num_processes) for x in (x, other))
    )
    assert torch.equal(before[:, :5], after[:, :5]) and not torch.equal(before[:, 5], after[:, 5])


def profiled(share, x):
    """Return the shapes of what torch's own profiler sees go into an all-reduce."""
    with profile(record_shapes=True) as seen, torch.no_grad():
        share(x)
    calls = [event for event in seen.events() if event.name == "gloo:all_reduce"]
    return [list(event.input_shapes[0]) for event in calls]


@pytest.mark.nightly
def test_the_profiler_sees_the_bytes_that_the_sizes_say(group):
    mha, x = made()
    shapes = group.run(profiled, x, shares=processes.share_heads(mha, group.num_processes))
    b, num_tokens, _, d_out, _ = SIZES
    for (shape,) in shapes:
        assert 4 * torch.Size(shape).numel() == processes.bytes_of_heads(b, num_tokens, d_out)


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
    places = group.num_processes
    parts = list(torch.randn(places, 24))
    for total, sent in group.run(reduce_in_ring, shares=parts):
        assert torch.allclose(total, sum(parts), atol=1e-6)
        assert sent == processes.bytes_sent(24 * 4, places)


@pytest.mark.parametrize("num_processes", [3, 8])
def test_what_cannot_be_shared_out_is_told_before_anything_starts(num_processes):
    mha, x = made()
    said = f"num_heads is 4 and num_processes is {num_processes}: num_heads must be a multiple"
    with pytest.raises(ValueError, match=said):
        processes.share_heads(mha, num_processes)
    with pytest.raises(ValueError, match="x has 8 tokens and num_processes is 5"):
        processes.share_tokens(x, 5)


def dies(how, where):
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
def test_a_process_that_ends_ends_the_other_with_one_sentence(how, where, said):
    group = Processes(2)
    ours, start = [process.pid for process in group.running], time.monotonic()
    with pytest.raises(RuntimeError) as told:
        group.run(dies, how, where)
    assert time.monotonic() - start < 10
    assert str(told.value) == f"process {where} of 2 {said}; the other was stopped as well"
    assert not any(map(runs, ours))
    with pytest.raises(RuntimeError, match=r"have ended: start Processes\(2\)"):
        group.run(dies, how, 0)


def waits(seconds):
    time.sleep(seconds)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("before", "told"),
    [
        ("", r"no sign of life from process 1 within 20 seconds \(process 0 answered\): all 2"),
        (
            "worker.join = lambda **about: time.sleep(60)",
            "no meeting with processes 0, 1 within 20",
        ),
    ],
)
def test_a_process_that_never_starts_or_meets_is_told(monkeypatch, before, told):
    late = "import json, sys, time; from eleven_steps.beyond.processes import worker\n"
    late += f"if json.loads(sys.argv[1])['place'] == 1:\n    {before or 'time.sleep(60)'}\n"
    monkeypatch.setattr(processes.group, "WORK", late + "worker.main()")
    with pytest.raises(RuntimeError, match=told):
        Processes(2, seconds=20)


def prints(fails):
    print("one", dist.get_rank())
    print("two", end="")
    if fails and dist.get_rank() == 1:
        raise ValueError("no more")


@pytest.mark.nightly
def test_what_a_process_prints_is_shown_where_one_fails_too(capsys):
    with (
        Processes(2) as group,
        pytest.raises(RuntimeError, match=r"process 1 of 2 raised ValueError: no more"),
    ):
        group.run(prints, True)
    assert "process 1: one 1\nprocess 1: two\n" in capsys.readouterr().out


def waits_alone():
    if dist.get_rank() == 0:
        dist.all_reduce(torch.ones(1))


def test_what_is_printed_has_a_number(group, capsys):
    group.run(prints, False)
    ranks = range(group.num_processes)
    printed = [f"process {n}: {what}" for n in ranks for what in (f"one {n}", "two")]
    assert capsys.readouterr().out.splitlines() == printed


def test_who_never_joins_in_is_told():
    """A group of its own, because it ends."""
    group = Processes(2)
    with pytest.raises(RuntimeError) as told:
        group.run(waits_alone, seconds=1)
    # On a busy machine the one that has nothing to wait for may not have answered either.
    told.match(
        r"no answer from process(es)? 0.* within 1 seconds.*: all 2 were stopped\. "
        "Do all of them call the same collectives"
    )
    assert not group.running and repr(group) == "2 processes, ended"


@pytest.mark.nightly
def test_an_interrupt_ends_them():
    group = Processes(1)
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        group.run(waits, 60)
    assert not group.running


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
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_nothing_is_left_of_a_kernel_that_is_killed():
    here = os.path.dirname(__file__)
    paths = os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", PARENT]
    told = {"stdout": subprocess.PIPE, "text": True, "env": os.environ | {"PYTHONPATH": paths}}
    with subprocess.Popen(command, **told) as parent:
        *pids, folder = parent.stdout.readline().split()
        assert all(map(runs, pids))
        time.sleep(0.5)
        parent.kill()
    end = time.monotonic() + 10
    while any(map(runs, pids)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(map(runs, pids)) and not os.path.exists(folder)


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


@pytest.mark.parametrize("what", [len, lambda: 1, MultiHeadAttention])
def test_what_is_no_function_is_not_sent(what):
    with pytest.raises(TypeError, match="cannot be sent: a function defined with def"):
        pack(what)


@pytest.mark.nightly
def test_groups_do_not_get_in_each_others_way():
    with Processes(1) as one, Processes(1) as other:
        assert one.run(dist.get_rank) == other.run(dist.get_rank) == [0]
        with pytest.raises(ValueError, match="shares has 2 entries for 1 processes"):
            one.run(dist.get_rank, shares=[1, 2])


def loopback():
    """Return how many bytes have left by the machine's loopback."""
    with open("/proc/net/dev") as lines:
        (line,) = (each for each in lines if each.strip().startswith("lo:"))
    return int(line.split()[9])


def sum_up(numbers):
    dist.all_reduce(torch.ones(numbers))
    dist.barrier()


def count_on_the_wire(places):
    """Return the bytes of an all-reduce of a million numbers, in all processes together."""
    with Processes(places) as group:
        group.run(sum_up, 1000)
        before = loopback()
        group.run(sum_up, 1000)
        small = loopback() - before
        group.run(sum_up, 1_001_000)
        return loopback() - before - 2 * small


WIRE = "from test_processes import count_on_the_wire\nprint(count_on_the_wire(2))"


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != "linux", reason="asks for a network of its own")
def test_gloo_puts_on_the_wire_what_the_formula_says():
    inside = ["unshare", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$@"']
    try:
        subprocess.run([*inside, "-", "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("there is no network of one's own here")
    here = os.path.dirname(__file__)
    own = {"PYTHONPATH": os.pathsep.join([here, *filter(None, sys.path)])}
    command = [*inside, "-", sys.executable, "-c", WIRE]
    done = subprocess.run(command, env=os.environ | own, capture_output=True, text=True)
    said = 2 * processes.bytes_sent(4_000_000, 2)  # of both
    assert said <= int(done.stdout) <= 1.03 * said, done.stderr


def test_torchs_plan_can_say_that_the_projections_share_their_input(group):
    """What 20_machines_1 says: then one all-reduce forward and one backward."""
    mha, x = made()
    right = passed(mha, x)
    mha.zero_grad()
    for out, of_x, calls in group.run(pass_torchs_at_once, mha, x):
        near(out, right["out"])
        near(of_x, right["x"])
        assert calls["all_reduce"] == 2


def test_torchs_own_sum_with_a_gradient_takes_each_loss_for_another(group):
    """What 20_machines_1 says of torch.distributed.nn.functional.all_reduce."""
    for gradient in group.run(pass_summed, torch.ones(3)):
        assert gradient.tolist() == 3 * [group.num_processes]


# Memory


class Kept:
    """Add up the bytes that are kept for the way back, each storage once; weights do not count."""

    def __init__(self, weights):
        self.known = {weight.untyped_storage()._cdata: 0 for weight in weights}
        self.hooks = torch.autograd.graph.saved_tensors_hooks(self.note, lambda tensor: tensor)

    def note(self, tensor):
        storage = tensor.untyped_storage()
        self.known.setdefault(storage._cdata, storage.nbytes())
        self.held = [*getattr(self, "held", []), tensor]  # so that no address is given twice
        return tensor


def keep_for_the_way_back(x, mha, forward):
    kept = Kept(mha.parameters())
    with kept.hooks:
        getattr(processes, forward)(mha, x.clone().requires_grad_())
    return sum(kept.known.values())


@pytest.mark.parametrize("forward", ["forward_in_ring", "forward_by_exchange"])
def test_what_is_kept_grows_with_the_tokens_here_alone(group, forward):
    """x, queries, keys, values, context: twice the tokens keep twice as much, not four times."""
    kept = []
    for num_tokens in (256, 512):
        torch.manual_seed(0)
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
    return max(accumulate(each.nbytes() for each in events if each.name() == "[memory]"))


def test_at_the_fullest_moment_a_ring_holds_less_than_one_process(group):
    """A turn makes tables of tokens here x tokens here, a quarter of one process's with two."""
    torch.manual_seed(0)
    mha, x = MultiHeadAttention(16, 16, 512, 0.0, 4), torch.randn(1, 512, 16)
    alone, places = hold(x, mha, ""), group.num_processes
    mha.zero_grad()
    found = group.run(hold, mha, "forward_in_ring", shares=processes.share_tokens(x, places))
    assert max(found) <= 0.5 * alone if places == 2 else max(found) <= 0.2 * alone
