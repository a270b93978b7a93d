"""The tiny model: its training, and the checkpoints that are stored; notebook 18 shows the rest."""

import pytest
import torch
import train

from eleven_steps.beyond import ablations, checkpoints
from eleven_steps.beyond.grammar import read
from eleven_steps.beyond.tiny import measure
from helpers import examples


@pytest.mark.nightly
def test_the_stored_seed_is_the_stored_model_and_good_enough():
    seeds, stories = examples.load_example("seeds"), train.fresh(train.SEED)
    model = checkpoints.load_checkpoints()[-1].model
    answers = ablations.measure_all(model, stories, train.SEED)
    for name, answer in answers.items():
        assert seeds[name][train.SEED].item() == pytest.approx(answer, abs=0.03), name
    report = measure(model, train.fresh(train.SEED + 1))
    assert min(report.names, report.agreement, *map(max, report.prefix[1:])) >= 0.9


def test_what_a_layer_adds_raises_the_score_of_a_word_by_that_much():
    real = checkpoints.load_sentence()
    x, out = real.steps[0].tensors["x"], real.steps[10].tensors["out"]
    with torch.no_grad():
        difference = real.model.unembedding(x + out) - real.model.unembedding(x)
    wanted = difference[..., read("Bert saw .")[0]]
    assert torch.allclose(real.raises(out, "Bert saw ."), wanted, atol=1e-4)
