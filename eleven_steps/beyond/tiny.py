"""Define a tiny language model made of MultiHeadAttention alone, and its measurements.

model = TinyModel()                             untrained; beyond.checkpoints loads trained ones
trace_layers(model, read("Anna met Bert ."))    the eleven steps of each of its layers
with without_head(model, layer=1, head=0): ...  the same model with one head taken out
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn

from eleven_steps.beyond.grammar import (
    AGAIN,
    CONTEXT_LENGTH,
    FREE,
    NAME,
    NUMBERS,
    VERB,
    VERBS,
    VERBS_OF_MANY,
    WORDS,
    Stories,
)
from eleven_steps.helpers.attention import MultiHeadAttention
from eleven_steps.helpers.trace import Step, trace

WIDTH, PLACE_WIDTH = 42, 16  # features of a word, and of its position
NUM_HEADS = (3, 2)  # of the first and the second layer


class TinyModel(nn.Module):
    """Predict the next word with layers of attention alone, each added to the residual stream.

    The first layer gets the 42 features of a word and 16 features of its position: its d_in is
    58, its d_out 42. Only the 42 features are passed on, so the second layer knows positions
    only through what the first layer has written.

    Args:
        num_heads: heads of each layer; as many layers as there are numbers.
        attention: the class of the layers.

    Source: attention-only models of one and two layers as in "A Mathematical Framework for
    Transformer Circuits" (2021); places as in "Attention Is All You Need" (2017), section 3.5,
    but kept out of what is passed on, as in "Shortformer" (2020).
    """

    def __init__(
        self,
        num_heads: tuple[int, ...] = NUM_HEADS,
        attention: type[MultiHeadAttention] = MultiHeadAttention,
    ):
        super().__init__()
        self.num_heads = tuple(num_heads)
        self.embedding = nn.Embedding(len(WORDS), WIDTH)
        nn.init.normal_(self.embedding.weight, std=0.5)
        self.layers = nn.ModuleList(
            attention(WIDTH + (not layer) * PLACE_WIDTH, WIDTH, CONTEXT_LENGTH, 0.0, heads)
            for layer, heads in enumerate(num_heads)
        )
        self.unembedding = nn.Linear(WIDTH, len(WORDS))
        self.register_buffer("places", waves(), persistent=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return scores of the next word (b, num_tokens, words) for tokens (b, num_tokens)."""
        x = self.embedding(tokens)  # (b, num_tokens, WIDTH)
        x = x + self.layers[0](self.placed(x))  # (b, num_tokens, WIDTH)
        for layer in self.layers[1:]:
            x = x + layer(x)  # (b, num_tokens, WIDTH)
        return self.unembedding(x)  # (b, num_tokens, words)

    def placed(self, x: torch.Tensor) -> torch.Tensor:
        """Append features of the position to x: (b, num_tokens, WIDTH + PLACE_WIDTH)."""
        places = self.places[: x.shape[1]].expand(len(x), -1, -1)
        return torch.cat([x, places], dim=-1)


def waves() -> torch.Tensor:
    """Return sines and cosines of each position, (CONTEXT_LENGTH, PLACE_WIDTH)."""
    half = PLACE_WIDTH // 2
    speeds = torch.exp(-math.log(100) * torch.arange(half) / half)  # radians for each word
    angles = torch.arange(CONTEXT_LENGTH)[:, None] * speeds
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def trace_layers(model: TinyModel, tokens: torch.Tensor) -> list[list[Step]]:
    """Trace each layer for tokens (b, num_tokens): eleven steps, as helpers.trace.trace returns."""
    with torch.no_grad():
        x, traces = model.embedding(tokens), []
        for number, layer in enumerate(model.layers):
            traces.append(trace(layer, x if number else model.placed(x)))
            x = x + traces[-1][-1].tensors["out"]
    return traces


def patterns(model: TinyModel, tokens: torch.Tensor) -> list[torch.Tensor]:
    """Return the weights of each layer, (b, num_heads, num_tokens, num_tokens) each."""
    return [steps[6].tensors["weights"] for steps in trace_layers(model, tokens)]


@contextmanager
def without_head(model: TinyModel, layer: int, head: int) -> Iterator[None]:
    """Remove a head while the block runs: set its columns of out_proj.weight to 0.

    Only out_proj.weight is used, so the layers may be of any class.
    """
    check_head(model, layer, head)
    weight = model.layers[layer].out_proj.weight.data  # (d_out, d_out), a column for each feature
    columns = weight.chunk(model.num_heads[layer], dim=1)[head]
    kept = columns.clone()
    try:
        columns.zero_()
        yield
    finally:
        columns.copy_(kept)


def check_head(model: TinyModel, layer: int, head: int) -> None:
    """Raise ValueError unless the model has this head."""
    heads = model.num_heads
    if not (0 <= layer < len(heads) and 0 <= head < heads[layer]):
        every = ", ".join(f"{n} in layer {i}" for i, n in enumerate(heads))
        raise ValueError(f"layer {layer}, head {head}: the model's numbers of heads are {every}")


@dataclass(frozen=True)
class Report:
    """Hold the measurements of a model on stories: shares from 0 to 1, losses in nats."""

    prefix: list[list[float]]  # prefix matching score, for each layer and head
    back: list[list[float]]  # mean weight on the token before, for each layer and head
    names: float  # share of repeated names for which the right name is most likely
    agreement: (
        float  # share of verbs for which the right number, singular or plural, is more likely
    )
    loss: float  # mean cross-entropy of the repeated names
    loss_on_all: float  # mean cross-entropy of all words

    @property
    def best(self) -> tuple[int, int]:
        """Return the layer and the head with the highest prefix matching score."""
        every = {(i, j): p for i, row in enumerate(self.prefix) for j, p in enumerate(row)}
        return max(every, key=every.get)

    @property
    def looking_back(self) -> list[int]:
        """Return the best head of layer 0 at looking back, then others with a weight of 0.25."""
        every = sorted(range(len(self.back[0])), key=lambda head: -self.back[0][head])
        return [head for head in every if head == every[0] or self.back[0][head] >= 0.25]


def measure(model: TinyModel, stories: Stories) -> Report:
    """Measure a model on stories, without dropout."""
    model.eval()
    tokens, following = stories.tokens[:, :-1], stories.tokens[:, 1:]
    kinds = stories.kinds[:, 1:]
    with torch.no_grad():
        chances = model(tokens).softmax(dim=-1)  # (b, num_tokens, words)
        weights = patterns(model, tokens)
    name, verb = kinds == NAME, kinds == VERB
    right = following[name]  # (names,)
    many = [NUMBERS[verb] for verb in VERBS_OF_MANY]
    one = [NUMBERS[verb] for verb in VERBS]
    said_many = chances[verb][:, many].sum(dim=-1) > chances[verb][:, one].sum(dim=-1)
    is_many = torch.isin(following[verb], torch.tensor(many))
    back = [w.diagonal(offset=-1, dim1=2, dim2=3).mean(dim=(0, 2)) for w in weights]
    comes_back = (kinds == NAME) | (kinds == AGAIN)
    return Report(
        prefix=[prefix_matching(w, tokens, comes_back).tolist() for w in weights],
        back=[heads.tolist() for heads in back],
        names=(chances[name].argmax(dim=-1) == right).float().mean().item(),
        agreement=(said_many == is_many).float().mean().item(),
        loss=-chances[name].gather(1, right[:, None]).log().mean().item(),
        loss_on_all=-chances.gather(2, following[..., None]).log().mean().item(),
    )


def prefix_matching(
    weights: torch.Tensor, tokens: torch.Tensor, counted: torch.Tensor
) -> torch.Tensor:
    """Return each head's mean weight on the token after the last occurrence of the current one.

    Args:
        weights: (b, num_heads, num_tokens, num_tokens).
        tokens: (b, num_tokens).
        counted: (b, num_tokens) booleans: which tokens count, if they occurred before.

    Source: "In-context Learning and Induction Heads" (2022), prefix matching score.
    """
    num_tokens = tokens.shape[1]
    same = tokens[:, :, None] == tokens[:, None, :]  # (b, num_tokens, num_tokens)
    last = torch.where(same.tril(diagonal=-1), torch.arange(num_tokens), -1).amax(dim=-1)
    b, query = torch.nonzero(counted & (last >= 0), as_tuple=True)
    return weights[b, :, query, last[b, query] + 1].mean(dim=0)


def story_loss(model: TinyModel, stories: Stories) -> torch.Tensor:
    """Compute the loss of training: mean cross-entropy, where an unpredictable word counts 0.2."""
    scores = model(stories.tokens[:, :-1])  # (b, num_tokens, words)
    losses = nn.functional.cross_entropy(
        scores.flatten(0, 1), stories.tokens[:, 1:].flatten(), reduction="none"
    )
    counts = torch.where(stories.kinds[:, 1:].flatten() == FREE, 0.2, 1.0)
    return (losses * counts).sum() / counts.sum()
