"""What pictures that answer take into the page: scripts that lie beside this file, and a style."""

from pathlib import Path

HERE = Path(__file__).parent
NARROW = (HERE / "fit.css").read_text("utf-8")  # what belongs to fit.js
STYLE = NARROW + (HERE / "touch.css").read_text("utf-8")


def script(*names: str) -> str:
    """Return scripts as one module; the last of them exports what it renders."""
    return "\n".join((HERE / f"{name}.js").read_text("utf-8") for name in names)
