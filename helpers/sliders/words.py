"""Films of words as vectors: a meaning that moves, a soft search, an angle."""

import math

import torch

from helpers.examples import load_example
from helpers.pictures import Arrow, Picture, draw_matrices, draw_vectors
from helpers.sliders.film import Film, film

# The sentences of the first notebook, by the words that tell which bank is meant.
SENTENCES = {
    "credit card": "he went to the bank for his credit card",
    "ducks": "the ducks were swimming near the bank",
}


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
    # Attention without a mask: over the values it gives the context, over ones the weights.
    query, keys = x[names.index("bank")][None], x  # W_query and W_key change nothing here
    attend = torch.nn.functional.scaled_dot_product_attention
    bank = (query + attend(query, keys, x @ table["W_value"]))[0].tolist()
    weights = attend(query, keys, torch.eye(len(x)))[0].tolist()
    arrows = [
        Arrow(name if max(vector) > 1 else "", vector)
        for name, vector in zip(names, x.tolist(), strict=True)
        if name != "bank"
    ]
    arrows += [Arrow("bank alone", query[0].tolist(), "dashed")]
    arrows += [Arrow("bank in context", bank, "strong")]
    degrees = math.degrees(math.atan2(bank[1], bank[0]))
    unread = [name if i in read else "..." for i, name in enumerate(words)]
    return draw_vectors(
        arrows,
        f"{' '.join(unread)}: {degrees:.0f} degrees",
        ("nature", "money"),
        ((0, 0), (4, 4)),
        list(zip(names, weights, strict=True)),
    )


def explore_search() -> Film:
    """Move the temperature of a search: at 0 the best key takes all, above that keys share."""
    return film(search_at, {"temperature": 1}, temperature=(0, 0.25, 0.5, 1, 2, 4, 16))


def search_at(temperature: float) -> Picture:
    """Draw what a query about nature finds among six words at a temperature."""
    table = load_example("words")
    names = ["ducks", "swimming", "near", "bank", "card", "credit"]
    keys = table["embedding"][[table.rows["embedding"].index(name) for name in names]]
    scores = keys @ torch.tensor([1.0, 0.0])
    weights = torch.zeros_like(scores)
    weights[scores.argmax()] = 1
    if temperature:
        weights = torch.softmax(scores / temperature, dim=-1)
    answer = ", ".join(f"{feature:.2f}" for feature in (weights @ keys).tolist())
    return draw_matrices(
        {"scores": scores[None], "weights": weights[None], "values.T": keys.T},
        f"Temperature {temperature}: ducks get {weights[0]:.2f}, the answer is ({answer})",
        columns=names,
        shade="weights",
    )


def explore_angle() -> Film:
    """Move the angle between a query and a key, and the key's length, and see the dot product."""
    return film(angle_at, {"angle": 60, "length": 2}, angle=range(0, 181, 15), length=(1, 2))


def angle_at(angle: int, length: int) -> Picture:
    """Draw a query of length 3 and a key at an angle, with their dot product."""
    turned = math.radians(angle)
    key = length * math.cos(turned), length * math.sin(turned)
    return draw_vectors(
        [Arrow("query", (3, 0), "strong"), Arrow("key", key, "strong")],
        f"query . key = 3 x {length} x cos({angle}) = {3 * key[0] + 0.0:.2f}",
        corners=((-2, 0), (3, 2)),
        angle=(0, 1),
    )
