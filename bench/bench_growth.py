"""Measure how the course's own costs grow: films with pictures and numbers, a
notebook's way to its first picture, tests with notebooks.

python bench/bench_growth.py
python bench/bench_growth.py --quick     all but the tests
"""

import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
from jupyter_client.manager import start_new_kernel

from bench import print_table
from eleven_steps.pictures import Shown, draw_tensor
from eleven_steps.sliders import film

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PYTEST = "-m pytest --quiet --numprocesses=logical --maxprocesses=8 --dist=loadfile"  # make test's


def film_seconds(positions: int, num_tokens: int) -> float:
    """Return the median seconds that a film of (1, num_tokens, 6) tensors takes to build."""

    def draw(token: int):
        shown = Shown(torch.randn(1, num_tokens, 6), "queries", "b num_tokens d_out")
        return draw_tensor(shown, f"Picture {token}.")

    times = []
    for _ in range(5):
        start = time.perf_counter()
        film(draw, token=range(positions))
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def test_seconds(paths: list[Path]) -> float:
    """Return the seconds that make test's command takes for these paths."""
    start = time.perf_counter()
    command = [sys.executable, *PYTEST.split(), *map(str, paths)]
    subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def first_picture() -> dict[str, float]:
    """Return the seconds of each part of a fresh notebook's way to its first live picture."""
    parts = {
        "import torch": "import torch; torch.set_num_threads(1)",
        "import ipywidgets": "import ipywidgets",
        "import helpers": "from helpers import sliders",
        "draw the film of step 3": "sliders.explore_view()",
    }
    start = time.perf_counter()
    manager, client = start_new_kernel()
    seconds = {"kernel start": time.perf_counter() - start}
    for part, code in parts.items():
        start = time.perf_counter()
        reply = client.execute_interactive(code, output_hook=lambda message: None)
        assert reply["content"]["status"] == "ok", part
        seconds[part] = time.perf_counter() - start
    client.stop_channels()
    manager.shutdown_kernel(now=True)
    return seconds


def main() -> None:
    torch.set_num_threads(1)  # as in the notebooks
    table = {}
    for positions, num_tokens in ((5, 4), (10, 4), (20, 4), (40, 4), (10, 16), (10, 64), (10, 160)):
        seconds = film_seconds(positions, num_tokens)
        cells = [f"{6 * num_tokens}", f"{seconds * 1e3:.1f}", f"{seconds / positions * 1e3:.2f}"]
        table[f"{positions} positions, (1, {num_tokens}, 6)"] = cells
    print_table("Building a film", ["numbers a picture", "ms", "ms a picture"], table)
    runs = [first_picture() for _ in range(5)]
    medians = {part: statistics.median(one[part] for one in runs) for part in runs[0]}
    whole = sum(medians.values())
    rows = {part: [f"{s:.2f}", f"{s / whole:.0%}"] for part, s in medians.items()}
    print_table("To the first live picture", ["s", "share"], rows)
    if "--quick" not in sys.argv:
        counts = sorted({min(count, len(NOTEBOOKS)) for count in (1, 2, 4, 8, len(NOTEBOOKS))})
        table = {
            f"{count} notebooks": [f"{test_seconds(NOTEBOOKS[:count]):.1f}"] for count in counts
        }
        table["unit tests"] = [f"{test_seconds([ROOT / 'tests']):.1f}"]
        print_table("make test, by what it runs", ["s"], table)


if __name__ == "__main__":
    main()
