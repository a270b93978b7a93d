"""Say which exercise may have been meant."""

import difflib
from collections.abc import Iterable
from typing import Any


def unknown(identifier: Any, names: Iterable[str]) -> str:
    """Say that there is no such exercise, and name the nearest."""
    if type(identifier) is not str:
        return 'an exercise is named by a text, "scores.1" for one.'
    near = difflib.get_close_matches(identifier.lower(), list(names), n=1, cutoff=0.4)
    meant = f" Do you mean {near[0]!r}?" if near else ' They are called "scores.1" and the like.'
    return f"there is no exercise {identifier[:30]!r}.{meant}"
