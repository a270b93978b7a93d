"""Words as vectors: a meaning that moves."""

import math

import torch

from eleven_steps.helpers.examples import load_example
from eleven_steps.pictures import Arrow, Picture, draw_vectors
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
    weights, y = in_context(x, names.index("bank"), table["W_value"])
    alone, bank = x[names.index("bank")].tolist(), y.tolist()
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
        list(zip(names, weights.tolist(), strict=True)),
    )


def in_context(x: torch.Tensor, place: int, W_value: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Mix the context of one token of x (num_tokens, d), without a mask, and add it to the token.

    W_query and W_key change nothing here: a token asks with its own vector and is found by it.

    Returns:
        weights (num_tokens,) and y (d,).
    """
    weights = torch.softmax(x @ x[place] / x.shape[1] ** 0.5, dim=-1)
    return weights, x[place] + weights @ (x @ W_value)
