"""The exercises for pencil and paper: what they ask, and fresh problems of the same kinds.

papers() maps identifiers to the seven exercises of the sheet; practice(kind, seed) makes more of
the same kind from small whole numbers, and practised finds these by name. Words, shapes and
sentences stand in sheet.toml.
"""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations

import torch

from eleven_steps.checks.know.exercises.kinds import Explain
from eleven_steps.checks.know.exercises.paper_heads import (
    CUT,
    SAID,
    Matrices,
    columns,
    multi_head,
    single_head,
)
from eleven_steps.checks.know.exercises.questions import question
from eleven_steps.checks.know.exercises.tasks import TASKS
from eleven_steps.helpers.examples import load_example


@dataclass(frozen=True)
class Words:
    """Ask for words: the name of a place, or a shape in letters."""

    answer: str  # brackets, commas, underscores and capitals do not count
    slips: Mapping[str, str]  # sentences by wrong answers
    wanted: str  # in words


@dataclass(frozen=True)
class Built:
    """Ask for a MultiHeadAttention, built with these arguments."""

    arguments: Mapping[str, float]


Part = Explain | Words | Built


@dataclass(frozen=True)
class Paper:
    """Ask for several things, to be written down one after the other."""

    identifier: str  # "by_hand.3" for the third exercise of the sheet
    parts: Mapping[str, Part]  # by name, in the order in which they are worked out
    given: Mapping[str, torch.Tensor] = field(default_factory=dict)  # matrices to start from
    sizes: Mapping[str, int] = field(default_factory=dict)  # to start from

    @property
    def right(self) -> dict[str, torch.Tensor]:
        """Every number that is asked for, exactly, as matrices by name."""
        numbers = {name: part for name, part in self.parts.items() if isinstance(part, Explain)}
        return {name: torch.atleast_2d(torch.tensor(part.answer)) for name, part in numbers.items()}


KINDS = ("shapes", "single_head", "columns", "multi_head")
OWN = {"3": "single_head", "4": "columns", "5": "multi_head"}  # exercises of the sheet, by number
FRESH = tuple(f"practice.{kind}.1" for kind in KINDS)
LETTERS = ("B", "n", "d", "d_k", "d_v")
NAMES = ("W_q, W_k, W_v", "Q_h, K_h, V_h", "H_h", "concatenate", "add", "softmax", "W_o")
GPT2_SIZES = {"d_in": 768, "d_out": 768, "context_length": 1024, "num_heads": 12, "dropout": 0.0}
SHEET = tuple(f"by_hand.{number}" for number in range(1, 8))
MOST = 9  # the largest size, query, key, and half score in a fresh problem


def practice(kind: str, seed: int) -> Paper:
    """Make a fresh problem from small whole numbers, in which no slip gives the right answer.

    Args:
        kind: shapes, single_head, columns or multi_head: exercise 1, 3, 4 or 5 of the sheet.
        seed: the same seed gives the same problem.

    Raises:
        ValueError: there is no such kind.
        TypeError: seed is not an int.
    """
    if kind not in KINDS:
        raise ValueError(f"kind is {kind!r}: one of {', '.join(KINDS)} is expected")
    if type(seed) is not int:
        raise TypeError(f"seed is {seed!r} ({type(seed).__name__}): an int is expected")
    generator = torch.Generator().manual_seed(seed % 2**63)
    make = dict(zip(KINDS, (_fresh_shapes, _fresh_head, _fresh_columns, _fresh_heads), strict=True))
    while True:
        paper = make[kind](f"practice.{kind}.{seed}", generator)
        if paper is not None and _telling(paper):
            return paper


# Fresh problems: small whole numbers, all of whose slips can be told apart


def _fresh_shapes(identifier: str, generator: torch.Generator) -> Paper | None:
    sizes = dict(zip(LETTERS, _drawn(2, MOST + 1, (5,), generator).tolist(), strict=True))
    if len({*sizes.values()}) < len(sizes):
        return None

    def shape(letters: str) -> list[int]:
        return [sizes[letter] for letter in letters.split()]

    parts = {
        name: question(
            name,
            answer=shape(part["answer"]),
            slips=[[shape(wrong), sentence] for wrong, sentence in part["slips"]],
        )
        for name, part in SAID["fresh_shapes"].items()
    }
    return Paper(identifier, parts, sizes=sizes)


def _fresh_head(identifier: str, generator: torch.Generator) -> Paper | None:
    given = {"X": _drawn(0, 3, (2, 2), generator)}
    given |= {name: _drawn(-2, 4, (2, 2), generator) for name in ("W_q", "W_k", "W_v", "W_o")}
    queries, keys = given["X"] @ given["W_q"], given["X"] @ given["W_k"]
    scores = queries @ keys.T
    apart = scores.diff().abs()
    if torch.cat([queries, keys, scores / 2]).abs().max() > MOST or torch.equal(*queries):
        return None
    if apart.min() < 1 or apart.max() > 4:  # weights that are all the same, or all 0 and 1
        return None
    return Paper(identifier, single_head(given), given)


def _fresh_columns(identifier: str, generator: torch.Generator) -> Paper:
    num_heads, width = (int(_drawn(2, most, (), generator)) for most in (13, 33))
    given = {"A": _drawn(-2, 4, (2, 2), generator), "B": _drawn(-2, 4, (2, 4), generator)}
    return _columns(identifier, num_heads * width, num_heads, given)


def _fresh_heads(identifier: str, generator: torch.Generator) -> Paper:
    given = {name: _drawn(0, MOST + 1, (2, 4), generator) for name in ("Q", "K", "V")}
    given |= {name: _drawn(-1, 4, (2, 2), generator) for name in ("H0", "H1")}
    given["W_o"] = _drawn(-1, 3, (4, 4), generator)
    return Paper(identifier, multi_head(given), given)


def _drawn(least: int, end: int, shape: tuple, generator: torch.Generator) -> torch.Tensor:
    return torch.randint(least, end, shape, generator=generator)


def _columns(identifier: str, d: int, num_heads: int, given: Matrices) -> Paper:
    sizes = {"d": d, "num_heads": num_heads}
    return Paper(identifier, columns(d, num_heads, given), given, sizes)


def _telling(paper: Paper) -> bool:
    """Say whether every slip gives numbers of its own, well apart from the right ones."""
    for part in paper.parts.values():
        said = [(part.answer, ""), *((n, s) for n, s in part.slips.items() if s != CUT)]
        for (one, sentence), (other, another) in combinations(said, 2):
            one, other = torch.tensor(one), torch.tensor(other)
            apart = (one - other).abs().max() if one.shape == other.shape else 1
            if sentence != another and not 0.02 <= apart < torch.inf:
                return False
    return True


@functools.cache
def practised(identifier: str) -> Paper | None:
    """Return the fresh problem "practice.single_head.7", or an exercise of the sheet with numbers
    of one's own, "by_hand.3.7"; None if it is called neither.
    """
    kinds = {f"practice.{kind}": kind for kind in KINDS}
    kinds |= {f"by_hand.{number}": kind for number, kind in OWN.items()}
    name, _, seed = identifier.rpartition(".")
    if name not in kinds or not re.fullmatch(r"[0-9]{1,18}", seed):
        return None
    return replace(practice(kinds[name], int(seed)), identifier=identifier)


# The sheet


@functools.cache
def papers() -> dict[str, Paper]:
    """The seven exercises of the sheet by identifier, worked out when the first is asked for."""
    single, multi = load_example("by_hand_single"), load_example("by_hand_multi")
    head = {name: single[name] for name in ("X", "W_q", "W_k", "W_v", "W_o")}
    heads = {name: multi[name] for name in ("Q", "K", "V", "H0", "H1", "W_o")}
    wide = {"A": load_example("intuition")["Q"], "B": multi["V"]}
    smallest_gpt2 = {
        "mha": Built(GPT2_SIZES),
        "head_dim": TASKS["shape.2"],
        "parameters": TASKS["out_proj.2"],
    }
    every = [
        Paper(SHEET[0], _written("shapes")),
        Paper(SHEET[1], _written("diagram", names="; ".join(NAMES))),
        _with_another("another_head", Paper(SHEET[2], single_head(head), head)),
        _columns(SHEET[3], 64, 2, wide),
        _with_another("another_mix", Paper(SHEET[4], multi_head(heads), heads)),
        Paper(SHEET[5], _written("two_wide")),
        Paper(SHEET[6], smallest_gpt2),
    ]
    return {paper.identifier: paper for paper in every}


def _written(kind: str, **names: str) -> dict[str, Part]:
    """What one exercise asks for, as sheet.toml has it: words, or a number."""
    wanted = SAID["wanted"][kind].format(**names)
    return {
        name: Words(part["answer"], dict(part["slips"]), wanted)
        if type(part["answer"]) is str
        else question(name, **part)
        for name, part in SAID[kind].items()
    }


def _with_another(kind: str, paper: Paper) -> Paper:
    """Ask besides for numbers of another input: the sheet's own matrices hide some slips."""
    given = {name: torch.tensor(matrix) for name, matrix in SAID[kind]["given"].items()}
    asked = {name: question(name, **part) for name, part in SAID[kind]["parts"].items()}
    return replace(paper, parts={**paper.parts, **asked}, given={**paper.given, **given})


def plain_words(words: str) -> list[str]:
    """Return the words alone, without brackets, commas, underscores, capitals and times signs."""
    return [word for word in re.findall(r"\w+", words.lower().replace("_", "")) if word != "x"]
