"""What the benchmarks share: sizes, measuring in turn, what disturbed it, tables in Markdown."""

import contextlib
import io
import os
import platform
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

D, NUM_HEADS = 768, 12  # the smallest GPT-2
DISAGREE = 0.1  # of the median: half of a limit's rounds lie further apart under other work
STILL = 0.5  # processes that are running before, on the average of a minute
MARKS = "<!-- bench.py: from here -->", "<!-- bench.py: to here -->"


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
    print(f"\n### {title}\n\n| row | {' | '.join(columns)} |\n|---|{'--:|' * len(columns)}")
    for name, row in cells.items():
        print(f"| {name} | {' | '.join(row)} |", flush=True)


def limits(times: dict[str, list], counts: dict[str, float], backward: bool) -> list[float]:
    """Return the limit of each round: its products, as often as each is counted."""
    rounds = zip(*(times[name] for name in counts), strict=True)
    back = 3 if backward else 1  # the gradient of a product is two products
    return [
        back * sum(ms * n for ms, n in zip(each, counts.values(), strict=True)) for each in rounds
    ]


def warning(limits: list[dict], load: float) -> str:
    """Say whether the rounds of each limit, at one size, agree, and whether all was still before.

    load: how many processes were running before the benchmark began.
    """
    apart = max((limit["high"] - limit["low"]) / limit["ms"] for limit in limits)
    if apart <= DISAGREE and load <= STILL:
        return "Quiet: the limit's own rounds agree."
    return (
        f"Not quiet: the limit's own rounds lie {apart:.0%} apart ({DISAGREE:.0%} at the most are "
        f"expected), and {load:.1f} processes were running before ({STILL} at the most). The "
        f"machine was doing other work: repeat this run."
    )


def beside(found: dict, ours: dict) -> str:
    """Say how a row compares with ours: level if the middle halves of their rounds overlap."""
    if found["low"] <= ours["high"] and ours["low"] <= found["high"]:
        return "level"
    return "slower" if found["ms"] > ours["ms"] else "faster"


class Twice(io.StringIO):
    """What is printed, kept and shown."""

    def write(self, text: str) -> int:
        print(text, end="", file=sys.__stdout__, flush=True)
        return super().write(text)


@contextlib.contextmanager
def into_page(page: Path, command: str) -> Iterator[None]:
    """Put all that is printed meanwhile between the two marks of a page, and print it too."""
    with contextlib.redirect_stdout(Twice()) as printed:
        yield
    before, _, rest = page.read_text("utf-8").partition(MARKS[0])
    inside = f"## {date.today()}\n\n`{command}` printed:\n\n{printed.getvalue()}"
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
