"""Sliders over films: every picture is drawn when the cell runs, the slider only chooses one."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import traitlets

from eleven_steps.pictures import Picture
from eleven_steps.sliders.live import Live, script, style

MOST = 40

LABELS = {
    "num_heads": "number of heads (num_heads)",
    "head": "head",
    "token": "token",
    "sentence": "sentence",
    "words_read": "other words read",
    "model": "model",
    "size": "keys in a block",
    "block": "block read last",
    "down": "places to walk for a step down",
    "right": "places to walk for a step right",
    "query_at": "position of the query",
    "key_at": "position of the key",
}

Choices = Iterable[Any] | Callable[..., Iterable[Any]]


class Film(Live):
    """Show one picture of many, chosen by sliders; it needs no kernel once it stands.

    The value of each slider is a trait of its name. Setting one moves the picture; the sliders
    after it keep their values where these stay legal. What is not legal raises a TraitError.

        view = explore_view()
        view.num_heads = 3
        view.observe(print, "num_heads")

    Attributes:
        pictures: every picture by its slider values, in the order of the sliders.
        names: what the sliders are for, in the same order.
        start: the slider values shown first.
    """

    _esm = script("parts", "listen", "film")
    _css = style("look", "film")
    svgs = traitlets.List().tag(sync=True)
    positions = traitlets.List().tag(sync=True)
    names = traitlets.Tuple().tag(sync=True)
    labels = traitlets.Tuple().tag(sync=True)
    moves = traitlets.List().tag(sync=True)

    def __init__(
        self, pictures: Mapping[tuple, Picture], names: tuple[str, ...], start: tuple
    ) -> None:
        self.pictures, self.start, self.still = dict(pictures), start, pictures[start]
        super().__init__(
            svgs=[picture.svg for picture in pictures.values()],
            positions=[list(position) for position in pictures],
            names=names,
            labels=tuple(LABELS.get(name, name) for name in names),
            moves=moves(list(pictures), start),
            **dict(zip(names, start, strict=True)),
        )
        self.observe(self.follow, names)

    @property
    def position(self) -> tuple:
        """The slider values as they are now."""
        return tuple(getattr(self, name) for name in self.names)

    def checked(self, proposal: Mapping[str, Any]) -> Any:
        """Return a slider's new value, as the positions have it; TraitError if none has it."""
        name, value = proposal["trait"].name, proposal["value"]
        before = self.position[: self.names.index(name)]
        choices = after(self.pictures, before)
        if value not in choices:
            fixed = [f"{slider} is {at!r}" for slider, at in zip(self.names, before, strict=False)]
            where = f" where {' and '.join(fixed)}" if fixed else ""
            raise traitlets.TraitError(
                f"{name} is {value!r}: expected one of {', '.join(map(repr, choices))}{where}"
            )
        return choices[choices.index(value)]

    def follow(self, change: Mapping[str, Any]) -> None:
        """Put the sliders after one that has moved where they may be."""
        now = self.position
        moved = now[: self.names.index(change["name"]) + 1]
        legal = nearest(self.pictures, moved, now, self.start)
        for name, value in zip(self.names, legal, strict=True):
            setattr(self, name, value)

    def states(self) -> tuple[str, str, str]:
        """Return the positions, and all pictures."""
        places = ", ".join(" ".join(map(str, position)) for position in self.pictures)
        says = f"{len(self.pictures)} positions ({', '.join(self.names)}): {places}"
        return says, "all pictures", "".join(self.svgs)


def film(
    draw: Callable[..., Picture], start: Mapping[str, Any] | None = None, **positions: Choices
) -> Film:
    """Draw a picture for every legal position of some sliders, and put the sliders over them.

        film(draw, {"d_out": 6}, d_out=(4, 6), num_heads=lambda d_out: divisors(d_out))

    Args:
        draw: takes the slider values by name and returns a Picture.
        start: the value each slider begins with; the first one where it says nothing.
        positions: the values of each slider in order, or a function that takes the values of the
            sliders before it by name and returns them: only legal positions exist.

    Raises:
        ValueError: a slider has no value, there are more than 40 positions, or a film has
            something else of a slider's name.
    """
    names, table = tuple(positions), list(legal(positions))
    if not table or len(table) > MOST:
        raise ValueError(
            f"{', '.join(names)} have {len(table)} positions: from 1 to {MOST} make a film"
        )
    pictures = {position: draw(**dict(zip(names, position, strict=True))) for position in table}
    width = max(picture.width for picture in pictures.values())
    pictures = {position: picture.padded(width) for position, picture in pictures.items()}
    wanted = [(start or {}).get(name) for name in names]
    return with_sliders(names)(pictures, names, nearest(table, (), wanted))


def with_sliders(names: tuple[str, ...]) -> type[Film]:
    """Return the class of films whose sliders have these names: each is a trait, and checked."""
    if taken := [name for name in names if hasattr(Film, name)]:
        raise ValueError(f"a slider cannot be called {taken[0]}: a film has this name already")
    members = {name: traitlets.TraitType().tag(sync=True) for name in names}
    members |= {"check": traitlets.validate(*names)(Film.checked), "__module__": __name__}
    return type("Film", (Film,), members)


def legal(positions: Mapping[str, Choices], **chosen: Any) -> Iterable[tuple]:
    """Yield every combination of slider values that the choices allow, in order."""
    if len(chosen) == len(positions):
        yield tuple(chosen.values())
        return
    name = list(positions)[len(chosen)]
    choices = positions[name]
    for value in choices(**chosen) if callable(choices) else choices:
        yield from legal(positions, **chosen, **{name: value})


def after(positions: Iterable[tuple], before: tuple) -> list[Any]:
    """Return what the next slider offers where those before it stand so."""
    at = len(before)
    return list(dict.fromkeys(position[at] for position in positions if position[:at] == before))


def nearest(positions: Iterable[tuple], begun: tuple, *wishes: Sequence[Any]) -> tuple:
    """Return the position that begins with begun; wishes choose values of the other sliders."""
    table = list(positions)
    while len(begun) < len(table[0]):
        choices = after(table, begun)
        wanted = [wish[len(begun)] for wish in wishes]
        begun += (next((value for value in wanted if value in choices), choices[0]),)
    return begun


def moves(table: list[tuple], start: tuple) -> list[list[list[int]]]:
    """Return for each position and each of its sliders where the slider's values lead, in order."""

    def led(at: tuple, k: int) -> list[int]:
        begun = [(*at[:k], value) for value in after(table, at[:k])]
        return [table.index(nearest(table, position, at, start)) for position in begun]

    return [[led(at, k) for k in range(len(at))] for at in table]
