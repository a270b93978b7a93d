"""Split attention over processes in three ways; compare with one process, and time it.

    torchrun --standalone --nproc-per-node 4 tools/many_machines.py

torchrun starts the processes, one for each GPU where there are enough (nccl), else on the CPU
(gloo), tells each its rank, and ends all when one ends. Over several machines: the same command on
each, with --nnodes and --rdzv-endpoint in place of --standalone. A way that the sizes do not allow
is left out; the exit status is 0 where all others are equal, 1 where one is not. If no way is left,
one line says why, ends with "nothing was measured", and the status is 0 as well, because torchrun
would add forty lines of its own to any other.
"""

import argparse
import datetime
import functools
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence

import torch
from torch import distributed as dist

from eleven_steps.beyond import processes
from eleven_steps.beyond.compare import worst
from helpers.attention import FusedMultiHeadAttention, MultiHeadAttention, check_heads, check_sizes

WAYS = "heads", "tokens", "exchange"
NEAR = 1e-4  # largest difference allowed from the out of one process
Size = tuple[int, int, int, int]  # b, num_tokens, d, num_heads


def allowed(size: Size, num_processes: int) -> dict[str, str]:
    """Return for each way why these sizes do not allow it, or "" if they do."""
    b, num_tokens, d, num_heads = size
    check_sizes(b=b, num_tokens=num_tokens, num_processes=num_processes)
    check_heads(d, num_heads)
    uneven = {
        name: f"{num_processes} processes cannot share {number} {name} evenly"
        if number % num_processes
        else ""
        for name, number in (("heads", num_heads), ("tokens", num_tokens))
    }
    return uneven | {"exchange": uneven["tokens"] or uneven["heads"]}


def measure(size: Size, rounds: int) -> dict[str, dict[str, float]]:
    """Split in every way that the sizes allow, in all processes; return the measurements.

    Returns:
        For "heads", "tokens" (in a ring) and "exchange": apart, how far its out is from that of one
        process; ms, the median of a forward and backward, of wall time; busy, the same of this
        process's own processor time; sent, the bytes it sends in a forward.
    """
    b, num_tokens, d, num_heads = size
    torch.manual_seed(123)
    mha, x = MultiHeadAttention(d, d, num_tokens, 0.0, num_heads), torch.randn(b, num_tokens, d)
    rank, num_processes = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", torch.cuda.current_device()) if on_gpus() else "cpu"
    with torch.no_grad():
        whole = FusedMultiHeadAttention(d, d, num_tokens, 0.0, num_heads)
        whole.load_state_dict(mha.state_dict())
        out = whole(x)  # needs far less memory than the explicit class
    measured = {}
    for way, unable in allowed(size, num_processes).items():
        if unable:
            continue
        module, given, right = mha.to(device), x.to(device), out
        if way == "heads":
            module = processes.SharedHeads(mha, rank, num_processes).to(device)
        else:
            given, right = (processes.share_tokens(t, num_processes)[rank] for t in (given, out))
            forward = {"tokens": processes.forward_in_ring}.get(way, processes.forward_by_exchange)
            module = functools.partial(forward, mha)
        with processes.Traffic() as traffic, torch.no_grad():
            apart = worst([(module(given).cpu(), right)])
        sent = leaving(traffic.handed, num_processes)
        ms, busy = clock(module, given, rounds)
        measured[way] = {"apart": apart, "ms": ms, "busy": busy, "sent": sent}
    return measured


def leaving(handed: dict[str, int], num_processes: int) -> int:
    sent = handed.get("send", 0)
    if "all_reduce" in handed:
        sent += processes.bytes_sent(handed["all_reduce"], num_processes)
    return sent + handed.get("all_to_all", 0) * (num_processes - 1) // num_processes


def equal(aparts: Sequence[float]) -> bool:
    """Say whether all processes agree with one process; NaN, or no process at all, does not."""
    return len(aparts) > 0 and all(apart <= NEAR for apart in aparts)


def clock(module: Callable, x: torch.Tensor, rounds: int) -> tuple[float, float]:
    """Return the medians of a forward and backward, in milliseconds of wall and processor time."""
    wall, busy = [], []
    x = x.clone().requires_grad_()
    for _ in range(rounds + 1):  # the first round warms up
        dist.barrier()
        start = time.perf_counter(), time.process_time()
        module(x).square().mean().backward()
        if on_gpus():
            torch.cuda.synchronize()
        wall.append(1e3 * (time.perf_counter() - start[0]))
        busy.append(1e3 * (time.process_time() - start[1]))
    return statistics.median(wall[1:]), statistics.median(busy[1:])


def on_gpus() -> bool:
    return dist.get_backend() == "nccl"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--size", nargs=4, type=int, default=(1, 1024, 768, 12), metavar=("B", "N", "D", "HEADS")
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--seconds", type=float, default=60, help="to wait for a process that does not come (60)"
    )
    options = parser.parse_args()
    if "RANK" not in os.environ:
        parser.error("torchrun starts this: torchrun --standalone --nproc-per-node 4 " + __file__)
    first, size = os.environ["RANK"] == "0", tuple(options.size)
    try:
        unable = allowed(size, int(os.environ["WORLD_SIZE"]))
    except ValueError as error:
        unable = {"": str(error)}
    left_out = "; ".join(f"by {way}: {why}" if way else why for way, why in unable.items() if why)
    nothing = "; nothing was measured" * all(unable.values())
    if left_out and first:
        print(f"left out: {left_out}{nothing}", flush=True)
    if nothing:
        return 0  # for any other status torchrun would add forty lines to this one
    gpus = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])  # one for each
    if gpus:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    limit = datetime.timedelta(seconds=options.seconds)
    try:
        dist.init_process_group("nccl" if gpus else "gloo", timeout=limit)
    except dist.DistError as late:
        print(f"process {os.environ['RANK']} has not met all others: {late}", flush=True)
        return 3
    measured = measure(size, options.rounds)
    everywhere: list = [None] * dist.get_world_size()
    dist.all_gather_object(everywhere, {way: found["apart"] for way, found in measured.items()})
    same = {way: equal([aparts[way] for aparts in everywhere]) for way in measured}
    if first:
        where = f"{len(everywhere)} processes, {dist.get_backend()}, torch {torch.__version__}"
        print(where)
        for way, numbers in measured.items():
            print(
                f"by {way:<9}equal to {NEAR:g}: {same[way]} ({numbers['apart']:.1e}), "
                f"{numbers['ms']:,.1f} ms, {numbers['busy']:,.1f} of its own processor, "
                f"{numbers['sent']:,} bytes sent in a forward"
            )
    dist.destroy_process_group()
    return int(not same or not all(same.values()))


if __name__ == "__main__":
    sys.exit(main())
