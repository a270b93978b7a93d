"""The models since the lecture: what is said of them follows from their numbers."""

# ruff: noqa: F403, F405 - every part there is

import pytest
import renew
import torch

from eleven_steps.beyond.newer_models import load_newer_models
from eleven_steps.beyond.variants import *

MODELS = {model.name.partition(" (")[0]: model for model in load_newer_models()}


def test_only_gpt2_is_the_lectures_class():
    same = [name for name, model in MODELS.items() if not model.parts() and not model.window]
    assert same == ["GPT-2 smallest"]
    assert MODELS["GPT-2 smallest"].steps() == {2: "biases"}


def test_an_empty_field_is_the_lectures_step():
    """What the notebook says of all rows: steps 1, 3 and 9 are in no row's changes."""
    free = [model for model in MODELS.values() if " to " in model.steps().get(11, "")]
    told = renew.COURSE["19_since_1"].read_text("utf-8")
    assert (len(MODELS), len(free)) == (21, 11)
    assert "twenty-one published models" in told and "Eleven of these models choose it" in told
    changed = {step for model in MODELS.values() for step in model.steps()}
    assert changed == {2, 4, 5, 6, 7, 8, 10, 11}
    for model in MODELS.values():
        small = model.shrunk(1 if "Falcon" in model.name else 2, 8).build(6)
        empty = 11 not in model.steps()
        square = small.d_out == small.out_proj.out_features
        assert empty == (square and small.out_proj.bias is not None), model.name
        assert (small.W_query.bias is not None) == ("biases" in model.steps().get(2, ""))


SMALL = {name: model.shrunk(1, 8) for name, model in MODELS.items()}


@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if not model.pool])
def test_a_model_keeps_what_the_table_says(name):
    small = SMALL[name].shrunk(1 if name == "Falcon 7B" else 2, 1)
    cache = LatentCache() if small.latent_dim else Cache()
    built = small.build(6).plus(cache)
    built(torch.randn(1, 6, small.d_model))
    assert cache.nbytes == 4 * 6 * small.kept_in(in_window=small.window_layers == small.num_layers)
