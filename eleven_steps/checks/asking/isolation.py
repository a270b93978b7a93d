"""Run a learner's code so that nothing it does reaches the notebook around it.

attempt calls their code and nothing of ours; the clock runs during such calls alone.
"""

import contextlib
import ctypes
import io
import logging
import random
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch._tensor_str import PRINT_OPTS  # torch shows these nowhere else

from eleven_steps.checks.asking.failures import Failure

TICK = 0.05  # seconds between two looks at the clock
STRETCH = 0.25  # seconds that are measured together
IDLE = 0.01  # share of work below which a stretch counts as idle
IDLE_SECONDS = 30.0  # seconds without work before time is up
SLOWER = 4  # factor on limits where Python itself checks the clock
CPU_STRIDED = torch.strided, "cpu"  # layout and device of a tensor that can be compared
# How each setting is read and written.
SETTINGS = (
    (torch.get_default_dtype, torch.set_default_dtype),
    (torch.get_default_device, torch.set_default_device),
    (torch.is_grad_enabled, torch.set_grad_enabled),
    (torch.get_num_threads, torch.set_num_threads),
    (lambda: logging.root.manager.disable, logging.disable),
    (lambda: {**vars(PRINT_OPTS)}, lambda options: torch.set_printoptions(**options)),
    (lambda: torch.compile, lambda function: setattr(torch, "compile", function)),
)


class TimeUp(BaseException):
    """The time limit has passed."""


class UserInterrupt(KeyboardInterrupt):
    """The user interrupts, as opposed to code that raises KeyboardInterrupt."""


class GlobalState:
    """Hold the global settings as they are now; put_back restores them."""

    def __init__(self) -> None:
        self.values = [read() for read, _ in SETTINGS]

    def put_back(self) -> None:
        """Restore the settings."""
        for (read, write), value in zip(SETTINGS, self.values, strict=True):
            if read() != value:
                write(value)


class Clock:
    """The seconds that a learner's code may take, in all calls together.

    Seconds of processor time count, and apart from them those of stretches in which nothing is
    done: a program that shares its processor with others gets some work done in each stretch.
    """

    def __init__(self, seconds: float, state: GlobalState | None = None):
        self.state, self.left = state, {"work": seconds, "idle": IDLE_SECONDS}
        self.since: tuple[float, float] | None = None  # time and work as this stretch began
        self.fired: type[BaseException] | None = None
        self.lock = threading.RLock()  # a watchdog reads the clock in a second thread

    def start(self) -> bool:
        """Start the clock; return whether it was stopped before."""
        with self.lock:
            stood = self.since is None
            self.since = self.since or (time.monotonic(), time.process_time())
        return stood

    def stop(self) -> bool:
        """Stop the clock; return whether it was running before."""
        with self.lock:
            ran = self.since is not None
            kind, seconds = self._stretch()
            self.left[kind] -= seconds
            self.since = None
        return ran

    def over(self) -> bool:
        """Say whether the seconds are used up; call this often while the clock runs."""
        with self.lock:
            if self.since is not None and time.monotonic() - self.since[0] >= STRETCH:
                self.stop()
                self.start()
            kind, seconds = self._stretch()
            left = self.left | {kind: self.left[kind] - seconds}
            return self.since is not None and min(left.values()) <= 0

    def _stretch(self) -> tuple[str, float]:
        """Return the kind of this stretch of time, work or idle, and its seconds."""
        if self.since is None:
            return "work", 0.0
        passed, worked = time.monotonic() - self.since[0], time.process_time() - self.since[1]
        idle = passed >= STRETCH and worked < IDLE * passed
        return ("idle", passed) if idle else ("work", worked)


_clocks: list[Clock | None] = []  # the last one counts; None while code of ours runs


def attempt(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a learner's function; return what it returns, or a Failure whatever it raises.

    Raises:
        TimeUp, UserInterrupt: the clock and the person at the keyboard go through; code that raises
            these by itself does not.
    """
    clock = _clocks[-1] if _clocks else None
    begun = clock is not None and clock.start()
    try:
        return function(*args, **options)
    except BaseException as error:
        if clock is not None and clock.fired is not None and type(error) is clock.fired:
            raise
        return Failure.of(error)
    finally:
        if begun:
            clock.stop()
        if clock is not None and clock.state is not None:
            clock.state.put_back()


@contextlib.contextmanager
def clock_paused() -> Iterator[None]:
    """Stop the clock while our own code runs within a learner's call, or in its place."""
    clock = _clocks[-1] if _clocks else None
    paused = clock is not None and clock.stop()
    _clocks.append(None)
    try:
        yield
    finally:
        _clocks.pop()
        if paused:
            clock.start()


@contextlib.contextmanager
def timed(seconds: float, state: GlobalState | None = None) -> Iterator[Clock]:
    """Stop a learner's code after so many seconds, for all attempts in the body together."""
    clock = Clock(seconds, state)
    timers = hasattr(signal, "setitimer")
    main = threading.current_thread() is threading.main_thread() and timers
    threads = timers or sys.platform == "win32"  # a browser has neither timers nor threads
    with (_alarm if main else _watchdog if threads else _asked)(clock), _raised_again():
        _clocks.append(clock)
        try:
            yield clock
        finally:
            _clocks.pop()


@contextlib.contextmanager
def _raised_again() -> Iterator[None]:
    """Suppress "Exception ignored" if the timer fires where Python swallows exceptions.

    The next tick raises it once more.
    """
    hook = sys.unraisablehook

    def quiet(dropped: Any) -> None:
        if dropped.exc_type not in (TimeUp, UserInterrupt):
            hook(dropped)

    sys.unraisablehook = quiet
    try:
        yield
    finally:
        sys.unraisablehook = hook


@contextlib.contextmanager
def silenced() -> Iterator[GlobalState]:
    """Run the body silently, on one thread, in float32, with gradients; then restore all.

    Yields the settings as they were. Afterwards random numbers go on as if none had been drawn.
    """
    before, states, stdin = GlobalState(), (random.getstate(), np.random.get_state()), sys.stdin
    compiled = "torch._dynamo" in sys.modules  # if it is not loaded, nothing is compiled
    with (
        torch.compiler.set_stance("force_eager") if compiled else contextlib.nullcontext(),
        torch.random.fork_rng(devices=[]),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        sys.stdin = io.StringIO()
        try:
            torch.set_default_dtype(torch.float32)
            torch.set_num_threads(1)
            torch.set_grad_enabled(True)
            torch.compile = _as_it_is
            logging.disable()
            yield GlobalState()
        finally:
            sys.stdin = stdin
            before.put_back()
            random.setstate(states[0])
            np.random.set_state(states[1])


def _as_it_is(model: Any = None, **options: Any) -> Any:
    """Replace torch.compile, whose time is not the class's own; numbers stay the same."""
    return model if callable(model) else lambda function: function


@contextlib.contextmanager
def isolated(seconds: float) -> Iterator[Clock]:
    """Restore global settings after a check, and limit the seconds of a learner's code."""
    with silenced() as state, timed(seconds, state) as clock:
        yield clock


@contextlib.contextmanager
def _alarm(clock: Clock) -> Iterator[None]:
    def tick(number, frame):
        stopped = clock.fired is UserInterrupt and clock.since is not None
        if stopped or clock.over():
            clock.fired = clock.fired or TimeUp
            raise clock.fired

    def interrupt(number, frame):
        clock.fired = UserInterrupt
        raise UserInterrupt

    alarm = signal.signal(signal.SIGALRM, tick)
    keyboard = signal.getsignal(signal.SIGINT)
    if keyboard is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    timer = signal.setitimer(signal.ITIMER_REAL, TICK, TICK)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, alarm)
        signal.signal(signal.SIGINT, keyboard)
        signal.setitimer(signal.ITIMER_REAL, *timer)


@contextlib.contextmanager
def _watchdog(clock: Clock) -> Iterator[None]:
    me, done = threading.get_ident(), threading.Event()
    raise_in_thread = ctypes.pythonapi.PyThreadState_SetAsyncExc

    def watch():
        while not done.wait(TICK):
            if clock.over():
                clock.fired = TimeUp
                raise_in_thread(ctypes.c_ulong(me), ctypes.py_object(TimeUp))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


@contextlib.contextmanager
def _asked(clock: Clock) -> Iterator[None]:
    """Check the clock at each jump and call of this thread; endless code has one of them.

    A browser's Python has neither timers nor threads. Before Python 3.12 no limit is set there.
    """
    if not hasattr(sys, "monitoring"):
        yield
        return
    clock.left = {kind: SLOWER * seconds for kind, seconds in clock.left.items()}
    events, me = sys.monitoring.events, threading.get_ident()
    free = next((number for number in range(6) if not sys.monitoring.get_tool(number)), None)

    def look(code: Any, *where: Any) -> None:
        theirs = threading.get_ident() == me and code.co_filename != __file__
        if theirs and clock.over():
            clock.fired = TimeUp
            raise TimeUp

    if free is not None:
        sys.monitoring.use_tool_id(free, __name__)
        for event in (events.JUMP, events.PY_START):
            sys.monitoring.register_callback(free, event, look)
        sys.monitoring.set_events(free, events.JUMP | events.PY_START)
    try:
        yield
    finally:
        if free is not None:
            sys.monitoring.set_events(free, 0)
            sys.monitoring.free_tool_id(free)


def type_name(thing: Any) -> str:
    """Return the name of the type of thing, as short as messages need it."""
    if type(thing) is torch.Tensor and (thing.layout, thing.device.type) != CPU_STRIDED:
        return f"{thing.layout} tensor on {thing.device.type}"
    return str(type(thing).__name__)[:40]
