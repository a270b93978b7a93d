"""Limit the time of a learner's call: `with limit(): answer = function(x)`.

Only what runs inside the body counts. It has no timer in a browser, where Python is one thread
without signals; there, and in any thread but the main one, Python itself asks at each jump and call
(sys.monitoring, from Python 3.12 on). An older Python without timers sets no limit.
"""

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator

WORK, IDLE = 5.0, 30.0  # seconds of processor time, and seconds in which nothing is done
SLOWER = 4  # the limits are so many times as long where Python itself has to ask
STRETCH = 0.25  # seconds from one look at the clock to the next
BUSY = 0.01  # the share of a stretch that a program works in, at the least, unless it is idle


class TooLong(BaseException):
    """A learner's call has used up its time. Code that catches Exception does not catch it."""


class _Clock:
    """What is left of the time, counted in stretches that are either work or idle.

    A program that shares its processor with others gets some work done in each stretch, so that the
    time it waits for the processor is not held against it.
    """

    def __init__(self, work: float, idle: float):
        self.work, self.idle = work, idle
        self.left = {"work": work, "idle": idle}
        self.since = time.monotonic(), time.process_time()
        self.runs, self.rang = True, False

    def look(self) -> None:
        """Raise TooLong if no time is left, and again in each later stretch.

        Not sooner, or the code that ends the body could not run.
        """
        now = time.monotonic(), time.process_time()
        passed, worked = now[0] - self.since[0], now[1] - self.since[1]
        early = self.rang or worked < self.left["work"]
        if not self.runs or passed < STRETCH and early:
            return
        self.since = now
        if worked < BUSY * passed:
            self.left["idle"] -= passed
        else:
            self.left["work"] -= worked
        self.rang = min(self.left.values()) <= 0
        if self.left["work"] <= 0:
            raise TooLong(f"more than {self.work:g} seconds of work")
        if self.left["idle"] <= 0:
            raise TooLong(f"more than {self.idle:g} seconds in which nothing was done")


@contextlib.contextmanager
def limit(seconds: float = WORK, idle: float = IDLE) -> Iterator[None]:
    """Stop the body after so many seconds of processor time, or of doing nothing.

    Args:
        seconds: of processor time, all threads of the process together.
        idle: seconds in which nothing was done, as in time.sleep.

    Raises:
        TooLong: inside the body, and again every quarter of a second while the body catches it.

    Limits may be nested: each counts all that runs in its own body. Let the body be one call: where
    Python itself asks, what is raised in the very function that has the `with` passes its handlers.
    """
    watch, times = _watch()
    clock = _Clock(seconds * times, idle * times)
    with watch(clock.look), _dropped_in_silence():
        try:
            yield
        finally:
            clock.runs = False  # no look raises while the timer is being put away


def _watch() -> tuple[Callable[[Callable[[], None]], contextlib.AbstractContextManager], int]:
    """Return what looks at a clock here, and by how much it slows Python down."""
    timers = hasattr(signal, "setitimer") and sys.platform != "emscripten"
    if timers and threading.current_thread() is threading.main_thread():
        return _timer, 1
    return (monitoring if hasattr(sys, "monitoring") else contextlib.nullcontext), SLOWER


@contextlib.contextmanager
def _timer(look: Callable[[], None]) -> Iterator[None]:
    outer = signal.getsignal(signal.SIGALRM)

    def tick(number, frame):
        look()
        if callable(outer):  # a limit around this one
            outer(number, frame)

    signal.signal(signal.SIGALRM, tick)
    before = signal.setitimer(signal.ITIMER_REAL, STRETCH, STRETCH)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, outer)
        signal.setitimer(signal.ITIMER_REAL, *before)


@contextlib.contextmanager
def monitoring(look: Callable[[], None]) -> Iterator[None]:
    """Look at each jump and each call of this thread: whatever is endless has one of them."""
    events, me = sys.monitoring.events, threading.get_ident()
    free = next((number for number in range(6) if not sys.monitoring.get_tool(number)), None)
    if free is None:
        yield
        return

    def ask(code, *where):
        if threading.get_ident() == me and code.co_filename != __file__:
            look()

    sys.monitoring.use_tool_id(free, __name__)
    for event in (events.JUMP, events.PY_START):
        sys.monitoring.register_callback(free, event, ask)
    sys.monitoring.set_events(free, events.JUMP | events.PY_START)
    try:
        yield
    finally:
        sys.monitoring.set_events(free, 0)
        sys.monitoring.free_tool_id(free)


@contextlib.contextmanager
def _dropped_in_silence() -> Iterator[None]:
    """Print nothing where Python drops TooLong, as in __del__: the next look raises it again."""
    hook = sys.unraisablehook

    def quiet(dropped):
        if dropped.exc_type is not TooLong:
            hook(dropped)

    sys.unraisablehook = quiet
    try:
        yield
    finally:
        sys.unraisablehook = hook
