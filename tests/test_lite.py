"""The evening runs where Python has no timers, threads or processes, as in a browser."""

import contextlib
import fcntl
import io
import multiprocessing.process
import os
import signal
import subprocess
import threading
from unittest import mock

import pytest
import renew
import torch
import torch.distributed
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from eleven_steps.beyond import processes

EVENING = [name for name, path in renew.COURSE.items() if path.parent.name == "notebooks"]
NO_HISTORY = Config(HistoryManager={"enabled": False})  # it would write from a thread


def refuse(error):
    """Return a function that raises, whatever it is called with."""

    def refused(*args, **options):
        raise error

    return refused


NO_THREAD = RuntimeError("can't start new thread")
NO_PROCESS = OSError(138, "emscripten does not support processes.")


@contextlib.contextmanager
def taken_away():
    """Run the body without what Python lacks in a browser (Pyodide 314 with its torch).

    What is added here is tried in every notebook of the evening.
    """
    one_thread = torch.set_num_threads

    def set_num_threads(number):
        if number != 1:
            raise RuntimeError("set_num_threads expects 1 here")
        one_thread(number)

    with contextlib.ExitStack() as gone:
        for owner, name in (
            (signal, "setitimer"),
            (signal, "getitimer"),
            (fcntl, "flock"),
            (torch.distributed, "init_process_group"),
            (torch.distributed, "new_group"),
        ):
            gone.enter_context(mock.patch.object(owner, name))
            delattr(owner, name)  # the patch puts it back
        for owner, name, instead in (
            (threading.Thread, "start", refuse(NO_THREAD)),
            (subprocess.Popen, "__init__", refuse(NO_PROCESS)),
            (multiprocessing.process.BaseProcess, "start", refuse(NO_PROCESS)),
            (os, "fork", refuse(OSError(52, "Function not implemented"))),
            (torch, "set_num_threads", set_num_threads),
            (torch, "compile", refuse(RuntimeError("no functorch"))),
            (torch.distributed, "is_available", lambda: False),
        ):
            gone.enter_context(mock.patch.object(owner, name, instead))
        yield


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
