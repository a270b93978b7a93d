"""Which numbers depend on one another, against the forward pass itself: one at a time is moved."""

import pytest
import torch
from sizes import TELLING, build

from eleven_steps.pictures import reach_all
from helpers.trace import trace

SIZES = [(2, 3, 3, 4, 2), (1, 3, 6, 6, 2), (1, 1, 2, 4, 2), (1, 4, 3, 3, 1), (1, 2, 1, 3, 3)]


@pytest.fixture(autouse=True)
def one_thread():
    """Tiny tensors are slower on several threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def run(mha, x, key=None, index=()):
    """Return all numbers of a forward pass, in which one may be moved as it comes about."""
    tensors = {}

    def record(step, **live):
        for name, tensor in live.items():
            if key == f"{step}.{name}":
                tensor[index] += 0.5
            tensors[f"{step}.{name}"] = tensor.clone()

    with torch.no_grad():
        mha(x.clone(), record=record)
    return tensors


def flat(tensors):
    return torch.cat([tensor.flatten() for tensor in tensors.values()])


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_reach_is_all_that_changes_with_a_number(sizes):
    mha, x = build(sizes, torch.float64)
    before = run(mha, x)
    numbers = [
        (key, tuple(index))
        for key, tensor in before.items()
        for index in torch.ones(tensor.shape).nonzero().tolist()
    ]
    touches = torch.stack([flat(before) != flat(run(mha, x, *moved)) for moved in numbers])
    touches.fill_diagonal_(True)  # a masked score stays -inf, but it is the number moved
    assert torch.equal(reach_all(trace(mha, x)), touches.T)  # a row is what a number comes from


def test_reach_works_where_gradients_are_off():
    mha, x = build(TELLING)
    expected = reach_all(trace(mha, x))
    with torch.inference_mode(), torch.no_grad():
        assert torch.equal(reach_all(trace(mha, x)), expected)
