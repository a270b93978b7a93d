"""Both classes at their edges: what docs/class.md lists works, and what it says cannot, cannot."""

# ruff: noqa: F403, F405 - all its classes

import pytest
import torch
from sizes import TELLING, build
from torch import nn

from eleven_steps.beyond.variants import GroupedHeads, Rope, VariantAttention
from helpers.attention import *
from helpers.trace import trace

BOTH = [MultiHeadAttention, FusedMultiHeadAttention]
THREE = [*BOTH, VariantAttention]
three = pytest.mark.parametrize("cls", THREE)


def made(cls, dtype=torch.float32, **options):
    """Return a seeded module of telling sizes, and an x that needs its gradient."""
    mha, x = build(TELLING, dtype, cls, **options)
    return mha, x.requires_grad_()


@three
def test_a_layer_of_ones_own_may_stand_in_for_ours(cls):
    """As an adapter does: it has no in_features, and no weight."""
    mha, x = made(cls)
    right = mha(x)
    mha.W_query = nn.Sequential(mha.W_query)
    assert torch.equal(mha(x), right)
    with pytest.raises(ValueError, match="10 tokens, but context_length is 9"):
        mha(torch.zeros(1, 10, 5))


@pytest.mark.filterwarnings("ignore")  # what torch says of its own old parts
@pytest.mark.nightly
@three
def test_it_is_exported_with_open_sizes(cls):
    mha, x = made(cls)
    open_sizes = {"x": dict.fromkeys((0, 1), torch.export.Dim.AUTO)}
    program = torch.export.export(mha.eval(), (x.detach(),), dynamic_shapes=open_sizes).module()
    for longer in x, torch.randn(3, 8, 5):
        torch.testing.assert_close(program(longer), mha(longer), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("cls", [*THREE, CausalAttention, MultiHeadAttentionWrapper])
def test_memory_given_later_gets_the_right_mask(cls, inside):
    sizes = (5, 12, 9, 0.0) + (3,) * (cls is not CausalAttention)
    torch.manual_seed(0)
    right = cls(*sizes)
    with torch.device("meta"):
        later = nn.ModuleDict({"block": cls(*sizes)}) if inside else cls(*sizes)
    later.to_empty(device="cpu")
    later = later["block"] if inside else later
    with torch.no_grad():  # an initialisation of one's own, which knows nothing of a mask
        for empty, weight in zip(later.parameters(), right.parameters(), strict=True):
            empty.copy_(weight)
    for ours, theirs in zip(later.buffers(), right.buffers(), strict=True):
        assert torch.equal(ours, theirs)
    x = torch.randn(2, 7, 5)
    assert torch.equal(later(x), right(x))


def test_a_mask_of_ones_own_stays_when_the_module_is_moved():
    mha, _ = made(MultiHeadAttention)
    mha.mask = torch.zeros(9, 9, dtype=torch.bool)
    assert not mha.to(torch.float64).mask.any()


def test_a_large_score_in_float16_is_finite_in_the_fused_class_only():
    """What the classes say of themselves: step 7 divides only after step 5 has multiplied."""
    found = {}
    for cls in BOTH:
        mha, x = made(cls)
        with torch.no_grad():
            mha.W_query.weight.mul_(300)
            mha.W_key.weight.mul_(300)
            assert trace(mha, x)[4].tensors["scores"].abs().max() > 65_504
            found[cls] = mha.half()(x.half()).isfinite().all().item()
            assert mha.bfloat16()(x.bfloat16()).isfinite().all()
    assert found == {MultiHeadAttention: False, FusedMultiHeadAttention: True}


@three
def test_a_batch_of_no_sequences_comes_out_as_it_came(cls):
    mha, _ = made(cls)
    x = torch.zeros(0, 7, 5, requires_grad=True)
    assert mha(x).shape == (0, 7, 12)
    mha(x).sum().backward()
    assert mha.W_query.weight.grad.abs().sum() == 0
    if cls is VariantAttention:
        parts = [GroupedHeads(1), Rope()]
        assert made(cls, parts=parts)[0](x).shape == (0, 7, 12)


@three
def test_a_nested_x_gets_a_sentence_that_helps(cls):
    mha, x = made(cls)
    sequences = [x[0, :3].detach(), x[1].detach()]
    jagged = torch.nested.nested_tensor(sequences, layout=torch.jagged)
    with pytest.raises(TypeError, match=r"x is nested.*torch\.nested\.to_padded_tensor"):
        mha(jagged)
    out = mha(torch.nested.to_padded_tensor(jagged, 0.0))
    torch.testing.assert_close(out[0, :3], mha(x)[0, :3])
