"""Kernels for the tests, forked from a process that has imported what every notebook imports.

A forked kernel starts at once; apart from that its cells find what they find in any new kernel, an
empty namespace: importing the course has no side effects (test_installed.py).
"""

import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from jupyter_client import BlockingKernelClient
from jupyter_client.connect import write_connection_file
from nbval.kernel import RunningKernel

FORKS = sys.platform == "linux"  # elsewhere it is not safe, and each kernel imports for itself
PRELOADED = ["ipykernel.kernelapp", "ipywidgets", "matplotlib.pyplot", "torch", "warm"]
STARTUP = 60  # seconds
ROOT = Path(__file__).resolve().parents[1]

processes = multiprocessing.get_context("forkserver" if FORKS else "spawn")


class Kernel(RunningKernel):
    """Run cells as JupyterLab does: with counts, so that a trailing ";" hides a value."""

    def __init__(self, cwd: str):
        self.folder = tempfile.TemporaryDirectory(prefix="kernel")
        path = str(Path(self.folder.name, "connection.json"))
        sockets = {"transport": "ipc", "ip": f"{path}-ipc"} if FORKS else {}
        write_connection_file(path, **sockets)
        # Matplotlib reads this when it is imported: by the first kernel, or before it is forked.
        os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
        if FORKS:
            processes.set_forkserver_preload(PRELOADED)
        self.process = processes.Process(target=serve, args=(path, cwd), daemon=True)
        self.process.start()
        self.kc = BlockingKernelClient(connection_file=path)
        self.kc.load_connection_file()
        self.kc.start_channels()
        self.await_reply(self.kc.kernel_info(), timeout=STARTUP)
        self._ensure_iopub_up()

    def execute_cell_input(self, cell_input, allow_stdin=None):
        """Send a cell to the kernel and return the message's id."""
        return self.kc.execute(cell_input, allow_stdin=allow_stdin, stop_on_error=False)

    def is_alive(self):
        """Say whether the kernel's process runs."""
        return self.process.is_alive()

    def interrupt(self):
        """Stop the running cell."""
        os.kill(self.process.pid, signal.SIGINT)

    def stop(self):
        """End the kernel's process and forget its connection."""
        self.kc.stop_channels()
        self.process.kill()
        self.process.join()
        self.folder.cleanup()


class Started(subprocess.Popen):
    """A process as a notebook starts it; one of our workers is forked like the kernel itself."""

    def __new__(cls, command, **options):
        ours = command[1:3] == ["-P", "-c"] and "beyond.processes.worker" in command[3]
        return Forked(command[3:], **options) if ours else super().__new__(cls)


class Forked:
    """What a notebook's processes need of Popen, without importing torch in each of them."""

    def __init__(self, command: list[str], stderr, env: dict[str, str], **_):
        (taken, stdin), (stdout, given) = (multiprocessing.Pipe(duplex=False) for _ in range(2))
        own = {"taken": taken, "given": given, "said": stderr.name, "command": command, "env": env}
        self.process = processes.Process(target=exec, args=(WORKER, own))
        self.process.start()
        self.stdin = os.fdopen(os.dup(stdin.fileno()), "wb")
        self.stdout = os.fdopen(os.dup(stdout.fileno()), "rb")
        for end in (taken, given, stdin, stdout):
            end.close()
        self.pid, self.kill = self.process.pid, self.process.kill

    def poll(self) -> int | None:
        """Return the exit status, or None while it runs."""
        return self.process.exitcode

    returncode = property(poll)

    def wait(self) -> int:
        """Wait for its end and return its exit status."""
        self.process.join()
        return self.process.exitcode


# It is executed where this file cannot be imported: a notebook sees no tools.
WORKER = """
import os, sys
os.setsid()
os.environ.clear()
os.environ.update(env)
for number, end in enumerate((taken.fileno(), given.fileno(), os.open(said, os.O_WRONLY))):
    os.dup2(end, number)
taken.close(), given.close()
sys.stdin, sys.stdout, sys.stderr = (open(n, "rw"[n > 0], closefd=False) for n in range(3))
code, *rest = command
sys.argv = ["-c", *rest]
exec(code, {"__name__": "__main__"})
"""


def serve(connection_file: str, cwd: str) -> None:
    """Be a kernel; runs in the kernel's own process."""
    from ipykernel.kernelapp import IPKernelApp  # only a kernel needs it

    if FORKS:
        multiprocessing.current_process()._config["daemon"] = False  # it may start processes
        processes.set_forkserver_preload(["torch", "torch.distributed.tensor"])
        subprocess.Popen = Started
    os.chdir(cwd)
    # A notebook of this checkout imports this checkout, wherever another one is installed; tools
    # and tests, which pytest sees, it does not.
    seen = {
        str(ROOT / folder) for folder in ("tests", "tools", "tools/grade", "tools/site", "bench")
    }
    sys.path[:] = [str(ROOT), *(place for place in sys.path if place not in {str(ROOT), *seen})]
    options = ["--log-level=CRITICAL", "--HistoryManager.hist_file=:memory:"]
    if FORKS:
        options.append(f"--IPKernelApp.parent_handle={os.getppid()}")  # end when the tests end
    IPKernelApp.launch_instance([*options, f"-f={connection_file}"])
