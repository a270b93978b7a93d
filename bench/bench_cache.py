"""Measure what a new token costs with a cache and without.

python bench/bench_cache.py              the tables of docs/benchmarks.md
python bench/bench_cache.py --quick      small sizes, a few seconds

All rows of a table run in one process, in turn, in a new order each round, on one thread, and
processor time is counted, so that other work on the machine tells less. Each row first proves that
it computes what MultiHeadAttention computes, or what VariantAttention does without a cache.
"""

import argparse
import functools
import math
import statistics
import time
import timeit
from collections.abc import Callable

import torch

from bench import NUM_HEADS, D, in_turn, print_table, write
from eleven_steps.beyond.sizes import write_bytes
from eleven_steps.beyond.variants import (
    Cache,
    FusedVariantAttention,
    GroupedHeads,
    VariantAttention,
)
from helpers.attention import FusedMultiHeadAttention, MultiHeadAttention

TOKENS = [1, 16, 64, 256, 1024, 4096]
HEADS = {12: "12 key heads", 4: "4 key heads", 1: "1 key head"}
near = functools.partial(torch.testing.assert_close, rtol=1e-4, atol=1e-5)


def new_token(module: VariantAttention, x: torch.Tensor) -> tuple[Callable, int]:
    """Return a function that puts x's last token through module, all others kept; and bytes."""
    twin = module.plus(cache := Cache())
    if x.shape[1] > 1:
        twin(x[:, :-1])
    kept, last = cache.kept, x[:, -1:]

    def step() -> torch.Tensor:
        cache.kept = kept  # as before the token: what step adds is let go
        return twin(last)

    step()
    return step, cache.nbytes


def cached_rows(num_tokens: int) -> tuple[dict[str, Callable], dict[str, int]]:
    """Return a row for each way to a token's output at num_tokens, proven; bytes of the caches.

    Raises:
        AssertionError: a row computes something else.
    """
    x, rows, kept = torch.randn(1, num_tokens, D), {}, {}
    sizes = D, D, num_tokens, 0.0, NUM_HEADS
    explicit, fused = (cls(*sizes) for cls in (MultiHeadAttention, FusedMultiHeadAttention))
    fused.load_state_dict(explicit.state_dict())
    near(fused(x), explicit(x))
    for module in (explicit, fused):
        rows[f"{type(module).__name__}, all tokens again"] = functools.partial(module, x)
    for heads, name in HEADS.items():
        parts = [GroupedHeads(heads)] * (heads < NUM_HEADS)
        plain = VariantAttention(*sizes, parts=parts)
        if not parts:
            plain.load_state_dict(explicit.state_dict())
            near(plain(x), explicit(x))
        for cls in (VariantAttention, FusedVariantAttention):
            module, row = cls(*sizes, parts=parts), f"{cls.__name__}, cache, {name}"
            module.load_state_dict(plain.state_dict())
            rows[row], kept[row] = new_token(module, x)
            assert kept[row] == 2 * heads * D // NUM_HEADS * num_tokens * 4
            near(rows[row](), plain(x)[:, -1:])
    return rows, kept


def measure(rows: dict[str, Callable], seconds: float) -> dict[str, tuple[float, float, float]]:
    """Time all rows in turn; return the median of each in ms, between its quartiles."""

    def milliseconds(name: str, number: int, _: None) -> float:
        seconds = timeit.timeit(rows[name], timer=time.process_time, number=number)
        return seconds / number * 1e3

    times = in_turn(list(rows), milliseconds, seconds, 3)
    return {name: tuple(statistics.quantiles(rounds, n=4)) for name, rounds in times.items()}


def slope(found: dict[int, float]) -> list[str]:
    """Return how times grow between the two largest num_tokens: as a power, in us a token."""
    (first, less), (last, more) = list(found.items())[-2:]
    power = math.log(more / less) / math.log(last / first)
    return [f"{power:.2f}", f"{(more - less) / (last - first) * 1e3:.3g}"]


def main() -> None:
    """Print what the last of num_tokens tokens costs, in time and in bytes kept."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, a few seconds")
    parser.add_argument("--seconds", type=float, help="for each size (15)")
    options = parser.parse_args()
    tokens = TOKENS[:3] if options.quick else TOKENS
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    print(f"torch {torch.__version__}, processor time, one thread, d = {D}, {NUM_HEADS} heads")
    found, kept = {}, {}
    for n in tokens:
        rows, kept[n] = cached_rows(n)
        seconds = options.seconds or (0.1 if options.quick else 15)
        for name, quartiles in measure(rows, seconds).items():
            found.setdefault(name, {})[n] = quartiles
    cells = {
        name: [*map(write, row.values()), *slope({n: ms for n, (_, ms, _) in row.items()})]
        for name, row in found.items()
    }
    columns = [f"{n:,} tokens" for n in tokens]
    print_table("A new token, ms", [*columns, "power", "us a token"], cells)
    rows = {name: f"FusedVariantAttention, cache, {name}" for name in HEADS.values()}
    cells = {name: [write_bytes(kept[n][row]) for n in tokens] for name, row in rows.items()}
    print_table("Bytes kept", columns, cells)


if __name__ == "__main__":
    main()
