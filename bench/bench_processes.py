"""How time and bytes grow with processes here, and what models would need on many GPUs.

Usage: python bench/bench_processes.py [--processes 1 2 4] [--size B NUM_TOKENS D NUM_HEADS]
The first table is measured on this machine, the second is arithmetic.
"""

import argparse
import math

import torch
from bench_turns import print_table
from many_machines import equal, measure

from eleven_steps.beyond import processes, sizes

GPUS = 8, 64
BYTES = 2  # of a number: bfloat16


def grown(numbers: list[int], size: tuple[int, int, int, int]) -> dict[str, list[str]]:
    """Measure with each number of processes; return the cells of a row for each number and way."""
    cells = {}
    for number in numbers:
        with processes.Processes(number, seconds=600) as group:
            measured = group.run(measure, size)
        assert len(measured) == number, f"{number} processes, {len(measured)} answers"
        for way in measured[0]:
            here = [each[way] for each in measured]
            assert equal([each["apart"] for each in here]), f"{number} processes, by {way}"
            cells[f"{number}, by {way}"] = [
                f"{max(each['ms'] for each in here):,.0f}",
                f"{max(each['busy'] for each in here):,.0f}",
                sizes.write_bytes(here[0]["sent"]),
            ]
    return cells


def split(num_heads: int, gpus: int) -> tuple[int, int]:
    """Cut by heads as far as they go, and the rest by tokens: (by heads, by tokens)."""
    by_heads = math.gcd(num_heads, gpus)
    return by_heads, gpus // by_heads


def needed(model: sizes.Model, gpus: int) -> list[str]:
    """Work out what the attention of all layers needs on each GPU, for one text, forward.

    Tokens that are not computed twice: each GPU has num_heads / by_heads heads of context_length /
    by_tokens tokens, sums out with those who have the same tokens, and passes keys and values on
    to those who have the same heads. Cut evenly by tokens, the last GPU has the most pairs: those
    of its tokens with all before.
    """
    by_heads, by_tokens = split(model.num_heads, gpus)
    n, d = model.context_length, model.d_out
    tokens, features = n // by_tokens, d // by_heads
    out = processes.bytes_of_heads(1, tokens, d, BYTES)
    sent = processes.bytes_sent(out, by_heads)
    sent += processes.bytes_of_ring(1, n, features, by_tokens, BYTES)
    layers, pairs = sizes.attention_multiplications(1, n, d, d)
    work = model.num_layers * (layers + pairs) / gpus
    weights = model.num_layers * model.attention_parameters * BYTES // by_heads
    traffic = model.num_layers * sent
    how = f"{by_heads} x {by_tokens}"
    return [
        how,
        sizes.write_bytes(weights),
        f"{work / 1e9:,.1f}",
        sizes.write_bytes(traffic),
        f"{work / traffic:,.0f}" if traffic else "",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--processes", nargs="+", type=int, default=[1, 2, 4])
    parser.add_argument("--size", nargs=4, type=int, default=(1, 1024, 768, 12))
    options = parser.parse_args()
    b, num_tokens, d, num_heads = options.size
    print(f"torch {torch.__version__}, float32, one thread a process, gloo on this machine")
    print_table(
        f"Measured: b = {b}, num_tokens = {num_tokens:,}, d = {d}, {num_heads} heads",
        ["wall, ms", "processor time of a process, ms", "each sends in a forward"],
        grown(options.processes, tuple(options.size)),
    )
    columns = ["heads x tokens", "weights of attention", "multiplications, billions"]
    columns += ["each sends", "multiplications a byte"]
    for gpus in GPUS:
        print_table(
            f"Arithmetic, not measured: attention of all layers on each of {gpus} GPUs, one text "
            f"of context_length, forward, bfloat16",
            columns,
            {model.name: needed(model, gpus) for model in sizes.load_models()},
        )


if __name__ == "__main__":
    main()
