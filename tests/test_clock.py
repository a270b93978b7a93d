"""What never ends is stopped where Python has no timers and no threads, as in a browser."""

import contextlib
import signal
import sys

import pytest

from eleven_steps.checks.asking.isolation import TimeUp, attempt, timed


def loops():
    while True:
        with contextlib.suppress(Exception):
            [].pop()


@pytest.fixture
def no_timers(monkeypatch):
    monkeypatch.delattr(signal, "setitimer", raising=False)


@pytest.mark.skipif(not hasattr(sys, "monitoring"), reason="sys.monitoring is Python 3.12's")
def test_python_itself_looks_at_the_clock(no_timers):
    with pytest.raises(TimeUp), timed(0.02):
        attempt(loops)
    assert not any(map(sys.monitoring.get_tool, range(6)))


def test_what_ends_in_time_is_left_alone(no_timers):
    with timed(5.0):
        assert attempt(sum, [1, 2]) == 3
