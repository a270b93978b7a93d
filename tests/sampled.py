"""Of many cases of one rule some are tried at a push, and all of them at night.

RENEW_SAID=1 in the environment tries all, so that what is said of each is written down.
"""

import os

import pytest


def _late(index, count, each):
    """Whether a case waits for the night: all but each so-manyth, counted from the newest."""
    return bool((count - 1 - index) % each) and "RENEW_SAID" not in os.environ


def sampled(names, cases, each=16, **options):
    """As pytest.mark.parametrize, but only each sixteenth case, the last too, runs at a push."""
    rows = [
        pytest.param(
            *(case if isinstance(names, tuple) else [case]),
            marks=[pytest.mark.nightly] * _late(index, len(cases), each),
        )
        for index, case in enumerate(cases)
    ]
    return pytest.mark.parametrize(names, rows, **options)
