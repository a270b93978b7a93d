"""bench/bench_cache.py: every row computes the same."""

import bench_cache
import pytest
import torch

pytestmark = pytest.mark.nightly


@pytest.fixture(autouse=True)
def one_thread_without_gradients():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.no_grad():
        yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("num_tokens", [1, 5])
def test_a_row_may_run_again_and_gives_the_same_token(num_tokens):
    rows, kept = bench_cache.cached_rows(num_tokens)
    for name in kept:
        assert torch.equal(rows[name](), rows[name]())
    assert kept["VariantAttention, cache, 4 key heads"] == num_tokens * 2 * 4 * 64 * 4


def test_growth_is_told_between_the_two_largest():
    assert bench_cache.slope({1: 9.0, 10: 1.0, 100: 10.0}) == ["1.00", "100"]
    assert bench_cache.slope({10: 2.0, 40: 32.0}) == ["2.00", "1e+03"]
