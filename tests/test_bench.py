"""What the benchmark prints: its limit, a run under load, rows that are level."""

from types import SimpleNamespace

import bench_rows
import pytest
import torch

import bench

pytestmark = pytest.mark.nightly


def test_the_limit_has_a_spread_as_each_row_has():
    times = {"a": [1.0, 2.0, 3.0], "b": [10.0, 10.0, 40.0], "row": [7.0, 7.0, 7.0]}
    assert bench.limits(times, {"a": 1, "b": 0.5}, backward=False) == [6.0, 7.0, 23.0]
    assert bench.limits(times, {"a": 1, "b": 0.5}, backward=True) == [18.0, 21.0, 69.0]


@pytest.mark.parametrize(
    "high, load, words",
    [
        (10.4, 0.1, "Quiet: the limit's own rounds agree"),
        (12.0, 0.1, "20% apart"),
        (30.0, 0.1, "repeat this run"),
        (10.4, 3.0, "3.0 processes were running before"),
    ],
)
def test_a_run_under_load_says_so(high, load, words):
    forward, back = {"low": 10.0, "ms": 10.0, "high": 10.1}, {"low": 10.0, "ms": 10.0, "high": high}
    assert words in bench.warning([forward, back], load)


@pytest.mark.parametrize(
    "low, ms, high, word",
    [(9, 10, 11, "level"), (11, 12, 13, "level"), (11.1, 12, 13, "slower"), (7, 8, 8.9, "faster")],
)
def test_rows_are_level_where_their_rounds_overlap(low, ms, high, word):
    ours = {"low": 9.0, "ms": 10.0, "high": 11.0}
    assert bench.beside({"low": low, "ms": ms, "high": high}, ours) == word


def test_a_row_that_computes_something_else_is_refused(monkeypatch):
    options = SimpleNamespace(device="cpu", dtype=torch.float32)
    assert bench.proven([bench_rows.FUSED], (1, 4, bench.D), False, options)
    slow = bench_rows.ROWS | {"wrong": lambda source: torch.nn.Sequential(source, torch.nn.ReLU())}
    monkeypatch.setattr(bench, "ROWS", slow)
    with pytest.raises(AssertionError):
        bench.proven([bench_rows.FUSED, "wrong"], (1, 4, bench.D), False, options)
