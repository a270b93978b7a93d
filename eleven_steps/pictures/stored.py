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
    width = float(re.search(r' width="([\d.]+)"', svg)[1])
    smallest = min(map(float, re.findall(r'font-size="([\d.]+)px"', svg)))
    data, least = base64.b64encode(svg.encode()).decode(), width * min(LEGIBLE / smallest, 1)
    return (
        f'<div class="wide" style="--least:{least:g}px"><style>{hint()}</style>'
        f'<img alt="{escape(words)}" style="min-width:{least:g}px" '
        f'src="data:image/svg+xml;base64,{data}"></div>'
    )


def hint() -> str:
    """Return the style that says where a picture is wider than its page, in one line."""
    return bare(WIDE.read_text("utf-8"))


def bare(style: str) -> str:
    """Return a style sheet in one line, without its comments."""
    return re.sub(r"(?:/\*.*?\*/|\s)+", " ", style, flags=re.DOTALL).strip()


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
            said += [("font-weight", digits) for digits in weight if digits]
            said += [("font-size", size), ("font-family", families)]
        else:
            said.append((name, value))
    return " ".join(f'{name}="{value}"' for name, value in said)
