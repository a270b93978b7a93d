"""Pictures with handles that are dragged: the page says where they are, Python what follows."""

import itertools
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import torch
import traitlets

from eleven_steps.pictures import Handled
from eleven_steps.sliders.film import MOST
from eleven_steps.sliders.live import Live, script, style

Values = list[list[float]]


class Drag(Live):
    """Show a picture whose handles can be dragged; it is drawn anew for each place they come to.

    Without a kernel each handle moves alone, between places that are drawn as the cell runs.

    Args:
        draw: takes where each handle is, along its two axes, and returns the picture then.
        start: where they are at first.

    Attributes:
        values: where each handle is now.
        asked, drawn: what the page asks, and the picture that follows.
        handled: the picture as it begins, with its handles.
    """

    _esm = script("parts", "listen", "fit", "drag")
    _css = style("look", "fit", "drag")
    svg = traitlets.Unicode().tag(sync=True)
    handles = traitlets.List().tag(sync=True)
    places = traitlets.List().tag(sync=True)
    asked = traitlets.Dict().tag(sync=True)
    drawn = traitlets.Dict().tag(sync=True)

    def __init__(self, draw: Callable[[Values], Handled], start: Values):
        self.draw, self.start, self.values, self.handled = draw, start, start, draw(start)
        every = [asdict(handle) for handle in self.handled.handles]
        self.still = self.handled.picture
        super().__init__(svg=self.still.svg, handles=every, places=self.alone())

    @traitlets.observe("asked")
    def answer(self, change: Any) -> None:
        """Put the handles where the page says; draw what follows."""
        self.values = self.within(change.new["values"])
        self.drawn = {"turn": change.new["turn"], **self.at(self.values)}

    def at(self, values: Values) -> dict[str, Any]:
        """Draw the picture with the handles at some places."""
        now = self.draw(values)
        says = [handle.says for handle in now.handles]
        return {"values": values, "svg": now.picture.svg, "says": says}

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

    def alone(self) -> list[list[dict[str, Any]]]:
        """Draw the places where each handle can be without a kernel, the others at rest."""
        found = []
        for i, handle in enumerate(self.handled.handles):
            axes = list(zip(handle.low, handle.high, strict=True))
            free = sum(low < high for low, high in axes)
            count = int((MOST / len(self.handled.handles)) ** (1 / free))
            along = [
                torch.linspace(low, high, count if low < high else 1).tolist() for low, high in axes
            ]
            found.append([self.placed(i, list(place)) for place in itertools.product(*along)])
        return found

    def placed(self, i: int, place: list[float]) -> dict[str, Any]:
        """Draw one handle at a place, the others at rest."""
        return self.at([*self.start[:i], [round(each, 2) for each in place], *self.start[i + 1 :]])

    def states(self) -> tuple[str, str, str]:
        """Return what can be dragged, and all that is drawn of it without a kernel."""
        every = json.dumps([self.svg, self.handles, self.places])
        names = ", ".join(handle.name for handle in self.handled.handles)
        return f"to drag: {names}", "its places", every
