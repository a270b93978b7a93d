"""The parts: none changes nothing, each changes its step alone, a cache changes nothing."""

# ruff: noqa: F403, F405 - every part there is

import itertools

import pytest
import torch
from hypothesis import given, settings
from parts import LEFT, PARTS, TOKENS, B, make
from sizes import legal_sizes, steady

from eleven_steps.beyond.variants import *
from helpers.attention import MultiHeadAttention
from helpers.trace import STEPS, trace

# Without parts


def seeded(act, *given):
    """What is done, its dropout the same each time."""
    torch.manual_seed(1)
    return act(*given)


@pytest.mark.parametrize(("dtype", "qkv_bias"), [(torch.float32, True), (torch.float64, False)])
@given(sizes=legal_sizes())
@settings(steady, max_examples=8)
def test_without_parts_it_is_the_lectures_class_to_the_bit(dtype, qkv_bias, sizes):
    b, num_tokens, d_in, d_out, num_heads = sizes
    modules = []
    for cls in (MultiHeadAttention, VariantAttention):
        torch.manual_seed(0)
        modules.append(cls(d_in, d_out, num_tokens + 1, 0.5, num_heads, qkv_bias).to(dtype))
    x = torch.randn(b, num_tokens, d_in, dtype=dtype, requires_grad=True)
    lecture, variant = (seeded(trace, module, x) for module in modules)
    for one, other in zip(lecture, variant, strict=True):
        assert (one.number, one.name) == (other.number, other.name)
        for (name, tensor), (twin, ours) in zip(
            one.tensors.items(), other.tensors.items(), strict=True
        ):
            assert name == twin and torch.equal(tensor, ours) and tensor.stride() == ours.stride()
    grads = [torch.autograd.grad(seeded(m, x).sum(), [x, *m.parameters()]) for m in modules]
    assert all(itertools.starmap(torch.equal, zip(*grads, strict=True)))
    modules[1].load_state_dict(modules[0].state_dict())


@pytest.mark.parametrize("parts, first", PARTS.values(), ids=PARTS)
def test_a_part_changes_its_step_and_none_before(parts, first):
    variant, x = make(parts)
    plain, _ = make([])
    fitting = {
        name: weight
        for name, weight in variant.state_dict().items()
        if name in (own := plain.state_dict()) and own[name].shape == weight.shape
    }
    plain.load_state_dict(fitting, strict=False)
    steps, before = trace(variant, x), trace(plain, x)
    assert [step.name for step in steps] == list(STEPS)
    assert len(steps) == len(before) == 11
    for one, other in zip(steps, before, strict=True):
        assert list(one.tensors) == list(other.tensors)
        if one.number < first:
            assert all(torch.equal(t, other.tensors[name]) for name, t in one.tensors.items())
    assert steps[-1].tensors["out"].isfinite().all()
    assert not torch.equal(steps[-1].tensors["out"], before[-1].tensors["out"])


ALONE = "full", "other", "delta", "pools", "pools that overlap"  # no cache can stand beside these
SELF = [name for name in PARTS if name not in ALONE]


@pytest.mark.parametrize("is_padding", [LEFT, LEFT.flip(1)], ids=["left", "right"])
@pytest.mark.parametrize("more", [[], [Window(2)], [Rope(), GroupedHeads(1), Sinks()], [Alibi()]])
def test_padding_changes_nothing_and_keeps_gradients_finite(more, is_padding):
    mha, x = make([*more, Padding(is_padding)], dtype=torch.float64)
    x.requires_grad_()
    out = mha(x)
    other = mha(torch.where(is_padding[..., None], 50.0, x))
    assert torch.equal(out[~is_padding], other[~is_padding])
    grads = torch.autograd.grad(out[~is_padding].sum(), [x, *mha.parameters()])
    assert all(grad.isfinite().all() for grad in grads)
    assert (grads[0][is_padding] == 0).all()
    short = make(more, dtype=torch.float64)[0]
    short.load_state_dict(mha.state_dict())
    alone = short(x[:1, ~is_padding[0]])  # the first sequence by itself, nothing filled up
    torch.testing.assert_close(out[:1, ~is_padding[0]], alone)


# The cache

CHUNKS = [3, 1, 2, 1]
CACHES = [(name, Cache, CHUNKS) for name in SELF]
CACHES += [(name, LatentCache, CHUNKS) for name in PARTS if "latent" in name]
CACHES += [("linear", State, CHUNKS), ("linear", State, [1] * TOKENS), ("many", Cache, [TOKENS])]


@pytest.mark.parametrize("name, cache, sizes", CACHES)
def test_pieces_give_what_all_at_once_gives(name, cache, sizes):
    mha, x = make(PARTS[name][0], dtype=torch.float64)
    cached, real = mha.plus(cache()), torch.ones(B, TOKENS, dtype=torch.bool)
    if padding := mha.part(Padding):
        real = ~padding.is_padding
    pieces = torch.cat([cached(piece) for piece in x.split(sizes, dim=1)], dim=1)
    torch.testing.assert_close(pieces[real], mha(x)[real], rtol=1e-12, atol=1e-12)


def test_bad_calls_are_refused():
    mha, x = make([])
    cached = mha.plus(kept := Cache())
    cached(x)
    with pytest.raises(ValueError, match="holds 7 tokens and x brings 3, but context_length is 9"):
        cached(x[:, :3])
    assert kept.past == TOKENS  # a refused piece leaves it as it was
    with pytest.raises(ValueError, match="b = 1 sequences, but the cache holds 2"):
        cached(x[:1, :1])
    for borrowed in (BorrowedKeys(Lender()), BorrowedChoice(Lender())):
        with pytest.raises(ValueError, match="0 were lent"):
            make([borrowed])[0](x)
