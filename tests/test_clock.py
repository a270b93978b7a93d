"""What never ends is stopped where Python has no timers and no threads, as in a browser."""

import contextlib
import signal
import sys

import pytest

from eleven_steps.checks.asking.isolation import TimeUp, attempt, timed


def loops():
    while True:
        pass


def loops_where_it_catches_errors():
    while True:
        with contextlib.suppress(Exception):
            [].pop()


def generates():
    sum(0 for _ in iter(int, 1))


@pytest.fixture
def no_timers(monkeypatch):
    monkeypatch.delattr(signal, "setitimer", raising=False)


@pytest.mark.skipif(not hasattr(sys, "monitoring"), reason="sys.monitoring is Python 3.12's")
@pytest.mark.parametrize("endless", [loops, loops_where_it_catches_errors, generates])
def test_python_itself_looks_at_the_clock(no_timers, endless):
    with pytest.raises(TimeUp), timed(0.02):
        attempt(endless)
    assert not any(map(sys.monitoring.get_tool, range(6)))


def test_what_ends_in_time_is_left_alone(no_timers):
    with timed(5.0):
        assert attempt(sum, range(1000)) == 499500
