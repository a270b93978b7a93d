"""Of many cases of one rule some are tried at a push, and all of them at night.

RENEW_SAID=1 in the environment tries all, so that what is said of each is written down.
"""

import os

import pytest
from said import answers, as_read


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


def sampled_answers(name, each=16):
    """The parameter asked: answers of said/NAME.toml, each sixteenth at a push, others at night."""
    known = [*answers(name)]
    shares = {False: [], True: []}
    for index, answer in enumerate(known):
        shares[_late(index, len(known), each)].append(answer)
    night = pytest.param(shares[True], id="night", marks=pytest.mark.nightly)
    push = pytest.param(shares[False], id="push")
    return pytest.mark.parametrize("asked", [push, night] if shares[True] else [push])


def whole(name, said, each=16):
    """A test of all that is said of the answers of said/NAME.toml."""

    @sampled_answers(name, each)
    def test(asked):
        told = {answer: said(answer) for answer in asked}
        assert told == as_read(name, told)

    return test
