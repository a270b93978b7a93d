"""A slider over training: the weights of every head of the tiny model, moment by moment."""

from eleven_steps.beyond.grammar import read, write
from eleven_steps.beyond.moments import Moment, load_moments
from eleven_steps.beyond.tiny import patterns
from eleven_steps.pictures import Picture, draw_patterns
from eleven_steps.sliders.film import Film, film


def explore_moments(sentence: str) -> Film:
    """Move through the stored moments of training and see where each head looks in a sentence.

    Raises:
        ValueError: as eleven_steps.beyond.moments.look does for a sentence.
    """
    moments = {moment.step: moment for moment in load_moments()}
    return film(lambda step: heads_at(moments[step], sentence), {"step": 0}, step=moments)


def heads_at(moment: Moment, sentence: str) -> Picture:
    """Draw every head at one moment; below its name, where the last word looks."""
    tokens = read(sentence)
    words = write(tokens[0])
    layers = [weights[0] for weights in patterns(moment.model, tokens)]
    notes = [
        [f"{words[-1]} > {words[int(w[-1].argmax())]} {w[-1].max():.2f}" for w in layer]
        for layer in layers
    ]
    title = f"After {moment.step} steps: loss on names {moment.loss:.2f}"
    return draw_patterns(layers, words, notes, title)
