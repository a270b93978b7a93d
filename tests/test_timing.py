"""Timing: everything runs as often as asked, in turns, and the shortest time counts."""

import pytest

from eleven_steps.beyond import timing
from eleven_steps.beyond.timing import time_in_turns, time_steps
from helpers.trace import STEPS


class Clock:
    """A clock that moves only when it is told to."""

    now = 0.0


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(timing, "perf_counter", lambda: Clock.now)
    return Clock


def test_works_take_turns_and_the_shortest_time_counts(clock):
    order, needs = [], {"a": [3.0, 1.0, 2.0], "b": [4.0, 5.0, 6.0]}

    def work(name):
        order.append(name)
        clock.now += needs[name].pop(0)

    found = time_in_turns({name: lambda name=name: work(name) for name in "ab"}, rounds=3)
    assert "".join(order) == "ababab"
    assert found == {"a": 1000.0, "b": 4000.0}


def test_every_step_gets_its_own_time(clock):
    costs = dict(zip(STEPS, range(1, 12), strict=True))

    def module(x, record):
        for name in STEPS:
            clock.now += costs[name]
            record(name, x=x)
        costs["mask"] = 2  # the second round is faster at one step

    found = time_steps(module, None, rounds=2)
    assert list(found) == list(STEPS)
    assert found == {name: 1000.0 * cost for name, cost in costs.items()}
