"""Run a learner's code so that nothing it does reaches the notebook around it."""

import contextlib
import copy
import ctypes
import io
import random
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch


class TimeUp(BaseException):
    """The time limit has passed."""


class Stopped(KeyboardInterrupt):
    """The person at the keyboard interrupts, as opposed to code that raises KeyboardInterrupt."""


@dataclass(frozen=True)
class Failure:
    """An exception that a learner's code raised: its text, and their line where it happened."""

    text: str
    line: str = ""
    error: BaseException | None = None


def attempt(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call function and return what it returns, or a Failure whatever it raises.

    Raises:
        TimeUp, Stopped: these two come from outside and go through.
    """
    try:
        return function(*args, **options)
    except (TimeUp, Stopped):
        raise
    except BaseException as error:
        return Failure(_text(error), _line(error), error)


@contextlib.contextmanager
def kept_state() -> Iterator[None]:
    """Silence the body, give it one thread and float32, and put every global back afterwards."""
    silence = _Nowhere()
    before = torch.get_default_dtype(), torch.get_num_threads(), torch.is_grad_enabled()
    device, recursion, stdin = torch.get_default_device(), sys.getrecursionlimit(), sys.stdin
    states = random.getstate(), np.random.get_state()
    with (
        torch.random.fork_rng(devices=[]),
        contextlib.redirect_stdout(silence),
        contextlib.redirect_stderr(silence),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        try:
            sys.stdin = io.StringIO()
            torch.set_default_dtype(torch.float32)
            torch.set_num_threads(1)
            torch.set_grad_enabled(True)
            yield
        finally:
            sys.stdin = stdin
            torch.set_default_dtype(before[0])
            torch.set_num_threads(before[1])
            torch.set_grad_enabled(before[2])
            if torch.get_default_device() != device:
                torch.set_default_device(device)
            sys.setrecursionlimit(recursion)
            random.setstate(states[0])
            np.random.set_state(states[1])


@contextlib.contextmanager
def kept_attributes(owner: Any) -> Iterator[None]:
    """Put back the attributes of a class, and what its plain containers held."""
    plain = list, dict, set
    before = dict(vars(owner)) if isinstance(owner, type) else {}
    held = {name: copy.copy(value) for name, value in before.items() if type(value) in plain}
    try:
        yield
    finally:
        now = dict(vars(owner)) if before else {}
        for name, content in held.items():
            value = before[name]
            if value != content:
                value.clear()
                (value.extend if isinstance(value, list) else value.update)(content)
        for name in now.keys() - before.keys():
            delattr(owner, name)
        for name, value in before.items():
            if now.get(name) is not value and not name.startswith("__"):
                setattr(owner, name, value)


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeUp in the body after so many seconds, as far as Python code can be stopped."""
    if threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer"):
        limit = _alarm(seconds)
    else:
        limit = _watchdog(seconds)
    with limit:
        yield


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    def raise_again(frame, event, argument):
        raise TimeUp

    def stop(number, frame):
        # A bare except may swallow the first TimeUp: the next line then raises another.
        sys.settrace(raise_again)
        while frame is not None and frame.f_code is not attempt.__code__:
            frame.f_trace = raise_again
            frame = frame.f_back
        raise TimeUp

    def interrupt(number, frame):
        raise Stopped

    tracer = sys.gettrace()
    alarm = signal.signal(signal.SIGALRM, stop)
    keyboard = signal.getsignal(signal.SIGINT)
    if keyboard is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    timer = signal.setitimer(signal.ITIMER_REAL, seconds, 0.05)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.settrace(tracer)
        signal.signal(signal.SIGALRM, alarm)
        signal.signal(signal.SIGINT, keyboard)
        signal.setitimer(signal.ITIMER_REAL, *timer)


@contextlib.contextmanager
def _watchdog(seconds: float) -> Iterator[None]:
    me, done = threading.get_ident(), threading.Event()

    def watch():
        pause = seconds
        while not done.wait(pause):
            raise_in_thread(ctypes.c_ulong(me), ctypes.py_object(TimeUp))
            pause = 0.05

    raise_in_thread = ctypes.pythonapi.PyThreadState_SetAsyncExc
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


class _Nowhere(io.TextIOBase):
    def write(self, text: str) -> int:
        return len(text)


def _text(error: BaseException) -> str:
    """Name and message of an error on one line; its own __str__ may be broken."""
    try:
        message = " ".join(str(error).split())
    except Exception:
        message = ""
    name = type(error).__name__
    short = message if len(message) <= 160 else message[:159] + "…"
    return f"{name}: {short}" if short else name


def _line(error: BaseException) -> str:
    """The learner's own line of the traceback that is nearest to the error."""
    lines = [
        frame.line
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.line and "torch" not in frame.filename and __file__ != frame.filename
    ]
    return lines[-1] if lines else ""
