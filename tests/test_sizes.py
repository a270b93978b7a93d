"""What attention costs, by formula, equals what is counted when it runs; how it is timed."""

# ruff: noqa: F403, F405 - every formula there is

import pytest
from hypothesis import example, given
from sizes import TELLING, build, legal_sizes, steady

from eleven_steps.beyond import timing
from eleven_steps.beyond.sizes import *
from eleven_steps.beyond.timing import time_in_turns
from helpers.trace import trace


@pytest.mark.parametrize("qkv_bias", [False, True])
@given(sizes=legal_sizes())
@example(sizes=TELLING)
@steady
def test_formulas_equal_what_the_class_has_and_does(qkv_bias, sizes):
    b, num_tokens, d_in, d_out, num_heads = sizes
    mha, x = build(sizes, qkv_bias=qkv_bias)
    assert attention_parameters(d_in, d_out, qkv_bias) == count_parameters(mha)
    counted = count_multiplications(mha, x)
    assert sum(attention_multiplications(b, num_tokens, d_in, d_out)) == counted
    weights = trace(mha, x)[6].tensors["weights"]
    assert weights_memory(b, num_heads, num_tokens) == weights.nbytes
    assert weights_memory(b, num_heads, num_tokens, 2) == weights.half().nbytes


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
