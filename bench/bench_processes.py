"""How time and bytes grow with processes on this machine.

Usage: python bench/bench_processes.py [--processes 1 2 4] [--size B NUM_TOKENS D NUM_HEADS]
"""

import argparse
import sys
from pathlib import Path

import torch

sys.path.append(str(Path(__file__).resolve().parents[1] / "tools"))
from bench_turns import print_table
from many_machines import equal, measure

from eleven_steps.beyond import processes, sizes


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


if __name__ == "__main__":
    main()
