"""How much memory a learner takes: each notebook's kernel after Run All, in MiB.

Usage: python bench/bench_memory.py [NOTEBOOK ...]. Linux.

Resident is what a kernel holds in all, own is what no other process shares with it, since on a
machine with many learners the libraries are in memory once; peak is the most it held on the way.
"""

import asyncio
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from renew import NOTEBOOKS, nothing_done


def memory(pid: int) -> dict[str, float]:
    """Return what a process holds, in MiB: Rss, and of it what is its own, Private_*."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    found = {line.split(":")[0]: int(line.split()[1]) / 1024 for line in lines}
    return {"rss": found["Rss"], "own": found["Private_Clean"] + found["Private_Dirty"]}


def peak(pid: int) -> float:
    """Return the most that a process has held, in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


async def run_all(path: Path) -> list[float]:
    """Run a notebook; return resident, own and peak of its kernel."""
    notebook = nbformat.read(path, 4)
    where = {"metadata": {"path": str(path.parent)}}
    client = NotebookClient(notebook, timeout=600, resources=where, allow_errors=True)
    async with client.async_setup_kernel():
        for number, cell in enumerate(notebook.cells):
            await client.async_execute_cell(cell, number)
        kernel = client.km.provisioner.process.pid
        held = memory(kernel)
        return [held["rss"], held["own"], peak(kernel)]


def main() -> None:
    paths = list(map(Path, sys.argv[1:])) or sorted(NOTEBOOKS.glob("*.ipynb"))
    print("| notebook | resident | own | peak |\n|---|--:|--:|--:|")
    with nothing_done():
        for path in paths:
            numbers = asyncio.run(run_all(path))
            print(
                f"| {path.stem} |", " | ".join(f"{each:,.0f}" for each in numbers), "|", flush=True
            )


if __name__ == "__main__":
    main()
