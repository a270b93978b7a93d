"""Run a learner's code so that nothing it does reaches the notebook around it."""

import contextlib
import copy
import ctypes
import dis
import io
import linecache
import random
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch

HERE, TORCH = (str(place) for place in (Path(__file__).parents[1], Path(torch.__file__).parent))
TICK = 0.05  # seconds between two looks at the clock


class TimeUp(BaseException):
    """The time limit has passed."""


class Stopped(KeyboardInterrupt):
    """The person at the keyboard interrupts, as opposed to code that raises KeyboardInterrupt."""


@dataclass(frozen=True)
class Failure:
    """An exception that a learner's code raised: its text, and their line where it happened.

    The words are the names that stand in the line; they are known where its text is not.
    """

    text: str
    line: str = ""
    error: BaseException | None = None
    words: str = ""


def attempt(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call function and return what it returns, or a Failure whatever it raises.

    Raises:
        TimeUp, Stopped: these two come from outside and go through.
    """
    gradients, dtype = torch.is_grad_enabled(), torch.get_default_dtype()
    try:
        return function(*args, **options)
    except (TimeUp, Stopped):
        raise
    except BaseException as error:
        line, words = _line(error)
        return Failure(_text(error), line, error, words)
    finally:
        torch.set_grad_enabled(gradients)
        torch.set_default_dtype(dtype)


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
    before = _attributes(owner)
    held = {name: copy.copy(value) for name, value in before.items() if type(value) in plain}
    try:
        yield
    finally:
        now = _attributes(owner)
        for name, content in held.items():
            value = before[name]
            value.clear()
            (value.extend if isinstance(value, list) else value.update)(content)
        for name in now.keys() - before.keys():
            type.__delattr__(owner, name)
        for name, value in before.items():
            if now.get(name) is not value and not name.startswith("__"):
                type.__setattr__(owner, name, value)


def _attributes(owner: Any) -> dict[str, Any]:
    """The attributes of a class, without asking its metaclass."""
    is_class = issubclass(type(owner), type)
    return dict(type.__dict__["__dict__"].__get__(owner)) if is_class else {}


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeUp in the body after so many seconds, as far as Python code can be stopped.

    Seconds of work count, and seconds of idling; those in which other programs had the processor
    do not, up to five times as many.
    """
    started, worked = time.monotonic(), time.process_time()

    def over() -> bool:
        passed, work = time.monotonic() - started, time.process_time() - worked
        idle = passed >= seconds and work < 0.05 * passed
        return work >= seconds or idle or passed >= 5 * seconds

    if threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer"):
        limit = _alarm(over)
    else:
        limit = _watchdog(over)
    with limit:
        yield


@contextlib.contextmanager
def _alarm(over: Callable[[], bool]) -> Iterator[None]:
    def raise_again(frame, event, argument):
        if event == "line":
            raise TimeUp
        return raise_again

    def tick(number, frame):
        theirs = _their_frames(frame)
        if theirs and over():
            # A bare except may swallow the first TimeUp: the next line then raises another.
            sys.settrace(raise_again)
            for each in theirs:
                each.f_trace = raise_again
            raise TimeUp

    def interrupt(number, frame):
        raise Stopped

    tracer = sys.gettrace()
    alarm = signal.signal(signal.SIGALRM, tick)
    keyboard = signal.getsignal(signal.SIGINT)
    if keyboard is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    timer = signal.setitimer(signal.ITIMER_REAL, TICK, TICK)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.settrace(tracer)
        signal.signal(signal.SIGALRM, alarm)
        signal.signal(signal.SIGINT, keyboard)
        signal.setitimer(signal.ITIMER_REAL, *timer)


@contextlib.contextmanager
def _watchdog(over: Callable[[], bool]) -> Iterator[None]:
    me, done = threading.get_ident(), threading.Event()
    raise_in_thread = ctypes.pythonapi.PyThreadState_SetAsyncExc

    def watch():
        while not done.wait(TICK):
            if over() and _their_frames(sys._current_frames()[me]):
                raise_in_thread(ctypes.c_ulong(me), ctypes.py_object(TimeUp))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _their_frames(frame: FrameType | None) -> list[FrameType]:
    """The frames above attempt; none if it is not on the stack, where nothing may be stopped."""
    frames = []
    while frame is not None:
        if frame.f_code is attempt.__code__:
            return frames
        frames.append(frame)
        frame = frame.f_back
    return []


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


def _line(error: BaseException) -> tuple[str, str]:
    """The learner's own line of the traceback that is nearest to the error, and its names."""
    traced = [
        (frame, number)
        for frame, number in traceback.walk_tb(error.__traceback__)
        if not frame.f_code.co_filename.startswith((HERE, TORCH))
    ]
    if not traced:
        return "", ""
    frame, number = traced[-1]
    names = [
        str(each.argval)
        for each in dis.get_instructions(frame.f_code)
        if each.positions.lineno == number and isinstance(each.argval, str)
    ]
    return linecache.getline(frame.f_code.co_filename, number).strip(), " ".join(names)
