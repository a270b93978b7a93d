"""The exercises of other kinds: to choose, to foresee, to put in order, to write a test.

MORE maps identifiers to tasks, in the order of the course.
"""

from dataclasses import dataclass
from typing import Any

from helpers.checks.findings import say
from helpers.checks.isolate import Failure, type_name
from helpers.checks.observe import ask
from helpers.checks.ordering import FORWARD, Order, judge_order
from helpers.checks.outcome import Finding
from helpers.checks.suspects import Catch, judge_test
from helpers.checks.tasks import Explain


@dataclass(frozen=True)
class Choose:
    """Ask for one of a few lines, by its letter.

    Args:
        identifier: "find.1" for the first.
        answer: the letter.
        slips: a sentence for each of the other letters; a pair adds the mistake of the catalogue.
    """

    identifier: str
    answer: str
    slips: dict[str, str | tuple[str, str]]


Further = Choose | Order | Catch


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
        text = f"one letter is expected; this is of type {type_name(answer)}."
        return Finding(None, text, kind="type")
    letter = answer.strip().upper()
    if letter == task.answer:
        return say("right")
    if letter not in task.slips:
        letters = ", ".join(sorted([task.answer, *task.slips]))
        return Finding(None, f"one of the letters {letters} is expected.", kind="value")
    said = task.slips[letter]
    sentence, mistake = (said, None) if type(said) is str else said
    return Finding(None, sentence, mistake, "mistake")


_LIST: tuple[Further | Explain, ...] = (
    Explain(
        "why.1",
        (3, 2),
        {
            (12, 8): "That weighs by exp(score): divide by the sum, so that the weights sum to 1.",
            (4, 8): "That is the plain sum: take each value by its weight.",
            (2, 4): "That is the plain mean: take each value by its weight.",
            (1, 6): "The weights are the other way round: the larger score gets the larger one.",
        },
    ),
    Choose(
        "find.1",
        "B",
        {
            "A": "Columns would add up to 1 then. Add up a row of what came.",
            "C": "Without a scale hidden keys get 0 all the same: exp(-inf) is 0.",
            "D": "Row 0 has one score, -0.053, and two zeros then: nearly a third for each key.",
        },
    ),
    Choose(
        "find.2",
        "D",
        {
            "A": "That is right: token 0's row would hold 000 to 003, then 100 to 103.",
            "B": (
                "That takes the heads in turns: 000, 100, 001. What came takes tokens in turns.",
                "heads_interleaved",
            ),
            "C": (
                "That reads head 0 as it lies: 000 to 003, then 010. What came begins 000, 010.",
                "no_transpose_back",
            ),
        },
    ),
    Explain(
        "foresee.1",
        21,
        {
            36: "That counts the hidden ones too, and their weight is 0.",
            15: "That leaves out what each token gives itself.",
            6: "That counts one for each row: a row has as many as its query may look at.",
        },
    ),
    Explain(
        "foresee.2",
        1,
        {
            2: "With two heads, head 1 of token 0 lies behind all of head 0: a jump.",
            12: "With head_dim = 1 there are as many heads as features, and all of them swap.",
            0: "There is no attention without a head.",
        },
    ),
    Explain(
        "foresee.3",
        8,
        {
            2: "That is one head's part of the row: a row of the context holds all heads.",
            4: "That is the number of heads: each of them gives head_dim features.",
            64: "That is the whole matrix: one number of out meets one column.",
        },
    ),
    FORWARD,
    Catch("the_test.1"),
)

MORE: dict[str, Further | Explain] = {task.identifier: task for task in _LIST}
