"""Measure what a new token costs with a cache and without, and what each change costs.

python bench/bench_cache.py              the tables of docs/benchmarks.md
python bench/bench_cache.py --quick      small sizes, a few seconds

All rows of a table run in one process, in turn, in a new order each round, on one thread, and
processor time is counted, so that other work on the machine tells less. Each row first proves that
it computes what MultiHeadAttention computes, or what the eleven steps of VariantAttention do.
"""

import argparse
import functools
import math
import statistics
import time
import timeit
from collections.abc import Callable

import torch
from bench_turns import NUM_HEADS, D, in_turn, print_table, write

from eleven_steps.beyond import variants
from eleven_steps.beyond.sizes import write_bytes
from eleven_steps.beyond.variants import FusedVariantAttention, VariantAttention
from helpers.attention import FusedMultiHeadAttention, MultiHeadAttention

TOKENS = [1, 16, 64, 256, 1024, 4096]
HEADS = [12, 4, 1]  # of keys and values
HEAD_DIM = D // NUM_HEADS


def parts_of(num_kv_heads: int) -> list[variants.Part]:
    """Return the parts that leave so many heads of keys."""
    return [variants.GroupedHeads(num_kv_heads)] if num_kv_heads < NUM_HEADS else []


def name_heads(num_kv_heads: int) -> str:
    """Write a number of heads of keys."""
    return f"{num_kv_heads} key head{'s' * (num_kv_heads > 1)}"


def fill(module: VariantAttention, x: torch.Tensor) -> tuple[VariantAttention, variants.Cache]:
    """Return a twin whose cache holds all tokens of x, and that cache. 0 tokens are allowed."""
    cache = variants.Cache()
    twin = module.plus(cache)
    if x.shape[1]:
        twin(x)
    return twin, cache


def new_token(module: VariantAttention, x: torch.Tensor) -> tuple[Callable, int]:
    """Return a function that puts x's last token through module, all others kept; and bytes."""
    twin, cache = fill(module, x[:, :-1])
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
    explicit = MultiHeadAttention(*sizes)
    fused = FusedMultiHeadAttention(*sizes)
    fused.load_state_dict(explicit.state_dict())
    rows["MultiHeadAttention, all tokens again"] = functools.partial(explicit, x)
    rows["FusedMultiHeadAttention, all tokens again"] = functools.partial(fused, x)
    expected = explicit(x)[:, -1:]
    torch.testing.assert_close(fused(x)[:, -1:], expected, rtol=1e-4, atol=1e-5)
    for heads in HEADS:
        plain = VariantAttention(*sizes, parts=parts_of(heads))
        if heads == NUM_HEADS:
            plain.load_state_dict(explicit.state_dict())
            torch.testing.assert_close(plain(x)[:, -1:], expected, rtol=1e-4, atol=1e-5)
        expected = plain(x)[:, -1:]
        for cls in (VariantAttention, FusedVariantAttention):
            module = cls(*sizes, parts=parts_of(heads))
            module.load_state_dict(plain.state_dict())
            name = f"{cls.__name__}, cache, {name_heads(heads)}"
            rows[name], kept[name] = new_token(module, x)
            torch.testing.assert_close(rows[name](), expected, rtol=1e-4, atol=1e-5)
    return rows, kept


CHANGES = {
    "no change": [],
    "4 key heads": [variants.GroupedHeads(4)],
    "1 key head": [variants.GroupedHeads(1)],
    "Norm": [variants.Norm()],
    "Rope": [variants.Rope()],
    "Cap": [variants.Cap()],
    "Alibi": [variants.Alibi()],
    "Window(256)": [variants.Window(256)],
    "Padding, left": None,
    "Sinks": [variants.Sinks()],
    "Gate": [variants.Gate()],
    "Latent(256, 32)": [variants.Latent(256, 32), variants.Rope(width=32)],
    "OtherSequence": None,
}


def change_rows(num_tokens: int) -> dict[str, Callable]:
    """Return a row for each change, by eleven steps and fused, proven equal.

    Raises:
        AssertionError: the two are not equal.
    """
    x, rows = torch.randn(1, num_tokens, D), {}
    is_padding = torch.arange(num_tokens)[None] < num_tokens // 8
    own = {"Padding, left": [variants.Padding(is_padding)]}
    own["OtherSequence"] = [variants.OtherSequence(torch.randn(1, num_tokens, D))]
    for name, parts in (CHANGES | own).items():
        pair = [
            cls(D, D, num_tokens, 0.0, NUM_HEADS, parts=parts)
            for cls in (VariantAttention, FusedVariantAttention)
        ]
        pair[1].load_state_dict(pair[0].state_dict())
        real = ~is_padding if name == "Padding, left" else slice(None)
        torch.testing.assert_close(pair[1](x)[real], pair[0](x)[real], rtol=1e-4, atol=1e-5)
        for module, way in zip(pair, ("eleven steps", "fused"), strict=True):
            rows[f"{name}: {way}"] = functools.partial(module, x)
    for cls in (MultiHeadAttention, FusedMultiHeadAttention):
        rows[cls.__name__] = functools.partial(cls(D, D, num_tokens, 0.0, NUM_HEADS), x)
    return rows


def measure(rows: dict[str, Callable], seconds: float) -> dict[str, tuple[float, float, float]]:
    """Time all rows in turn; return the median of each in ms, between its quartiles."""

    def milliseconds(name: str, number: int, _: None) -> float:
        seconds = timeit.timeit(rows[name], timer=time.process_time, number=number)
        return seconds / number * 1e3

    times = in_turn(list(rows), milliseconds, seconds, 3)
    return {name: tuple(statistics.quantiles(each, n=4)) for name, each in times.items()}


def slope(found: dict[int, float]) -> list[str]:
    """Return how times grow between the two largest num_tokens: as a power, in us a token."""
    (first, less), (last, more) = list(found.items())[-2:]
    power = math.log(more / less) / math.log(last / first)
    return [f"{power:.2f}", f"{(more - less) / (last - first) * 1e3:.3g}"]


def show_new_tokens(tokens: list[int], seconds: float) -> None:
    """Print what the last of num_tokens tokens costs, in time and in bytes kept."""
    found, kept = {}, {}
    for n in tokens:
        rows, kept[n] = cached_rows(n)
        for name, quartiles in measure(rows, seconds).items():
            found.setdefault(name, {})[n] = quartiles
    cells = {
        name: [*map(write, each.values()), *slope({n: q[1] for n, q in each.items()})]
        for name, each in found.items()
    }
    columns = [*(f"{n:,} tokens" for n in tokens), "power", "us a token"]
    print_table("A new token, ms", columns, cells)
    cells = {}
    for heads in HEADS:
        name = f"FusedVariantAttention, cache, {name_heads(heads)}"
        for n in tokens:
            assert kept[n][name] == 2 * heads * HEAD_DIM * n * 4
        each = write_bytes(2 * heads * HEAD_DIM * 4)
        cells[name_heads(heads)] = [each, *(write_bytes(kept[n][name]) for n in tokens)]
    print_table("Bytes kept", ["a token", *(f"{n:,} tokens" for n in tokens)], cells)


def show_changes(num_tokens: int, seconds: float) -> None:
    """Print what each change costs, by eleven steps and fused, beside the class without it."""
    found = measure(change_rows(num_tokens), seconds)
    plain = {"eleven steps": found["MultiHeadAttention"][1]}
    plain["fused"] = found["FusedMultiHeadAttention"][1]
    cells = {"MultiHeadAttention, FusedMultiHeadAttention": []}
    for cls, way in zip(list(found)[-2:], plain, strict=True):
        cells["MultiHeadAttention, FusedMultiHeadAttention"] += [write(found[cls]), "1.00"]
        for name in CHANGES:
            quartiles = found[f"{name}: {way}"]
            times = f"{quartiles[1] / plain[way]:.2f}"
            none = way == "fused" and name == "Cap"
            cells.setdefault(name, []).extend(["", ""] if none else [write(quartiles), times])
    columns = ["eleven steps, ms", "x MultiHeadAttention", "fused, ms", "x FusedMultiHeadAttention"]
    print_table(f"Each change, forward at b = 1, num_tokens = {num_tokens:,}", columns, cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, a few seconds")
    parser.add_argument("--seconds", type=float, help="for each size (15)")
    options = parser.parse_args()
    seconds = options.seconds or (0.1 if options.quick else 15)
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    print(f"torch {torch.__version__}, processor time, one thread, d = {D}, {NUM_HEADS} heads")
    show_new_tokens([1, 16, 64] if options.quick else TOKENS, seconds)
    show_changes(64 if options.quick else 1024, 3 * seconds)


if __name__ == "__main__":
    main()
