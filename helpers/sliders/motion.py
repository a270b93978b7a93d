"""Steps as motion, at the reader's pace: numbers glide, are covered, shared out, added up."""

import hashlib
import json
from typing import Any

import anywidget
import traitlets

from helpers.pictures import Motion, Shown, draw_cover, draw_motion, draw_shares, draw_sum
from helpers.sliders.film import bundle
from helpers.sliders.lesson import Run, at_steps, run
from helpers.sliders.scripts import STYLE, script

# What steps that only move numbers move: the tensor before it and after it.
MOVING = {
    "view": ("project.queries", "view.queries"),
    "transpose": ("view.queries", "transpose.queries"),
    "reformat": ("context.context", "reformat.context"),
    "combine": ("reformat.context", "combine.context"),
}


def cover(lesson: Run) -> Motion:
    """Draw how the mask falls onto the scores."""
    return draw_cover(*at_steps(lesson, "scores.scores", "mask.masked"))


def share(lesson: Run) -> Motion:
    """Draw how the softmax shares each row out."""
    mha, _ = lesson
    masked, weights = at_steps(lesson, "mask.masked", "softmax.weights")
    scaled = masked.tensor / mha.head_dim**0.5
    return draw_shares(Shown(scaled, "masked / head_dim**0.5", masked.letters), weights)


def gather(lesson: Run) -> Motion:
    """Draw how token 1, which sees one of its two neighbours, gathers its context in head 0."""
    tensors = at_steps(lesson, "softmax.weights", "transpose.values", "context.context")
    return draw_sum(*tensors, head=0, query=1)


# Steps that make new numbers, each with its drawing.
MAKING = {"mask": cover, "softmax": share, "context": gather}


class Move(anywidget.AnyWidget):
    """Show a step in motion: a slider from before to after, and a button that plays it.

    Attributes:
        motion: the picture as it begins, and how far each cell moves.
    """

    _esm = script("motion")
    _css = STYLE
    svg = traitlets.Unicode().tag(sync=True)
    ways = traitlets.List().tag(sync=True)

    def __init__(self, step: str, num_heads: int = 2):
        lesson = run(6, num_heads)
        if step in MOVING:
            self.motion = draw_motion(step, *at_steps(lesson, *MOVING[step]))
        elif step in MAKING:
            self.motion = MAKING[step](lesson)
        else:
            known = ", ".join([*MOVING, *MAKING])
            raise ValueError(f"{step} is not shown as motion: expected one of {known}")
        super().__init__(svg=self.motion.picture.svg, ways=self.motion.ways)

    def __repr__(self) -> str:
        states = json.dumps([self.svg, self.ways])
        moving = sum(any(way) for way in self.motion.ways)
        return (
            f"{self.motion.picture.words}\n"
            f"{moving} of {len(self.ways)} cells move\n"
            f"hash over their ways: {hashlib.sha256(states.encode()).hexdigest()[:16]}"
        )

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        return bundle(super()._repr_mimebundle_(**kwargs), self.motion.picture, repr(self))


def explore_motion(step: str) -> Move:
    """Watch view, transpose, reformat or combine move the numbers, with their storage below, or
    the mask fall, the weights of the softmax grow, and weighted values add up to the context.

    Raises:
        ValueError: the step is none of these seven.
    """
    return Move(step)
