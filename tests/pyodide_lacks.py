"""Take away from this process what Python lacks in a browser (Pyodide 314 with its torch).

One list: what is added here is tried in every notebook of the evening.
"""

import contextlib
import fcntl
import multiprocessing.process
import os
import signal
import subprocess
import threading
from unittest import mock

import torch
import torch.distributed


def refuse(error):
    """Return a function that raises, whatever it is called with."""

    def refused(*args, **options):
        raise error

    return refused


NO_THREAD = RuntimeError("can't start new thread")
NO_PROCESS = OSError(138, "emscripten does not support processes.")


@contextlib.contextmanager
def taken_away():
    """Run the body without timers, threads, processes, file locks and torch's compiler."""
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
