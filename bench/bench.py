"""Measure what attention costs: every implementation against the machine's own matrix products.

    python bench/bench.py                               the tables of docs/benchmarks.md
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
rounds disagree, the machine was doing other work: that is said, and the run is to be repeated. Peak
memory is taken in a process of its own.

Peers run where they are installed: `pip install -e ".[bench]"`, and, since what it requires would
replace parts of the course, `pip install --no-deps llms-from-scratch==1.0.19`.
"""

import argparse
import functools
import itertools
import json
import statistics
import subprocess
import sys
import time
import timeit
from collections.abc import Callable
from pathlib import Path

import bench_rows
import torch
from bench_rows import ROWS, prove, run
from bench_turns import NUM_HEADS, D, in_turn, limits, machine, print_table, warning, write
from torch.utils.benchmark import timer

from helpers.attention import FusedMultiHeadAttention

SIZES = [(8, 1024), (8, 256), (1, 64), (1, 256), (1, 1024), (1, 4096), (1, 16384)]
QUICK_SIZES = [(2, 128), (1, 64), (1, 256)]
LARGEST = 2**28  # elements in (b, num_heads, num_tokens, num_tokens): a row with more is left out
LIMIT = "the limit"
LEAST = (
    7  # rounds: a row that follows a large one finds its memory in disorder, and the next does not
)
DRAWN = {
    bench_rows.FUSED: "D-",
    bench_rows.EXPLICIT: "o-",
    bench_rows.WRAPPER: "s:",
    bench_rows.TORCHS: "^--",
    bench_rows.LECTURE: "v:",
    LIMIT: "k--",
}


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
) -> list[dict]:
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
    about = {"b": b, "num_tokens": num_tokens, "backward": backward, "rounds": len(times[rows[0]])}
    found, limit = [], statistics.median(times[LIMIT])
    for name in (LIMIT, *rows):
        low, ms, high = statistics.quantiles(times[name], n=4, method="inclusive")
        spread = {"ms": ms, "low": low, "high": high, "multiple": ms / limit}
        found.append({"row": name, **about, **spread})
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
) -> dict:
    """Call peak in a process of its own."""
    how = f"--size {size[0]} {size[1]} --device {options.device} --threads {options.threads}"
    how += f" --dtype {str(options.dtype).removeprefix('torch.')}" + " --backward" * backward
    command = [sys.executable, __file__, *how.split(), "--peak", name]
    mib = float(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return {"row": name, "b": size[0], "num_tokens": size[1], "backward": backward, "MiB": mib}


def show_times(found: dict | None) -> list[str]:
    """Return the cells of one row in one direction: the median, the middle half, the multiple."""
    if found is None:
        return ["", ""]
    return [write((found["low"], found["ms"], found["high"])), f"{found['multiple']:.2f}"]


def draw(found: list[dict], path: Path) -> None:
    """Draw the first size's multiples of the limit, and how the time of one sequence grows."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    plt.style.use("tableau-colorblind10")
    figure, (bars, lines) = plt.subplots(1, 2, figsize=(12, 4.5), layout="constrained")
    forward = [each for each in found if not each["backward"]]
    b, num_tokens = forward[0]["b"], forward[0]["num_tokens"]
    first = [each for each in forward if (each["b"], each["num_tokens"]) == (b, num_tokens)][::-1]
    widths = [each["multiple"] for each in first]
    bars.bar_label(bars.barh([each["row"] for each in first], widths), fmt="%.2f", padding=3)
    bars.set_title(f"forward, b = {b}, num_tokens = {num_tokens:,}", loc="left")
    bars.set_xlabel("times the limit")
    bars.margins(x=0.1)
    for name, style in DRAWN.items():
        grown = [each for each in forward if each["b"] == 1 and each["row"] == name]
        num_tokens = [each["num_tokens"] for each in grown]
        lines.loglog(num_tokens, [each["ms"] for each in grown], style, label=name)
    lines.set_title("forward, b = 1", loc="left")
    lines.set(xlabel="num_tokens", ylabel="ms")
    lines.legend(frameon=False)
    figure.savefig(path, dpi=100)


def at_limit(found: dict, size: tuple[int, int]) -> bool:
    """Tell whether a figure is the limit of a size."""
    return found["row"] == LIMIT and (found["b"], found["num_tokens"]) == size


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
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure to FILE")
    parser.add_argument("--chart", type=Path, metavar="FILE", help="draw the chart to FILE")
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
        return
    clock = "processor time" if options.busy else "wall time"
    where = f"{clock}, {options.device}, {options.dtype}, {options.threads} thread(s)"
    print(f"{machine()}\ntorch {torch.__version__}, {where}, d_in = d_out = {D}, {NUM_HEADS} heads")
    names, times, memory = installed(options.rows, options.quick), [], []
    sizes = options.size or (QUICK_SIZES if options.quick else SIZES)
    directions = (False,) if options.forward else (False, True)
    columns = ["forward, ms", "x limit", "with backward, ms", "x limit"][: 2 * len(directions)]
    for size in sizes:
        cells = {name: [] for name in (LIMIT, *names)}
        for backward in directions:
            here = [name for name in names if fits(name, size, backward)]
            found = {each["row"]: each for each in measure(here, size, backward, options)}
            times += found.values()
            for name, row in cells.items():
                row += show_times(found.get(name))
        print_table(f"b = {size[0]}, num_tokens = {size[1]:,}", columns, cells)
        print(warning([each for each in times if at_limit(each, size)]))

    timed = {(each["row"], each["b"], each["num_tokens"], each["backward"]) for each in times}
    sizes = [size for size in sizes if size[1] >= 1024 and not options.times]
    cells = {name: [] for name in names}
    for name, size, backward in itertools.product(names, sizes, directions):
        if (name, *size, backward) in timed:
            memory.append(measure_memory(name, size, backward, options))
            cells[name].append(f"{memory[-1]['MiB']:,.0f}")
        else:
            cells[name].append("")
    heads = [f"({b}, {n:,}){' with backward' * back}" for b, n in sizes for back in directions]
    if sizes:
        print_table("Peak memory in MiB at (b, num_tokens)", heads, cells)

    if options.json:
        about = {"torch": torch.__version__, "threads": options.threads, "clock": clock, "d": D}
        about |= {
            "machine": machine(),
            "device": options.device,
            "dtype": str(options.dtype),
            "num_heads": NUM_HEADS,
        }
        options.json.write_text(json.dumps({**about, "times": times, "memory": memory}, indent=1))
    if options.chart:
        draw(times, options.chart)


if __name__ == "__main__":
    main()
