"""Start processes from a notebook, run functions in them, and end them, whatever happens."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from eleven_steps.beyond.processes import NOT_HERE
from eleven_steps.beyond.processes.travel import pack
from eleven_steps.beyond.processes.worker import receive, send
from eleven_steps.helpers.attention import check_sizes

SECONDS = 60.0
WORK = "from eleven_steps.beyond.processes.worker import main; main()"
LOOPBACK = {"linux": "lo", "darwin": "lo0"}  # the loopback needs no network


class Processes:
    """Run functions in several processes at once, which communicate with torch.distributed.

    They find each other through a file in a new folder, so that two groups cannot collide, and
    communicate over the loopback interface. They end with close(), at the end of a with block,
    when one of them ends, and when this process ends for any reason.

    Args:
        num_processes: how many; each has a number, its rank, from 0 on, and one thread.
        seconds: how long all of them may take to start, or to answer, before all are stopped.

    Raises:
        TypeError, ValueError: num_processes is not a positive int.
        RuntimeError: they do not start.
    """

    def __init__(self, num_processes: int, seconds: float = SECONDS):
        check_sizes(num_processes=num_processes)
        self.num_processes = num_processes
        self.seconds = seconds
        self.folder = tempfile.TemporaryDirectory(prefix="processes", ignore_cleanup_errors=True)
        self.answers: queue.Queue = queue.Queue()
        try:
            self.running = [self._start(rank) for rank in range(num_processes)]
        except OSError as error:
            raise RuntimeError(f"no process can be started here ({error}). {NOT_HERE}") from None
        self._gather()

    def run(
        self,
        function: Callable,
        *arguments: Any,
        shares: Sequence[Any] | None = None,
        seconds: float | None = None,
    ) -> list[Any]:
        """Call a function in every process, and return the results by rank.

        What the functions print is shown when all are done, or one has failed, by rank.

        Args:
            function: a function of the notebook or of a module; it may use torch.distributed.
            arguments: what every process gets.
            shares: what process 0, 1, ... alone gets, as the first argument of its call.
            seconds: how long this call may take; those of the group if left out.

        Returns:
            A list of num_processes results: tensors, numbers, texts, or lists, tuples and
            dictionaries of such.

        Raises:
            TypeError: the function cannot be sent.
            ValueError: there are not as many shares as processes.
            RuntimeError: a process ended, raised, or did not answer in time: all have ended then.
        """
        if shares is not None and len(shares) != self.num_processes:
            raise ValueError(
                f"{len(shares)} shares: one for each of {self.num_processes} processes"
            )
        if not self.running:
            raise RuntimeError(f"these processes have ended: start Processes({self.num_processes})")
        luggage = pack(function)
        for rank, process in enumerate(self.running):
            own = () if shares is None else (shares[rank],)
            with contextlib.suppress(BrokenPipeError):  # _gather reports that it has ended
                send(process.stdin, (luggage, (*own, *arguments)))
        return self._gather(seconds)

    def close(self) -> None:
        """End all processes at once; a second call does nothing."""
        for process in self.running:
            process.kill()
        for process in self.running:
            process.wait()
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
        self.running = []
        self.folder.cleanup()

    def __enter__(self) -> "Processes":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self):
        if getattr(self, "running", None):
            self.close()

    def __repr__(self) -> str:
        state = "running" if self.running else "ended"
        return f"{self.num_processes} processes, {state}"

    def _start(self, rank: int) -> subprocess.Popen:
        about = {"rank": rank, "num_processes": self.num_processes}
        about |= {"folder": self.folder.name, "seconds": self.seconds}
        with Path(self.folder.name, f"stderr-{rank}").open("wb") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", WORK, json.dumps(about)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=environment(),
                start_new_session=True,  # an interrupt reaches this process alone
            )
        threading.Thread(target=self._listen, args=(rank, process), daemon=True).start()
        return process

    def _listen(self, rank: int, process: subprocess.Popen) -> None:
        answers = self.answers
        try:
            while True:
                answers.put((rank, receive(process.stdout, weights_only=True)))
        except (EOFError, OSError):
            answers.put((rank, None))
        except Exception as error:  # a result of a class that cannot be sent
            answers.put((rank, ("raised", f"{type(error).__name__} in its answer")))
        process.stdout.close()

    def _gather(self, seconds: float | None = None) -> list[Any]:
        """Wait for an answer of every process; end all processes if one is missing."""
        answers: dict[int, Any] = {}
        printed: list[tuple[int, str]] = []
        seconds = self.seconds if seconds is None else seconds
        end = time.monotonic() + seconds
        try:
            while len(answers) < self.num_processes:
                rank, answer = self.answers.get(timeout=max(0.0, end - time.monotonic()))
                if answer is None or answer[0] == "raised":
                    raise RuntimeError(self._failure(rank, answer))
                kind, content = answer
                if kind == "printed":
                    printed.append((rank, content))
                else:
                    answers[rank] = content
        except queue.Empty:
            missing = sorted(set(range(self.num_processes)) - answers.keys())
            raise RuntimeError(
                f"process{'es' * (len(missing) > 1)} {', '.join(map(str, missing))} of "
                f"{self.num_processes} did not answer within {seconds:g} seconds, so all were "
                f"stopped. Do all of them call the same collectives, in the same order?"
            ) from None
        finally:
            if len(answers) < self.num_processes:
                self.close()
            for rank, line in sorted(printed, key=itemgetter(0)):
                print(f"process {rank}: {line}")
        return [answers[rank] for rank in range(self.num_processes)]

    def _failure(self, rank: int, answer: tuple[str, str] | None) -> str:
        """Return a sentence about the process that failed first; others then fail because of it."""
        end = time.monotonic() + 1.0
        while answer is not None and "onnection" in answer[1] and time.monotonic() < end:
            time.sleep(0.05)
            if ended := [i for i, each in enumerate(self.running) if each.poll() is not None]:
                rank, answer = ended[0], None
        if answer is not None:
            how = f"raised {answer[1]}"
        else:
            self.running[rank].kill()  # its pipe is closed, so it is about to end
            status = self.running[rank].wait()
            how = f"ended with exit status {status}"
            if status < 0:
                how = f"was ended by {signal.Signals(-status).name}"
            last = Path(self.folder.name, f"stderr-{rank}").read_text("utf-8", "replace").strip()
            how += f", saying: {last.splitlines()[-1]}" if last else ""
        return f"process {rank} of {self.num_processes} {how}; all were stopped"


def environment() -> dict[str, str]:
    """Return the environment of a process: the same imports, one thread, no network."""
    paths = [str(Path(__file__).resolve().parents[3]), *filter(None, sys.path)]
    own = {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)}
    if sys.platform in LOOPBACK:
        own["GLOO_SOCKET_IFNAME"] = LOOPBACK[sys.platform]
    return os.environ | own
