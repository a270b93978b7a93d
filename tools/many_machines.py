"""Split attention over processes in three ways; compare with one process, and time it.

    torchrun --standalone --nproc-per-node 4 tools/many_machines.py

torchrun starts the processes, one for each GPU if there are enough (nccl), else on the CPU (gloo).
For several machines, run the same command on each, with --nnodes and --rdzv-endpoint in place of
--standalone. A split that the sizes do not allow is left out, and a line says why. The exit status
is 0 if all others give the result of one process.
"""

import argparse
import functools
import os
import statistics
import sys
import time
from collections.abc import Callable

import torch
from torch import distributed as dist

from eleven_steps.beyond import processes
from eleven_steps.beyond.compare import worst
from helpers.attention import FusedMultiHeadAttention, MultiHeadAttention

SPLITS = "heads", "tokens", "exchange"
NEAR = 1e-4  # largest difference allowed from the out of one process


def split(
    name: str, mha: MultiHeadAttention, x: torch.Tensor, out: torch.Tensor
) -> tuple[Callable, torch.Tensor, torch.Tensor]:
    """Return the share of this process: its module, its part of x, and its part of out.

    Raises:
        ValueError: the heads or tokens cannot be shared out evenly.
    """
    rank, num_processes = dist.get_rank(), dist.get_world_size()
    if name == "heads":
        return processes.SharedHeads(mha, rank, num_processes).to(x.device), x, out
    if name == "exchange":
        processes.check_shares(mha.num_heads, num_processes)
    forward = processes.forward_in_ring if name == "tokens" else processes.forward_by_exchange
    x, out = (processes.share_tokens(t, num_processes)[rank] for t in (x, out))
    return functools.partial(forward, mha), x, out


def count_sent(handed: dict[str, int]) -> int:
    """Return the bytes that leave this process, of what it has passed to torch.distributed."""
    num_processes = dist.get_world_size()
    sent = handed.get("send", 0)
    if "all_reduce" in handed:
        sent += processes.bytes_sent(handed["all_reduce"], num_processes)
    return sent + handed.get("all_to_all", 0) * (num_processes - 1) // num_processes


def measure_time(module: Callable, x: torch.Tensor, rounds: int) -> tuple[float, float]:
    """Return the medians of a forward and backward, in milliseconds of wall and processor time."""
    wall, busy = [], []
    x = x.clone().requires_grad_()
    for _ in range(rounds + 1):  # the first round warms up
        dist.barrier()
        start = time.perf_counter(), time.process_time()
        module(x).square().mean().backward()
        if x.is_cuda:
            torch.cuda.synchronize()
        wall.append(1e3 * (time.perf_counter() - start[0]))
        busy.append(1e3 * (time.process_time() - start[1]))
    return statistics.median(wall[1:]), statistics.median(busy[1:])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--size", nargs=4, type=int, default=(1, 1024, 768, 12), metavar=("B", "N", "D", "HEADS")
    )
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if "RANK" not in os.environ:
        parser.error("torchrun starts this: torchrun --standalone --nproc-per-node 4 " + __file__)
    on_gpus = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])  # one for each
    if on_gpus:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    device = torch.device("cuda" if on_gpus else "cpu")
    dist.init_process_group("nccl" if on_gpus else "gloo")
    write = print if dist.get_rank() == 0 else lambda line: None
    write(f"{dist.get_world_size()} processes, {dist.get_backend()}, torch {torch.__version__}")

    b, num_tokens, d, num_heads = options.size
    torch.manual_seed(123)  # the same numbers in every process
    whole = FusedMultiHeadAttention(d, d, num_tokens, 0.0, num_heads).to(device)
    mha = MultiHeadAttention(d, d, num_tokens, 0.0, num_heads).to(device)
    mha.load_state_dict(whole.state_dict())
    x = torch.randn(b, num_tokens, d).to(device)
    with torch.no_grad():
        out = whole(x)  # needs far less memory than the explicit class
    all_equal = []
    for name in SPLITS:
        try:
            module, here, right = split(name, mha, x, out)
        except ValueError as uneven:  # in every process, before any sends
            write(f"by {name}: left out, {uneven}")
            continue
        with processes.Traffic() as traffic, torch.no_grad():
            apart = worst([(module(here), right)])
        everywhere = [apart] * dist.get_world_size()
        dist.all_gather_object(everywhere, apart)
        all_equal.append(all(each <= NEAR for each in everywhere))  # False where one is NaN
        ms, busy = measure_time(module, here, options.rounds)
        write(
            f"by {name:<9}equal to {NEAR:g}: {all_equal[-1]} ({apart:.1e}), {ms:,.1f} ms, "
            f"{busy:,.1f} of its own processor, {count_sent(traffic.handed):,} bytes sent in a "
            "forward"
        )
    dist.destroy_process_group()
    return 0 if all_equal and all(all_equal) else 1


if __name__ == "__main__":
    sys.exit(main())
