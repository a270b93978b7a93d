"""The tiny model as it was at a dozen moments of its training, and a look at its heads."""

import json
from dataclasses import dataclass

import torch
from safetensors import safe_open

from helpers.examples import DATA
from helpers.pictures import Picture, draw_weights
from helpers.sentences import read, write
from helpers.tiny import TinyModel, check_head, patterns

MOMENTS = DATA / "heads_that_learn.safetensors"
FACTS = ("command", "seed", "date", "versions", "reached", "control")


@dataclass(frozen=True)
class Moment:
    """Hold the model as it was after some steps of training, and what it had reached.

    Args:
        step: how many steps it had been trained.
        model: the model with the weights of that moment.
        loss: the loss on the met names that come back, in nats.
        prefix: the prefix matching score of the head that is best in the end, from 0 to 1.
    """

    step: int
    model: TinyModel
    loss: float
    prefix: float


def load_moments() -> list[Moment]:
    """Load the moments that `python tools/train.py` stored, the untrained model first.

    Raises:
        FileNotFoundError: there are none.
    """
    facts, tensors = json.loads(metadata()["moments"]), {}
    with safe_open(MOMENTS, framework="pt") as stored:
        for name in stored.keys():  # noqa: SIM118 (it is no dict)
            tensors[name] = stored.get_tensor(name).float()
    moments = []
    for fact in facts:
        start = f"{fact['step']}."
        state = {n.removeprefix(start): t for n, t in tensors.items() if n.startswith(start)}
        model = restored(state)
        moments.append(Moment(fact["step"], model, fact["loss"], fact["prefix"]))
    return moments


def restored(state: dict[str, torch.Tensor]) -> TinyModel:
    """Return the model with these weights, without a trace in the random numbers."""
    with torch.random.fork_rng(devices=[]):
        model = TinyModel()
    model.load_state_dict(state)
    return model


def load_facts() -> dict[str, str]:
    """Return how the stored moments came about, and what they and the control have reached."""
    stored = metadata()
    return {name: stored[name] for name in FACTS}


def metadata() -> dict[str, str]:
    """Return all texts stored beside the moments."""
    if not MOMENTS.is_file():
        raise FileNotFoundError(f"there is no {MOMENTS}: python tools/train.py writes it")
    with safe_open(MOMENTS, framework="pt") as stored:
        return stored.metadata()


def look(sentence: str, layer: int, head: int, model: TinyModel | None = None) -> Picture:
    """Draw where a head looks in a sentence of yours: weights in per cent, words at both sides.

    Args:
        sentence: words of the model's vocabulary (helpers.sentences.WORDS), at most 24.
        layer, head: which head.
        model: the trained model, if none is given.

    Raises:
        ValueError: words are unknown (all of them are listed), the sentence is empty or too long,
            or there is no such head.
    """
    tokens = read(sentence)
    model = model or load_moments()[-1].model
    check_head(model, layer, head)
    return draw_weights(patterns(model, tokens)[layer][0, head], write(tokens[0]), head)
