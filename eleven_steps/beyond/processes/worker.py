"""Run jobs in one of several processes, and end when the process that started it ends.

Started by eleven_steps.beyond.processes.group, never by hand. Work comes in on standard input,
answers leave on standard output, each as its length in eight bytes and then itself.
"""

import contextlib
import datetime
import io
import json
import os
import queue
import shutil
import struct
import sys
import threading
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import distributed as dist
from torch.distributed.tensor import DTensor
from torch.utils._pytree import tree_map


def send(stream: BinaryIO, content: Any) -> None:
    """Write a message to a stream: its length in eight bytes, then its content."""
    held = io.BytesIO()
    torch.save(content, held)
    stream.write(struct.pack("!Q", held.tell()) + held.getbuffer())
    stream.flush()


def receive(stream: BinaryIO, **how: Any) -> Any:
    """Read the next message from a stream; raise EOFError when the pipe is closed."""
    head = stream.read(8)
    if len(head) < 8:
        raise EOFError
    (size,) = struct.unpack("!Q", head)
    body = stream.read(size)
    if len(body) < size:
        raise EOFError
    return torch.load(io.BytesIO(body), **how)


class Printed(io.TextIOBase):
    """Forward what a function prints, line by line, among the answers."""

    def __init__(self, answers: BinaryIO):
        self.answers, self.rest = answers, ""

    def write(self, text: str) -> int:
        """Forward all complete lines."""
        *lines, self.rest = (self.rest + text).split("\n")
        for line in lines:
            send(self.answers, ("printed", line))
        return len(text)

    def end(self) -> None:
        """Forward a last line that has no newline."""
        if self.rest:
            self.write("\n")


def join(rank: int, num_processes: int, folder: str, seconds: float) -> torch.device:
    """Connect to the other processes through a file in folder; return the device to use."""
    gpus = torch.cuda.device_count() >= num_processes
    device = torch.device("cuda", rank) if gpus else torch.device("cpu")
    if gpus:
        torch.cuda.set_device(device)
    dist.init_process_group(
        "nccl" if gpus else "gloo",
        store=dist.FileStore(str(Path(folder, "store")), num_processes),
        rank=rank,
        world_size=num_processes,
        timeout=datetime.timedelta(seconds=2 * seconds),  # longer than the limit of the group
    )
    return device


def listen(stream: BinaryIO, jobs: queue.Queue, device: torch.device, folder: str) -> None:
    """Put jobs in the queue; end this process at once when their sender has ended."""
    try:
        while True:
            jobs.put(receive(stream, map_location=device, weights_only=False))
    except EOFError:
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)
    except Exception as error:  # for example a class of the notebook, unknown here
        jobs.put(error)


def work(job: Any) -> tuple[str, Any]:
    """Run a job, and return its result or its error as text."""
    try:
        if isinstance(job, Exception):
            raise job
        luggage, arguments = job
        return "gave", tree_map(plain, luggage.unpack()(*arguments))
    except Exception as error:
        return "raised", f"{type(error).__name__}: {error}"


def plain(result: Any) -> Any:
    """Return a tensor as plain numbers, without gradients; return anything else unchanged."""
    if not isinstance(result, torch.Tensor):
        return result
    result = result.full_tensor() if isinstance(result, DTensor) else result
    return result.wait().detach() if hasattr(result, "wait") else result.detach()


def main() -> None:
    """Run jobs until the process that sends them ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of C code must not mix with the answers
    about = json.loads(sys.argv[1])
    torch.set_num_threads(1)
    device = join(**about)
    jobs: queue.Queue = queue.Queue()
    threading.Thread(
        target=listen, args=(sys.stdin.buffer, jobs, device, about["folder"]), daemon=True
    ).start()
    send(answers, ("gave", None))
    while True:
        job, printed = jobs.get(), Printed(answers)
        try:
            with contextlib.redirect_stdout(printed):
                answer = work(job)
            printed.end()
            send(answers, answer)
        except BrokenPipeError:
            os._exit(0)
