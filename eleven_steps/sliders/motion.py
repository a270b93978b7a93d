"""Steps as motion, at the reader's pace: numbers glide, are covered, shared out, added up."""

import json

import traitlets

from eleven_steps.pictures import Motion, Shown, draw_cover, draw_motion, draw_shares, draw_sum
from eleven_steps.pictures.moving import NARROW, ROOM
from eleven_steps.sliders.lesson import Run, at_steps, run
from eleven_steps.sliders.live import Live, script, style

# What steps that only move numbers move: the tensor before it and after it.
MOVING = {
    "view": ("project.queries", "view.queries"),
    "transpose": ("view.queries", "transpose.queries"),
    "reformat": ("context.context", "reformat.context"),
    "combine": ("reformat.context", "combine.context"),
}


def cover(lesson: Run, room: float) -> Motion:
    """Draw how the mask falls onto the scores."""
    return draw_cover(*at_steps(lesson, "scores.scores", "mask.masked"), room)


def share(lesson: Run, room: float) -> Motion:
    """Draw how the softmax shares each row out."""
    mha, _ = lesson
    masked, weights = at_steps(lesson, "mask.masked", "softmax.weights")
    scaled = masked.tensor / mha.head_dim**0.5
    return draw_shares(Shown(scaled, "masked / head_dim**0.5", masked.letters), weights, room)


def gather(lesson: Run, room: float) -> Motion:
    """Draw how token 1, which sees one of its two neighbours, gathers its context in head 0."""
    tensors = at_steps(lesson, "softmax.weights", "transpose.values", "context.context")
    return draw_sum(*tensors, head=0, query=1, room=room)


# Steps that make new numbers, each with its drawing.
MAKING = {"mask": cover, "softmax": share, "context": gather}


def drawn(step: str, lesson: Run, room: float) -> Motion:
    """Draw a step as motion, in so much room.

    Raises:
        ValueError: the step is none of the seven that are shown so.
    """
    if step in MOVING:
        return draw_motion(step, *at_steps(lesson, *MOVING[step]), room)
    if step in MAKING:
        return MAKING[step](lesson, room)
    known = ", ".join([*MOVING, *MAKING])
    raise ValueError(f"{step} is not shown as motion: expected one of {known}")


class Move(Live):
    """Show a step in motion: a slider from before to after, and a button that plays it.

    Attributes:
        motion: the picture as it begins, and how far each cell moves.
        narrow: the same for a phone.
    """

    _esm = script("listen", "fit", "motion")
    _css = style("look", "fit", "touch")
    svg = traitlets.Unicode().tag(sync=True)
    ways = traitlets.List().tag(sync=True)
    on_phones = traitlets.Dict().tag(sync=True)  # the drawing and the ways of narrow

    def __init__(self, step: str, num_heads: int = 2):
        lesson = run(6, num_heads)
        self.motion, self.narrow = (drawn(step, lesson, room) for room in (ROOM, NARROW))
        self.still = self.motion.picture
        super().__init__(
            svg=self.motion.picture.svg,
            ways=self.motion.ways,
            on_phones={"svg": self.narrow.picture.svg, "ways": self.narrow.ways},
        )

    def states(self) -> tuple[str, str, str]:
        """Return how many parts move, and their ways."""
        every = json.dumps([self.svg, self.ways, self.on_phones])
        moving = sum(any(way) for way in self.motion.ways)
        grows = any(len(way) > 2 for way in self.motion.ways)
        what = "bars grow" if grows else f"of {len(self.ways)} cells move"
        return f"{moving} {what}", "their ways", every


def explore_motion(step: str) -> Move:
    """Watch view, transpose, reformat or combine move the numbers, with their storage below, or
    the mask fall, the weights of the softmax grow, and weighted values add up to the context.

    Raises:
        ValueError: the step is none of these seven.
    """
    return Move(step)
