"""The lever without a browser: what is stored of it, and what it refuses."""

import pytest
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


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"scores": torch.zeros(2, 3)}, r"scores have shape \(2, 3\)"),
        ({"scores": torch.zeros(9)}, "9 words: expected a row of 1 to 8 scores"),
        ({"scores": SCORES, "words": ["a"]}, "1 words"),
        ({"scores": torch.tensor([1.0, torch.nan])}, "finite numbers"),
        ({"scores": torch.full((2,), -torch.inf)}, "finite numbers"),
        ({"scores": SCORES, "divisor": 0.1}, "the divisor is 0.1"),
    ],
)
def test_what_cannot_be_shown_is_named(wrong, says):
    with pytest.raises(ValueError, match=says):
        explore_lever(**wrong)
