"""Judge an answer to an exercise: whether it is right and, if not, what is wrong with it.

read_class shows the same of a class, step by step, in its own tensors.
"""

import contextlib
import difflib
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from eleven_steps.checks import progress
from eleven_steps.checks.asking.cases import TASK_CASES
from eleven_steps.checks.asking.failures import Failure
from eleven_steps.checks.asking.isolation import TimeUp, isolated
from eleven_steps.checks.asking.questions import ask, is_remote, kind_of, used_by
from eleven_steps.checks.attention import SECONDS
from eleven_steps.checks.exercises import (
    QUIZZES,
    RIGHT_CLASSES,
    TASKS,
    WRONG,
    Catch,
    Grow,
    Quiz,
    Task,
    Write,
    source_of,
)
from eleven_steps.checks.functions import judge_function
from eleven_steps.checks.growing import ClassRead, judge_growing, read_steps
from eleven_steps.checks.mistakes import MISTAKES
from eleven_steps.checks.paper import FRESH, SHEET, Paper, papers, practised
from eleven_steps.checks.reference import run_reference
from eleven_steps.checks.sentences import wording
from eleven_steps.checks.verdict import Verdict, honestly, say, say_mistake, together, without_code
from eleven_steps.checks.written import judge_written

EXERCISES = (*TASKS, *QUIZZES, *SHEET)
JUDGES = {"check", "check_attention"}  # names that a learner's test may not call
wrong_tries: Counter[str] = Counter()  # in this process, by exercise


def check(identifier: str | None = None, answer: Any = ..., record: bool = True) -> Any:
    """Try an answer, say what is wrong with it, and remember an exercise that is done.

    Args:
        identifier: the exercise, "scores.1" for the first of step 5, or a fresh problem for
            practice, "practice.single_head.7": shapes, single_head, columns or multi_head, and a
            number; or by_hand.3, 4 or 5 with numbers of one's own, "by_hand.3.7". Without one, the
            picture of what is done comes back.
        answer: what the exercise asks for, a function, a number, a dictionary or a class. Code
            runs on copies, for at most 5 seconds of processor time, and nothing that it prints or
            raises reaches the notebook. An answer that lives in another process is an object with
            a method ask, as asking/questions.py describes.
        record: whether a right answer counts as progress; a solution only proves itself.

    Returns:
        A Verdict; the picture of the progress where no exercise is named. Its hint shows code from
        the second wrong try on.

    Example:
        >>> check("shape.2", 12)
    """
    if identifier is None:
        return progress.picture()
    task = find(identifier)
    if task is None:
        return Verdict("unknown", no_exercise(identifier, (*EXERCISES, *FRESH)), exercise="check")
    verdict = honestly(in_time, task, answer)
    verdict = replace(verdict, exercise=task.identifier)
    if isinstance(task, Paper):
        start = {"given": dict(task.given), "sizes": dict(task.sizes)}
        verdict = replace(verdict, **start, solution=task.right)
    name = ".".join(task.identifier.split(".")[:2])  # without the seed of a student's own numbers
    if record and verdict.passed and name in EXERCISES:
        return replace(verdict, note=together(verdict.note, progress.record(name)))
    if verdict.hint and not isinstance(task, Grow):
        wrong_tries[task.identifier] += record  # a grader records nothing
        return verdict if wrong_tries[task.identifier] > 1 else without_code(verdict)
    return verdict


def find(identifier: Any) -> Task | Quiz | Paper | None:
    """Return the exercise or problem of that name, if there is one."""
    if type(identifier) is not str:
        return None
    if identifier in SHEET:
        return papers()[identifier]
    return TASKS.get(identifier) or QUIZZES.get(identifier) or practised(identifier)


def no_exercise(identifier: Any, names: Iterable[str]) -> str:
    """Say that there is no such exercise, and name the nearest."""
    if type(identifier) is not str:
        return wording("exercise_named")
    near = difflib.get_close_matches(identifier.lower(), list(names), n=1, cutoff=0.7)
    name = "exercise_unknown" if near else "exercise_unlike"
    return wording(name, name=identifier[:30], near="".join(near))


def in_time(task: Task | Quiz | Paper, answer: Any) -> Verdict:
    """Judge an answer to an exercise within its time limit."""
    with isolated(SECONDS):
        try:
            verdict = judge(task, answer)
            return replace(verdict, printed=_printed(task, answer))
        except TimeUp:
            return say("function_late", seconds=SECONDS)


def judge(task: Task | Quiz | Paper, answer: Any) -> Verdict:
    """Judge an answer to an exercise by the exercise's kind, without a time limit."""
    if kind_of(answer)[0] == "open":
        return say("open")
    if isinstance(task, Write):
        return judge_function(task, answer)
    if isinstance(task, Grow):
        return judge_growing(answer)
    if isinstance(task, Catch):
        return judge_test(answer)
    handed = ask(answer, "value")
    return judge_written(task, object() if type(handed) is Failure else handed)


def _printed(task: Any, answer: Any) -> str:
    """Return the beginning of what an answer prints; nothing of one in another process."""
    if is_remote(answer):
        return ""
    if isinstance(task, Write):
        asked = "call", [task.gets(run_reference(task.cases[0]))]
    elif isinstance(task, Grow):
        asked = "run_clause", "output", TASK_CASES[0]
    elif isinstance(task, Catch):
        asked = "verdicts", [source_of(next(iter(RIGHT_CLASSES)))]
    else:
        return ""
    printed = ask(answer, "printed", *asked)
    return printed if type(printed) is str else ""


def judge_test(test: Any) -> Verdict:
    """Say which wrong classes a test lets through, and which right ones it rejects."""
    sort, name = kind_of(test)
    if sort not in ("callable", "class", "module class"):
        return say("no_function", name=name)
    names = random.SystemRandom().sample([*WRONG, *RIGHT_CLASSES], len(WRONG) + len(RIGHT_CLASSES))
    if JUDGES & {*used_by(test)["called"]}:
        return say("test_asks_check")
    replies = ask(test, "verdicts", [source_of(cls) for cls in names])
    if isinstance(replies, Failure):
        return say("test_not_called", error=replies.told)
    verdicts = dict(zip(names, replies, strict=True))
    if any(verdict is ... for verdict in verdicts.values()):
        return say("open")
    rejected = [identifier for identifier in RIGHT_CLASSES if verdicts[identifier] is not True]
    missed = [identifier for identifier in WRONG if verdicts[identifier] is True]
    counts = {"right": len(RIGHT_CLASSES), "wrong": len(WRONG), "caught": len(WRONG) - len(missed)}
    if rejected:
        return _rejects(rejected, verdicts[rejected[0]], counts)
    if missed:
        mistake = MISTAKES[missed[0]]
        fault = say_mistake(mistake.sentence, mistake.identifier).wrong
        verdict = say("test_lets_through", name=missed[0], step=mistake.step, fault=fault, **counts)
        return replace(verdict, kind="mistake", mistakes=(missed[0],))
    return say("test_right", **counts)


def _rejects(rejected: list[str], first: Any, counts: dict[str, int]) -> Verdict:
    """Say which right classes a test rejects, and how it rejects the first."""
    raised = isinstance(first, Failure)
    how = wording("raises_error", error=first.told) if raised else wording("returns_false")
    whatever = len(rejected) == counts["right"] and counts["caught"] == counts["wrong"]
    name = "test_rejects_all" if whatever else "test_rejects"
    return say(name, count=len(rejected), names="; ".join(rejected), how=how, **counts)


def read_class(cls: Any) -> ClassRead:
    """Read how far a class is right, in its own tensors: for sliders.explore_class.

    Args:
        cls: a class of the course's names, as far as it has come; whatever it does stays inside.
    """
    verdict = check("your_class.1", cls, record=False)
    with contextlib.suppress(TimeUp), isolated(SECONDS):
        return read_steps(cls, verdict)
    return ClassRead(cls, verdict.message, ())
