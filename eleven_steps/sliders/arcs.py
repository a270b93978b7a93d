"""A sentence whose words answer: point at one, and the arcs to those it attends to stand out."""

from collections.abc import Sequence

import torch

from eleven_steps.beyond.grammar import read, write
from eleven_steps.beyond.moments import load_trained
from eleven_steps.beyond.tiny import check_head, patterns
from eleven_steps.pictures import Head, draw_arcs, page_of_arcs
from eleven_steps.sliders.live import SEEN, Answers


def answering_arcs(heads: Sequence[Head], words: Sequence[str]) -> Answers:
    """Let each word of a sentence show what it attends to; args and errors as for draw_arcs."""
    every = (f'[data-word="{i}"]' for i in range(len(words)))
    lit = {f".part{word}": {f"{word}:not(.part)": SEEN} for word in every}
    says = f"{len(words)} words to point at"
    return Answers(draw_arcs(heads, words), page_of_arcs(heads, words), lit, says)


def explore_arcs(weights: torch.Tensor, words: Sequence[str]) -> Answers:
    """Point at a word of a sentence and see what it attends to in each head.

    Args:
        weights: (num_heads, num_tokens, num_tokens), from 0 to 1, rows are queries.

    Raises:
        ValueError: weights have another shape or do not sum to 1, they do not fit the words, or
            there are more than 20 words.
    """
    if weights.dim() != 3:
        raise ValueError(
            f"weights have shape {tuple(weights.shape)}: (num_heads, num_tokens, num_tokens) of "
            f"one sentence is expected"
        )
    return answering_arcs([Head(table, number) for number, table in enumerate(weights)], words)


def explore_sentence(sentence: str, *heads: tuple[int, int]) -> Answers:
    """Point at a word of a sentence and see what it attends to in heads of the tiny model.

    Args:
        sentence: words of the model's vocabulary (eleven_steps.beyond.grammar.WORDS), at most 20.
        heads: (layer, head) of each to show; all of them, if none is named.

    Raises:
        ValueError: as eleven_steps.beyond.moments.look does, or there are more than 20 words.
    """
    tokens, model = read(sentence), load_trained()
    layers = patterns(model, tokens)  # of each layer (1, num_heads, num_tokens, num_tokens)
    for layer, head in heads:
        check_head(model, layer, head)
    every = [
        (layer, head) for layer, weights in enumerate(layers) for head in range(weights.shape[1])
    ]
    shown = [Head(layers[layer][0, head], head, layer) for layer, head in heads or every]
    return answering_arcs(shown, write(tokens[0]))
