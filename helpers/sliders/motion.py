"""Steps as motion: each number glides from its old place to its new one, at the reader's pace."""

import hashlib
import json
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from helpers.pictures import draw_motion
from helpers.sliders.film import ASLEEP
from helpers.sliders.lesson import at_steps, run

HERE = Path(__file__).parent

# What each step moves: the tensor before it and after it.
MOVING = {
    "view": ("project.queries", "view.queries"),
    "transpose": ("view.queries", "transpose.queries"),
    "reformat": ("context.context", "reformat.context"),
    "combine": ("reformat.context", "combine.context"),
}


class Move(anywidget.AnyWidget):
    """Show a step that moves numbers: a slider from before to after, and a button that plays it.

    Attributes:
        motion: the picture as it begins, and how far each cell moves.
    """

    _esm = (HERE / "touch.js").read_text("utf-8")
    _css = (HERE / "touch.css").read_text("utf-8")
    svg = traitlets.Unicode().tag(sync=True)
    ways = traitlets.List().tag(sync=True)

    def __init__(self, step: str, num_heads: int = 2):
        if step not in MOVING:
            raise ValueError(f"{step} moves no number: expected one of {', '.join(MOVING)}")
        self.motion = draw_motion(step, *at_steps(run(6, num_heads), *MOVING[step]))
        super().__init__(svg=self.motion.picture.svg, ways=self.motion.ways)

    def __repr__(self) -> str:
        states = json.dumps([self.svg, self.ways])
        moving = sum(way != (0.0, 0.0) for way in self.motion.ways)
        return (
            f"{self.motion.picture.words}\n"
            f"{moving} of {len(self.ways)} cells move\n"
            f"hash over their ways: {hashlib.sha256(states.encode()).hexdigest()[:16]}"
        )

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        view = super()._repr_mimebundle_(**kwargs)
        view = view[0] if isinstance(view, tuple) else view
        still = self.motion.picture._repr_mimebundle_()
        still["text/html"] += ASLEEP
        return {**view, **still, "text/plain": repr(self)}


def explore_motion(step: str) -> Move:
    """Watch view, transpose, reformat or combine move the numbers, with their storage below.

    Raises:
        ValueError: the step is none of these four.
    """
    return Move(step)
