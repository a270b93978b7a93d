"""Run a learner's test on classes that it has to judge. Nothing here knows which of them are right.

A class arrives as lines of source and is built here, where the test runs.
"""

from collections.abc import Sequence
from typing import Any

import torch

from eleven_steps.checks.run.isolate import attempt, ours
from helpers import attention

NAME = "MultiHeadAttention"
PLACE = f"{attention.__file__} as it is tested"  # in a traceback these lines count as ours


def verdicts(test: Any, sources: Sequence[Sequence[str]]) -> list[Any]:
    """Call test(cls) for each of several classes.

    Args:
        test: the learner's function.
        sources: lines of source that define MultiHeadAttention; they may use what
            helpers.attention has.

    Returns:
        For each class whether the test accepts it, False where it returns something false, but
        for None; a Failure where it raises; an ellipsis where it returns one.
    """
    return [attempt(_accepts, test, built(lines)) for lines in sources]


def built(lines: Sequence[str]) -> type:
    """Return the class that these lines define."""
    with ours():
        namespace = vars(attention) | {"__name__": "tested"}
        exec(compile("\n".join(lines), PLACE, "exec"), namespace)
    return namespace[NAME]


def _accepts(test: Any, cls: type) -> Any:
    torch.default_generator.manual_seed(0)  # a test draws the same for each class
    said = test(cls)
    return said if said is ... else said is None or bool(said)
