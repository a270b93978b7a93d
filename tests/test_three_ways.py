"""One idea, three classes: what the notebook shows at one size holds at any."""

import pytest
import torch
from einops import rearrange
from sizes import TELLING, build
from torch import nn

from eleven_steps.beyond.sizes import count_multiplications, count_parameters
from eleven_steps.sliders import products, run
from helpers.attention import MultiHeadAttentionWrapper
from helpers.trace import trace

several = pytest.mark.parametrize("sizes", [TELLING, (3, 1, 4, 6, 1), (1, 5, 3, 4, 4)], ids=str)


def narrow_heads(mha):
    """Return a wrapper whose heads hold mha's rows of W_query, W_key and W_value, then out_proj."""
    wrapper = MultiHeadAttentionWrapper(
        mha.d_in, mha.head_dim, mha.context_length, 0.0, mha.num_heads
    )
    weights = mha.state_dict()
    for number, head in enumerate(wrapper.heads):
        rows = slice(number * mha.head_dim, (number + 1) * mha.head_dim)
        names = [f"{name}.weight" for name in ("W_query", "W_key", "W_value")]
        head.load_state_dict({name: weights[name][rows] for name in names})
    return nn.Sequential(wrapper, mha.out_proj)


@several
def test_the_wrapper_with_copied_blocks_and_out_proj_is_the_split_class(sizes):
    mha, x = build(sizes)
    wrapper = narrow_heads(mha)
    torch.testing.assert_close(wrapper(x), mha(x), rtol=0, atol=1e-6)
    assert count_parameters(wrapper) == count_parameters(mha)
    assert count_multiplications(wrapper, x) == count_multiplications(mha, x)


@several
def test_whole_heads_cost_num_heads_times_as_much(sizes):
    b, num_tokens, d_in, d_out, num_heads = sizes
    stacked = nn.Sequential(
        MultiHeadAttentionWrapper(d_in, d_out, num_tokens, 0.0, num_heads),
        nn.Linear(num_heads * d_out, d_out),
    )
    mha, x = build(sizes)
    assert stacked(x).shape == mha(x).shape
    assert count_parameters(stacked) - d_out == num_heads * (count_parameters(mha) - d_out)
    assert count_multiplications(stacked, x) == num_heads * count_multiplications(mha, x)


@several
def test_rearrange_spells_the_reshapes(sizes):
    mha, x = build(sizes)
    steps = {step.name: step.tensors for step in trace(mha, x)}
    cut = "b num_tokens (num_heads head_dim) -> b num_heads num_tokens head_dim"
    for name, tensor in steps["project"].items():
        by_head = rearrange(tensor, cut, num_heads=mha.num_heads)
        assert torch.equal(by_head, steps["transpose"][name])
    join = "b num_heads num_tokens head_dim -> b num_tokens (num_heads head_dim)"
    assert torch.equal(rearrange(steps["context"]["context"], join), steps["combine"]["context"])


def test_the_film_of_blocks_shows_each_heads_own_queries(monkeypatch):
    drawn = []
    monkeypatch.setattr(products, "draw_product", lambda *shown, **where: drawn.append(shown))
    for head in range(3):
        products.block_at(num_heads=3, head=head)
    for left, right, product in drawn:
        assert left.tensor.shape == (3, 6) and right.tensor.shape == (6, 2)
        torch.testing.assert_close(left.tensor @ right.tensor, product.tensor)
    together = torch.cat([product.tensor for _, _, product in drawn], dim=1)
    torch.testing.assert_close(together, run(6, 3)[1]["project"]["queries"][0])
