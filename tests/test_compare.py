"""worst: what is NaN, or was never compared, is not equal."""

import itertools
import math

import pytest
import torch

from eleven_steps.beyond.compare import worst
from eleven_steps.checks.asking.cases import close

SAME = torch.ones(2, 3), torch.ones(2, 3)
NAN = torch.tensor([0.0, math.nan]), torch.zeros(2)


def test_the_largest_difference_of_all_pairs():
    assert worst([SAME]) == 0
    assert worst([SAME, (torch.tensor([1.0, -2.0]), torch.tensor([1.5, 1.0])), SAME]) == 3


@pytest.mark.parametrize("pairs", [*itertools.permutations([SAME, NAN, SAME]), [(NAN[0], NAN[0])]])
def test_nan_is_not_lost_wherever_it_stands(pairs):
    assert math.isnan(worst(pairs))


@pytest.mark.parametrize("number", [0.0, 2.0, -1.0, math.inf, torch.finfo(torch.float32).max])
def test_no_number_is_as_good_as_nan_to_the_checks(number):
    one, nan = torch.tensor([1.0, number]), torch.tensor([1.0, math.nan])
    assert close(one, one) and close(nan, nan)
    assert not close(one, nan) and not close(nan, one)
