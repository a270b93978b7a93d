"""What of a picture outlives viewers that clean what a notebook stores, or that know no theme."""

import base64
import re
from html import escape
from pathlib import Path

LEGIBLE = 11  # pixels: no text is shown smaller
WIDE = Path(__file__).with_name("wide.css")


def image(svg: str, words: str) -> str:
    """Return a picture as HTML that holds all of it, and what there is to see in words.

    It shrinks with its place until its texts are 11 pixels high; then it is scrolled, and a style
    says so. Most cleaners of HTML keep an <img> and its alt: JupyterLab's for notebooks it does not
    trust, for one. They drop <svg>, but leave the words in it; they drop <style> with its words.
    """
    data, least = base64.b64encode(svg.encode()).decode(), f"{least_width(svg):g}px"
    return (
        f'<div class="wide" style="--least:{least}"><style>{hint()}</style>'
        f'<img alt="{escape(words)}" style="min-width:{least}" '
        f'src="data:image/svg+xml;base64,{data}"></div>'
    )


def answering(svg: str, rules: str, still: str) -> str:
    """Return a picture as HTML that answers a pointer by style sheet alone, with no script.

    It is a document of its own, so that its styles stay in it. A cleaner of HTML drops <object>
    and keeps what stands in it: the still.
    """
    width, height = (re.search(rf' {side}="([\d.]+)"', svg)[1] for side in ("width", "height"))
    alive = svg.replace("</desc>", f"</desc><style>{rules}</style>", 1)
    return (
        f'<object type="image/svg+xml" style="width:{width}px;height:{height}px" '
        f'data="data:image/svg+xml;base64,{base64.b64encode(alive.encode()).decode()}">'
        f"{still}</object>"
    )


def hint() -> str:
    """Return the style that says where a picture is wider than its page, in one line."""
    return re.sub(r"(?:/\*.*?\*/|\s)+", " ", WIDE.read_text("utf-8"), flags=re.DOTALL).strip()


def least_width(svg: str) -> float:
    """Return how wide an SVG has to be shown, in pixels, so that all its texts can be read."""
    width = float(re.search(r' width="([\d.]+)"', svg)[1])
    smallest = min(float(size) for size in re.findall(r'font-size="([\d.]+)px"', svg))
    return width * min(LEGIBLE / smallest, 1)


def with_attributes(svg: str) -> str:
    """Say beside each style what it says, in attributes: a cleaner that drops styles keeps them."""
    return re.sub(r'style="([^"]*)"', lambda found: f"{attributes(found[1])} {found[0]}", svg)


def attributes(style: str) -> str:
    """Write a style as attributes, with the colours and fonts of a page without a theme."""
    said = []
    for declared in style.split(";"):
        name, _, value = declared.partition(":")
        value = re.sub(r"var\([^,]*, (.*)\)", r"\1", value)
        if name == "font":  # "600 14px sans-serif": a weight if any, a size, families
            *weight, size, families = re.fullmatch(r"(?:(\d+) )?(\S+) (.+)", value).groups()
            said += [("font-weight", each) for each in weight if each]
            said += [("font-size", size), ("font-family", families)]
        else:
            said.append((name, value))
    return " ".join(f'{name}="{value}"' for name, value in said)
