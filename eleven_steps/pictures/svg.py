"""What drawings are made of, laid beside and below each other, and the Picture they end in."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape

from eleven_steps.pictures.stored import image, with_attributes

CELL_WIDTH, CELL_HEIGHT, GAP = 42, 22, 16
CHARACTER = 7.4  # the width of one monospaced character at 12 px
TITLE_HEIGHT = 34

# JupyterLab's own variables carry its theme; the fallbacks are for pages that do not set them.
INK = "var(--jp-content-font-color1, #212121)"
GROUND = "var(--jp-layout-color0, #ffffff)"
LINE = "var(--jp-border-color0, #757575)"
SANS = "var(--jp-content-font-family, system-ui, 'DejaVu Sans', sans-serif)"
MONO = "var(--jp-code-font-family, ui-monospace, 'DejaVu Sans Mono', monospace)"

# Alone, as a file or an <img>, a picture follows the reader's choice of light or dark; within a
# page it is not the root, and the page's theme is kept.
DARK = (
    "<style>@media (prefers-color-scheme:dark){svg:root{--jp-content-font-color1:#fff;"
    "--jp-layout-color0:#111;--jp-border-color0:#757575}}</style>"
)

# Told apart by every kind of colour vision, also as tints on a light and on a dark ground, and none
# is that of right, wrong or movable: found by search. The first five are a second layer's heads 0
# to 4, or those of a layer alone; the last three are a first layer's.
HEAD_COLOURS = (
    *("#1c55ce", "#c88400", "#9ccd79", "#47e8ff", "#ffd823"),
    *("#06a2ba", "#3e762f", "#591a00"),
)
FIRST = 5
NEUTRAL = "#808080"
TINT = 0.36  # opaque enough to tell the heads apart, clear enough to read INK through it
FAINT, STEP = 0.06, 0.04  # where shades begin, and how far apart their ten steps are


def head_colour(head: int | None) -> str:
    """Return the colour of a head, the same in every picture; None is a grey, for no head."""
    return NEUTRAL if head is None else HEAD_COLOURS[head % len(HEAD_COLOURS)]


def hue(head: int, layer: int | None = None) -> int:
    """Return which colour a head of a layer has: a first layer's heads have their own."""
    return head + FIRST * (layer == 0)


@dataclass(frozen=True)
class Picture:
    """Hold a drawing, its title and its description, ready for a notebook to show.

    Args:
        body: SVG elements inside a width x height canvas, below a title line if it has one.
        width, height: the canvas, in CSS pixels.
        title: what there is to see, in a sentence; drawn above the body and read aloud.
        description: the same finding in words and shapes, for readers who cannot see the picture.
    """

    body: str
    width: float
    height: float
    title: str
    description: str

    @property
    def svg(self) -> str:
        """Return the whole drawing as one SVG string, equal for equal content."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" '
            f'aria-label="{escape(self.words)}" '
            f'width="{self.width:g}" height="{self.height:g}" '
            f'viewBox="0 0 {self.width:g} {self.height:g}" style="max-width:100%;height:auto">'
            f"<title>{escape(self.title)}</title><desc>{escape(self.description)}</desc>{DARK}"
            + with_attributes(
                f'<rect width="100%" height="100%" style="fill:{GROUND}"/>'
                f'<g style="fill:{INK};font:12px {MONO}">'
                + text(self.title, 0, 18, style=f"font:600 14px {SANS}")
                + f"{self.body}</g></svg>"
            )
        )

    def padded(self, width: float) -> "Picture":
        """Return the picture on a canvas at least so wide, so that a film keeps its scale."""
        return replace(self, width=max(width, self.width))

    @property
    def words(self) -> str:
        """Return what there is to see, for readers who cannot see it."""
        return f"{self.title} {self.description}"

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return {
            "text/html": image(self.svg, self.words),
            "image/svg+xml": self.svg,
            "text/plain": self.words,
        }


@dataclass(frozen=True)
class Drawing:
    """Hold SVG elements that fill width x height from their own top left corner."""

    body: str
    width: float
    height: float


def text(content: str, x: float, y: float, anchor: str = "start", style: str = "") -> str:
    """Return one line of text; anchor is start, middle or end."""
    where = "" if anchor == "start" else f' text-anchor="{anchor}"'
    look = f' style="{style}"' if style else ""
    return f'<text x="{x:g}" y="{y:g}"{where}{look}>{escape(content)}</text>'


def outline(x: float, y: float, width: float, height: float) -> str:
    """Return the path around a rectangle."""
    return f"M{x:g} {y:g}h{width:g}v{height:g}h-{width:g}z"


def number(value: float) -> str:
    """Write a number in at most five characters, as the cells of a grid do."""
    if isinstance(value, int):
        return str(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "-\N{INFINITY}" if value < 0 else "\N{INFINITY}"
    decimals = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    written = f"{value:.{decimals}f}"
    return written.replace("-", "") if float(written) == 0 else written


def heading(name: str, facts: str) -> Drawing:
    """Write a name in bold and what is known of it."""
    words = text(name, 0, 13, style="font-weight:700"), text(facts, 0, 13)
    widths = CHARACTER * len(name), CHARACTER * (len(facts) + 1)
    pair = [Drawing(word, width, 20) for word, width in zip(words, widths, strict=True)]
    return beside(pair, math.inf, CHARACTER + 4)


def line(words: str, y: float = 14, height: float = 20) -> Drawing:
    """Write one line of text, its letters' feet at y."""
    return Drawing(text(words, 0, y), CHARACTER * len(words), height)


def labelled(label: str, drawing: Drawing) -> Drawing:
    """Put a line of text above a drawing."""
    return below([line(label, 12, 18), drawing], gap=0)


def at(x: float, y: float, drawing: Drawing) -> str:
    """Place a drawing's top left corner at (x, y)."""
    if not x and not y:
        return drawing.body
    return f'<g transform="translate({x:g} {y:g})">{drawing.body}</g>'


def beside(drawings: Sequence[Drawing], max_width: float = 780, gap: float = GAP) -> Drawing:
    """Lay drawings from left to right, in as many lines as max_width asks for."""
    body, x, y, width, line = "", 0.0, 0.0, 0.0, 0.0
    for drawing in drawings:
        if x and x + drawing.width > max_width:
            x, y, line = 0.0, y + line + gap / 2, 0.0
        body += at(x, y, drawing)
        width, line = max(width, x + drawing.width), max(line, drawing.height)
        x += drawing.width + gap
    return Drawing(body, width, y + line)


def below(drawings: Sequence[Drawing], gap: float = GAP) -> Drawing:
    """Lay drawings from top to bottom."""
    body, y = "", 0.0
    for drawing in drawings:
        body += at(0, y, drawing)
        y += drawing.height + gap
    width = max((d.width for d in drawings), default=0)
    return Drawing(body, width, max(y - gap, 0))


def within(drawing: Drawing, words: str, size: int = 12) -> str:
    """Return a drawing as a part of a page, named, on the page's ground; size is of its letters."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(words)}" '
        f'width="{drawing.width:g}" height="{drawing.height:g}" '
        f'viewBox="0 0 {drawing.width:g} {drawing.height:g}">'
        f'<rect width="100%" height="100%" style="fill:{GROUND}"/>'
        f'<g style="fill:{INK};font:{size}px {MONO}">{drawing.body}</g></svg>'
    )


def picture(drawing: Drawing, title: str, description: str) -> Picture:
    """Finish a drawing: a title line above it, a margin around it."""
    width = max(drawing.width + 4, title_width(title))
    body = at(2, TITLE_HEIGHT, drawing)
    return Picture(body, width, drawing.height + TITLE_HEIGHT + 6, title, description)


def title_width(title: str) -> float:
    """Say how wide a title can get, whichever font the page has for it."""
    wide = sum(character in "mwMW%@" for character in title)
    narrow = sum(character in " '.,:;/|!()[]-fijltrIJ" for character in title)
    capital = sum(character.isupper() or character in "+<=>#" for character in title)
    return 10 * len(title) + 5.5 * wide - 3 * narrow + 2 * capital
