"""What attention costs, by formula, equals what is counted when it runs; how it is timed."""

# ruff: noqa: F403, F405 - every formula there is

import pytest
import torch
from hypothesis import example, given
from sizes import TELLING, build, legal_sizes, steady

from eleven_steps.beyond import timing
from eleven_steps.beyond.sizes import *
from eleven_steps.beyond.timing import time_in_turns
from helpers.attention import MultiHeadAttention
from helpers.trace import trace

MODELS = load_models()
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)


def on_meta(d, num_heads, num_tokens, **options):
    with torch.device("meta"):
        mha = MultiHeadAttention(d, d, num_tokens, 0.0, num_heads, **options)
        return mha, torch.empty(1, num_tokens, d)


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


@every_model
def test_real_models_are_counted(model):
    d, n = model.d_out, model.context_length
    mha, x = on_meta(d, model.num_heads, n)
    assert mha.head_dim == model.head_dim
    assert count_parameters(mha) == attention_parameters(d, d) == model.attention_parameters
    layers, pairs = attention_multiplications(1, n, d, d)
    assert count_multiplications(mha, x) == layers + pairs
    assert layers / pairs == pytest.approx(2 * d / n)
    counted = model_parameters(model.vocabulary, n, d, model.num_layers)
    assert counted == model.parameters_counted


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
