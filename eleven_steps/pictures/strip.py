"""The strip of the eleven steps: where one is, what is done, and the way to each notebook."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from html import escape

INK, GROUND = "var(--jp-content-font-color1,#212121)", "var(--jp-layout-color0,#ffffff)"
LINE = "var(--jp-border-color0,#757575)"
STRIP = (
    "display:grid;grid-template-columns:repeat(auto-fill,minmax(66px,1fr));gap:4px;"
    "max-width:800px;padding:2px"
)
LINK = (
    "padding:4px 0;border:1px solid {line};border-radius:6px;text-align:center;"
    "text-decoration:none;font-size:12px;line-height:1.4;color:{ink};background:{ground}"
)

_tellers: list[Callable[[], Collection[str]]] = []


def tell_done(teller: Callable[[], Collection[str]]) -> None:
    """Let a function say, whenever a strip is shown, the names of the steps that are done."""
    _tellers.append(teller)


@dataclass(frozen=True)
class Strip:
    """Hold the names of the steps and which is today's, ready for a notebook to show.

    Args:
        names: the steps in order.
        today: 1 to len(names), or 0 for none.
    """

    names: Sequence[str]
    today: int

    @property
    def title(self) -> str:
        """Say where one is."""
        if not self.today:
            return "Eleven steps"
        return f"Step {self.today} of {len(self.names)}: {self.names[self.today - 1]}"

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        done = {name for teller in _tellers for name in teller()}
        links = " ".join(  # the space tells words apart where a cleaner drops the style
            link(number, name, number == self.today, name in done)
            for number, name in enumerate(self.names, 1)
        )
        said = f"{self.title}. In order: {', '.join(self.names)}."
        finished = [name for name in self.names if name in done]
        return {
            "text/html": f'<nav aria-label="{escape(self.title)}" style="{STRIP}">{links}</nav>',
            "text/plain": said + (f" Done: {', '.join(finished)}." if finished else ""),
        }


def draw_steps(names: Sequence[str], today: int = 0) -> Strip:
    """Draw the strip of the steps' names, each a link to its notebook, with today's filled.

    Args:
        names: the eleven steps in order.
        today: 1 to 11, or 0 for none.
    """
    return Strip(tuple(names), today)


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
