"""Re-execute notebooks from clean kernels and write their normal form, or check that form.

Usage: python tools/renew.py [--check] [NOTEBOOK ...], all of notebooks/ unless named.

A new run reproduces the normal form to the byte: it has outputs without widget views, error
tracebacks cut to their last line, and only the metadata that follow from tags. A cell
tagged nbval-ignore-output shows measured times: it keeps its stored outputs until its source
changes or its outputs are cleared.
"""

import argparse
import asyncio
import contextlib
import hashlib
import os
import sys
import tempfile
import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from unittest import mock

import nbformat
from course import COURSE, NOTEBOOKS
from nbclient import NotebookClient
from nbformat import NotebookNode
from traitlets.config import Config

VIEW = "application/vnd.jupyter.widget-view+json"
MEASURED = "nbval-ignore-output"
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}

PROGRESS = "ELEVEN_STEPS_PROGRESS"  # names the file that remembers what a learner has done


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="run nothing, only compare the form")
    parser.add_argument("notebooks", nargs="*", type=Path)
    options = parser.parse_args()
    paths = options.notebooks or COURSE.values()
    if options.check:
        irregular = [path for path in paths if normal_form(read(path)) != path.read_text("utf-8")]
        print(*(f"{path}: not in normal form" for path in irregular), sep="\n", end="")
        return len(irregular) > 0
    with as_shipped():
        failures = asyncio.run(for_each(paths, renew))
    return failures > 0


@contextlib.contextmanager
def as_shipped() -> Iterator[None]:
    """Run notebooks with the code of this checkout, wherever another is installed, and as if no
    exercise were done: what they store shows the course's beginning."""
    paths = str(NOTEBOOKS.parent), os.environ.get("PYTHONPATH")
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        os.environ[PROGRESS] = str(Path(folder, "progress.json"))
        yield


async def for_each(paths: Iterable[Path], work: Callable[[Path], Awaitable[str]]) -> int:
    """Call a function for every notebook, on all cores; return how many calls failed."""
    kernels = asyncio.Semaphore(os.cpu_count() or 1)

    async def report(path: Path) -> bool:
        async with kernels:
            try:
                outcome = await work(path)
            except Exception as error:
                print(f"{path}: FAILED, nothing written\n{error}", file=sys.stderr)
                return True
        print(f"{path}: {outcome}", flush=True)
        return False

    return sum(await asyncio.gather(*map(report, paths)))


async def renew(path: Path) -> str:
    """Execute one notebook in a fresh kernel, write its normal form, say whether it changed."""
    notebook = read(path)
    kept = {cell.id: cell.outputs for cell in notebook.cells if is_measured(cell)}
    await client(notebook, path, store_widget_state=False).async_execute()
    for cell in notebook.cells:
        if cell.id in kept:
            cell.outputs = kept[cell.id]
        if MEASURED in cell.metadata.get("tags", []):
            cell.metadata.measured_source = digest(cell)
    before, after = path.read_text("utf-8"), normal_form(notebook)
    if after != before:
        path.write_text(after, encoding="utf-8", newline="\n")
    return "unchanged" if after == before else "renewed"


def client(notebook: NotebookNode, path: Path, **options) -> NotebookClient:
    """Return a client that executes a notebook in a fresh kernel, in the notebook's folder."""
    # A port that is chosen can be taken before the kernel binds it; a new file cannot.
    files = {"transport": "ipc", "ip": str(Path(tempfile.gettempdir(), uuid.uuid4().hex))}
    return NotebookClient(
        notebook,
        timeout=60,
        iopub_timeout=60,  # late outputs of a busy machine would be left out
        raise_on_iopub_timeout=True,
        kernel_name="python3",
        record_timing=False,
        extra_arguments=["--IPKernelApp.log_level=40"],
        resources={"metadata": {"path": str(path.resolve().parent)}},
        config=Config(KernelManager=files if os.name == "posix" else {}),
        **options,
    )


def read(path: Path) -> NotebookNode:
    """Read a notebook; a cell without an id gets one from its position."""
    notebook = nbformat.v4.reads(path.read_text("utf-8"))
    notebook.nbformat_minor = 5
    for place, cell in enumerate(notebook.cells):
        cell.setdefault("id", f"cell-{place}")
    return notebook


def normal_form(notebook: NotebookNode) -> str:
    notebook = nbformat.from_dict(notebook)
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        cell.metadata = normal_metadata(cell)
        if cell.cell_type == "code":
            cell.outputs = merge_streams(cell.outputs)
        for output in cell.get("outputs", []):
            if "data" in output:
                output.data.pop(VIEW, None)
            if "metadata" in output:
                output.metadata = NotebookNode()
            if "traceback" in output:
                output.traceback = [f"{output.ename}: {output.evalue}"]
            if "execution_count" in output:
                output.execution_count = cell.execution_count
    nbformat.validate(notebook)
    return nbformat.writes(notebook) + "\n"


def normal_metadata(cell: NotebookNode) -> NotebookNode:
    """Return the metadata of a cell: its tags, and what follows from them.

    Some cells start out folded: solutions, the set-up, code that only prepares a picture, and
    everything below a heading with the tag "deeper".
    """
    metadata = NotebookNode()
    if tags := cell.metadata.get("tags"):
        metadata.tags = tags
    if "solution" in (tags or []):
        metadata.jupyter = NotebookNode(source_hidden=True, outputs_hidden=True)
    if {"set-up", "picture"} & {*(tags or [])}:
        metadata.jupyter = NotebookNode(source_hidden=True)
    if "deeper" in (tags or []):
        metadata["jp-MarkdownHeadingCollapsed"] = True
    if "measured_source" in cell.metadata:
        metadata.measured_source = cell.metadata.measured_source
    return metadata


def merge_streams(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Join consecutive texts of one stream, because a kernel splits them at random."""
    merged: list[NotebookNode] = []
    for output in outputs:
        if merged and output.output_type == "stream" and merged[-1].get("name") == output.name:
            merged[-1].text += output.text
        else:
            merged.append(nbformat.from_dict(output))
    return merged


def is_measured(cell: NotebookNode) -> bool:
    """Say whether a cell holds stored measurements of its current source."""
    return bool(cell.get("outputs")) and cell.metadata.get("measured_source") == digest(cell)


def digest(cell: NotebookNode) -> str:
    return hashlib.sha256(cell.source.encode()).hexdigest()[:16]


if __name__ == "__main__":
    sys.exit(main())
