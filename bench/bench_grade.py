"""Time the grader: many submissions of one notebook, their answers filled in differently.

Usage: python bench/bench_grade.py [--submissions 200] [--processes 2]
"""

import argparse
import json
import os
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import grade
from renew import NOTEBOOKS, read
from sandbox import descendants, proportional
from student import without_solutions

NOTEBOOK = NOTEBOOKS / "05_scores.ipynb"
FIRST = (
    "queries @ keys.transpose(2, 3)",
    "torch.einsum('bhqd,bhkd->bhqk', queries, keys)",
    "keys @ queries.transpose(2, 3)",
    "queries @ keys",
    "...",
)
SECOND = "43", "3 * 5 + 4 * 7", "22", "..."


def hand_in(folder: Path, submissions: int) -> None:
    """Write student copies whose open answers differ."""
    copy = without_solutions(read(NOTEBOOK))
    for number in range(submissions):
        text = json.dumps(copy)
        first, second = FIRST[number % len(FIRST)], SECOND[number % len(SECOND)]
        text = text.replace("return ...  # yours", f"return {first}")
        text = text.replace("score = ...  # yours", f"score = {second}")
        (folder / f"student{number:03}__05_scores.ipynb").write_text(text, encoding="utf-8")


def watch(done: threading.Event, seen: list[int]) -> None:
    """Note how much memory this process and all below it use together, four times a second."""
    while not done.wait(0.25):
        seen.append(sum(map(proportional, descendants(os.getpid()))))


def main() -> None:
    """Hand in, grade, and print seconds, memory and what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--submissions", type=int, default=200)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        hand_in(Path(folder), options.submissions)
        with tempfile.TemporaryDirectory() as results:
            out = Path(results, "out.json")
            done, seen = threading.Event(), [0]
            watcher = threading.Thread(target=watch, args=(done, seen))
            watcher.start()
            started = time.perf_counter()
            try:
                grade.main([folder, "--json", str(out), "--processes", str(options.processes)])
            finally:
                took = time.perf_counter() - started
                done.set()
                watcher.join()
            kinds = Counter(each["kind"] for each in json.loads(out.read_text())["results"])
    print(f"{options.submissions} submissions, {options.processes} processes: {took:.0f} s")
    print(f"largest memory, the grader and all it started: {max(seen) / 1e6:.0f} MB")
    print(", ".join(f"{count} {kind}" for kind, count in kinds.most_common()))


if __name__ == "__main__":
    main()
