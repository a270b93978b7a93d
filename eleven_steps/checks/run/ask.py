"""Ask an answer, in this process or wherever it lives: the judge cannot tell the two apart.

An answer that lives elsewhere is an object with a method `ask(question, *arguments)`: it returns
what QUESTIONS[question] would return there, or a Failure; what it returns may be forged.
"""

from typing import Any

from eleven_steps.checks.run.cases import Case
from eleven_steps.checks.run.facts import Pass, Seen
from eleven_steps.checks.run.isolate import Failure, attempt
from eleven_steps.checks.run.reply import QUESTIONS


def ask(answer: Any, question: str, *arguments: Any) -> Any:
    """Put a question to an answer, wherever it lives; what comes back may be a Failure."""
    if is_remote(answer):
        return answer.ask(question, *arguments)
    return attempt(QUESTIONS[question], answer, *arguments)


def is_remote(answer: Any) -> bool:
    """Whether an answer lives in another process."""
    return attempt(lambda: callable(getattr(type(answer), "ask", None))) is True


def once(cls: Any, case: Case, *passes: Pass, dropout: float = 0.0) -> list[Seen]:
    """What is seen of a class in several passes in a row; why it is not built, in each."""
    seen = ask(cls, "run", case, dropout, list(passes))
    return [Seen(seen)] * len(passes) if isinstance(seen, Failure) else seen


def used_by(answer: Any) -> dict[str, list]:
    """What readings says of an answer; nothing where it cannot be read."""
    used = ask(answer, "readings")
    parts = "names", "constants", "dropped", "called"
    return {name: [] for name in parts} | (used if type(used) is dict else {})


def kind_of(answer: Any) -> tuple[str, str]:
    """What sort of thing an answer is, wherever it lives, and its name; see reply.kind."""
    kind = ask(answer, "kind")
    fits = type(kind) is tuple and len(kind) == 2 and all(type(each) is str for each in kind)
    return kind if fits else ("other", "object")
