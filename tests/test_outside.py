"""What a function uses besides its arguments is read off its source, where there is one."""

import pytest
import torch
from eleven_steps.checks.run.places import names_read, with_constants
from torch import nn

NOTHING = {"names": [], "constants": [], "called": []}
keys = torch.ones(2, 3)
layer = nn.Linear(2, 2)
first, second = lambda m: (m / 3, layer), lambda m: (lambda k: k / 5 + keys)(m)  # fmt: skip


def reading(**found):
    return NOTHING | found


def test_two_functions_in_a_line_are_told_apart():
    assert names_read(first) == reading(names=["layer"], constants=[3], called=["layer"])
    assert names_read(second) == reading(names=["keys"], constants=[5], called=["keys"])
    inner = (lambda m: lambda k: k * 7 - m)(2)
    assert names_read(inner)["constants"] == [7]
    assert with_constants(inner, {7: 8})(1) == 6


def test_names_of_its_own_are_not_the_notebooks():
    def function(keys, scale=2.5):
        layer = [keys for keys in range(4)]
        return layer, scale, -1, 0

    assert names_read(function) == reading(constants=[4], called=["range"])  # -1 is no size


def test_numbers_are_replaced_and_all_else_stays():
    size, odd = 3, [4]

    def function(x, /, y=20, *, z=30):
        return x * 3 + 1, [each / 3 for each in odd], size, y, z, keys

    found = with_constants(function, {3: 6, 1: 0})
    assert found(1)[:5] == (6, [4 / 6], 3, 20, 30)
    assert found(1, z=0)[4:] == (0, keys)
    assert function(1)[:2] == (4, [4 / 3])


def test_without_source_only_the_names_are_known_and_no_number_is_replaced():
    assert names_read(eval("lambda m: m / 3 + keys")) == reading(called=["keys"])
    assert names_read(torch.softmax) == names_read(None) == names_read(int) == NOTHING
    with pytest.raises(TypeError, match="source"):
        with_constants(eval("lambda m: m / 3"), {3: 5})
