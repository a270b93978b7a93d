"""Name a mistake: find the class of the catalogue that behaves as the learner's does."""

import functools
from typing import Any

from eleven_steps.checks.asking.clauses import Reply, run_clause
from eleven_steps.checks.asking.isolation import clock_paused
from eleven_steps.checks.contract import Clause, asked, clauses_at, expected
from eleven_steps.checks.declared import case_of
from eleven_steps.checks.mistakes import MISTAKES, Mistake, class_of, edited_source
from eleven_steps.helpers.attention import MultiHeadAttention


def named_mistake(
    cls: Any, causal: bool = True, reference: Any = MultiHeadAttention
) -> tuple[Mistake | None, bool]:
    """Find the mistake of the catalogue that gives the same wherever it is asked.

    Returns:
        the mistake, and whether it is sure: there is something that both compute, and that is
        wrong. Of two classes that always raise, the same words of torch's are no proof.
    """
    own: dict[Clause, Reply] = {}
    unsure = None
    contract = clauses_at(functools.partial(case_of, cls))
    for name, mistake in MISTAKES.items():
        sure, words = False, None
        for clause in contract:
            if sure and clause.name.startswith("dropped"):
                continue  # if the weights are wrong, what is dropped cannot be known
            theirs = of_planted(name, clause, causal)
            if theirs is None:
                break
            if clause not in own:
                own[clause] = asked(cls, clause)
            reply = own[clause]
            if reply.raised and theirs.raised:
                same = reply.value.text == theirs.value.text
                sure |= reply.building and same
                words = same if words is None else words and same
            elif reply.raised or theirs.raised or not clause.agree(reply.value, theirs.value):
                break
            else:
                right = expected(reference, clause)
                sure |= not clause.agree(theirs.value, right.value)
        else:
            if sure:
                return mistake, True
            unsure = unsure or (mistake if words else None)
    return unsure, False


@functools.cache
def of_planted(name: str, clause: Clause, causal: bool) -> Reply | None:
    """Return what a class with a mistake gives in a clause; None if it cannot be made."""
    cls = _planted(name, causal)
    if cls is None:
        return None
    with clock_paused():
        return run_clause(cls, clause.name, clause.case, clause.dropout, clause.new)


@functools.cache
def _planted(name: str, causal: bool) -> type | None:
    try:
        return class_of(edited_source(name, causal=causal))
    except ValueError:  # the mistake changes the mask, but the class has none
        return None
