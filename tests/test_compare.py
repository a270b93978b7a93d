"""worst: what is NaN, or was never compared, is not equal."""

import math

import pytest
import torch

from eleven_steps.beyond.compare import worst

SAME = torch.ones(2, 3), torch.ones(2, 3)
NAN = torch.tensor([0.0, math.nan]), torch.zeros(2)


def test_the_largest_difference_of_all_pairs():
    assert worst([SAME]) == 0
    assert worst([SAME, (torch.tensor([1.0, -2.0]), torch.tensor([1.5, 1.0])), SAME]) == 3


@pytest.mark.parametrize(
    "pairs", [[NAN], [NAN, SAME], [SAME, NAN], [SAME, NAN, SAME], [NAN[::-1]], [(NAN[0], NAN[0])]]
)
def test_nan_is_not_lost_wherever_it_stands(pairs):
    assert math.isnan(worst(pairs))
    assert not worst(pairs) <= 1e9


@pytest.mark.parametrize("number", [math.inf, -math.inf])
def test_inf_is_not_equal(number):
    assert not worst([(torch.tensor([number]), torch.tensor([number]))]) <= 1e9
    assert not worst([(torch.tensor([number]), torch.zeros(1))]) <= 1e9


@pytest.mark.parametrize(
    "pairs, words",
    [
        ([], "nothing was compared"),
        ([SAME, (torch.ones(0), torch.ones(0))], r"shapes are \(0,\)"),
        ([(torch.ones(2), torch.ones(1))], r"\(2,\) and \(1,\)"),
        ([(torch.ones(2, 3), torch.tensor(1.0))], r"\(2, 3\) and \(\)"),
    ],
)
def test_nothing_compared_is_an_error(pairs, words):
    with pytest.raises(ValueError, match=words):
        worst(pairs)
