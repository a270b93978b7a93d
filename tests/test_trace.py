"""The trace: eleven steps in order, true shapes, copies that later steps leave alone."""

import pytest
import torch
from hypothesis import example, given
from sizes import TELLING, build, legal_sizes, steady

from helpers.trace import SHAPES, STEPS, trace


@given(sizes=legal_sizes())
@example(sizes=TELLING)
@example(sizes=(30, 50, 512, 512, 8))
@steady
def test_shapes_of_all_eleven_steps(sizes):
    mha, x = build(sizes)
    names = dict(zip(("b", "num_tokens", "d_in", "d_out", "num_heads"), sizes, strict=True))
    names["head_dim"] = mha.head_dim
    for step in trace(mha, x):
        for tensor in step.tensors.values():
            assert tensor.shape == eval(SHAPES[step.name], names)


def test_eleven_steps_in_order():
    steps = trace(*build(TELLING))
    assert [step.number for step in steps] == list(range(1, 12))
    assert [step.name for step in steps] == list(STEPS) == list(SHAPES)


def test_tensors_are_detached_copies_with_their_strides():
    mha, x = build(TELLING)
    steps = trace(mha, x.requires_grad_())
    tensors = [tensor for step in steps for tensor in step.tensors.values()]
    assert len({tensor.data_ptr() for tensor in [x, *tensors]}) == 1 + len(tensors)
    assert not any(tensor.requires_grad for tensor in tensors)
    view, transpose = steps[2].tensors["queries"], steps[3].tensors["queries"]
    assert view.is_contiguous()
    assert not transpose.is_contiguous()
    assert transpose.stride() == view.transpose(1, 2).stride()
    assert not steps[8].tensors["context"].is_contiguous()
    assert steps[9].tensors["context"].is_contiguous()


@pytest.mark.parametrize(
    ("dropout", "training", "moves"), [(0.5, True, True), (0.5, False, False), (0.0, True, False)]
)
def test_random_numbers_are_drawn_for_dropout_only(dropout, training, moves):
    mha, x = build(TELLING, dropout=dropout)
    mha.train(training)
    before = torch.get_rng_state()
    trace(mha, x)
    assert torch.equal(torch.get_rng_state(), before) is not moves
    assert {module.training for module in mha.modules()} == {training} and torch.is_grad_enabled()
    assert all(p.requires_grad and p.grad is None for p in mha.parameters())
