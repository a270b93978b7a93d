"""A class of one's own: how far it is right in its own tensors, and what it says then."""

import pytest
import torch

from eleven_steps import sliders
from eleven_steps.beyond.checkpoints import load_checkpoints
from eleven_steps.beyond.grammar import WORDS, read
from eleven_steps.checks import read_class, wrong_class
from eleven_steps.sliders.lesson import run
from eleven_steps.sliders.stage import unpacked
from helpers.attention import FusedMultiHeadAttention, MultiHeadAttention
from helpers.trace import trace


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
    assert (view.data["voice"] is not None) == reading.whole
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


def next_shares(model, tokens, off):
    """Read tokens by hand, the context of the head that is off set to 0 before out_proj."""
    x = model.embedding(tokens)
    for number, layer in enumerate(model.layers):
        context = trace(layer, x if number else model.placed(x))[9].tensors["context"]
        if off and number == off[0]:
            start = off[1] * layer.head_dim
            context[..., start : start + layer.head_dim] = 0
        x = x + layer.out_proj(context)
    return model.unembedding(x)[0, -1].softmax(dim=-1)


def test_it_says_what_the_trained_model_says():
    spoken = sliders.explore_class(read_class(MultiHeadAttention)).data["voice"]
    model = load_checkpoints()[-1].model
    assert len(spoken) == 6 and all(len(each["states"]) == 6 for each in spoken)
    for each in spoken:
        tokens = read(" ".join(each["words"]))
        for state in each["states"]:
            with torch.no_grad():
                shares = next_shares(model, tokens, state["off"])
            word, share = state["next"][0]
            assert word == WORDS[shares.argmax()] and share == pytest.approx(
                float(shares.max()), abs=0.006
            )
            assert all(len(look) == len(each["words"]) for look in state["arcs"])
    whole, *_, last = spoken[0]["states"]
    assert whole["next"][0] == ["Bert", 0.99] and last["next"][0][1] < 0.2


def test_a_class_that_fails_at_a_sentence_says_so():
    view = sliders.explore_class(read_class(otherwise(only_three)))
    assert view.data["voice"] is None and "cannot read a sentence: KeyError" in repr(view)


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
