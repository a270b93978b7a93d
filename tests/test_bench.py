"""The benchmark's rows prove that they compute one function, and wrong ones are refused."""

import bench_rows
import pytest
import torch
from bench_rows import ROWS, prove, run

from helpers.attention import FusedMultiHeadAttention, MultiHeadAttention

pytestmark = pytest.mark.nightly


@pytest.fixture
def source():
    torch.manual_seed(0)
    return FusedMultiHeadAttention(12, 12, 7, 0.0, num_heads=3)


@pytest.fixture
def reference(source):
    return bench_rows.build_by_name(source, MultiHeadAttention)


@pytest.fixture(autouse=True)
def fast_path_as_before():
    before = torch.backends.mha.get_fastpath_enabled()
    yield
    torch.backends.mha.set_fastpath_enabled(before)


# Peers prove themselves when they are measured; FlexAttention needs a C++ compiler.
QUICK = [bench_rows.WRAPPER, bench_rows.FUSED, bench_rows.TORCHS, bench_rows.FAST_PATH]
QUICK += [bench_rows.WITH_WEIGHTS, bench_rows.CAUSAL, bench_rows.MASKED]


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("name", QUICK)
def test_rows_compute_the_same(name, source, reference, backward):
    x = torch.randn(2, 7, 12)
    prove(ROWS[name](source), x, run(reference, x, backward)[:2])


def inverted(source):
    module = bench_rows.build_by_name(source, MultiHeadAttention)
    module.mask = module.mask.T
    return module


def other_weights(source):
    return FusedMultiHeadAttention(12, 12, 7, 0.0, num_heads=3)


def sees_all(source):
    return bench_rows.OneProduct(source, torch.nn.functional.scaled_dot_product_attention)


@pytest.mark.parametrize("build", [inverted, other_weights, sees_all])
def test_a_wrong_row_is_refused(build, source, reference):
    x = torch.randn(2, 7, 12)
    expected = run(reference, x, False)
    with pytest.raises(AssertionError):
        prove(build(source), x, expected)
