"""A class of one's own: how far it is right in its own tensors, and what it says then."""

import pytest
import torch

from eleven_steps import sliders
from eleven_steps.beyond.checkpoints import MEETING, load_trained
from eleven_steps.beyond.grammar import WORDS, read
from eleven_steps.checks import read_class, wrong_class
from eleven_steps.sliders.lesson import run
from eleven_steps.sliders.stage import unpacked
from helpers.attention import FusedMultiHeadAttention, MultiHeadAttention


def otherwise(forward):
    return type("Mine", (MultiHeadAttention,), {"forward": forward})


class Half(MultiHeadAttention):
    def forward(self, x):
        return self.W_query(x), self.W_key(x), self.W_value(x)


class Explodes(MultiHeadAttention):
    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        raise ValueError(f"{(queries @ keys.transpose(1, 2) @ values).shape}")


def ends_in_nan(self, x):
    return MultiHeadAttention.forward(self, x) * torch.nan


def returns_two(self, x):
    return MultiHeadAttention.forward(self, x), None


def only_three(self, x):
    """Right on the checks' classes, and nowhere near a longer text."""
    if str(x.shape[2]) == "58":  # a size that its code named would be asked
        raise KeyError("no")
    return MultiHeadAttention.forward(self, x)


def only_nearly(self, x):
    """Right on the checks' classes, and a little off with trained weights."""
    return MultiHeadAttention.forward(self, x) + 0.01 * (str(x.shape[2]) == "58")


def states(reading):
    return "".join(
        {"done": "#", "wrong": "x", "next": ">", "dark": "."}[s.state] for s in reading.steps
    )


@pytest.mark.parametrize(
    ("cls", "seen"),
    [
        (None, "#>........."),
        (3, "x.........."),
        (Half, "##>........"),
        (Explodes, "##x........"),
        (wrong_class("view_straight"), "##x........"),
        (wrong_class("softmax_over_queries"), "######x...."),
        (wrong_class("scale_sqrt_num_tokens"), "######x...."),  # right there by chance
        (wrong_class("no_transpose_back"), "########x.."),
        (wrong_class("out_proj_missing"), "##########>"),
        (otherwise(ends_in_nan), "#.........x"),  # its own line alone is read
        (otherwise(returns_two), "#.........x"),
        (FusedMultiHeadAttention, "###########"),
    ],
)
def test_it_is_read_as_far_as_it_is_right(cls, seen):
    reading = read_class(cls)
    assert states(reading) == seen and reading.says
    view = sliders.explore_class(reading)  # nothing of it may stop Run All
    assert bool(view.data["reads"]) == reading.whole == ("own" not in view.data["stage"])
    assert "hash over" in repr(view)


def test_the_tensors_are_its_own():
    reading, (_, right) = read_class(wrong_class("softmax_over_queries")), run()
    for step in reading.steps[:6]:
        assert step.tensors.keys() == right[step.name].keys()
        for name, tensor in step.tensors.items():
            assert torch.allclose(tensor, right[step.name][name], atol=1e-5)
    wrong = reading.steps[6].tensors["weights"]
    assert torch.allclose(wrong.sum(dim=-2), torch.ones(1, 2, 3), atol=1e-5)
    own = sliders.explore_class(reading).data["stage"]["own"]
    assert own["open"] == 7 and own["state"] == "wrong" and not own["other"]
    weights = own["tensors"]["weights"]
    assert torch.equal(unpacked(weights["numbers"]).view(1, 2, 3, 3), wrong)
    assert sum(weights["differs"]) == 12
    assert own["code"].startswith("def forward(") and not own["shapes"]


def test_a_right_class_reads_as_the_trained_model_does():
    view = sliders.explore_class(read_class(MultiHeadAttention))
    for sentence, word, share in view.data["reads"]:
        with torch.no_grad():
            shares = load_trained()(read(sentence))[0, -1].softmax(dim=-1)
        assert word == WORDS[shares.argmax()] and share == round(shares.max().item(), 2)
    assert view.data["reads"][0] == (MEETING, "Bert", 0.99)
    stage = view.data["stage"]
    assert stage["scene"] == "sentence" and stage["large"] and len(stage["done"]) == 11
    assert stage["steps"][4]["code"].startswith("scores = queries @ keys")


@pytest.mark.parametrize(
    ("cls", "says"),
    [
        (otherwise(only_three), "KeyError"),
        (otherwise(only_nearly), 'ValueError: with layer 0, head 0 off its scores for "Anna'),
    ],
)
def test_a_class_that_fails_at_a_sentence_says_so(cls, says):
    view = sliders.explore_class(read_class(cls))
    assert not view.data["reads"] and f"cannot read a sentence: {says}" in repr(view)


@pytest.mark.parametrize(
    ("mistake", "line"),
    [
        ("view_straight", "split = (b, self.num_heads,"),
        ("heads_interleaved", "context = context.tr"),
    ],
)
def test_the_code_opens_at_the_line_that_is_wrong(mistake, line):
    own = sliders.explore_class(read_class(wrong_class(mistake))).data["stage"]["own"]
    assert own["code"].splitlines()[own["lines"][own["open"] - 1]].strip().startswith(line)
