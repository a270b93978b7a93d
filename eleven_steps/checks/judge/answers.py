"""Say of an answer to an exercise whether it is right, and if not, what is wrong with it.

read_class shows the same of a class, step by step, in its own tensors.
"""

import contextlib
import difflib
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from eleven_steps.checks import progress
from eleven_steps.checks.judge import classes
from eleven_steps.checks.judge.differ import blamed
from eleven_steps.checks.judge.functions import judge_function
from eleven_steps.checks.judge.in_progress import judge_class
from eleven_steps.checks.judge.path import Walk
from eleven_steps.checks.judge.say import Finding, Outcome, honestly, say
from eleven_steps.checks.judge.written import judge_written
from eleven_steps.checks.know.catalogue import MISTAKES
from eleven_steps.checks.know.exercises.paper import FRESH, SHEET, Paper, papers, practised
from eleven_steps.checks.know.exercises.tasks import (
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
from eleven_steps.checks.know.right import Scene, play
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.run.ask import Pass, ask, is_remote, kind_of, used_by
from eleven_steps.checks.run.cases import LAYERS, TASK_CASES, Case
from eleven_steps.checks.run.isolate import Failure, TimeUp, isolated
from eleven_steps.checks.run.recording import Trace
from eleven_steps.helpers.trace import STEPS

EXERCISES = (*TASKS, *QUIZZES, *SHEET)
JUDGES = {"check", "check_attention"}  # which would do a test's work
NOT_WRONG = ("right", "so far", "unfinished", "failed")  # outcomes that call nothing wrong
WHITEBOARD = TASK_CASES[0]


def check(identifier: str | None = None, answer: Any = ..., record: bool = True) -> Any:
    """Try an answer, say what is wrong with it, and remember an exercise that is done.

    Args:
        identifier: the exercise, "scores.1" for the first of step 5, or a fresh problem for
            practice, "practice.single_head.7": shapes, single_head, columns or multi_head, and a
            number; or by_hand.3, 4 or 5 with numbers of one's own, "by_hand.3.7". Without one, the
            picture of what is done comes back.
        answer: what the exercise asks for, a function, a number, a dictionary or a class. Whatever
            comes is looked at: code runs on copies, for classes.SECONDS of its own at most, and
            what it prints or raises stays inside. An answer that lives in another process is an
            object with a method ask, as run/ask.py describes.
        record: whether a right answer counts as progress; a solution only proves itself.

    Returns:
        An Outcome; the picture of the progress where no exercise is named.
    """
    if identifier is None:
        return progress.picture()
    task = find(identifier)
    if task is None:
        return Outcome("check", "unknown", no_exercise(identifier, (*EXERCISES, *FRESH)))
    outcome = honestly(task.identifier, in_time, task, answer)
    if isinstance(task, Paper):
        start = {"given": dict(task.given), "sizes": dict(task.sizes)}
        outcome = replace(outcome, **start, solution=task.right)
    name = ".".join(task.identifier.split(".")[:2])  # also where the numbers are one's own
    if record and outcome.passed and name in EXERCISES:
        return replace(outcome, note=progress.record(name))
    return outcome


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
    near = difflib.get_close_matches(identifier.lower(), list(names), n=1, cutoff=0.4)
    name = "exercise_unknown" if near else "exercise_unlike"
    return wording(name, name=identifier[:30], near="".join(near))


def in_time(task: Task | Quiz | Paper, answer: Any) -> Outcome:
    """Say of an answer what check says, the clock running."""
    with isolated(classes.SECONDS):
        finding, seen = say("function_late", seconds=classes.SECONDS), {}
        with contextlib.suppress(TimeUp):
            finding = judge(task, answer)
            seen = shown_with(task, answer, finding)
        return replace(finding.outcome(task.identifier), **seen)


def judge(task: Task | Quiz | Paper, answer: Any) -> Finding:
    """Say of an answer what check says, unless it takes too long."""
    if kind_of(answer)[0] == "open":
        return say("open")
    if isinstance(task, Write):
        finding = judge_function(task, answer)
        return finding if finding.kind != "right" else _ruled_out(task, answer) or finding
    if isinstance(task, Grow):
        return judge_class(answer)
    if isinstance(task, Catch):
        return judge_test(answer)
    handed = ask(answer, "value")
    return judge_written(task, object() if type(handed) is Failure else handed)


def _ruled_out(task: Write, answer: Any) -> Finding | None:
    """Say of a function that returns what is right if it is made in a way that was ruled out."""
    called = used_by(answer)["called"]
    for name, sentence in task.without.items():
        if name in called:
            return Finding(None, sentence)
    given = task.gets(play(task.cases[-1]))
    for index, sentence in task.heeds.items():
        other = *given[:index], given[index] + 1, *given[index + 1 :]
        traces = [ask(answer, "traced_call", arguments) for arguments in (given, other)]
        shapes = [[t.shape for t in trace.tensors] for trace in traces if isinstance(trace, Trace)]
        if len(shapes) == 2 and shapes[0] == shapes[1]:
            return Finding(None, sentence)
    return None


def judge_test(test: Any) -> Finding:
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
        lines = (wording("class_line", name=name, step=MISTAKES[name].step) for name in missed)
        fault = MISTAKES[missed[0]].told
        finding = say("test_lets_through", names=", ".join(lines), fault=fault, **counts)
        return replace(finding, mistake=missed[0])
    return say("test_right", **counts)


def _rejects(rejected: list[str], first: Any, counts: dict[str, int]) -> Finding:
    """Say which right classes a test rejects, and how it rejects the first."""
    raised = isinstance(first, Failure)
    how = wording("raises_error", error=first.told) if raised else wording("returns_false")
    whatever = len(rejected) == counts["right"] and counts["caught"] == counts["wrong"]
    name = "test_rejects_all" if whatever else "test_rejects"
    return say(name, count=len(rejected), names="; ".join(rejected), how=how, **counts)


# A class, step by step on the whiteboard: what of each step is among its own tensors


@dataclass(frozen=True)
class StepRead:
    """One step of a class."""

    name: str
    state: str  # done; next; wrong, the first that is not right; dark, where nothing is known
    tensors: dict[str, torch.Tensor]  # the class's own; of a wrong step what stands in their places
    right: dict[str, torch.Tensor]  # what they should be


@dataclass(frozen=True)
class ClassRead:
    """How far a class is right on the whiteboard."""

    cls: Any
    says: str  # what check says of it
    steps: tuple[StepRead, ...]  # all eleven

    @property
    def whole(self) -> bool:
        """Whether all eleven steps are right."""
        return all(step.state == "done" for step in self.steps)


def read_class(cls: Any) -> ClassRead:
    """Read how far a class is right, in its own tensors: for sliders.explore_class.

    Args:
        cls: a class of the course's names, as far as it has come; whatever it does stays inside.
    """
    outcome = check("your_class.1", cls, record=False)
    blame = None
    with contextlib.suppress(TimeUp), isolated(classes.SECONDS):
        blame = blamed(cls, WHITEBOARD)
    walked = blame and blame.walked
    done = [i for i, step in enumerate(STEPS) if walked and walked.reached(step)]
    last = max(done, default=-1)  # what comes before it is done by whatever way
    if outcome.kind in NOT_WRONG:
        steps = _steps(walked, last + 1)
    else:
        wrong = min(outcome.step or last + 2, len(STEPS)) - 1
        steps = _steps(walked, min(wrong, last + 1), wrong)
    return ClassRead(cls, outcome.message, tuple(steps))


def _steps(walked: Walk | None, up_to: int, wrong: int | None = None) -> Iterator[StepRead]:
    """Read all steps: as many are done, and one may be wrong, counted from 0."""
    for i, (step, right) in enumerate(play(WHITEBOARD).steps.items()):
        state = "done" if i < up_to else "wrong" if i == wrong else "dark"
        if wrong is None and i == up_to:
            state = "next"
        own = {}
        if walked and state in ("done", "wrong"):
            own = {name: _there(walked, step, name, state == "wrong") for name in right}
        kept = {name: tensor.float() for name, tensor in own.items() if tensor is not None}
        yield StepRead(step, state, kept, right)


def _there(walked: Walk, step: str, name: str, wrong: bool) -> torch.Tensor | None:
    """The right tensor of a step; where it is wrong, what stands in its place if it is not there.

    That is made by a call of the same step, of the right numbers of the step before.
    """
    right, number = walked.reference.scene[step][name], STEPS.index(step) + 1
    if (own := walked.own(right)) is not None or not wrong:
        return own
    ops = (op for op, at in zip(walked.ops, walked.steps, strict=True) if at == number)
    gave = [index for op in ops for index in op.gave]
    own = [index for index in gave if number > 4 or walked.readings[index].who in (name, "")]
    of_name = [walked.tensors[index] for index in own]
    shaped = [t for t in of_name if t.shape == right.shape]
    least = [t for t in of_name if t.dim() == right.dim()]
    return next(reversed(shaped or least or of_name), None)


# What an answer printed, and the lines that make what a verdict speaks of


def shown_with(task: Any, answer: Any, finding: Finding) -> dict[str, str]:
    """What an Outcome shows besides its message: printed and cell, where there is any of it.

    Of an answer that lives elsewhere nothing: nobody reads it there.
    """
    if is_remote(answer):
        return {}
    if isinstance(task, Write):
        scene = play(finding.case or task.cases[0])
        asked = "call", [task.gets(scene)]
    elif isinstance(task, Grow):
        scene = play(finding.case or TASK_CASES[0])
        asked = "run", scene.case, 0.0, [Pass()]
    elif isinstance(task, Catch):
        asked = "verdicts", [source_of(next(iter(RIGHT_CLASSES)))]
    else:
        return {}
    said = ask(answer, "printed", *asked)
    if type(said) is not tuple or len(said) != 2 or {type(part) for part in said} != {str}:
        return {}
    name, printed = said
    if finding.case is None or finding.case.example == "whiteboard" or not name.isidentifier():
        return {"printed": printed}
    if isinstance(task, Grow):
        lines = cell_lines(scene.case, name)
    else:
        lines = call_lines(task, scene, name)
        if finding.kind == "value" and not scene.case.example:  # others than the numbers told
            lines = []
    return {"printed": printed, "cell": "\n".join(lines)}


def call_lines(task: Write, scene: Scene, name: str) -> list[str]:
    """The lines that call a function with what it gets in a scene; none where none make that."""
    arguments = [_as_code(argument, scene) for argument in task.gets(scene)]
    call = f"{name}({', '.join(arguments)})"
    if not all(arguments):
        return []
    if "steps[" in call:
        traced = ["from helpers.trace import trace", "steps = trace(mha, x)", call]
        return [traced[0], *cell_lines(scene.case), *traced[1:]]
    lines = cell_lines(scene.case) if "mha" in call or "x" in arguments else []
    if "mha" not in call and scene.case.example == "second":  # which needs no class
        lines = [lines[0], lines[-1]] if lines else []
    return [*lines, call]


def cell_lines(case: Case, name: str = "") -> list[str]:
    """The lines that make mha and x of a case that has an example, or call a class of that name."""
    bias = ", qkv_bias=True" if case.qkv_bias else ""
    sizes = f"{case.d_in}, {case.d_out}, {case.context_length}, 0.0, {case.num_heads}{bias}"
    second = case.example == "second"
    shape = f"{case.b}, {case.num_tokens}, {case.d_in}"
    return [
        *(["from helpers.examples import load_second"] if second else []),
        *([] if name else ["from helpers.attention import MultiHeadAttention"]),
        f"torch.manual_seed({case.seed})",
        f"mha = {name or 'MultiHeadAttention'}({sizes})",
        "x = load_second()" if second else f"x = 3 * torch.randn({shape})",
        *(["mha(x)"] if name else []),
    ]


def _as_code(argument: Any, scene: Scene) -> str:
    """An argument as code; "" where it has none."""
    if type(argument) is int:
        return str(argument)
    if scene.case.example:
        if argument is scene["shape"]["x"]:
            return "x"
        for name in (*LAYERS, "mask"):
            if argument is getattr(scene.module, name):
                return f"mha.{name}"
        for index, step in enumerate(STEPS):
            for name, tensor in scene[step].items():
                if argument is tensor:
                    return f'steps[{index}].tensors["{name}"]'
    floats = isinstance(argument, torch.Tensor) and argument.is_floating_point()
    return f"torch.randn{tuple(argument.shape)}" if floats else ""
