"""Where one is: the strip of the eleven steps with the way to each notebook, and what is done."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from eleven_steps.pictures import svg

INK, GROUND, LINE = (each.replace(", ", ",") for each in (svg.INK, svg.GROUND, svg.LINE))
STRIP = (
    "display:grid;grid-template-columns:repeat(auto-fill,minmax(66px,1fr));gap:4px;"
    "max-width:800px;padding:2px"
)
LINK = (
    "padding:4px 0;border:1px solid {line};border-radius:6px;text-align:center;"
    "text-decoration:none;font-size:12px;line-height:1.4;color:{ink};background:{ground}"
)


@dataclass(frozen=True)
class Strip:
    """Hold the names of the steps and which is today's, ready for a notebook to show.

    Args:
        names: the steps in order.
        today: 1 to len(names), or 0 for none.
        done: the names of the steps that are done.
    """

    names: Sequence[str]
    today: int
    done: Collection[str]

    @property
    def title(self) -> str:
        """Say where one is."""
        if not self.today:
            return "Eleven steps"
        return f"Step {self.today} of {len(self.names)}: {self.names[self.today - 1]}"

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        links = " ".join(  # the space tells words apart where a cleaner drops the style
            link(number, name, number == self.today, name in self.done)
            for number, name in enumerate(self.names, 1)
        )
        said = f"{self.title}. In order: {', '.join(self.names)}."
        finished = [name for name in self.names if name in self.done]
        return {
            "text/html": f'<nav aria-label="{escape(self.title)}" style="{STRIP}">{links}</nav>',
            "text/plain": said + (f" Done: {', '.join(finished)}." if finished else ""),
        }


def draw_steps(names: Sequence[str], today: int = 0, done: Collection[str] = frozenset()) -> Strip:
    """Draw the strip of the steps' names, each a link to its notebook, with today's filled.

    Args:
        names: the eleven steps in order.
        today: 1 to 11, or 0 for none.
        done: the names of the steps to tick, as eleven_steps.checks.steps_done() returns them.
    """
    return Strip(tuple(names), today, done)


def link(number: int, name: str, here: bool, done: bool) -> str:
    """Return a step's place in the strip."""
    ink, ground = (GROUND, INK) if here else (INK, GROUND)
    style = LINK.format(line=INK if here else LINE, ink=ink, ground=ground)
    tick = ' <span role="img" aria-label="done">✓</span>' if done else ""
    now = ' aria-current="step"' if here else ""
    return (
        f'<a href="{number:02}_{name}.ipynb" style="{style}"{now}>'
        f"<strong>{number}</strong>{tick}<br>{escape(name)}</a>"
    )


PITCH, BAND = 68, 126  # pixels from column to column, and from a line of columns to the next
WIDEST = 12  # columns side by side, as fit a notebook's output at 1280 px
DEEPEST = 3  # boxes in a column; a group of more is a row under the columns
LONGEST = 11  # boxes in a row; more go on in the next


def draw_progress(
    done: Collection[str],
    groups: Mapping[str, Sequence[str]],
    evening: Collection[str] = (),
    note: str = "",
) -> svg.Picture:
    """Draw a box for each identifier, a column or a row for each group.

    Args:
        done: the identifiers that are done; one that no group has is ignored.
        groups: the identifiers by group, as {"scores": ["scores.1", "scores.2"]}. A box shows
            what follows the first dot.
        evening: those that belong to the evening: counted apart, with a strong edge.
        note: what else there is to say in words, after the picture's own.

    Raises:
        ValueError: there is no identifier at all.
    """
    every = [identifier for group in groups.values() for identifier in group]
    if not every:
        raise ValueError(f"groups are {dict(groups)}: one identifier or more are expected")
    columns = {name: group for name, group in groups.items() if len(group) <= DEEPEST}
    rows = {name: group for name, group in groups.items() if len(group) > DEEPEST}
    finished = [identifier for identifier in every if identifier in done]

    body = ""
    y = 66
    for place, (name, group) in enumerate(columns.items()):
        x, top = PITCH * (place % WIDEST), BAND * (place // WIDEST)
        body += svg.text(name, x + 34, top + 46, "middle", "font-size:11px")
        for row, identifier in enumerate(group):
            body += box(identifier, done, evening, x + 10, top + 58 + 30 * row)
        y = max(y, top + 66 + 30 * len(group))
    columns = dict(list(columns.items())[:WIDEST])  # those that stand side by side
    for name, group in rows.items():
        body += svg.text(name, 34, y + 16, "middle", "font-size:11px")
        for place, identifier in enumerate(group):
            row, column = divmod(place, LONGEST)
            body += box(identifier, done, evening, PITCH * column + 78, y + 30 * row)
        y += 34 + 30 * ((len(group) - 1) // LONGEST)
    said = f"Done: {', '.join(finished)}." if finished else "None is done yet."
    return svg.Picture(
        body,
        # The title needs the room of four.
        PITCH * max(4, len(columns), *(min(len(g), LONGEST) + 1 for g in rows.values())),
        y,
        counted(finished, every, evening),
        f"{said} {note}".rstrip(),
    )


def counted(finished: Sequence[str], every: Sequence[str], evening: Collection[str]) -> str:
    """Say how many are done, the evening's apart."""
    if not evening:
        return f"{len(finished)} of {len(every)} exercises are done"
    first = sum(identifier in evening for identifier in finished)
    return (
        f"Done: {first} of the evening's {len(evening)} exercises (strong edge), "
        f"{len(finished) - first} of {len(every) - len(evening)} beyond"
    )


def box(
    identifier: str, done: Collection[str], evening: Collection[str], x: float, y: float
) -> str:
    """Return one box with its top left corner at x, y."""
    number, ready = identifier.partition(".")[2], identifier in done
    edge = f"{svg.INK};stroke-width:2" if identifier in evening else svg.LINE
    return (
        f'<rect x="{x}" y="{y}" width="48" height="24" rx="4" fill-opacity="0.15" '
        f'style="fill:{svg.INK if ready else "none"};stroke:{edge}"/>'
    ) + svg.text(f"{number} ✓" if ready else number, x + 24, y + 16, "middle")
