"""What a function uses besides its arguments is read off its code."""

import torch
from torch import nn

from eleven_steps.checks.asking.failures import names_read

keys = torch.ones(2, 3)
layer = nn.Linear(2, 2)


def test_tensors_numbers_and_layers_of_the_notebook_are_named():
    assert names_read(lambda m: (m / 3, layer))["names"] == ["layer"]
    assert names_read(lambda m: (lambda k: k / 5 + keys)(m))["names"] == ["keys"]
    assert "softmax" in names_read(lambda m: torch.softmax(m, -1))["called"]


def test_names_of_its_own_are_not_the_notebooks():
    def function(keys, scale=2.5):
        layer = [keys for keys in range(4)]
        return layer, scale

    assert names_read(function)["names"] == []
