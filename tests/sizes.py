"""Legal sizes for tests, a module with an input for each, and numbers as they are printed."""

import torch
from hypothesis import settings
from hypothesis import strategies as st

from helpers.attention import MultiHeadAttention

# These tell the usual wrong versions apart: d_in != d_out, head_dim > 1, several heads.
TELLING = (2, 7, 5, 12, 3)

steady = settings(deadline=None, derandomize=True, database=None, max_examples=15)


@st.composite
def legal_sizes(draw):
    """Draw (b, num_tokens, d_in, d_out, num_heads)."""
    b, num_tokens, d_in = draw(st.tuples(st.integers(1, 4), st.integers(1, 9), st.integers(1, 8)))
    num_heads, head_dim = draw(st.tuples(st.integers(1, 4), st.integers(1, 5)))
    return b, num_tokens, d_in, num_heads * head_dim, num_heads


def build(sizes, dtype=torch.float32, cls=MultiHeadAttention, **options):
    """Return a seeded module and an x for sizes; context_length is num_tokens + 2."""
    b, num_tokens, d_in, d_out, num_heads = sizes
    torch.manual_seed(0)
    options = {"dropout": 0.0} | options
    mha = cls(d_in, d_out, num_tokens + 2, num_heads=num_heads, **options)
    return mha.to(dtype), torch.randn(b, num_tokens, d_in, dtype=dtype)


def assert_prints_as(actual, published):
    """Compare to the four decimals that were printed."""
    assert torch.equal((actual * 1e4).round(), (published * 1e4).round())
