"""Judge the exercises that ask for a line, for an order of lines, or for a test."""

import random
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from eleven_steps.checks.know.catalogue import MISTAKES
from eleven_steps.checks.know.exercises.kinds import Catch, Choose, Order, Quiz
from eleven_steps.checks.know.exercises.questions import REDRAWN, RIGHT, WRONG, source_of
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.name.say import Finding, came, say, say_slip
from eleven_steps.checks.run.ask import ask, kind_of, used_by
from eleven_steps.checks.run.isolate import Failure
from helpers.trace import STEPS

# The steps that a step needs, so that its line finds what it reads; else the one before.
NEEDS = {1: (), 2: (), 3: (1, 2), 8: (4, 7), 10: (1, 9)}


def judge_quiz(task: Quiz, answer: Any) -> Finding:
    """Judge an answer to one of these, wherever it lives."""
    if isinstance(task, Catch):
        return judge_test(answer)
    handed = ask(answer, "value")
    judge = judge_order if isinstance(task, Order) else judge_choice
    return judge(task, object() if type(handed) is Failure else handed)


def judge_choice(task: Choose, answer: Any) -> Finding:
    """Compare a letter with the one asked for."""
    if type(answer) is not str:
        return say("other_type", wanted=wording("one_letter"), came=came(answer))
    alone = re.findall(r"(?<![^\W_])[^\W_](?![^\W_])", answer)  # in "line B" for one
    letter = (alone[0] if len(alone) == 1 else re.sub(r"[\W_]", "", answer)).upper()
    if letter == task.answer:
        return say("right")
    if letter not in task.slips:
        return say("no_such_letter", letters=", ".join(sorted([task.answer, *task.slips])))
    return say_slip(task.slips[letter])


def judge_order(task: Order, answer: Any) -> Finding:
    """Say which line of an answer is the first that stands in the wrong place."""
    letters = as_letters(answer)
    if letters is None:
        wanted = wording("letters_in_order", example="".join(list(task.lines)[:3]))
        return say("other_type", wanted=wanted, came=came(answer))
    if not letters:
        return say("open")
    done: set[int] = set()
    for place, letter in enumerate(letters, 1):
        if finding := misplaced(task, place, letter, done):
            return finding
        done.add(task.lines[letter].step)
    if len(done) == len(STEPS):
        return say("right")
    missing = len(STEPS) - len(done)
    return say(
        "lines_right", count=len(letters), missing=missing, are="is" if missing == 1 else "are"
    )


def as_letters(answer: Any) -> Sequence[str] | None:
    """Return what was handed in as capital letters, or None where it is no text."""
    if type(answer) in (list, tuple) and all(type(each) is str for each in answer):
        answer = " ".join(answer)
    if type(answer) is not str:
        return None
    return re.sub(r"[\s,;.:>/|→–-]", "", answer).upper()  # what may stand between letters


def misplaced(task: Order, place: int, letter: str, done: set[int]) -> Finding | None:
    """Say what is wrong with a line in its place, after the steps that are done, if anything is."""
    if letter not in task.lines:
        return say("no_such_line", place=place, letter=letter, last=list(task.lines)[-1])
    line = task.lines[letter]
    here = {"place": place, "letter": letter, "code": line.code}
    needed = NEEDS.get(line.step, (line.step - 1,))
    if lacking := [step for step in needed if step not in done]:
        return say("line_too_early", steps=" and ".join(map(_called, lacking)), **here)
    if line.step in done:
        return say("line_again", step=_called(line.step), **here)
    if line.mistake:
        finding = say("line_wrong", fault=MISTAKES[line.mistake].told, **here)
        return replace(finding, mistake=line.mistake)
    return None


def _called(step: int) -> str:
    return f"{step} ({STEPS[step - 1]})"


def judge_test(test: Any) -> Finding:
    """Say which wrong classes a test lets through, and which right ones it rejects."""
    sort, name = kind_of(test)
    if sort not in ("callable", "class", "module class"):
        return say("no_function", name=name)
    names = random.SystemRandom().sample([*WRONG, *RIGHT], len(WRONG) + len(RIGHT))
    if used_by(test)["checks"]:
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
