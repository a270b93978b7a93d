"""A sentence whose words answer: point at one, and the arcs to those it reads stand out."""

import json
from collections.abc import Sequence

import torch
import traitlets

from eleven_steps.beyond.grammar import read, write
from eleven_steps.beyond.moments import load_moments
from eleven_steps.beyond.tiny import check_head, patterns
from eleven_steps.pictures import Head, draw_arcs, tell_words
from eleven_steps.pictures.reading import FADED
from eleven_steps.pictures.stored import answering
from eleven_steps.sliders.live import Live, script, style

POINT = "<p>Point at a word, or go to one with Tab. Run the cell, and words say it too.</p>"


class Arcs(Live):
    """Show whom each word of a sentence reads, head by head; it needs no kernel once it stands.

    Attributes:
        still: the drawing as it begins, one word's arcs standing out.
        told: for each word, a line for each head: whom it reads.
        start: the word that stands out where none is pointed at.
    """

    _esm = script("parts", "listen", "fit", "arcs")
    _css = style("look", "fit", "arcs")
    svg = traitlets.Unicode().tag(sync=True)
    told = traitlets.List().tag(sync=True)
    start = traitlets.Int().tag(sync=True)

    def __init__(self, heads: Sequence[Head], words: Sequence[str], query: int = -1):
        self.still = draw_arcs(heads, words, query)
        told = tell_words(heads, words)
        live = draw_arcs(heads, words, query, "Whom each word reads")  # whichever is pointed at
        super().__init__(svg=live.svg, told=told, start=query % len(words))

    def stored(self) -> str:
        """Return what answers before anything is run: the words, and a style that knows them."""
        svg = self.svg.replace('class="word"', 'class="word" tabindex="0"')
        still = self.still._repr_mimebundle_()["text/html"]
        return answering(svg, rules(len(self.told)), still) + POINT

    def states(self) -> tuple[str, str, str]:
        """Return how many words answer, and all that is shown of them."""
        every = json.dumps([self.svg, self.told, self.start])
        return f"{len(self.told)} words to point at", "all that is shown", every


def rules(words: int) -> str:
    """Return the style that lets what belongs to a word stand out while it is pointed at."""

    def at(word: str) -> str:
        return f"svg:has(.word{word}:is(:hover,:focus)) "

    every = (
        f"{at('')}.reads{{opacity:{FADED}}}{at('')}.shares{{display:none}}.word{{cursor:pointer}}"
    )
    return every + "".join(
        f"{at(own)}.reads{own}{{opacity:1}}{at(own)}.shares{own}{{display:inline}}"
        for own in (f'[data-word="{i}"]' for i in range(words))
    )


def explore_arcs(weights: torch.Tensor, words: Sequence[str], query: int = -1) -> Arcs:
    """Point at a word of a sentence and see whom it reads in each head.

    Args:
        weights: (num_heads, num_tokens, num_tokens), shares from 0 to 1, rows are queries.
        words: the words of the sentence, one a token.
        query: the word that stands out at first, the last one if none is named.

    Raises:
        ValueError: weights have another shape or are no shares, they do not fit the words, there
            are more than 20 words, or there is no such query.
    """
    if weights.dim() != 3:
        raise ValueError(
            f"weights have shape {tuple(weights.shape)}: (num_heads, num_tokens, num_tokens) of "
            f"one sentence is expected"
        )
    return Arcs([Head(each, number) for number, each in enumerate(weights)], words, query)


def explore_sentence(sentence: str, *heads: tuple[int, int]) -> Arcs:
    """Point at a word of a sentence and see whom it reads in heads of the trained tiny model.

    Args:
        sentence: words of the model's vocabulary (eleven_steps.beyond.grammar.WORDS), at most 20.
        heads: (layer, head) of each to show; all of them, if none is named.

    Raises:
        ValueError: as eleven_steps.beyond.moments.look does, or there are more than 20 words.
    """
    tokens, model = read(sentence), load_moments()[-1].model
    layers = patterns(model, tokens)  # of each layer (1, num_heads, num_tokens, num_tokens)
    for layer, head in heads:
        check_head(model, layer, head)
    every = [(layer, head) for layer, each in enumerate(layers) for head in range(each.shape[1])]
    shown = [Head(layers[layer][0, head], head, layer) for layer, head in heads or every]
    return Arcs(shown, write(tokens[0]))
