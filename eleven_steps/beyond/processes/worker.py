"""One of several processes: wait for work, do it, answer; end with the process that started it.

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
    """Write one message."""
    held = io.BytesIO()
    torch.save(content, held)
    stream.write(struct.pack("!Q", held.tell()) + held.getbuffer())
    stream.flush()


def receive(stream: BinaryIO, **how: Any) -> Any:
    """Return the next message; raise EOFError where none will come any more."""
    head = stream.read(8)
    if len(head) < 8:
        raise EOFError
    (size,) = struct.unpack("!Q", head)
    body = stream.read(size)
    if len(body) < size:
        raise EOFError
    return torch.load(io.BytesIO(body), **how)


class Printed(io.TextIOBase):
    """Hand on what a function prints, line by line, so that it does not get among the answers."""

    def __init__(self, answers: BinaryIO):
        self.answers, self.rest = answers, ""

    def write(self, text: str) -> int:
        """Hand on all lines that are whole."""
        *lines, self.rest = (self.rest + text).split("\n")
        for line in lines:
            send(self.answers, ("printed", line))
        return len(text)

    def end(self) -> None:
        """Hand on a last line that was left without its end."""
        if self.rest:
            self.write("\n")


def join(place: int, num_processes: int, folder: str, seconds: float) -> torch.device:
    """Meet the other processes at a file in folder; return the device to work on."""
    gpus = torch.cuda.device_count() >= num_processes
    device = torch.device("cuda", place) if gpus else torch.device("cpu")
    if gpus:
        torch.cuda.set_device(device)
    dist.init_process_group(
        "nccl" if gpus else "gloo",
        store=dist.FileStore(str(Path(folder, "meeting")), num_processes),
        rank=place,
        world_size=num_processes,
        timeout=datetime.timedelta(seconds=2 * seconds),  # the group's own limit comes first
    )
    return device


def listen(stream: BinaryIO, jobs: queue.Queue, device: torch.device, folder: str) -> None:
    """Put jobs in the queue; end this process at once when their sender is gone."""
    try:
        while True:
            jobs.put(receive(stream, map_location=device, weights_only=False))
    except EOFError:
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)
    except Exception as error:  # not understood here: a class of the notebook
        jobs.put(error)


def work(job: Any) -> tuple[str, Any]:
    """Return what a job gives, or what it raises, in words."""
    try:
        if isinstance(job, Exception):
            raise job
        luggage, arguments = job
        return "gave", tree_map(plain, luggage.unpack()(*arguments))
    except Exception as error:
        return "raised", f"{type(error).__name__}: {error}"


def plain(result: Any) -> Any:
    """Return a tensor as numbers alone: arrived, whole, without its history; all else as it is."""
    if not isinstance(result, torch.Tensor):
        return result
    result = result.full_tensor() if isinstance(result, DTensor) else result
    return result.wait().detach() if hasattr(result, "wait") else result.detach()


def main() -> None:
    """Work until there is nobody to work for."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what is written there by others than Python must not get among the answers
    about = json.loads(sys.argv[1])
    torch.set_num_threads(1)
    send(answers, ("started", None))
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
