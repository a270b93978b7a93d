"""What pictures that answer have in common: a script, a style, and what is stored of them."""

import hashlib
import re
from pathlib import Path
from typing import Any

import anywidget

from eleven_steps.pictures.stored import hint

HERE = Path(__file__).parent
REMARK = re.compile(r"^\s*(?://.*\n\s*)*|(?<=[;{,]) // .*$", re.MULTILINE)
ASLEEP = "<p>Run the cell to move it.</p>"  # where the view is not stored, or cannot be shown


class Live(anywidget.AnyWidget):
    """Show a picture that answers; what is stored of it is a still, and words for all it can show.

    A class of its own for each kind says in states() how much there is to see, what is hashed, in
    words, and all of it: without the hash nobody would notice a change that is out of sight.

    Attributes:
        still: the picture as it begins.
    """

    def states(self) -> tuple[str, str, str]:
        """Return what there is to move, what the hash is over, and all of that."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return in_words(self.still, *self.states())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        view = super()._repr_mimebundle_(**kwargs)
        view = view[0] if isinstance(view, tuple) else view  # with metadata, or without
        still = self.still._repr_mimebundle_()
        return {**view, **still, "text/html": self.stored(), "text/plain": repr(self)}

    def stored(self) -> str:
        """Return as HTML what is shown where no view is: the still, unless a class has more."""
        return self.still._repr_mimebundle_()["text/html"] + ASLEEP


def in_words(still: Any, says: str, over: str, every: str) -> str:
    """Say what a picture shows at first, what more there is, and a hash over all of that."""
    digest = hashlib.sha256(every.encode()).hexdigest()[:16]
    return f"{still.words}\n{says}\nhash over {over}: {digest}"


def style(*names: str) -> str:
    """Return style sheets as one, after what holds around every picture in JupyterLab.

    With "film" comes what says that a picture is too wide.
    """
    return hint() * ("film" in names) + "".join(
        (HERE / f"{name}.css").read_text("utf-8") for name in ("lab", *names)
    )


def script(*names: str) -> str:
    """Return scripts as one module, without remarks; the last exports what it renders."""
    return REMARK.sub("", "\n".join((HERE / f"{name}.js").read_text("utf-8") for name in names))
