"""Cut one attention over processes, by heads and by tokens: equal to one process, and how fast.

    torchrun --standalone --nproc-per-node 4 tools/many_machines.py

torchrun starts the processes, one for each GPU where there are enough (nccl), else on the CPU
(gloo), tells each its rank, and ends all when one ends. Over several machines: the same command on
each, with --nnodes and --rdzv-endpoint in place of --standalone.
"""

import argparse
import functools
import os
import statistics
import time
from collections.abc import Callable

import torch
from torch import distributed as dist

from eleven_steps.beyond import processes
from eleven_steps.beyond.compare import worst
from helpers.attention import FusedMultiHeadAttention, MultiHeadAttention

WAYS = "heads", "tokens"


def build(size: tuple[int, int, int, int]) -> tuple[MultiHeadAttention, torch.Tensor]:
    """Return an attention and x, the same in every process; size is b, num_tokens, d, num_heads."""
    b, num_tokens, d, num_heads = size
    torch.manual_seed(123)
    mha = MultiHeadAttention(d, d, num_tokens, 0.0, num_heads)
    return mha, torch.randn(b, num_tokens, d)


def measure(size: tuple[int, int, int, int], rounds: int = 5) -> dict[str, dict[str, float]]:
    """Cut both ways in this process and its like; return for each way what was found.

    Returns:
        For "heads" and "tokens": apart, how far its out is from that of one process; ms, the
        median of a forward and backward, of wall time; busy, the same of this process's own
        processor time; sent, the bytes it sends in a forward.
    """
    mha, x = build(size)
    rank, num_processes = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", torch.cuda.current_device()) if on_gpus() else "cpu"
    with torch.no_grad():
        whole = FusedMultiHeadAttention(mha.d_in, mha.d_out, x.shape[1], 0.0, mha.num_heads)
        whole.load_state_dict(mha.state_dict())
        out = whole(x)  # in far less memory
    here = processes.share_tokens(x, num_processes)[rank].to(device)
    share = processes.SharedHeads(mha, rank, num_processes).to(device)
    mha, x = mha.to(device), x.to(device)
    ring = functools.partial(processes.forward_in_ring, mha)
    right = {"heads": out, "tokens": processes.share_tokens(out, num_processes)[rank]}
    work = {"heads": (share, x), "tokens": (ring, here)}
    sent = functools.partial(processes.bytes_sent, num_processes=num_processes)
    found = {}
    for way, (module, given) in work.items():
        with processes.Traffic() as traffic, torch.no_grad():
            apart = worst([(module(given).cpu(), right[way])])
        bytes_sent = sent(traffic.handed["all_reduce"]) if way == "heads" else 0
        bytes_sent += traffic.handed.get("send", 0)
        ms, busy = clock(module, given, rounds)
        found[way] = {"apart": apart, "ms": ms, "busy": busy, "sent": bytes_sent}
    return found


def clock(module: Callable, x: torch.Tensor, rounds: int) -> tuple[float, float]:
    """Return the medians of a forward and backward, in milliseconds of wall and processor time."""
    wall, busy = [], []
    x = x.clone().requires_grad_()
    for _ in range(rounds + 1):  # the first warms up
        dist.barrier()
        start = time.perf_counter(), time.process_time()
        module(x).square().mean().backward()
        if on_gpus():
            torch.cuda.synchronize()
        wall.append(1e3 * (time.perf_counter() - start[0]))
        busy.append(1e3 * (time.process_time() - start[1]))
    return statistics.median(wall[1:]), statistics.median(busy[1:])


def on_gpus() -> bool:
    """Say whether this process works on a GPU of its own."""
    return dist.get_backend() == "nccl"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--size", nargs=4, type=int, default=(1, 1024, 768, 12), metavar=("B", "N", "D", "HEADS")
    )
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if "RANK" not in os.environ:
        parser.error("torchrun starts this: torchrun --standalone --nproc-per-node 4 " + __file__)
    processes.check_shares(options.size[3], int(os.environ["WORLD_SIZE"]))
    local = int(os.environ["LOCAL_RANK"])
    gpus = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
    if gpus:
        torch.cuda.set_device(local)
    dist.init_process_group("nccl" if gpus else "gloo")
    found = measure(tuple(options.size), options.rounds)
    if dist.get_rank() == 0:
        where = (
            f"{dist.get_world_size()} processes, {dist.get_backend()}, torch {torch.__version__}"
        )
        print(where)
        for way, numbers in found.items():
            print(
                f"by {way:<7}equal to 1e-4: {numbers['apart'] <= 1e-4} ({numbers['apart']:.1e}), "
                f"{numbers['ms']:,.1f} ms, {numbers['sent']:,} bytes sent in a forward"
            )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
