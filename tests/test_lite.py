"""The evening runs where Python has no timers, threads or processes, as in a browser."""

import contextlib
import io

import pytest
import renew
import torch
from IPython.core.interactiveshell import InteractiveShell
from pyodide_lacks import taken_away
from traitlets.config import Config

from eleven_steps.beyond import processes

EVENING = [name for name, path in renew.COURSE.items() if path.parent.name == "notebooks"]
NO_HISTORY = Config(HistoryManager={"enabled": False})  # it would write from a thread


@pytest.fixture(scope="module", autouse=True)
def browser():
    with taken_away(), torch.set_grad_enabled(True):  # the notebooks switch gradients off
        yield


@pytest.fixture
def shell(monkeypatch, tmp_path):
    """A new shell; what it displays or prints is not looked at."""
    monkeypatch.setenv("ELEVEN_STEPS_PROGRESS", str(tmp_path / "progress.json"))
    monkeypatch.setenv("MPLBACKEND", "agg")
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(config=NO_HISTORY)
    shell.showtraceback = lambda *args, **options: None
    yield shell
    InteractiveShell.clear_instance()


@pytest.mark.parametrize("name", EVENING)
def test_no_cell_fails_without_what_a_browser_lacks(name, shell):
    failed = []
    for number, cell in enumerate(renew.read(renew.COURSE[name]).cells):
        if cell.cell_type != "code":
            continue
        expected = [output.ename for output in cell.outputs if output.output_type == "error"]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            ran = shell.run_cell(cell.source, store_history=False)
        error = ran.error_before_exec or ran.error_in_exec
        if [type(error).__name__] * bool(error) != expected:
            failed.append((number, repr(error), cell.source[:60]))
    assert failed == []


def test_a_cell_that_needs_processes_says_so():
    with pytest.raises(RuntimeError, match="A browser runs one process only: .* make lab"):
        processes.Processes(2)
