"""The lines of a change beside those of the lecture's class."""

import inspect
import textwrap
from collections.abc import Callable

from eleven_steps.beyond.variants import Part, VariantAttention
from eleven_steps.beyond.variants.module import REPLACED
from eleven_steps.helpers.trace import step_source


def show_change(step: str, kind: type[Part]) -> str:
    """Return a step's lines without a part, and the part's: in their place (-, +), or after them.

    Raises:
        ValueError: there is no such step, or the part does not change it.
    """
    if not hasattr(kind, step):
        raise ValueError(f"{kind.__name__} does not change step {step!r}")
    own = step in REPLACED
    old = body_of(getattr(VariantAttention, step)) if own else step_source(step).splitlines()
    old = [f"{'-' if own else ' '} {line.split('  # ')[0]}" for line in old]
    return "\n".join([*old, *(f"+ {line}" for line in body_of(getattr(kind, step)))])


def body_of(method: Callable) -> list[str]:
    """Return a method's lines without its head, docstring, comments and checks of what came."""
    source = textwrap.dedent(inspect.getsource(method)).partition('"""\n')[2]
    lines = textwrap.dedent(source).splitlines()
    kept = [line for line in lines if line.strip() and not line.startswith("check_")]
    return [line.split("  # ")[0] for line in kept]
