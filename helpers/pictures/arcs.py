"""A sentence with arcs above it: from a word to those it reads, the thicker the larger the share."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from helpers.pictures.svg import (
    CELL_HEIGHT,
    CHARACTER,
    INK,
    Drawing,
    Picture,
    at,
    beside,
    grid,
    head_colour,
    labelled,
    picture,
    text,
)
from helpers.pictures.weights import check_words

MOST_WORDS = 20
MOST_TOLD = 4  # words that are named of those that one word reads
FADED = 0.15  # opacity of the arcs of the words that are not pointed at
NARROWEST = CHARACTER * 4  # a column holds "100"
WORD_HEIGHT = 24
TIP = 7  # height of an arrow's tip


@dataclass(frozen=True)
class Head:
    """Hold the weights of one head for one sentence.

    Args:
        weights: (num_tokens, num_tokens), shares from 0 to 1, rows are queries.
        number: the head's number, for its colour.
        layer: the layer's number, where there are several.
    """

    weights: torch.Tensor
    number: int
    layer: int | None = None

    @property
    def name(self) -> str:
        """What the head is called: "head 1", or "layer 0, head 1"."""
        return ("" if self.layer is None else f"layer {self.layer}, ") + f"head {self.number}"


def draw_arcs(heads: Sequence[Head], words: Sequence[str], query: int = -1) -> Picture:
    """Draw the sentence once for each head: the arcs of one word strong, its weights below.

    Args:
        heads: the heads, each with its weights.
        words: the words of the sentence, one a token.
        query: the word whose arcs stand out, the last one if none is named.

    Raises:
        ValueError: there is no head, weights and words do not fit, the weights of a word are no
            shares, there are more than 20 words, or there is no such query.
    """
    query = check_reading(heads, words, query)
    told = max(heads, key=lambda head: most_of_another(head.weights, query))
    found = f"{told.name.capitalize()}: {call(words, query)} reads {shares(told, words, query)[0]}"
    every = "; ".join(
        f"{head.name}: "
        + ", ".join(f"{call(words, i)} reads {shares(head, words, i)[0]}" for i in range(len(words)))
        for head in heads
    )
    return picture(
        beside([labelled(head.name, sentence(head, words, query)) for head in heads]),
        found,
        f"The words: {' '.join(words)}. What each reads most, weights (num_tokens, num_tokens) = "
        f"({len(words)}, {len(words)}) in per cent: {every}.",
    )


def tell_words(heads: Sequence[Head], words: Sequence[str]) -> list[list[str]]:
    """Say of each word in a line a head whom it reads, the largest shares first.

    Raises:
        ValueError: as draw_arcs does.
    """
    check_reading(heads, words, -1)
    return [
        [
            f"{head.name}: {call(words, i)} reads {', '.join(shares(head, words, i))}"
            for head in heads
        ]
        for i in range(len(words))
    ]


def shares(head: Head, words: Sequence[str], query: int) -> list[str]:
    """Say what one word reads in per cent, the largest first; the small ones in a sum."""
    row = head.weights[query]
    order = row.argsort(descending=True, stable=True).tolist()
    named = [j for j in order[:MOST_TOLD] if per_cent(row[j]) or j == order[0]]
    told = [
        f"{'itself' if j == query else call(words, j)} {per_cent(row[j])} %" for j in named
    ]
    others = [j for j in order[len(named) :] if row[j]]
    if per_cent(left := row[others].sum()):
        told.append(f"{len(others)} other{'s' * (len(others) > 1)} {per_cent(left)} %")
    return told


def call(words: Sequence[str], i: int) -> str:
    """Quote a word, with its number where the sentence has it more than once."""
    return f'"{words[i]}"' + (f" (word {i})" if list(words).count(words[i]) > 1 else "")


def per_cent(share: torch.Tensor) -> int:
    """Return a share as a whole number of per cent."""
    return round(100 * share.item())


def most_of_another(weights: torch.Tensor, query: int) -> float:
    """Return the largest share that a word gives to another one."""
    return max([0.0, *(share.item() for j, share in enumerate(weights[query]) if j != query)])


def sentence(head: Head, words: Sequence[str], query: int) -> Drawing:
    """Draw arcs, the words below them, and the weights of one word below those.

    The weights of each word are drawn, those of the query alone are seen; a script shows others.
    """
    wide, high = max(NARROWEST, CHARACTER * max(map(len, words)) + 6), 44.0 + 4 * len(words)
    tall = high + WORD_HEIGHT + CELL_HEIGHT
    body = ""
    for i in range(len(words)):
        off = "" if i == query else ' display="none"'
        frame = (
            f'<path d="M{i * wide:g} {high:g}h{wide:g}v{WORD_HEIGHT}h-{wide:g}z" fill="none" '
            f'stroke-width="2" style="stroke:{INK}"/>'
        )
        row = at(0, high + WORD_HEIGHT, weights_of(head, i, wide))
        body += f'<g class="shares" data-word="{i}"{off}>{row}{frame}</g>'
    body += "".join(
        text(word, (i + 0.5) * wide, high + 16, "middle") for i, word in enumerate(words)
    )
    body += text("%", len(words) * wide + 4, tall - 6)
    for i in range(len(words)):
        seen = "" if i == query else f' opacity="{FADED}"'
        arcs = arcs_of(head.weights[i], i, wide, high)
        body += f'<g class="reads" data-word="{i}"{seen}>{in_colour(arcs, head.number)}</g>'
    body += "".join(
        f'<path class="word" data-word="{i}" d="M{i * wide:g} 0h{wide:g}v{tall:g}h-{wide:g}z" '
        f'fill="none" pointer-events="all"/>'
        for i in range(len(words))
    )
    return Drawing(body, len(words) * wide + 4 + CHARACTER, tall)


def weights_of(head: Head, query: int, wide: float) -> Drawing:
    """Draw the weights of one word in per cent; what the mask has made 0 is left empty."""
    row = head.weights[query].tolist()
    return grid(
        [[round(100 * share) for share in row]],
        [[head.number] * len(row)],
        [row],
        cell=(wide, CELL_HEIGHT),
        kept=[[share > 0 or j <= query for j, share in enumerate(row)]],
    )


def arcs_of(row: torch.Tensor, query: int, wide: float, high: float) -> str:
    """Draw an arc from a word to each that it reads, with a tip there; shares below half a per
    cent have none."""
    drawn, start, foot = "", (query + 0.5) * wide, high - 2
    for j, share in enumerate(row.tolist()):
        if not round(100 * share):
            continue
        end, line, half = (j + 0.5) * wide, 1 + 6 * share, 3 + 3 * share
        rise = (high - 14) * (0.35 + 0.65 * abs(query - j) / max(len(row) - 1, 1))
        turn, left, right = foot - rise * 4 / 3, start, end
        if j == query:  # a loop: out to the right, back from the left
            start_x, end = start + 4, end - 6
            turn, left, right = foot - 34, start + 26, start - 26
        else:
            start_x = start
        drawn += (
            f'<path d="M{start_x:g} {foot:g}C{left:g} {turn:g} {right:g} {turn:g} '
            f'{end:g} {foot - TIP + 1:g}" fill="none" stroke-width="{line:.2f}"/>'
            f'<path d="M{end - half:g} {foot - TIP:g}h{2 * half:g}L{end:g} {foot:g}z"/>'
        )
    return drawn


def in_colour(drawn: str, head: int) -> str:
    """Draw paths in a head's colour."""
    colour = head_colour(head)
    return f'<g fill="{colour}" stroke="{colour}">{drawn}</g>'


def check_reading(heads: Sequence[Head], words: Sequence[str], query: int) -> int:
    """Return the query's place; raise ValueError unless heads, words and query fit."""
    if not heads:
        raise ValueError("there is no head to draw: one or more are expected")
    for head in heads:
        check_words(head.weights, words, MOST_WORDS)
        sums = head.weights.sum(dim=-1)
        worst = int((sums - 1).abs().nan_to_num(torch.inf).argmax())
        if not abs(sums[worst] - 1) < 1e-3 or head.weights.min() < 0:
            raise ValueError(
                f"{head.name}: row {worst} adds up to {sums[worst]:.2f}, its smallest number is "
                f"{head.weights.min():.2f}: weights, shares from 0 to 1 that add up to 1, are "
                f"expected"
            )
    if not -len(words) <= query < len(words):
        raise ValueError(f"query {query} is no word of {len(words)}: 0 to {len(words) - 1} are")
    return query % len(words)
