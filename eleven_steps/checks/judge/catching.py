"""Judge a learner's test: which wrong classes it lets through, and which right ones it rejects."""

import random
from dataclasses import replace
from typing import Any

from eleven_steps.checks.judge.say import Finding, say
from eleven_steps.checks.know.catalogue import MISTAKES
from eleven_steps.checks.know.exercises.questions import REDRAWN, RIGHT, WRONG, source_of
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.run.ask import ask, kind_of, used_by
from eleven_steps.checks.run.isolate import Failure

CHECKS = {"check", "check_attention"}  # which would do the test's work


def judge_test(test: Any) -> Finding:
    """Say which wrong classes a test lets through, and which right ones it rejects."""
    sort, name = kind_of(test)
    if sort not in ("callable", "class", "module class"):
        return say("no_function", name=name)
    names = random.SystemRandom().sample([*WRONG, *RIGHT], len(WRONG) + len(RIGHT))
    if CHECKS & {*used_by(test)["called"]}:
        return say("test_asks_check")
    replies = ask(test, "verdicts", [source_of(each) for each in names])
    if isinstance(replies, Failure):
        return say("test_not_called", error=replies.told)
    verdicts = dict(zip(names, replies, strict=True))
    if any(each is ... for each in verdicts.values()):
        return say("open")
    rejected = [each for each in RIGHT if verdicts[each] is not True]
    missed = [each for each in WRONG if verdicts[each] is True]
    if rejected:
        finding = _rejects(rejected, len(WRONG) - len(missed), verdicts[rejected[0]])
        return finding if len(rejected) == len(RIGHT) else _drawn_once(test, finding)
    if missed:
        return _lets_through(missed)
    return say("test_right", wrong=len(WRONG), right=len(RIGHT))


def _rejects(rejected: list[str], caught: int, first: Any) -> Finding:
    raised = isinstance(first, Failure)
    how = wording("raises_error", error=first.told) if raised else wording("returns_false")
    whatever = len(rejected) == len(RIGHT) and caught == len(WRONG)
    return say(
        "test_rejects_all" if whatever else "test_rejects",
        count=len(rejected),
        right=len(RIGHT),
        names="; ".join(rejected),
        how=how,
        wrong=len(WRONG),
        caught=caught,
    )


def _drawn_once(test: Any, finding: Finding) -> Finding:
    """Say of a test that it rejects classes for the numbers they happen to draw, if it does."""
    verdicts = ask(test, "verdicts", [source_of(REDRAWN)])
    if isinstance(verdicts, Failure) or verdicts[0] is True:
        return finding
    return replace(finding, text=say("test_of_one_draw", said=finding.text).text)


def _lets_through(missed: list[str]) -> Finding:
    lines = (wording("class_line", name=each, step=MISTAKES[each].step) for each in missed)
    finding = say(
        "test_lets_through",
        caught=len(WRONG) - len(missed),
        wrong=len(WRONG),
        names=", ".join(lines),
        fault=MISTAKES[missed[0]].told,
    )
    return replace(finding, mistake=missed[0])
