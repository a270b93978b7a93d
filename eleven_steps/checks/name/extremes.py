"""What small texts and small scores do not show: where a mask ends, and what outweighs it."""

import functools
from collections.abc import Iterator
from dataclasses import replace

import torch

from eleven_steps.checks.adapt.adapted import takes
from eleven_steps.checks.know.right import once_right
from eleven_steps.checks.name.match import Outputs
from eleven_steps.checks.name.say import Finding, letters, say
from eleven_steps.checks.run.ask import once
from eleven_steps.checks.run.cases import SAME, TOLERANCE, Case, close, known
from eleven_steps.checks.run.facts import Pass
from eleven_steps.checks.run.isolate import Failure, TimeUp

LONG = Case(1, 1100, 4, 4, 1, 1200)


def judge_long(outputs: Outputs, wrong: bool) -> Iterator[Finding]:
    """Compare where a text is long: a mask or a window may end. It comes last, being slow."""
    if wrong:
        return
    case = replace(LONG, variant=outputs.variant)
    if not takes(outputs.cls, case):
        return
    try:
        finding = _long(outputs, case)
    except TimeUp:
        finding = say("long_not_tried", num_tokens=case.num_tokens)
    if finding:
        yield finding


def _long(outputs: Outputs, case: Case) -> Finding | None:
    other, right = case.x, _right_long(case)
    other[:, 0] += 1
    mine, moved = (each.out for each in once(outputs.cls, case, Pass(), Pass(other)))
    if close(mine, right):
        return None
    if isinstance(mine, Failure):
        if hasattr(outputs.cls, "places"):  # from elsewhere, where a text's length may be fixed
            return None
        return say("forward_raises", error=mine.told, where=letters(case))
    if outputs.leaks(case):
        return say("long_future_seen", num_tokens=case.num_tokens)
    if mine.shape == right.shape and close(mine[:, -1], moved[:, -1], SAME):
        off = (mine - right).abs().amax(-1)[0] > TOLERANCE
        last = int(off.int().argmax()) - 1
        return say("long_past_hidden", num_tokens=case.num_tokens, last=last)
    return say("long_differs", num_tokens=case.num_tokens)


@functools.cache
def _right_long(case: Case) -> torch.Tensor:
    """The right output of a case, without the steps that lead to it."""
    return once_right(case, Pass())[0].out


def stressed(outputs: Outputs) -> Iterator[Finding]:
    """Compare where scores lie far apart, and where a row of x is 0; say the first that differs.

    In the first even an exp without a maximum taken off keeps its numbers. In the second some rows
    have far lower scores than others, and hidden ones higher.
    """
    case = Case(1, 4, 4, 8, 2, 5, without=outputs.plain(outputs.cases.main).without)
    if not takes(outputs.cls, case):
        return
    late, blank = "mask_after_softmax_renormalised", torch.eye(4)[None]
    blank[:, 1] = 0
    low = torch.tensor([[-300.0], [-300.0], [200.0], [-300.0]])
    passes = _stress(case, -60.0, 75.0), _stress(case, low, 0.0), Pass(blank)
    # A module for each: it keeps the weights of a pass, and may keep more.
    mine = [once(outputs.cls, case, each)[0].out for each in passes]
    right, planted = (
        [once_right(case, each, mistakes=names)[0].out for each in passes]
        for names in ((), (late,))
    )
    at = next((i for i in range(3) if not close(mine[i], right[i])), None)
    if at is None:
        return
    if at == 2:
        yield say("blank_row")
    elif close(mine[at], planted[at]):
        yield say(late)
    elif not isinstance(mine[at], Failure) and close(mine[at][:, 0], right[at][:, 0]):
        yield say("scores_changed")  # the first token, which sees itself alone, is right
    elif isinstance(mine[at], Failure) or at == 0 or not mine[at].isnan().any():
        yield say("future_outweighs")
    else:
        yield say("exp_overflows")


def _stress(case: Case, allowed: torch.Tensor | float, future: float) -> Pass:
    """A pass in which scaled scores are about allowed, and future above the diagonal."""
    tokens = case.num_tokens
    scores = torch.full((tokens, tokens), future).triu(1)
    scores += (allowed + known("stress", (tokens, tokens))).tril()
    scores *= case.head_dim**0.5
    eye = torch.eye(tokens)
    weights = {"W_query.weight": torch.cat([scores.T, scores.T])}
    return Pass(eye[None], weights=weights | {"W_key.weight": torch.cat([eye, eye])})
