"""The strip of the eleven steps: where one is, what is done, and the way to each notebook."""

from collections.abc import Collection, Sequence
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
