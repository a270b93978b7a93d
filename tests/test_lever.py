"""The lever without a browser: what is stored of it, and what it refuses."""

import torch

from eleven_steps.sliders import explore_lever

SCORES = torch.tensor([4.0, -2.4, 8.0, 0.8])
MASKED = torch.tensor([[1.0, -torch.inf], [0.5, 2.0]])


def test_what_is_stored_are_its_scores_and_the_weights_of_a_softmax():
    lever = explore_lever(SCORES, divisor=2.0)
    weights = [round(each, 2) for each in torch.softmax(SCORES / 2, dim=-1).tolist()]
    assert f"weights = [{weights}]" in repr(lever) and "hash over" in repr(lever)
    assert repr(lever) == repr(explore_lever(SCORES, divisor=2.0)) != repr(explore_lever(SCORES))
    assert lever._repr_mimebundle_()["image/svg+xml"] == lever.still.svg
    assert explore_lever(MASKED, ["a", "b"]).data["rows"][0] == [1.0, None]
