"""What pictures that answer take into the page: scripts and styles that lie beside this file."""

from pathlib import Path

from eleven_steps.pictures.stored import hint

HERE = Path(__file__).parent


def style(*names: str) -> str:
    """Return style sheets as one; with "fit" comes what says that a picture is too wide."""
    return hint() * ("fit" in names) + "".join(
        (HERE / f"{name}.css").read_text("utf-8") for name in names
    )


def script(*names: str) -> str:
    """Return scripts as one module; the last of them exports what it renders."""
    return "\n".join((HERE / f"{name}.js").read_text("utf-8") for name in names)
