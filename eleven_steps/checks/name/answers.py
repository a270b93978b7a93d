"""Say of an answer to an exercise whether it is right, and if not, what is wrong with it."""

import contextlib
import difflib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from eleven_steps.checks import progress
from eleven_steps.checks.know.exercises.kinds import Explain, Grow, Quiz, Task, Write
from eleven_steps.checks.know.exercises.paper import (
    FRESH,
    SHEET,
    Paper,
    Part,
    Words,
    papers,
    plain_words,
    practised,
)
from eleven_steps.checks.know.exercises.questions import QUIZZES
from eleven_steps.checks.know.exercises.tasks import TASKS
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.name.functions import judge_function
from eleven_steps.checks.name.growing import judge_class
from eleven_steps.checks.name.numbers import is_open, judge_value
from eleven_steps.checks.name.quizzes import judge_quiz
from eleven_steps.checks.name.say import (
    Finding,
    Outcome,
    came,
    honestly,
    say,
    say_slip,
    together,
)
from eleven_steps.checks.name.shown import shown_with
from eleven_steps.checks.run.ask import ask, kind_of
from eleven_steps.checks.run.isolate import Failure, TimeUp, attempt, isolated, type_name
from helpers.attention import MultiHeadAttention

EXERCISES = (*TASKS, *QUIZZES, *SHEET)
SECONDS = 5.0


def check(identifier: str | None = None, answer: Any = ..., record: bool = True) -> Any:
    """Try an answer, say what is wrong with it, and remember an exercise that is done.

    Args:
        identifier: the exercise, "scores.1" for the first of step 5, or a fresh problem for
            practice, "practice.single_head.7": shapes, single_head, columns or multi_head, and a
            number. Without one, the picture of what is done comes back.
        answer: what the exercise asks for, a function, a number, a dictionary or a class. Whatever
            comes is looked at: code runs on copies, for SECONDS of its own at most, and what it
            prints or raises stays inside. An answer that lives in another process is an object
            with a method ask, as eleven_steps.checks.run.ask describes.
        record: whether a right answer counts as progress; a solution only proves itself.

    Returns:
        An Outcome; the picture of the progress where no exercise is named.
    """
    if identifier is None:
        return progress.picture()
    task = find(identifier)
    if task is None:
        return Outcome("check", "unknown", unknown(identifier, (*EXERCISES, *FRESH)))
    outcome = honestly(task.identifier, judged, task, answer)
    if isinstance(task, Paper):
        outcome = replace(
            outcome, given=dict(task.given), sizes=dict(task.sizes), solution=task.right
        )
    if record and outcome.passed and task.identifier in EXERCISES:
        return replace(outcome, note=progress.record(task.identifier))
    return outcome


def find(identifier: Any) -> Task | Quiz | Paper | None:
    """Return the exercise or problem of that name, if there is one."""
    if type(identifier) is not str:
        return None
    if identifier in SHEET:
        return papers()[identifier]
    return TASKS.get(identifier) or QUIZZES.get(identifier) or practised(identifier)


def unknown(identifier: Any, names: Iterable[str]) -> str:
    """Say that there is no such exercise, and name the nearest."""
    if type(identifier) is not str:
        return wording("exercise_named")
    near = difflib.get_close_matches(identifier.lower(), list(names), n=1, cutoff=0.4)
    name = "exercise_unknown" if near else "exercise_unlike"
    return wording(name, name=identifier[:30], near="".join(near))


def judged(task: Task | Quiz | Paper, answer: Any) -> Outcome:
    """Say of an answer what check says, the clock running."""
    with isolated(SECONDS):
        finding, seen = say("function_late", seconds=SECONDS), {}
        with contextlib.suppress(TimeUp):
            finding = judge(task, answer)
            seen = shown_with(task, answer, finding)
        return replace(finding.outcome(task.identifier), **seen)


def judge(task: Task | Quiz | Paper, answer: Any) -> Finding:
    """Say of an answer what check says, unless it takes too long."""
    if kind_of(answer)[0] == "open":
        return say("open")
    if isinstance(task, Write):
        return judge_function(task, answer)
    if isinstance(task, Grow):
        return judge_class(answer)
    if isinstance(task, Quiz):
        return judge_quiz(task, answer)
    handed = ask(answer, "value")
    handed = object() if type(handed) is Failure else handed
    return judge_paper(task, handed) if isinstance(task, Paper) else judge_value(task, handed)


# Pencil and paper


def judge_paper(paper: Paper, answer: Any) -> Finding:
    """Judge what is written down, in the order in which it is worked out."""
    names, right, still_open = list(paper.parts), [], []
    known = attempt(lambda: set(answer) <= set(names)) if type(answer) is dict else False
    if known is not True:
        return say("no_paper", names=", ".join(names), came=shown(answer, names))
    for name, part in paper.parts.items():
        finding = judge_part(part, answer.get(name))
        if finding.kind == "unfinished":
            still_open.append(name)
        elif finding.kind == "right":
            right.append(name)
        else:
            before = wording("right_before", names=", ".join(right)) if right else ""
            return replace(finding, text=f"{before}`{name}`: {finding.text}")
    if not right:
        return say("open")
    if still_open:
        return say("paper_so_far", right=", ".join(right), next=still_open[0])
    return say("right")


def shown(answer: Any, names: list[str]) -> str:
    """Say what is wrong with an answer that is no dictionary of these names."""
    if type(answer) is not dict:
        return came(answer)
    odd = [key for key in answer if type(key) is str and key not in names]
    return wording("other_name", name=odd[0][:20]) if odd else wording("other_key")


def judge_part(part: Part, answer: Any) -> Finding:
    """Judge one of the things that a paper asks for."""
    if is_open(answer):
        return say("open")
    if isinstance(part, Explain):
        return judge_value(part, answer)
    if isinstance(part, Words):
        return judge_words(part, answer)
    if type(answer) is not MultiHeadAttention:
        class_alone = wording("a_class_alone") if type_name(answer) == "type" else ""
        return say("other_type", wanted=wording("a_module"), came=class_alone or came(answer))
    for name, wanted in part.arguments.items():
        size = answer.dropout.p if name == "dropout" else getattr(answer, name)
        if size != wanted:
            return say("built_with", name=name, size=size)
    return say("right" if answer.W_query.bias is None else "built_with_bias")


def judge_words(part: Words, answer: Any) -> Finding:
    """Compare words with those asked for, whatever stands between them."""
    if type(answer) in (tuple, list) and all(type(word) is str for word in answer):
        answer = " ".join(answer)
    if type(answer) is not str:
        return say("no_words", wanted=part.wanted, came=came(answer))
    right, answer = plain_words(part.answer), answer.partition("=")[0]
    words = plain_words(answer)
    joined, whole = "".join(words), "".join(right)
    if joined == whole or len(joined) > 3 and whole.startswith(joined):
        return say("right")
    slips = (s for wrong, s in part.slips.items() if joined == "".join(plain_words(wrong)))
    if slip := next(slips, None):
        return say_slip(slip)
    finding = say("other_words", wanted=part.wanted)
    if len(words) == 1 or len(right) == 1 or not {*words} & {*right}:
        return finding
    like = "in_another_order" if sorted(words) == sorted(right) else "some_axes_are_right"
    if len(words) != len(right):
        like = "too_many_axes" if len(words) > len(right) else "too_few_axes"
    return replace(finding, text=together(finding.text, wording(like)))
