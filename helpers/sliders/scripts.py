"""What pictures that answer take into the page: scripts and styles that lie beside this file."""

from pathlib import Path

HERE = Path(__file__).parent


def style(name: str) -> str:
    """Return a style sheet."""
    return (HERE / f"{name}.css").read_text("utf-8")


STYLE = style("touch")


def script(*names: str) -> str:
    """Return scripts as one module; the last of them exports what it renders."""
    return "\n".join((HERE / f"{name}.js").read_text("utf-8") for name in names)
