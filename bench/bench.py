"""Measure what attention costs: every implementation against the machine's own matrix products.

    python bench/bench.py --page                        write docs/benchmarks.md: half an hour
    python bench/bench.py --quick                       small sizes and no memory, within a minute
    python bench/bench.py --busy                        while the machine does other work too
    python bench/bench.py --rows transformers --times   some rows, without memory: long texts
    python bench/bench.py --device cuda --dtype bfloat16

All implementations of one size run in one process, in turn, in a new order and on new random
numbers each round. Each first proves in float32 that it computes what MultiHeadAttention computes
with the same weights; where that class is too large, what FusedMultiHeadAttention computes. The
limit is the least time that these multiplications can take: the machine's own products of the
same sizes, measured in the same rounds, those that a causal mask halves counted as half. With the
way back it is three times as much, since the gradient of a product is two products. Where its own
rounds disagree, or there was a load before, the machine was doing other work: that is said, and the
run is to be repeated. Two rows are level if the middle halves of their rounds overlap. Peak memory
is taken in a process of its own.

Peers run where they are installed: `pip install -e ".[bench]"`, and, since what it requires would
replace parts of the course, `pip install --no-deps llms-from-scratch==1.0.19`.
"""

import argparse
import functools
import itertools
import os
import shlex
import statistics
import subprocess
import sys
import time
import timeit
from collections.abc import Callable
from pathlib import Path

import bench_rows
import bench_turns
import torch
from bench_rows import ROWS, prove, run
from bench_turns import NUM_HEADS, D, beside, in_turn, limits, print_table, write
from torch.utils.benchmark import timer

from helpers.attention import FusedMultiHeadAttention

SIZES = [(8, 1024), (1, 64), (1, 4096), (1, 16384)]  # notebook 17 shows the first two
QUICK_SIZES = [(1, 64), (2, 128)]
LARGEST = 2**28  # elements in (b, num_heads, num_tokens, num_tokens): a row with more is left out
LIMIT = "the limit"
COLUMNS = "forward, ms", "x limit", "beside fused"
LEAST = 7  # rounds, since a row that follows a large one finds its memory in disorder
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"


def installed(words: list[str], quick: bool) -> list[str]:
    """Return the rows that can be built here: the fused class, and those with one of the words."""
    source, names = FusedMultiHeadAttention(D, D, 64, 0.0, NUM_HEADS), []
    for word in words:
        if not any(word in name for name in ROWS):
            raise SystemExit(f"no row has {word} in its name: {'; '.join(ROWS)}")
    for name in (n for n in ROWS if n == bench_rows.FUSED or any(word in n for word in words)):
        if quick and name == bench_rows.FLEX:
            continue  # it takes long to compile
        try:
            ROWS[name](source)
            names.append(name)
        except ImportError as missing:
            print(f"{name} is left out: {missing}", file=sys.stderr)
    return names


def fits(name: str, size: tuple[int, int], backward: bool) -> bool:
    """Tell whether a row's tensors are small enough, and whether it has a backward pass."""
    b, num_tokens = size
    small = b * NUM_HEADS * num_tokens**2 <= LARGEST or name not in bench_rows.BUILD_THE_MATRIX
    return small and not (backward and name == bench_rows.FAST_PATH)


def products(b: int, num_tokens: int, **where) -> dict[str, tuple]:
    """Return the four products of the eleven steps: (left, right, how often it is counted)."""
    new = functools.partial(torch.randn, **where)
    heads = min(b * NUM_HEADS, max(1, LARGEST // num_tokens**2))
    half = b * NUM_HEADS / heads / 2  # the causal mask leaves half of each
    tokens = new(b * num_tokens, D)
    queries = new(heads, num_tokens, D // NUM_HEADS)
    return {
        "x @ W_query, W_key, W_value": (tokens, new(D, 3 * D), 1),
        "queries @ keys": (queries, queries.transpose(1, 2).clone(), half),
        "weights @ values": (new(heads, num_tokens, num_tokens), queries, half),
        "context @ out_proj": (tokens, new(D, D), 1),
    }


def measure(
    names: list[str], size: tuple[int, int], backward: bool, options: argparse.Namespace
) -> dict[str, dict]:
    """Time the limit and the named rows at one size, (b, num_tokens), for options.seconds.

    Raises:
        AssertionError: a row computes something else.
    """
    b, num_tokens = size
    shape = b, num_tokens, D
    works = proven(names, shape, backward, options)
    rows, counts = list(works), {}
    where = {"device": options.device, "dtype": options.dtype}
    for name, (left, right, counts[name]) in products(b, num_tokens, **where).items():
        multiply = functools.partial(torch.matmul, left, right, out=left @ right)
        works[name] = lambda x, backward, multiply=multiply: multiply()

    clock = time.process_time if options.busy else timer  # torch's waits for a GPU

    def milliseconds(name: str, number: int, x: torch.Tensor) -> float:
        given = {"work": works[name], "x": x, "backward": backward}
        seconds = timeit.timeit("work(x, backward)", timer=clock, number=number, globals=given)
        return seconds / number * 1e3

    how = options.seconds, options.rounds
    times = in_turn(list(works), milliseconds, *how, lambda: new(shape, options))
    times[LIMIT] = limits(times, counts, backward)
    found, limit = {}, statistics.median(times[LIMIT])
    for name in (LIMIT, *rows):
        low, ms, high = statistics.quantiles(times[name], n=4, method="inclusive")
        found[name] = {"ms": ms, "low": low, "high": high, "multiple": ms / limit}
    return found


def new(shape: tuple[int, int, int], options: argparse.Namespace) -> torch.Tensor:
    """Return new random numbers to compute on."""
    return torch.randn(shape, device=options.device).to(options.dtype)


def proven(
    names: list[str], shape: tuple[int, int, int], backward: bool, options: argparse.Namespace
) -> dict[str, Callable]:
    """Return the named rows as functions of x and backward, each proven in float32."""
    source = FusedMultiHeadAttention(D, D, shape[1], 0.0, NUM_HEADS).to(options.device)
    rows = {name: ROWS[name](source).to(options.device) for name in names}
    x = torch.randn(shape, device=options.device)
    expected = run(rows.get(bench_rows.EXPLICIT, rows[bench_rows.FUSED]), x, backward)[:2]
    for name, module in list(rows.items()):
        try:
            prove(module, x, expected)
        except RuntimeError as unable:  # no kernel or no compiler for it here
            print(f"{name} is left out: {str(unable).splitlines()[0]}", file=sys.stderr)
            del rows[name]
    return {name: functools.partial(run, row.to(options.dtype)) for name, row in rows.items()}


def peak(name: str, size: tuple[int, int], backward: bool, options: argparse.Namespace) -> float:
    """Return the most memory, in MiB, that building and running one row adds to this process."""
    b, on_gpu = size[0], options.device == "cuda"
    for num_tokens in (64, size[1]):  # the first to warm up
        if on_gpu:
            torch.cuda.reset_peak_memory_stats()
        else:
            Path("/proc/self/clear_refs").write_text("5")  # a new high-water mark, on Linux
        before = torch.cuda.memory_allocated() if on_gpu else resident("VmRSS")
        source = FusedMultiHeadAttention(D, D, num_tokens, 0.0, NUM_HEADS).to(options.device)
        x = torch.randn(b, num_tokens, D, device=options.device, dtype=options.dtype)
        run(ROWS[name](source).to(options.device, options.dtype), x, backward)
        most = torch.cuda.max_memory_allocated() if on_gpu else resident("VmHWM")
    return (most - before) / 2**20


def resident(key: str) -> int:
    """Return the memory this process holds, VmRSS, or has held at most, VmHWM, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 2**10 for line in lines if line.startswith(key))


def measure_memory(
    name: str, size: tuple[int, int], backward: bool, options: argparse.Namespace
) -> float:
    """Call peak in a process of its own."""
    how = f"--size {size[0]} {size[1]} --device {options.device} --threads {options.threads}"
    how += f" --dtype {str(options.dtype).removeprefix('torch.')}" + " --backward" * backward
    command = [sys.executable, __file__, *how.split(), "--peak", name]
    return float(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def show_times(found: dict[str, dict], name: str) -> list[str]:
    """Return a row's cells in one direction: median and middle half, multiple, beside the fused."""
    if not (row := found.get(name)):
        return [""] * len(COLUMNS)
    word = "" if name in (LIMIT, bench_rows.FUSED) else beside(row, found[bench_rows.FUSED])
    return [write((row["low"], row["ms"], row["high"])), f"{row['multiple']:.2f}", word]


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, no memory: a minute")
    parser.add_argument("--seconds", type=float, help="for each size and direction (20)")
    parser.add_argument("--rounds", type=int, default=LEAST, help="at least, and at least 2 (7)")
    parser.add_argument("--size", nargs=2, type=int, action="append", metavar=("B", "NUM_TOKENS"))
    parser.add_argument("--forward", action="store_true", help="leave out the way back")
    parser.add_argument("--rows", nargs="+", default=[""], metavar="WORD", help="only such rows")
    parser.add_argument("--times", action="store_true", help="leave out memory")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--dtype", type=functools.partial(getattr, torch), default=torch.float32)
    parser.add_argument(
        "--busy", action="store_true", help="on a busy machine: count processor time, on one thread"
    )
    parser.add_argument("--page", action="store_true", help="write all to docs/benchmarks.md")
    parser.add_argument("--peak", metavar="ROW", help="print only the MiB of one row at one size")
    parser.add_argument("--backward", action="store_true", help="with --peak: forward and backward")
    options = parser.parse_args()
    options.size = options.size and [tuple(size) for size in options.size]
    options.threads = 1 if options.busy else options.threads
    options.rounds = max(2, options.rounds)  # else there are no quartiles
    options.seconds = options.seconds or (1 if options.quick else 20)
    if options.quick:
        options.times, options.rounds = True, 3
    return options


def main() -> None:
    options = parse_options()
    torch.set_num_threads(options.threads)
    if options.peak:
        print(peak(options.peak, *options.size, options.backward, options))
    elif options.page:
        with bench_turns.into_page(PAGE, f"python bench/bench.py {shlex.join(sys.argv[1:])}"):
            run_all(options)
    else:
        run_all(options)


def run_all(options: argparse.Namespace) -> None:
    """Measure all that options ask for, and print it as Markdown."""
    began, load = time.monotonic(), os.getloadavg()[0]
    clock = "processor time" if options.busy else "wall time"
    where = f"{clock}, {options.device}, {options.dtype}, {options.threads} thread(s)"
    where += f", d_in = d_out = {D}, {NUM_HEADS} heads"
    print(f"{bench_turns.machine()}, load {load:.1f} before it began.")
    print(f"torch {torch.__version__}, {where}.")
    names, timed = installed(options.rows, options.quick), set()
    sizes = options.size or (QUICK_SIZES if options.quick else SIZES)
    directions = (False,) if options.forward else (False, True)
    columns = [*COLUMNS, "with backward, ms", *COLUMNS[1:]][: len(COLUMNS) * len(directions)]
    for size in sizes:
        cells, alone = {name: [] for name in (LIMIT, *names)}, []
        for backward in directions:
            here = [name for name in names if fits(name, size, backward)]
            found = measure(here, size, backward, options)
            timed |= {(name, size, backward) for name in found}
            for name, row in cells.items():
                row += show_times(found, name)
            alone.append(found[LIMIT])
        print_table(f"b = {size[0]}, num_tokens = {size[1]:,}", columns, cells)
        print(f"\n{bench_turns.warning(alone, load)}")
        if options.quick and time.monotonic() - began > 30:
            break  # a busy machine: the minute would be over before the next size

    sizes = [size for size in sizes if size[1] >= 1024 and not options.times]
    cells = {name: [] for name in names}
    for name, size, backward in itertools.product(names, sizes, directions):
        if (name, size, backward) in timed:
            cells[name].append(f"{measure_memory(name, size, backward, options):,.0f}")
        else:
            cells[name].append("")
    heads = [f"({b}, {n:,}){' with backward' * back}" for b, n in sizes for back in directions]
    if sizes:
        print_table("Peak memory in MiB at (b, num_tokens)", heads, cells)


if __name__ == "__main__":
    main()
