"""Parts for one sequence or call: padding and caches; and heads of any width."""

import pytest
import torch
from parts import D_IN, D_OUT, HEADS, LEFT, PARTS, TOKENS, B, make

from eleven_steps.beyond.variants import (
    Alibi,
    Cache,
    GroupedHeads,
    Latent,
    LatentCache,
    Padding,
    Rope,
    Sinks,
    State,
    TopKeys,
    VariantAttention,
    Window,
)
from helpers.trace import trace

ALONE = "full", "other", "delta", "pools", "pools that overlap"  # no cache can stand beside these
SELF = [name for name in PARTS if name not in ALONE]


# Padding


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


@pytest.mark.parametrize(
    "parts, cache, numbers",
    [
        ([], Cache, 2 * D_OUT),
        ([GroupedHeads(1)], Cache, 2 * D_OUT // HEADS),
        ([Latent(4, 2), Rope(width=2)], LatentCache, 4 + 2),
        ([TopKeys(2, 3, 5)], Cache, 2 * D_OUT + 5),
    ],
)
def test_a_cache_keeps_what_its_parts_leave(parts, cache, numbers):
    mha, x = make(parts)
    kept = cache()
    mha.plus(kept)(x)
    assert kept.past == TOKENS
    assert kept.nbytes == B * TOKENS * numbers * 4


def test_a_state_does_not_grow():
    mha, x = make(PARTS["linear"][0])
    linear = mha.plus(state := State())
    for token in range(TOKENS):
        linear(x[:, token : token + 1])
        assert state.kept.shape == (B, HEADS, D_OUT // HEADS, D_OUT // HEADS)
    assert state.past == TOKENS


def test_the_trace_shows_longer_keys():
    mha, x = make([GroupedHeads(1)])
    cached = mha.plus(Cache())
    cached(x[:, :4])
    shapes = [tuple(next(iter(s.tensors.values())).shape) for s in trace(cached, x[:, 4:6])]
    assert shapes[4:8] == [(B, HEADS, 2, 6)] * 3 + [(B, HEADS, 2, D_OUT // HEADS)]


def test_a_twin_shares_weights_and_leaves_the_module_as_it_was():
    mha, x = make([Rope()])
    twin = mha.plus(Window(2))
    assert all(a is b for a, b in zip(mha.parameters(), twin.parameters(), strict=True))
    assert mha.part(Window) is None
    assert torch.equal(mha(x)[:, :2], twin(x)[:, :2])
    assert not torch.equal(mha(x), twin(x))


# Widths


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize(
    ("out_features", "head_dim", "out_bias"), [(5, 7, False), (D_OUT, D_OUT // HEADS, True)]
)
def test_heads_are_of_any_width(name, out_features, head_dim, out_bias):
    if any(isinstance(part, Rope) for part in PARTS[name][0]):
        head_dim += head_dim % 2  # features turn in pairs
    torch.manual_seed(0)
    options = {"parts": PARTS[name][0], "head_dim": head_dim, "out_bias": out_bias}
    mha = VariantAttention(D_IN, out_features, TOKENS + 2, 0.0, HEADS, **options)
    assert mha(torch.randn(B, TOKENS, D_IN)).shape == (B, TOKENS, out_features)
    assert (mha.out_proj.bias is None) == (not out_bias)
    assert (mha.head_dim, mha.d_out) == (head_dim, HEADS * head_dim)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["many", "other", "cap"])
def test_compiles_into_one_graph(name):
    mha, x = make(PARTS[name][0])
    torch._dynamo.reset()
    compiled = torch.compile(mha, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), mha(x), rtol=1e-4, atol=1e-5)
