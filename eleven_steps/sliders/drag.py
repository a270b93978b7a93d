"""Pictures with handles that are dragged: the page says where they are, Python what follows."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import traitlets

from eleven_steps.pictures import Handled
from eleven_steps.sliders.live import Live, script, style

Values = list[list[float]]


class Drag(Live):
    """Show a picture whose handles can be dragged; it is drawn anew for each place they come to.

    Args:
        draw: takes where each handle is, along its two axes, and returns the picture then.
        start: where they are at first.

    Attributes:
        values: where each handle is now.
        handled: the picture as it begins, with its handles.
    """

    _esm = script("ask", "listen", "fit", "drag")
    _css = style("look", "fit", "touch", "drag")
    svg = traitlets.Unicode().tag(sync=True)
    handles = traitlets.List().tag(sync=True)

    def __init__(self, draw: Callable[[Values], Handled], start: Values):
        self.draw, self.start, self.values, self.handled = draw, start, start, draw(start)
        every = [asdict(handle) for handle in self.handled.handles]
        self.still = self.handled.picture
        super().__init__(svg=self.still.svg, handles=every)
        self.on_msg(self.answer)

    def answer(self, widget: Any, question: dict[str, Any], buffers: Any) -> None:
        """Put the handles where the page says, or back, if it does; send what follows."""
        wanted = self.start if "back" in question else question.get("values", self.values)
        self.values = self.within(wanted)
        now = self.draw(self.values)
        self.send(
            {
                "turn": question["turn"],
                "values": self.values,
                "svg": now.picture.svg,
                "says": [handle.says for handle in now.handles],
                "moved": self.values != self.start,
            }
        )

    def within(self, values: Sequence[Sequence[float]]) -> Values:
        """Return the nearest places where the handles can be; one that is no place stays."""
        kept = []
        for handle, now, wanted in zip(self.handled.handles, self.values, values, strict=True):
            bounds = zip(handle.low, handle.high, wanted, now, strict=True)
            kept.append(
                [
                    float(max(low, min(high, new))) if math.isfinite(new) else old
                    for low, high, new, old in bounds
                ]
            )
        return kept

    def ends(self) -> list[Handled]:
        """Return the picture with each handle as low and as high as it goes, the others at rest."""
        start = [list(handle.value) for handle in self.handled.handles]
        found = []
        for i, handle in enumerate(self.handled.handles):
            for end in (handle.low, handle.high):
                found.append(self.draw([*start[:i], list(end), *start[i + 1 :]]))
        return found

    def states(self) -> tuple[str, str, str]:
        """Return what can be dragged, and the picture at both ends of each."""
        every = json.dumps([self.svg, self.handles, *(each.picture.svg for each in self.ends())])
        names = ", ".join(handle.name for handle in self.handled.handles)
        return f"to drag: {names}", "its ends", every
