"""Words as vectors: a meaning that moves, and tips to drag."""

import math
from collections.abc import Sequence

import torch

from eleven_steps.helpers.examples import load_example
from eleven_steps.pictures import (
    Arrow,
    Handled,
    Picture,
    draw_key,
    draw_mix,
    draw_vectors,
)
from eleven_steps.sliders.drag import Drag
from eleven_steps.sliders.film import Film, film

# The sentences of the first notebook, by the words that tell which bank is meant.
SENTENCES = {
    "credit card": "he went to the bank for his credit card",
    "ducks": "the ducks were swimming near the bank",
}
AXES = ("nature", "money")


def explore_meaning() -> Film:
    """Move over two sentences and the words read so far, and see the vector of "bank" move."""
    return film(
        meaning_at,
        {"words_read": 8},
        sentence=SENTENCES,
        words_read=lambda sentence: range(len(SENTENCES[sentence].split())),
    )


def meaning_at(sentence: str, words_read: int) -> Picture:
    """Draw "bank" alone and in the context of itself and the first other words of a sentence."""
    table, words = load_example("words"), SENTENCES[sentence].split()
    place = words.index("bank")
    read = [i for i in range(len(words)) if i == place or i - (i > place) < words_read]
    names = [words[i] for i in read]
    x = table["embedding"][[table.rows["embedding"].index(name) for name in names]]
    found = in_context(x, names.index("bank"), table["W_value"])
    alone, bank = x[names.index("bank")].tolist(), found["y"].tolist()
    weights = found["weights"].tolist()
    arrows = [
        Arrow(name if max(vector) > 1 else "", vector)
        for name, vector in zip(names, x.tolist(), strict=True)
        if name != "bank"
    ]
    arrows += [Arrow("bank alone", alone, "dashed")]
    arrows += [Arrow("bank in context", bank, "strong")]
    degrees = math.degrees(math.atan2(bank[1], bank[0]))
    unread = [name if i in read else "..." for i, name in enumerate(words)]
    return draw_vectors(
        arrows,
        f"{' '.join(unread)}: {degrees:.0f} degrees",
        AXES,
        ((0, 0), (4, 4)),
        list(zip(names, weights, strict=True)),
    )


def in_context(x: torch.Tensor, place: int, W_value: torch.Tensor) -> dict[str, torch.Tensor]:
    """Mix the context of one token of x (num_tokens, d), without a mask, and add it to the token.

    W_query and W_key change nothing here: a token asks with its own vector and is found by it.

    Returns:
        scores, weights (num_tokens,), context and y (d,).
    """
    scores = x @ x[place] / x.shape[1] ** 0.5
    weights = torch.softmax(scores, dim=-1)
    context = weights @ (x @ W_value)
    return {"scores": scores, "weights": weights, "context": context, "y": x[place] + context}


def explore_mix(words: Sequence[str], x: torch.Tensor, word: str) -> Drag:
    """Drag the tip of a word's vector: its scores, its weights and what it becomes follow.

    Args:
        words: one for each token.
        x: (num_tokens, 2), their vectors.
        word: the one whose tip can be dragged; where it stands more than once, the first.

    Raises:
        ValueError: word is none of words, or its vector is out of sight.
    """
    if word not in words or tuple(x.shape) != (len(words), 2):
        raise ValueError(
            f"{word!r} is to be one of the words {list(words)}, and x {tuple(x.shape)} to have a "
            f"row of two numbers for each: one of both is not so"
        )
    place, W_value = list(words).index(word), load_example("words")["W_value"]

    def draw(values):
        moved = x.clone()
        moved[place] = torch.tensor(values[0])
        return draw_mix(words, moved, place, in_context(moved, place, W_value), AXES)

    return Drag(draw, [x[place].tolist()])


def explore_angle() -> Drag:
    """Drag the tip of a key: its dot product with a query follows, its angle and its shadow."""
    return Drag(lambda values: key_at(torch.tensor(values[0])), [[2.0, 1.5]])


def key_at(key: torch.Tensor) -> Handled:
    """Draw a query (2,), (3, 0), and a key of shape (2,), and three ways to their dot product."""
    query = torch.tensor([3.0, 0.0])
    dot, first, long = query @ key, query.norm(), key.norm()
    cosine = dot / (first * long)  # NaN for a key without length
    found = {
        "dot": dot,
        "length of query": first,
        "length of key": long,
        "angle": cosine.clamp(-1, 1).acos().rad2deg(),
        "shadow": dot / first,
    }
    return draw_key(query, key, {name: each.item() for name, each in found.items()})
