"""Measure what attention costs: every implementation against the machine's own matrix products.

    python bench/bench.py --page                        write docs/benchmarks.md: over 40 minutes
    python bench/bench.py --quick                       small sizes and no memory, within a minute
    python bench/bench.py --times                       without memory
    python bench/bench.py --device cuda --dtype bfloat16

All implementations of one size run in one process, one after the other, in a new order and on new
random numbers each round. Each is first proven in float32 to compute the same as MultiHeadAttention
with the same weights, or as FusedMultiHeadAttention if that class is too large for the size. The
limit is the least time that the multiplications can take: the machine's own products of the same
sizes, measured in the same rounds. A product that a causal mask halves counts as half. With the
backward pass the limit is three times as long, because the gradient of a product is two products.
If the rounds of the limit disagree, or other processes were running before, then something else was
at work, here or on the host of a virtual machine. The report says so, and the run should be
repeated. Two rows are level if the middle halves of their rounds overlap. Peak memory is measured
in a separate process.

Peers run if they are installed: `pip install -e ".[bench]"` and, because its requirements would
replace parts of the course, `pip install --no-deps llms-from-scratch==1.0.19`.
"""

import argparse
import contextlib
import functools
import itertools
import os
import platform
import random
import shlex
import statistics
import subprocess
import sys
import time
import timeit
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from multiprocessing import get_context
from pathlib import Path

import bench_rows
import torch
from bench_rows import ROWS, prove, run
from torch.utils.benchmark import timer

from helpers.attention import FusedMultiHeadAttention

D, NUM_HEADS = 768, 12  # the smallest GPT-2
SIZES = [(8, 1024), (1, 64), (1, 4096), (1, 16384)]  # notebook 17 shows the first two
QUICK_SIZES = [(1, 64), (2, 128)]
LARGEST = 2**28  # elements in (b, num_heads, num_tokens, num_tokens); rows with more are left out
LIMIT = "the limit"
COLUMNS = "forward, ms", "x limit", "relative to fused"
LEAST = 7  # rounds, because a row that runs after a large one finds its memory fragmented
DISAGREE = 0.1  # the largest middle half of the limit's rounds, as a share of its median
STILL = 0.5  # the largest load average of the minute before the benchmark
MARKS = "<!-- bench.py: from here -->", "<!-- bench.py: to here -->"
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"


def installed(quick: bool) -> list[str]:
    """Return the rows that can be built here."""
    source, names = FusedMultiHeadAttention(D, D, 64, 0.0, NUM_HEADS), []
    for name in ROWS:
        if quick and name == bench_rows.FLEX:
            continue  # it takes long to compile
        try:
            ROWS[name](source)
            names.append(name)
        except ImportError as missing:
            print(f"{name} is left out: {missing}", file=sys.stderr)
    return names


def fits(name: str, size: tuple[int, int], backward: bool) -> bool:
    """Say whether the tensors of a row are small enough, and whether it has a backward pass."""
    b, num_tokens = size
    small = b * NUM_HEADS * num_tokens**2 <= LARGEST or name not in bench_rows.BUILD_THE_MATRIX
    return small and not (backward and name == bench_rows.FAST_PATH)


def products(b: int, num_tokens: int, **where) -> dict[str, tuple]:
    """Return the four products of the eleven steps: (left, right, how often it counts)."""
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
    """Time the limit and the named rows at one size, (b, num_tokens), for options.seconds."""
    b, num_tokens = size
    shape = b, num_tokens, D
    works = proven(names, shape, backward, options)
    rows, counts = list(works), {}
    where = {"device": options.device, "dtype": options.dtype}
    for name, (left, right, counts[name]) in products(b, num_tokens, **where).items():
        multiply = functools.partial(torch.matmul, left, right, out=left @ right)
        works[name] = lambda x, backward, multiply=multiply: multiply()

    times = in_turn(works, lambda: torch.randn(shape, **where), backward, options)
    times[LIMIT] = limits(times, counts, backward)
    found, limit = {}, statistics.median(times[LIMIT])
    for name in (LIMIT, *rows):
        low, ms, high = statistics.quantiles(times[name], n=4, method="inclusive")
        found[name] = {"ms": ms, "low": low, "high": high, "multiple": ms / limit}
    return found


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
    """Return the memory of this process in bytes: now (VmRSS), or at its peak (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 2**10 for line in lines if line.startswith(key))


def show_times(found: dict[str, dict], name: str) -> list[str]:
    """Return a row's cells for one direction: median, middle half, x limit, and comparison."""
    if not (row := found.get(name)):
        return [""] * len(COLUMNS)
    word = "" if name in (LIMIT, bench_rows.FUSED) else compare(row, found[bench_rows.FUSED])
    return [write((row["low"], row["ms"], row["high"])), f"{row['multiple']:.2f}", word]


def in_turn(
    works: dict[str, Callable], new: Callable, backward: bool, options: argparse.Namespace
) -> dict[str, list[float]]:
    """Measure all rows in a new order and on a new x each round; return milliseconds."""

    def milliseconds(name: str, number: int) -> float:
        given = {"work": works[name], "x": x, "backward": backward}
        seconds = timeit.timeit("work(x, backward)", timer=timer, number=number, globals=given)
        return seconds / number * 1e3

    x, rounds = new(), 0
    numbers = {name: int(20 / milliseconds(name, 1)) + 1 for name in works}  # the warm-up
    times, end = {name: [] for name in works}, time.monotonic() + options.seconds
    while rounds < options.rounds or time.monotonic() < end:
        x, rounds = new(), rounds + 1
        for name in random.sample(list(works), len(works)):
            times[name].append(milliseconds(name, numbers[name]))
    return times


def write(quartiles: tuple[float, float, float]) -> str:
    """Write a median and the middle half in ms."""
    low, ms, high = (f"{value:,.0f}" if value >= 100 else f"{value:.3g}" for value in quartiles)
    return f"{ms} ({low} to {high})"


def table(title: str, columns: list[str], cells: dict[str, list[str]]) -> str:
    rows = [f"| {name} | {' | '.join(row)} |" for name, row in {"row": columns, **cells}.items()]
    rows.insert(1, f"|---|{'--:|' * len(columns)}")
    return "\n".join([f"\n### {title}\n", *rows])


def limits(times: dict[str, list], counts: dict[str, float], backward: bool) -> list[float]:
    """Return the limit of each round, the weighted sum of its products."""
    rounds = zip(*(times[name] for name in counts), strict=True)
    back = 3 if backward else 1  # the gradient of a product is two products
    return [
        back * sum(ms * n for ms, n in zip(one, counts.values(), strict=True)) for one in rounds
    ]


def warning(limits: list[dict], load: float) -> str:
    """Return a sentence if rounds of a limit disagree or the machine was busy before.

    load: how many processes were running before the benchmark began.
    """
    apart = max((limit["high"] - limit["low"]) / limit["ms"] for limit in limits)
    if apart <= DISAGREE and load <= STILL:
        return "Quiet: the limit's own rounds agree."
    return (
        f"Not quiet: the limit's own rounds lie {apart:.0%} apart ({DISAGREE:.0%} at the most are "
        f"expected), and {load:.1f} processes were running before ({STILL} at the most). Something "
        f"else was at work, here or on the host of this virtual machine: repeat this run."
    )


def compare(found: dict, ours: dict) -> str:
    """Return "level" if the middle halves of two rows overlap, else "slower" or "faster"."""
    if found["low"] <= ours["high"] and ours["low"] <= found["high"]:
        return "level"
    return "slower" if found["ms"] > ours["ms"] else "faster"


def into_page(page: Path, command: str, printed: str) -> None:
    """Write the output of a command between the two marks of a page."""
    before, _, rest = page.read_text("utf-8").partition(MARKS[0])
    inside = f"## {date.today()}\n\n`{command}` printed:\n\n{printed}\n"
    page.write_text(before + MARKS[0] + f"\n\n{inside}\n" + MARKS[1] + rest.partition(MARKS[1])[2])


def machine() -> str:
    """Name the processor, memory, system and commit that figures belong to."""
    described = "processor unknown"
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        described = next(line for line in lines if line.startswith("model name"))
        described = described.partition(": ")[2]
    with contextlib.suppress(OSError, ValueError):
        described += f", {os.cpu_count()} cores, "
        described += f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"
    git = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    with contextlib.suppress(OSError):
        commit = subprocess.run(git, capture_output=True, text=True).stdout.strip()
        described += f", commit {commit}" * bool(commit)
    return (
        f"{described}, {platform.system()} {platform.release()}, Python {platform.python_version()}"
    )


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, no memory: a minute")
    parser.add_argument("--rounds", type=int, default=LEAST, help="at least, and at least 2 (7)")
    parser.add_argument("--times", action="store_true", help="leave out memory")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--dtype", type=functools.partial(getattr, torch), default=torch.float32)
    parser.add_argument("--page", action="store_true", help="write all to docs/benchmarks.md")
    options = parser.parse_args()
    options.rounds = max(2, options.rounds)  # else there are no quartiles
    options.sizes, options.seconds = SIZES, 20  # for each size and direction
    if options.quick:
        options.sizes, options.seconds, options.times, options.rounds = QUICK_SIZES, 1, True, 3
    return options


def main() -> None:
    options = parse_options()
    printed = []
    for lines in report(options):
        print(lines, flush=True)
        printed.append(lines)
    if options.page:
        command = f"python bench/bench.py {shlex.join(sys.argv[1:])}"
        into_page(PAGE, command, "\n".join(printed))


def report(options: argparse.Namespace) -> Iterator[str]:
    """Measure what the options select, and yield it as Markdown."""
    began, load = time.monotonic(), os.getloadavg()[0]
    where = f"wall time, {options.device}, {options.dtype}, {torch.get_num_threads()} thread(s)"
    where += f", d_in = d_out = {D}, {NUM_HEADS} heads"
    yield f"{machine()}, load {load:.1f} before it began."
    yield f"torch {torch.__version__}, {where}."
    names, timed = installed(options.quick), set()
    columns = [*COLUMNS, "with backward, ms", *COLUMNS[1:]]
    for size in options.sizes:
        cells, alone = {name: [] for name in (LIMIT, *names)}, []
        for backward in (False, True):
            here = [name for name in names if fits(name, size, backward)]
            found = measure(here, size, backward, options)
            timed |= {(name, size, backward) for name in found}
            for name, row in cells.items():
                row += show_times(found, name)
            alone.append(found[LIMIT])
        yield table(f"b = {size[0]}, num_tokens = {size[1]:,}", columns, cells)
        yield f"\n{warning(alone, load)}"
        if options.quick and time.monotonic() - began > 30:
            break  # a busy machine: the minute would be over before the next size
    if sizes := [size for size in options.sizes if size[1] >= 1024 and not options.times]:
        runs = list(itertools.product(sizes, (False, True)))
        heads = [f"({b}, {n:,}){' with backward' * back}" for (b, n), back in runs]
        new = {"max_workers": 1, "mp_context": get_context("spawn"), "max_tasks_per_child": 1}
        with ProcessPoolExecutor(**new) as alone:  # each row in a process of its own
            asked = [run for run in timed if run[0] in names and run[1] in sizes]
            held = {run: alone.submit(peak, *run, options) for run in asked}
        written = {run: f"{mib.result():,.0f}" for run, mib in held.items()}
        cells = {name: [written.get((name, *run), "") for run in runs] for name in names}
        yield table("Peak memory in MiB at (b, num_tokens)", heads, cells)


if __name__ == "__main__":
    main()
