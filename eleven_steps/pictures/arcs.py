"""A sentence with arcs above it, from a word to those it attends to: thicker for larger weights."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from eleven_steps.pictures import svg
from eleven_steps.pictures.grid import grid
from eleven_steps.pictures.weights import check_words

MOST_WORDS = 20
MOST_TOLD = 4  # words that are named of those that one word attends to
FADED = 0.15  # opacity of the arcs of the words that are not pointed at
NARROWEST = svg.CHARACTER * 4  # a column holds "100"
WORD_HEIGHT = 24
TIP = 7  # height of an arrow's tip
FRAME = f'fill="none" stroke-width="2" style="stroke:{svg.INK}"'


@dataclass(frozen=True)
class Head:
    """Hold the weights of one head for one sentence."""

    weights: torch.Tensor  # (num_tokens, num_tokens), from 0 to 1, rows are queries
    number: int  # of the head, for its colour
    layer: int | None = None  # its number, where there are several

    @property
    def hue(self) -> int:
        """Return the colour of the head."""
        return svg.hue(self.number, self.layer)

    @property
    def name(self) -> str:
        """Return the name of the head: "head 1", or "layer 0, head 1"."""
        return ("" if self.layer is None else f"layer {self.layer}, ") + f"head {self.number}"


def draw_arcs(heads: Sequence[Head], words: Sequence[str]) -> svg.Picture:
    """Draw the sentence once for each head: the arcs of the last word strong, its weights below.

    Args:
        heads: the heads, each with its weights.

    Raises:
        ValueError: there is no head or no word, weights and words do not fit, the weights of a word
            do not sum to 1, or there are more than 20 words.
    """
    check_reading(heads, words)
    # The head whose last word gives another the most.
    told = max(heads, key=lambda head: max(head.weights[-1, :-1].tolist(), default=0))
    every = "; ".join(
        f"{head.name}: " + ", ".join(reads(head, words, i)[0] for i in range(len(words)))
        for head in heads
    )
    return svg.picture(
        svg.beside(
            [svg.labelled(head.name, sentence(head, words)) for head in heads], gap=2 * svg.GAP
        ),
        f"{told.name.capitalize()}: {reads(told, words, len(words) - 1)[0]}",
        f"The words: {' '.join(words)}. What each attends to most, "
        f"weights (num_tokens, num_tokens) = ({len(words)}, {len(words)}) in per cent: {every}.",
    )


def reads(head: Head, words: Sequence[str], query: int) -> list[str]:
    """Say what one word attends to in per cent, the largest weight first; small ones as a sum."""
    row = head.weights[query].tolist()
    order = sorted(range(len(row)), key=lambda j: -row[j])
    named = [j for j in order[:MOST_TOLD] if per_cent(row[j])]
    told = [f"{'itself' if j == query else call(words, j)} {in_per_cent(row[j])}" for j in named]
    others = [j for j in order[len(named) :] if row[j]]
    if per_cent(left := sum(row[j] for j in others)):
        told.append(f"{len(others)} other{'s' * (len(others) > 1)} {in_per_cent(left)}")
    return [f"{call(words, query)} attends to {told[0]}", *told[1:]]


def call(words: Sequence[str], i: int) -> str:
    """Quote a word, with its number where the sentence has it more than once."""
    return f'"{words[i]}"' + (f" (word {i})" if list(words).count(words[i]) > 1 else "")


def in_per_cent(share: float) -> str:
    """Write a share from 0 to 1 in per cent; no line ends between the number and its sign."""
    return f"{per_cent(share)}\N{NO-BREAK SPACE}%"


def per_cent(share: float) -> int:
    """Return a share as a whole number of per cent."""
    return round(100 * share)


def sentence(head: Head, words: Sequence[str]) -> svg.Drawing:
    """Draw arcs, the words below them, and the weights of the last word below those.

    The weights of each word are drawn, those of the last alone are seen; a style shows others.
    """
    wide, high = width_of(words), 44.0 + 4 * len(words)
    tall = high + WORD_HEIGHT + svg.CELL_HEIGHT
    numbers = arcs = written = ""
    colour = svg.head_colour(head.hue)
    for i, word in enumerate(words):
        off, faded = ("", "") if i == len(words) - 1 else (' display="none"', f' opacity="{FADED}"')
        row = svg.at(0, high + WORD_HEIGHT, weights_of(head, i, wide))
        frame = f'<path d="{svg.outline(i * wide, high, wide, WORD_HEIGHT)}" {FRAME}/>'
        numbers += f'<g class="shares" data-word="{i}"{off}>{row}{frame}</g>'
        drawn = arcs_of(head.weights[i], i, wide, high)
        drawn = f'<g fill="{colour}" stroke="{colour}">{drawn}</g>'
        arcs += f'<g class="reads" data-word="{i}"{faded}>{drawn}</g>'
        written += svg.text(word, (i + 0.5) * wide, high + 16, "middle")
    unit = svg.text("%", len(words) * wide + 4, tall - 6)
    body = numbers + written + unit + arcs
    return svg.Drawing(body, len(words) * wide + 4 + svg.CHARACTER, tall)


def width_of(words: Sequence[str]) -> float:
    """Return how wide the place of a word is, in pixels, the same for all words."""
    return max(NARROWEST, svg.CHARACTER * max(map(len, words)) + 12)


def weights_of(head: Head, query: int, wide: float) -> svg.Drawing:
    """Draw the weights of one word in per cent; what the mask has made 0 is left empty."""
    row = head.weights[query].tolist()
    return grid(
        [[per_cent(share) for share in row]],
        [[head.hue] * len(row)],
        [row],
        cell=(wide, svg.CELL_HEIGHT),
        kept=[[share > 0 or j <= query for j, share in enumerate(row)]],
    )


def arcs_of(row: torch.Tensor, query: int, wide: float, high: float) -> str:
    """Draw an arc for each of a word's weights, row (num_tokens,), from half a per cent up."""
    return "".join(
        arc(
            (query + 0.5) * wide,
            (j + 0.5) * wide,
            foot=high - 2,
            rise=(high - 14) * (0.4 + 0.6 * abs(query - j) / max(len(row) - 1, 1)),
            share=share,
        )
        for j, share in enumerate(row.tolist())
        if per_cent(share)
    )


def arc(start: float, end: float, foot: float, rise: float, share: float) -> str:
    """Draw an arc as thick as its share, with a tip at its end; to itself, it is a loop."""
    tip, half = end, round(3 + 2.5 * share, 2)  # more would hang on how a processor rounds
    out, back = start, end
    if start == end:
        start, out, back, tip = start + 6, start + 32, end - 32, end - 7
    turn = foot - rise * 4 / 3
    return (
        f'<path d="M{start:g} {foot:g}C{out:g} {turn:g} {back:g} {turn:g} '
        f'{tip:g} {foot - TIP + 1:g}" fill="none" stroke-width="{1 + 4 * share:.2f}"/>'
        f'<path d="M{tip - half:g} {foot - TIP:g}h{2 * half:g}L{tip:g} {foot:g}z"/>'
    )


def check_reading(heads: Sequence[Head], words: Sequence[str]) -> None:
    """Raise ValueError unless heads and words fit."""
    if not heads or not words:
        raise ValueError(
            f"{len(heads)} heads, {len(words)} words: at least one of each is expected"
        )
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
