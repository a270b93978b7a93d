"""Put questions to an answer, in this process or in a sandbox; the judge sees no difference.

An answer in a sandbox is an object with a method `ask(question, *arguments)`, which returns what
QUESTIONS[question] returns there, or a Failure. The reply may be forged.
"""

import contextlib
import copy
import io
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from eleven_steps.checks.asking.cases import Case, build
from eleven_steps.checks.asking.clauses import run_clause
from eleven_steps.checks.asking.copies import as_data
from eleven_steps.checks.asking.failures import names_read
from eleven_steps.checks.asking.isolation import attempt, clock_paused, type_name
from eleven_steps.helpers import attention

MOST_PRINTED = 1000  # characters of output that are kept
MOST_MADE = 500  # tensors of one call that are kept
TESTED = f"{attention.__file__} as it is tested"  # in a traceback these lines count as ours


def ask(answer: Any, question: str, *arguments: Any) -> Any:
    """Put a question to an answer, here or in its process; the reply may be a Failure."""
    if is_remote(answer):
        return answer.ask(question, *arguments)
    return attempt(QUESTIONS[question], answer, *arguments)


def is_remote(answer: Any) -> bool:
    """Say whether an answer is in another process."""
    return attempt(lambda: callable(getattr(type(answer), "ask", None))) is True


def used_by(answer: Any) -> dict[str, list]:
    """Return what names_read says of an answer; nothing where it cannot be read."""
    used = ask(answer, "names_read")
    return {"names": [], "called": []} | (used if type(used) is dict else {})


def kind_of(answer: Any) -> tuple[str, str]:
    """Return the kind of an answer, here or in its process, and its name; see kind."""
    kind = ask(answer, "kind")
    fits = type(kind) is tuple and len(kind) == 2 and all(type(text) is str for text in kind)
    return kind if fits else ("other", "object")


# The questions, which run in the process of the answer


def kind(answer: Any) -> tuple[str, str]:
    """Return the kind of a submitted object, and the name of its type or of the class."""
    if answer is ... or answer is None:
        return "open", ""
    if isinstance(answer, type):
        name = type.__dict__["__name__"].__get__(answer)
        return "module class" if issubclass(answer, nn.Module) else "class", name
    if issubclass(type(answer), nn.Module):
        return "module", type_name(answer)
    return "callable" if callable(answer) else "other", type_name(answer)


def value(answer: Any) -> Any:
    """Return a submitted value: a number, a text, a dictionary, a module of ours."""
    return as_data(answer)


def call(function: Any, arguments: Sequence[Sequence[Any]]) -> list[Any]:
    """Return what a function returns or raises for copies of each of several sets of arguments.

    Each result comes as a pair, with the arguments as they are after the call.
    """
    return [attempt(_returned, function, copy.deepcopy(tuple(each))) for each in arguments]


class _Made(TorchFunctionMode):
    """Keeps a copy of the first MOST_MADE tensors that calls of torch return."""

    def __init__(self):
        super().__init__()
        self.tensors: list[torch.Tensor] = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        returned = function(*args, **(kwargs or {}))
        for part in returned if type(returned) in (tuple, list) else (returned,):
            if type(part) is torch.Tensor and len(self.tensors) < MOST_MADE:
                self.tensors.append(as_data(part))
        return returned


def shapes_made(function: Any, arguments: Sequence[Any]) -> list[tuple[int, ...]]:
    """Return the shapes of the tensors that a function makes, in order."""
    with _Made() as made:
        _returned(function, copy.deepcopy(tuple(arguments)))
    return [tuple(tensor.shape) for tensor in made.tensors]


def tensors_made(cls: Any, case: Case) -> list[torch.Tensor]:
    """Return the tensors that a class makes in a case, even if it raises."""
    module = build(cls, case)
    with _Made() as made, torch.no_grad():
        attempt(module, case.x)
    return made.tensors


def tensors_of(arguments: Sequence[Any]) -> list[torch.Tensor]:
    """List the tensors among some arguments, and the weights of the layers among them."""
    each = ([e] if isinstance(e, torch.Tensor) else weights_of(e) for e in arguments)
    return [tensor for some in each for tensor in some]


def weights_of(argument: Any) -> list[torch.Tensor]:
    """List the parameters of a layer; return an empty list for anything else."""
    return [*argument.parameters()] if isinstance(argument, nn.Module) else []


def defined(lines: Sequence[str]) -> type:
    """Return the MultiHeadAttention that these lines define."""
    with clock_paused():
        namespace = vars(attention) | {"__name__": "tested"}
        exec(compile("\n".join(lines), TESTED, "exec"), namespace)
    return namespace["MultiHeadAttention"]


def verdicts(
    test: Any, sources: Sequence[Sequence[str]], build: Callable[[Sequence[str]], type] = defined
) -> list[Any]:
    """Call a learner's test on each of several classes, passed as source lines.

    Returns:
        For each class whether the test accepts it: it returns None or something true; a Failure
        where it raises; an ellipsis where it returns one.
    """
    return [attempt(_accepts, test, build(lines)) for lines in sources]


def printed(answer: Any, question: str, *arguments: Any) -> str:
    """Return what an answer prints while it is asked something else."""
    page = Page()
    with contextlib.redirect_stdout(page):
        attempt(QUESTIONS[question], answer, *arguments)
    return page.getvalue()


class Page(io.StringIO):
    """Keeps the first MOST_PRINTED characters of a text."""

    def write(self, text: str) -> int:
        """Write as much of a text as there is room for."""
        super().write(text[: max(0, MOST_PRINTED - self.tell())])
        return len(text)


QUESTIONS: dict[str, Callable[..., Any]] = {
    question.__name__: question
    for question in (
        *(kind, value, call, names_read, shapes_made, tensors_made, verdicts, run_clause, printed),
    )
}


def _accepts(test: Any, cls: type) -> Any:
    torch.default_generator.manual_seed(0)  # a test draws the same for each class
    verdict = test(cls)
    return verdict if verdict is ... else verdict is None or bool(verdict)


def _returned(function: Any, arguments: tuple[Any, ...]) -> tuple[Any, Any]:
    with torch.no_grad():  # as in the notebooks
        returned = as_data(function(*arguments))
    return returned, as_data(tensors_of(arguments))
