"""Ask an answer, in this process or in another one: the judge cannot tell the two apart.

An answer that lives in another process is an object whose method ask takes the same questions.
"""

from collections.abc import Callable
from typing import Any

from eleven_steps.checks.run.cases import Case
from eleven_steps.checks.run.facts import Pass, Seen
from eleven_steps.checks.run.isolate import Failure, attempt
from eleven_steps.checks.run.reply import QUESTIONS
from eleven_steps.checks.run.wire import DEEP, decode, encode

MOST_SERVED = 5000  # times that one answer may ask back


def ask(answer: Any, question: str, *arguments: Any) -> Any:
    """Put a question to an answer, wherever it lives; what comes back may be a Failure."""
    if is_remote(answer):
        fact = answer.ask({"question": question, "arguments": encode(list(arguments), DEEP)})
        return attempt(lambda: decode(fact["reply"]))
    reply = attempt(QUESTIONS[question], answer, *arguments)
    # What an exercise asks for crosses the same border here, so that the same is said of it.
    return attempt(lambda: decode(encode(reply, DEEP))) if question in ("call", "value") else reply


def ask_serving(answer: Any, serve: Callable[[Any], Any], question: str, *arguments: Any) -> Any:
    """Put a question to an answer elsewhere that asks back: what it wants, serve gets it."""
    fact = answer.ask({"question": question, "arguments": encode(list(arguments), DEEP)})
    for _ in range(MOST_SERVED):
        if "wants" not in fact:
            break
        came = attempt(serve, fact["wants"])
        fact = answer.ask({"served": encode(came) if isinstance(came, Failure) else came})
    return attempt(lambda: decode(fact["reply"]))


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
    parts = "names", "constants", "dropped", "checks"
    return {name: [] for name in parts} | (used if type(used) is dict else {})


def kind_of(answer: Any) -> tuple[str, str]:
    """What sort of thing an answer is, wherever it lives, and its name; see reply.kind."""
    kind = ask(answer, "kind")
    fits = type(kind) is tuple and len(kind) == 2 and all(type(each) is str for each in kind)
    return kind if fits else ("other", "object")
