"""What the benchmarks share: the sizes, measuring rows in turn, and tables in Markdown."""

import random
import time
from collections.abc import Callable

D, NUM_HEADS = 768, 12  # the smallest GPT-2


def in_turn(
    names: list[str],
    milliseconds: Callable[..., float],
    seconds: float,
    least: int,
    renew: Callable = lambda: None,
) -> dict[str, list[float]]:
    """Measure all in turn, in a new order each round, for so many seconds; return their times.

    milliseconds is given a name, how often to run it, and what renew returns in each round.
    """
    given = renew()
    numbers = {name: int(20 / milliseconds(name, 1, given)) + 1 for name in names}  # the warm-up
    times, end = {name: [] for name in names}, time.monotonic() + seconds
    while len(times[names[0]]) < least or time.monotonic() < end:
        given = renew()
        for name in random.sample(names, len(names)):
            times[name].append(milliseconds(name, numbers[name], given))
    return times


def write(quartiles: tuple[float, float, float]) -> str:
    """Write a median and the middle half in ms."""
    low, ms, high = (f"{value:,.0f}" if value >= 100 else f"{value:.3g}" for value in quartiles)
    return f"{ms} ({low} to {high})"


def print_table(title: str, columns: list[str], cells: dict[str, list[str]]) -> None:
    """Print rows of cells as Markdown."""
    print(f"\n### {title}\n\n| | {' | '.join(columns)} |\n|---|{'--:|' * len(columns)}")
    for name, row in cells.items():
        print(f"| {name} | {' | '.join(row)} |", flush=True)
