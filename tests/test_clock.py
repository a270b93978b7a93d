"""What never ends is stopped, with timers and without, and nothing else is touched."""

import contextlib
import signal
import sys
import threading
import time

import pytest

from eleven_steps.checks.clock import TooLong, limit

TIMERS = hasattr(signal, "setitimer")


def loops():
    while True:
        pass


def loops_where_it_catches_errors():
    while True:
        with contextlib.suppress(Exception):
            [].pop()


def catches_everything_twice():
    for _ in range(2):
        with contextlib.suppress(BaseException):
            loops()
    loops()


def recurs(depth=0):
    while True:
        if depth < 50:
            recurs(depth + 1)


def calls_without_a_loop_of_its_own():
    list(iter(lambda: 0, 1))


def generates():
    sum(0 for _ in iter(int, 1))


ENDLESS = (
    loops,
    loops_where_it_catches_errors,
    catches_everything_twice,
    recurs,
    generates,
    calls_without_a_loop_of_its_own,
)


@pytest.fixture(params=["timers", "monitoring"])
def way(request, monkeypatch):
    """Each way to look at the clock, as the platform has it."""
    if request.param == "timers" and not TIMERS:
        pytest.skip("no timers on this system")
    if request.param == "monitoring":
        if not hasattr(sys, "monitoring"):
            pytest.skip("sys.monitoring is Python 3.12's")
        monkeypatch.delattr(signal, "setitimer", raising=False)
    return request.param


@pytest.mark.parametrize("endless", ENDLESS, ids=lambda function: function.__name__)
def test_what_never_ends_is_stopped(way, endless):
    with pytest.raises(TooLong, match="seconds of work"), limit(0.02):
        endless()


def test_what_waits_is_stopped(way):
    def waits():
        while True:
            time.sleep(0.01)

    with pytest.raises(TooLong, match="nothing was done"), limit(60, idle=0.02):
        waits()


def test_what_ends_in_time_is_left_alone(way):
    with limit():
        answer = sum(range(1000))
    assert answer == 499500


def test_what_was_set_before_is_set_afterwards(way):
    handler, hook = signal.getsignal(signal.SIGALRM) if TIMERS else None, sys.unraisablehook
    with contextlib.suppress(TooLong), limit(0.02):
        loops()
    assert sys.unraisablehook is hook
    if way == "timers":
        assert signal.getsignal(signal.SIGALRM) is handler
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    else:
        assert not any(map(sys.monitoring.get_tool, range(6)))
    loops_a_little = sum(1 for _ in range(10_000))
    assert loops_a_little == 10_000


def test_the_outer_of_two_limits_holds(way):
    with pytest.raises(TooLong, match=r"more than 0\.\d+ seconds"), limit(0.02), limit(60):
        loops()


def test_where_it_is_dropped_nothing_is_printed_and_the_next_look_stops_it(way, capsys):
    class Drops:
        def __del__(self):
            loops()

    with pytest.raises(TooLong), limit(0.02):
        Drops()
        loops()
    assert capsys.readouterr().err == ""


def test_another_thread_is_limited_where_python_can_ask_itself():
    found = []

    def work():
        with contextlib.suppress(TooLong), limit(0.01):
            (loops if hasattr(sys, "monitoring") else int)()
        found.append("it goes on")

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(60)
    assert found == ["it goes on"]


def test_without_timers_and_monitoring_the_body_runs(monkeypatch):
    monkeypatch.delattr(signal, "setitimer", raising=False)
    monkeypatch.delattr(sys, "monitoring", raising=False)
    with limit(0.0):
        answer = sum(range(1000))
    assert answer == 499500
