"""Load the tiny model's checkpoints, from twelve steps of training, and draw its heads.

real = load_sentence()             "Anna met Bert . Anna met", as the trained second layer reads it
queries = real.steps[3].tensors["queries"]                          its eleven steps, as in a trace
"""

import json
from dataclasses import dataclass

import torch
from safetensors import safe_open

from eleven_steps.beyond.grammar import read, write
from eleven_steps.beyond.tiny import TinyModel, check_head, patterns, prefix_matching, trace_layers
from eleven_steps.helpers.attention import MultiHeadAttention
from eleven_steps.helpers.examples import DATA
from eleven_steps.helpers.trace import Step
from eleven_steps.pictures import Picture, draw_weights, draw_words

CHECKPOINTS = DATA / "heads_that_learn.safetensors"
MEETING = "Anna met Bert . Anna met"
FACTS = ("command", "seed", "date", "versions", "reached", "control")


@dataclass(frozen=True)
class Checkpoint:
    """Hold one checkpoint: the model after some steps of training, and its measurements."""

    step: int
    model: TinyModel
    loss: float  # mean over the repeated names, in nats
    prefix: float  # prefix matching of the head that scores highest in the end, from 0 to 1


def load_checkpoints() -> list[Checkpoint]:
    """Load the checkpoints that `python bench/train.py` stored, the untrained model first."""
    return [load_checkpoint(place) for place in range(len(json.loads(metadata()["moments"])))]


def load_trained() -> TinyModel:
    """Load the last checkpoint, the trained model."""
    return load_checkpoint(-1).model


def load_checkpoint(place: int) -> Checkpoint:
    """Load the checkpoint at one place of the list."""
    fact = json.loads(metadata()["moments"])[place]
    start = f"{fact['step']}."
    with safe_open(CHECKPOINTS, framework="pt") as stored:
        names = [name for name in stored.keys() if name.startswith(start)]  # noqa: SIM118 (no dict)
        state = {name.removeprefix(start): stored.get_tensor(name).float() for name in names}
    with torch.random.fork_rng(devices=[]):  # leave the notebook's random state untouched
        model = TinyModel()
    model.load_state_dict(state)
    return Checkpoint(fact["step"], model, fact["loss"], fact["prefix"])


@dataclass(frozen=True)
class ReadSentence:
    """Hold what the trained model's second layer computes for one sentence."""

    words: list[str]  # one for each token
    layer: MultiHeadAttention
    head: int  # index of the induction head
    steps: list[Step]  # the eleven steps of the layer, as helpers.trace.trace returns them
    model: TinyModel  # the model that contains the layer

    def draw(self, table: torch.Tensor, title: str, head: int | None = None) -> Picture:
        """Draw the scores or weights of one head, by default the induction head, with the words."""
        head = self.head if head is None else head
        return draw_words(table[0, head], self.words, title, head)

    def raises(self, added: torch.Tensor, words: str) -> torch.Tensor:
        """Return by how much added features (..., d_out) raise the scores of words."""
        return added @ self.model.unembedding.weight.detach()[read(words)[0]].T


def load_sentence(sentence: str = MEETING) -> ReadSentence:
    """Let the trained model read a sentence, and return what its second layer computes."""
    model, tokens = load_trained(), read(sentence)
    steps = trace_layers(model, tokens)[1]
    everywhere = torch.ones_like(tokens, dtype=torch.bool)
    head = int(prefix_matching(steps[6].tensors["weights"], tokens, everywhere).argmax())
    return ReadSentence(write(tokens[0]), model.layers[1], head, steps, model)


def load_facts() -> dict[str, str]:
    """Return how the checkpoints were made, and the measurements of model and control."""
    return {name: metadata()[name] for name in FACTS}


def metadata() -> dict[str, str]:
    """Return the texts in the file of checkpoints."""
    with safe_open(CHECKPOINTS, framework="pt") as stored:
        return stored.metadata()


def draw_head(sentence: str, layer: int, head: int) -> Picture:
    """Draw the weights of one head of the trained model for a sentence, in per cent.

    The sentence has at most 24 words of the vocabulary, eleven_steps.beyond.grammar.WORDS.
    """
    tokens, model = read(sentence), load_trained()
    check_head(model, layer, head)
    return draw_weights(patterns(model, tokens)[layer][0, head], write(tokens[0]), head, layer)
