"""Sliders over films: every picture is drawn when the cell runs, the slider only chooses one."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import ipywidgets as widgets

from eleven_steps.pictures import Picture
from eleven_steps.sliders.manners import MANNERS

MOST = 40
ASLEEP = "<p>Run the cell to move it.</p>"  # where the view is not stored, or cannot be shown

LABELS = {
    "b": "sequences (b)",
    "num_tokens": "tokens (num_tokens)",
    "d_in": "input features (d_in)",
    "d_out": "output features (d_out)",
    "num_heads": "number of heads (num_heads)",
    "context_length": "context_length",
    "head": "head",
    "query": "query token",
    "key": "key token",
    "token": "token",
    "feature": "feature",
    "sentence": "sentence",
    "words_read": "other words read",
    "temperature": "temperature",
    "model": "model",
    "size": "keys in a block",
    "block": "block read last",
}

Choices = Iterable[Any] | Callable[..., Iterable[Any]]


def bundle(view: dict | tuple, picture: Picture, words: str) -> dict[str, Any]:
    """Return what a notebook gets of a widget: its live view, the picture it starts with, words."""
    view = view[0] if isinstance(view, tuple) else view  # with metadata, or without
    still = picture._repr_mimebundle_()
    still["text/html"] += ASLEEP
    return {**view, **still, "text/plain": words}


def summary(words: str, says: str, over: str, states: str) -> str:
    """Return what a notebook stores in words: a hash stands for all that the page may show."""
    return f"{words}\n{says}\nhash over {over}: {hashlib.sha256(states.encode()).hexdigest()[:16]}"


class Film(widgets.VBox):
    """Show one picture of many, chosen by sliders; it needs no kernel once it stands.

    Attributes:
        pictures: every picture by its slider values, in the order of the sliders.
        names: what the sliders are for, in the same order.
        start: the slider values shown first.
    """

    def __init__(
        self,
        controls: widgets.Widget,
        pictures: Mapping[tuple, Picture],
        names: tuple[str, ...],
        start: tuple,
    ):
        tallest = max(picture.height for picture in pictures.values())
        manners = f'<div data-tallest="{tallest:g}">{MANNERS}</div>'
        naming = widgets.HTML(manners, layout={"display": "none"})
        super().__init__([controls, naming], _dom_classes=("film",))
        self.pictures = pictures
        self.names = names
        self.start = start

    def __repr__(self) -> str:
        start = self.pictures[self.start]
        every = "".join(picture.svg for picture in self.pictures.values())
        places = ", ".join(" ".join(map(str, position)) for position in self.pictures)
        says = f"{len(self.pictures)} positions ({', '.join(self.names)}): {places}"
        return summary(f"{start.title} {start.description}", says, "all pictures", every)

    def _repr_mimebundle_(self, **kwargs) -> dict[str, Any]:
        view = super()._repr_mimebundle_(**kwargs)
        return bundle(view, self.pictures[self.start], repr(self))


def film(
    draw: Callable[..., Picture], start: Mapping[str, Any] | None = None, **positions: Choices
) -> Film:
    """Draw a picture for every legal position of some sliders, and put the sliders over them.

    Args:
        draw: takes the slider values by name and returns a Picture.
        start: the value each slider begins with; the first one where it says nothing.
        positions: the values of each slider in order, or a function that takes the values of the
            sliders before it by name and returns them: only legal positions exist.

    Raises:
        ValueError: a slider has no value, or there are more than 40 positions.
    """
    names, table = tuple(positions), list(legal(positions))
    if not table or len(table) > MOST:
        raise ValueError(
            f"{', '.join(names)} have {len(table)} positions: from 1 to {MOST} make a film"
        )
    pictures = {position: draw(**dict(zip(names, position, strict=True))) for position in table}
    width = max(picture.width for picture in pictures.values())
    pictures = {position: p.padded(width) for position, p in pictures.items()}

    first = table[0]
    for i, name in enumerate(names):
        wanted = [p for p in table if p[: i + 1] == (*first[:i], (start or {}).get(name))]
        first = (wanted or [first])[0]
    return Film(controls(names, pictures, start or {}, {}), pictures, names, first)


def legal(positions: Mapping[str, Choices], **chosen: Any) -> Iterable[tuple]:
    """Yield every combination of slider values that the choices allow, in order."""
    if len(chosen) == len(positions):
        yield tuple(chosen.values())
        return
    name = list(positions)[len(chosen)]
    choices = positions[name]
    for value in choices(**chosen) if callable(choices) else choices:
        yield from legal(positions, **chosen, **{name: value})


def controls(
    names: tuple[str, ...],
    pictures: Mapping[tuple, Picture],
    start: Mapping[str, Any],
    twins: dict[tuple, widgets.SelectionSlider],
) -> widgets.Widget:
    """Return a slider over a Stack of the next sliders, and the pictures under the last one."""
    if not names:
        return widgets.HTML(pictures[()].svg)
    name, *rest = names
    values = tuple(dict.fromkeys(position[0] for position in pictures))
    below = [
        controls(
            tuple(rest), {p[1:]: one for p, one in pictures.items() if p[0] == v}, start, twins
        )
        for v in values
    ]
    if len(values) == 1:
        return widgets.VBox([widgets.Label(f"{LABELS.get(name, name)}: {values[0]}"), *below])
    slider = widgets.SelectionSlider(
        options=values,
        value=start[name] if start.get(name) in values else values[0],
        description=LABELS.get(name, name),
    )
    stack = widgets.Stack(below, selected_index=slider.index)
    widgets.jslink((slider, "index"), (stack, "selected_index"))
    # The same slider stands once under each position of the one before it: they move as one.
    twin = twins.setdefault((name, values), slider)
    if twin is not slider:
        widgets.jslink((twin, "index"), (slider, "index"))
    return widgets.VBox([slider, stack])
