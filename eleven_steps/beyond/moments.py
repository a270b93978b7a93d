"""The tiny model as it was at a dozen moments of its training, and a look at its heads.

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

MOMENTS = DATA / "heads_that_learn.safetensors"
MEETING = "Anna met Bert . Anna met"
FACTS = ("command", "seed", "date", "versions", "reached", "control")


@dataclass(frozen=True)
class Moment:
    """Hold the model as it was after some steps of training, and what it had reached."""

    step: int
    model: TinyModel
    loss: float  # on the met names that come back, in nats
    prefix: float  # the prefix matching score of the head that is best in the end, from 0 to 1


def load_moments() -> list[Moment]:
    """Load the moments that `python bench/train.py` stored, the untrained model first."""
    return [moment_of(fact) for fact in json.loads(metadata()["moments"])]


def load_trained() -> TinyModel:
    """Load the model as it was in the end."""
    return moment_of(json.loads(metadata()["moments"])[-1]).model


def moment_of(fact: dict[str, float]) -> Moment:
    """Load one moment, whose facts are known."""
    start = f"{fact['step']}."
    with safe_open(MOMENTS, framework="pt") as stored:
        names = [name for name in stored.keys() if name.startswith(start)]  # noqa: SIM118 (no dict)
        state = {name.removeprefix(start): stored.get_tensor(name).float() for name in names}
    with torch.random.fork_rng(devices=[]):  # a notebook's random numbers stay its own
        model = TinyModel()
    model.load_state_dict(state)
    return Moment(fact["step"], model, fact["loss"], fact["prefix"])


@dataclass(frozen=True)
class ReadSentence:
    """Hold what the trained model's second layer does with a sentence."""

    words: list[str]  # one a token
    layer: MultiHeadAttention
    head: int  # that looks at the word after the last occurrence of the present one
    steps: list[Step]  # the layer's eleven, as helpers.trace.trace returns them
    meanings: torch.Tensor  # what the model reads each of its words from, (words, d_out)
    model: TinyModel  # that the layer is of

    def draw(self, table: torch.Tensor, title: str, head: int | None = None) -> Picture:
        """Draw one head of scores, masked scores or weights (1, num_heads, num_tokens,
        num_tokens) with words at rows and columns: the head that completes, or another one."""
        head = self.head if head is None else head
        return draw_words(table[0, head], self.words, title, head)

    def raises(self, added: torch.Tensor, words: str) -> torch.Tensor:
        """Return how much the score of each of some words rises, (..., words), when the layer adds
        these features (..., d_out)."""
        return added @ self.meanings[read(words)[0]].T


def load_sentence(sentence: str = MEETING) -> ReadSentence:
    """Let the trained model read a sentence, and return what its second layer does."""
    model, tokens = load_trained(), read(sentence)
    steps = trace_layers(model, tokens)[1]
    weights = {step.name: step for step in steps}["softmax"].tensors["weights"]
    everywhere = torch.ones_like(tokens, dtype=torch.bool)
    head = int(prefix_matching(weights, tokens, everywhere).argmax())
    meanings = model.unembedding.weight.detach()
    return ReadSentence(write(tokens[0]), model.layers[1], head, steps, meanings, model)


def load_facts() -> dict[str, str]:
    """Return how the stored moments came about, and what they and the control have reached."""
    stored = metadata()
    return {name: stored[name] for name in FACTS}


def metadata() -> dict[str, str]:
    """Return all texts stored beside the moments; FileNotFoundError says what stores them."""
    if not MOMENTS.is_file():
        raise FileNotFoundError(f"there is no {MOMENTS}: python bench/train.py writes it")
    with safe_open(MOMENTS, framework="pt") as stored:
        return stored.metadata()


def look(sentence: str, layer: int, head: int) -> Picture:
    """Draw where a head looks in a sentence of yours: weights in per cent, words at both sides.

    Args:
        sentence: words of the model's vocabulary (eleven_steps.beyond.grammar.WORDS), at most 24.
        layer, head: which head of the trained model.

    Raises:
        ValueError: words are unknown (all of them are listed), the sentence is empty or too long,
            or there is no such head.
    """
    tokens, model = read(sentence), load_trained()
    check_head(model, layer, head)
    return draw_weights(patterns(model, tokens)[layer][0, head], write(tokens[0]), head, layer)
