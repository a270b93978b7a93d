"""Test every cell of every notebook with nbval, and compare all of its stored outputs.

Beyond nbval's own comparison, these tests compare PNG pictures, the order and kinds of outputs,
execution counts, and the exceptions that a cell is tagged to raise. A trailing ";" hides a value,
as in JupyterLab.
"""

import contextlib
import os
import re
import signal
import sys
from collections import defaultdict

# If jsonschema finds this package, it builds 39 grammars in each process to check addresses, which
# no notebook has.
sys.modules.setdefault("rfc3987_syntax", None)

import nbval.plugin
import pytest
from kernels import Kernel
from nbval.plugin import IPyNbCell, IPyNbFile, find_metadata_tags
from renew import VIEW, as_shipped, merge_streams, read

# Several test processes run at the same time, and tiny tensors are slower on several threads. torch
# reads this when it is imported, so it is set before.
os.environ.setdefault("OMP_NUM_THREADS", "1")

pytest_plugins = ["nbval.plugin"]
pytest.register_assert_rewrite("sampled")
nbval.plugin.coalesce_streams = merge_streams  # nbval's own loses the order of texts

shipped = contextlib.ExitStack()
NIGHT = re.compile(r"^pytestmark = pytest\.mark\.nightly\b", re.MULTILINE)


def pytest_configure(config):
    """Let errors inside a check raise, and let processes that tests start import this checkout.

    The signal handler lets Ctrl+C stop tests in the background too, where a shell ignores it.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["ELEVEN_STEPS_STRICT"] = "1"
    shipped.enter_context(as_shipped())
    config.add_cleanup(shipped.close)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish():
    """Clean up before a worker reports that it has finished, because it is ended soon after."""
    shipped.close()


def pytest_ignore_collect(collection_path, config):
    """Skip files whose tests are all deselected by marks, so that no process imports them."""
    marks = config.option.markexpr
    if collection_path.name == "browser":
        return "not browser" in marks or None
    if collection_path.suffix == ".py" and "not nightly" in marks:
        return bool(NIGHT.search(collection_path.read_text("utf-8"))) or None
    return None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path, parent):
    collectors = yield
    return [
        StrictNotebook.from_parent(parent, path=file_path) if type(c) is IPyNbFile else c
        for c in collectors
    ]


class StrictNotebook(IPyNbFile):
    """Collect a notebook, and compare its pictures like its texts."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.skip_compare = tuple(set(self.skip_compare) - {"image/png", "image/jpeg"})

    def setup(self):
        self.kernel = Kernel(str(self.path.parent))

    def collect(self):
        """Yield the code cells, each with the execution count it must be stored with.

        tests/test_notebooks.py validates each notebook; nbval would once more in every process.
        """
        self.nb, count = read(self.path), 0
        for number, cell in enumerate(c for c in self.nb.cells if c.cell_type == "code"):
            options = defaultdict(bool, {"check": True} | dict(find_metadata_tags(cell.metadata)))
            strict = StrictCell.from_parent(
                self, name=f"Cell {number}", cell_num=number, cell=cell, options=options
            )
            if cell.source.strip():
                strict.count = count = count + 1
            yield strict


class StrictCell(IPyNbCell):
    """Run a cell, and fail on every difference between its stored and its new outputs."""

    count = None

    def runtest(self):
        """Run the cell and compare; then compare what nbval leaves out."""
        if self.cell.execution_count != self.count:
            self.raise_cell_error(
                f"Execution count: stored {self.cell.execution_count}, expected {self.count}. The "
                "notebook was saved after a run of your own, or its outputs were cleared: "
                "make notebooks stores it as the course does."
            )
        super().runtest()
        raised = any(output.output_type == "error" for output in self.test_outputs)
        if self.options["check_exception"] and not raised:
            self.raise_cell_error("The cell is tagged raises-exception, but raised nothing")
        stored, new = kinds(self.cell.outputs), kinds(self.test_outputs)
        if stored != new:
            self.raise_cell_error(f"Kinds or order of outputs: stored {stored}, now {new}")


def kinds(outputs):
    """Return the kind of each output; a stored notebook keeps no widget views."""
    return [
        (output.output_type, output.get("name", ""), *sorted({*output.get("data", {})} - {VIEW}))
        for output in merge_streams(outputs)
    ]
