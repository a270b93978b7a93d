"""Judge the exercises that ask for a line, for an order of lines, or for a test."""

import random
import re
from collections.abc import Sequence
from typing import Any

from eleven_steps.checks.know.exercises.kinds import Catch, Choose, Further, Order
from eleven_steps.checks.know.exercises.suspects import RIGHT, WRONG, source_of
from eleven_steps.checks.know.mistakes import MISTAKES
from eleven_steps.checks.name.outcome import Finding
from eleven_steps.checks.name.say import came, say
from eleven_steps.checks.run.ask import ask, kind_of
from eleven_steps.checks.run.isolate import Failure
from helpers.trace import STEPS

# The steps that a step needs, so that its line finds what it reads; else the one before.
NEEDS = {1: (), 2: (), 3: (1, 2), 8: (4, 7), 10: (1, 9)}


def judge_further(task: Further, answer: Any) -> Finding:
    """Judge an answer to one of these, wherever it lives."""
    if isinstance(task, Catch):
        return judge_test(answer)
    handed = ask(answer, "value")
    judge = judge_order if isinstance(task, Order) else judge_choice
    return judge(task, object() if type(handed) is Failure else handed)


def judge_choice(task: Choose, answer: Any) -> Finding:
    """Compare a letter with the one asked for."""
    if answer is ... or answer is None:
        return say("open")
    if type(answer) is not str:
        return say("other_type", wanted="one letter", came=came(answer))
    letter = answer.strip().upper()
    if letter == task.answer:
        return say("right")
    if letter not in task.slips:
        letters = ", ".join(sorted([task.answer, *task.slips]))
        return Finding(None, f"one of the letters {letters} is expected.")
    said = task.slips[letter]
    sentence, mistake = (said, None) if type(said) is str else said
    return Finding(None, sentence, mistake, "mistake")


def judge_order(task: Order, answer: Any) -> Finding:
    """Say which line of an answer is the first that stands in the wrong place."""
    letters = as_letters(answer)
    if letters is None:
        wanted = f'a text of letters in order, such as "{"".join(list(task.lines)[:3])}",'
        return say("other_type", wanted=wanted, came=came(answer))
    if not letters:
        return say("open")
    done: set[int] = set()
    for place, letter in enumerate(letters, 1):
        if found := misplaced(task, place, letter, done):
            return found
        done.add(task.lines[letter].step)
    if len(done) == len(STEPS):
        return say("right")
    text = f"the first {len(letters)} lines are right. {len(STEPS) - len(done)} are missing."
    return Finding(None, text, kind="so far")


def as_letters(answer: Any) -> Sequence[str] | None:
    """Return what was handed in as capital letters, or None where it is no text."""
    if type(answer) in (list, tuple) and all(type(each) is str for each in answer):
        answer = " ".join(answer)
    if type(answer) is not str:
        return None
    return re.sub(r"[\s,;.:>/|→–-]", "", answer).upper()  # what may stand between letters


def misplaced(task: Order, place: int, letter: str, done: set[int]) -> Finding | None:
    """Say what is wrong with a line in its place, after the steps that are done, if anything is."""
    where = f"place {place}, {letter}"
    if letter not in task.lines:
        last = list(task.lines)[-1]
        return Finding(None, f"{where}: there is no such line; they are A to {last}.")
    line = task.lines[letter]
    shown = f"{where}, `{line.code}`"
    needed = NEEDS.get(line.step, (line.step - 1,))
    if lacking := [step for step in needed if step not in done]:
        before = " and ".join(f"{step} ({STEPS[step - 1]})" for step in lacking)
        early = f"this comes too early. No line above it takes step {before}."
        return Finding(None, f"{shown}: {early}")
    if line.step in done:
        taken = f"step {line.step} ({STEPS[line.step - 1]})"
        return Finding(None, f"{shown}: a line above has taken {taken} already.")
    if line.mistake:
        return Finding(None, f"{shown}: {MISTAKES[line.mistake].told}", line.mistake, "mistake")
    return None


def judge_test(test: Any) -> Finding:
    """Say which wrong classes a test lets through, and which right ones it rejects."""
    sort, name = kind_of(test)
    if sort not in ("callable", "class", "module class"):
        return say("no_function", name=name)
    names = random.SystemRandom().sample([*WRONG, *RIGHT], len(WRONG) + len(RIGHT))
    said = ask(test, "verdicts", [source_of(each) for each in names])
    if isinstance(said, Failure):
        return Finding(None, f"The test cannot be called: {said.told}.", kind="error")
    verdicts = dict(zip(names, said, strict=True))
    if any(each is ... for each in verdicts.values()):
        return say("open")
    rejected = [each for each in RIGHT if verdicts[each] is not True]
    if rejected:
        return _rejects(rejected, verdicts)
    missed = [each for each in WRONG if verdicts[each] is True]
    if missed:
        return _lets_through(missed)
    caught, passed = f"all {len(WRONG)} wrong classes", f"{len(RIGHT)} right ones"
    return Finding(None, f"Your test catches {caught} and lets {passed} pass.", kind="right")


def _rejects(rejected: list[str], verdicts: dict[str, Any]) -> Finding:
    first = verdicts[rejected[0]]
    how = f"raises {first.told}" if isinstance(first, Failure) else "returns something false"
    caught = sum(verdicts[each] is not True for each in WRONG)
    text = (
        f"Your test rejects {len(rejected)} of {len(RIGHT)} right classes: {'; '.join(rejected)}. "
        f"For the first it {how}. "
    )
    if len(rejected) == len(RIGHT) and caught == len(WRONG):
        return Finding(None, text + "It rejects whatever comes.")
    return Finding(None, f"{text}Of {len(WRONG)} wrong ones it rejects {caught}.")


def _lets_through(missed: list[str]) -> Finding:
    listed = ", ".join(f"`{each}` (step {MISTAKES[each].step})" for each in missed)
    text = (
        f"No right class is rejected, and {len(WRONG) - len(missed)} of {len(WRONG)} wrong ones "
        f"are caught. Let through: {listed}. The first: {MISTAKES[missed[0]].told}"
    )
    return Finding(None, text, missed[0], "mistake")
