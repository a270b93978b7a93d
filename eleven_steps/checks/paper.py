"""Define the exercises for pencil and paper, and fresh problems of the same kinds.

papers() maps identifiers to the seven exercises of the sheet; practice(kind, seed) makes more of
the same kind from small whole numbers, and practised finds these by name. Words, shapes and
sentences stand in sheet.toml.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from string import Template
from typing import Any

import torch

from eleven_steps.checks.exercises import TASKS, Explain, question
from eleven_steps.checks.sentences import read_toml
from eleven_steps.helpers.examples import load_example

Matrices = Mapping[str, torch.Tensor]


@dataclass(frozen=True)
class Words:
    """Ask for words: the name of a place, or a shape in letters."""

    answer: str  # brackets, commas, underscores and capitals do not count
    slips: Mapping[str, str]  # message by wrong answer
    wanted: str  # description of the expected answer
    look: str = ""  # general hint, used if no slip fits


@dataclass(frozen=True)
class Construct:
    """Ask for a MultiHeadAttention, built with these arguments."""

    arguments: Mapping[str, float]


Part = Explain | Words | Construct


@dataclass(frozen=True)
class Paper:
    """Ask for several things, to be written down one after the other."""

    identifier: str  # "by_hand.3" for the third exercise of the sheet
    parts: Mapping[str, Part]  # by name, in the order in which they are worked out
    given: Mapping[str, torch.Tensor] = field(default_factory=dict)  # matrices to start from
    sizes: Mapping[str, int] = field(default_factory=dict)  # sizes to start from

    @property
    def right(self) -> dict[str, torch.Tensor]:
        """Return every right number, exactly, as matrices by name."""
        numbers = {name: part for name, part in self.parts.items() if isinstance(part, Explain)}
        return {name: torch.atleast_2d(torch.tensor(part.answer)) for name, part in numbers.items()}


def resolved(value: Any, shared: Mapping[str, str]) -> Any:
    """Put shared sentences into every text of a table, wherever $ names one."""
    if type(value) is str:
        return Template(value).substitute(shared)
    if type(value) is list:
        return [resolved(part, shared) for part in value]
    if type(value) is dict:
        return {name: resolved(part, shared) for name, part in value.items()}
    return value


_SHEET = read_toml("sheet.toml")
_SHARED = _SHEET.pop("shared")
SAID = resolved(_SHEET, resolved(_SHARED, _SHARED))
CUT_SAID = _SHARED["cut"]
PRACTISED = ("shapes", "single_head", "columns", "multi_head")
OWN = {"3": "single_head", "4": "columns", "5": "multi_head"}  # exercises of the sheet, by number
FRESH = tuple(f"practice.{kind}.1" for kind in PRACTISED)
SHEET_LETTERS = ("B", "n", "d", "d_k", "d_v")
NAMES = ("W_q, W_k, W_v", "Q_h, K_h, V_h", "H_h", "concatenate", "add", "softmax", "W_o")
GPT2_SIZES = {"d_in": 768, "d_out": 768, "context_length": 1024, "num_heads": 12, "dropout": 0.0}
SHEET = tuple(f"by_hand.{number}" for number in range(1, 8))
LARGEST = 9  # the largest size, query, key, and half score in a fresh problem


def practice(kind: str, seed: int) -> Paper:
    """Make a fresh problem from small whole numbers, in which no slip gives the right answer.

    Args:
        kind: shapes, single_head, columns or multi_head: exercise 1, 3, 4 or 5 of the sheet.
        seed: the same seed gives the same problem.

    Raises:
        ValueError: there is no such kind.
        TypeError: seed is not an int.
    """
    if kind not in PRACTISED:
        raise ValueError(f"kind is {kind!r}: one of {', '.join(PRACTISED)} is expected")
    if type(seed) is not int:
        raise TypeError(f"seed is {seed!r} ({type(seed).__name__}): an int is expected")
    generator = torch.Generator().manual_seed(seed % 2**63)
    makers = _fresh_shapes, _fresh_head, _fresh_columns, _fresh_heads  # in the order of PRACTISED
    while True:
        paper = makers[PRACTISED.index(kind)](f"practice.{kind}.{seed}", generator)
        if paper is not None and _telling(paper):
            return paper


# Fresh problems: small whole numbers, in which all slips give different results


def _fresh_shapes(identifier: str, generator: torch.Generator) -> Paper | None:
    drawn = _integers(2, LARGEST + 1, (5,), generator).tolist()
    sizes = dict(zip(SHEET_LETTERS, drawn, strict=True))
    if len({*sizes.values()}) < len(sizes):
        return None

    def shape(letters: str) -> list[int]:
        return [sizes[letter] for letter in letters.split()]

    def asked(name: str, answer: str, slips: list, look: str) -> Part:
        told = [[shape(e), said] for e, said in slips]
        return question(name, told, answer=shape(answer), look=look, of=sizes)

    parts = {name: asked(name, **part) for name, part in SAID["fresh_shapes"].items()}
    return Paper(identifier, parts, sizes=sizes)


def _fresh_head(identifier: str, generator: torch.Generator) -> Paper | None:
    given = {"X": _integers(0, 3, (2, 2), generator)}
    given |= {name: _integers(-2, 4, (2, 2), generator) for name in ("W_q", "W_k", "W_v", "W_o")}
    queries, keys = given["X"] @ given["W_q"], given["X"] @ given["W_k"]
    scores = queries @ keys.T
    apart = scores.diff().abs()
    if torch.cat([queries, keys, scores / 2]).abs().max() > LARGEST or torch.equal(*queries):
        return None
    if apart.min() < 1 or apart.max() > 4:  # reject weights that are all equal, or all 0 and 1
        return None
    return Paper(identifier, single_head(given), given)


def _fresh_columns(identifier: str, generator: torch.Generator) -> Paper:
    num_heads, width = (int(_integers(2, most, (), generator)) for most in (13, 33))
    given = {"A": _integers(-2, 4, (2, 2), generator), "B": _integers(-2, 4, (2, 4), generator)}
    return _columns(identifier, num_heads * width, num_heads, given)


def _fresh_heads(identifier: str, generator: torch.Generator) -> Paper:
    given = {name: _integers(0, LARGEST + 1, (2, 4), generator) for name in ("Q", "K", "V")}
    given |= {name: _integers(-1, 4, (2, 2), generator) for name in ("H0", "H1")}
    given["W_o"] = _integers(-1, 3, (4, 4), generator)
    return Paper(identifier, multi_head(given), given)


def _integers(least: int, end: int, shape: tuple, generator: torch.Generator) -> torch.Tensor:
    return torch.randint(least, end, shape, generator=generator)


def _columns(identifier: str, d: int, num_heads: int, given: Matrices) -> Paper:
    sizes = {"d": d, "num_heads": num_heads}
    return Paper(identifier, columns(d, num_heads, given), given, sizes)


def _telling(paper: Paper) -> bool:
    """Say whether every slip gives numbers of its own, well apart from the right ones."""
    for part in paper.parts.values():
        said = [(part.answer, ""), *((n, s) for n, s in part.slips.items() if s != CUT_SAID)]
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
    kinds = {f"practice.{kind}": kind for kind in PRACTISED}
    kinds |= {f"by_hand.{number}": kind for number, kind in OWN.items()}
    name, _, seed = identifier.rpartition(".")
    if name not in kinds or not re.fullmatch(r"[0-9]{1,18}", seed):
        return None
    return replace(practice(kinds[name], int(seed)), identifier=identifier)


# The sheet


@functools.cache
def papers() -> dict[str, Paper]:
    """Return the seven exercises of the sheet by identifier, computed at the first call."""
    single, multi = load_example("by_hand_single"), load_example("by_hand_multi")
    head = {name: single[name] for name in ("X", "W_q", "W_k", "W_v", "W_o")}
    heads = {name: multi[name] for name in ("Q", "K", "V", "H0", "H1", "W_o")}
    wide = {"A": load_example("intuition")["Q"], "B": multi["V"]}
    smallest_gpt2 = {"mha": Construct(GPT2_SIZES), "head_dim": TASKS["shape.2"]}
    smallest_gpt2["parameters"] = TASKS["out_proj.2"]
    every = [
        Paper(SHEET[0], _wanted("shapes")),
        Paper(SHEET[1], _wanted("diagram", names="; ".join(NAMES))),
        _with_another("another_head", Paper(SHEET[2], single_head(head), head)),
        _columns(SHEET[3], 64, 2, wide),
        _with_another("another_mix", Paper(SHEET[4], multi_head(heads), heads)),
        Paper(SHEET[5], _wanted("two_wide")),
        Paper(SHEET[6], smallest_gpt2),
    ]
    return {paper.identifier: paper for paper in every}


def _wanted(kind: str, **names: str) -> dict[str, Part]:
    """Return what one exercise asks for, from sheet.toml: words, or a number."""
    wanted = SAID["wanted"][kind].format(**names)

    def asked(name: str, answer: Any, slips: list, **more: Any) -> Part:
        if type(answer) is str:
            return Words(answer, dict(slips), wanted, **more)
        return question(name, slips, answer=answer, **more)

    return {name: asked(name, **part) for name, part in SAID[kind].items()}


def _with_another(kind: str, paper: Paper) -> Paper:
    """Also ask for numbers of a second input, because the sheet's matrices hide some slips."""
    given = {name: torch.tensor(matrix) for name, matrix in SAID[kind]["given"].items()}
    asked = {name: question(name, **part) for name, part in SAID[kind]["parts"].items()}
    return replace(paper, parts={**paper.parts, **asked}, given={**paper.given, **given})


def plain_words(words: str) -> list[str]:
    """Return the words alone, without brackets, commas, underscores, capitals and times signs."""
    return [word for word in re.findall(r"\w+", words.lower().replace("_", "")) if word != "x"]


# One head at a time, without a mask, y = x W: sheet.toml has the code for each number


def single_head(given: Matrices) -> dict[str, Explain]:
    """Ask for one head without a mask, from X, W_q, W_k, W_v and W_o."""
    seen = _seen("single_head", given)
    pairs = ((name, f"W_{name.lower()}") for name in "QKV")
    parts = {name: asked_for("single_head.projected", seen, name=layer) for name, layer in pairs}
    # A learner who rounds intermediate results is right, too.
    all_H = [H for some in _roundings(seen["weights"]) for H in _roundings(some @ seen["V"])]
    all_Y = [Y for some in all_H for Y in _roundings(some @ seen["W_o"])]
    scaled, weights = _roundings(seen["scaled"]), _roundings(seen["weights"])
    return parts | {
        "scores": asked_for("single_head.scores", seen),
        "scaled": asked_for("single_head.scaled", seen, scaled, 0.04),
        "weights": asked_for("single_head.weights", seen, weights, 0.006),
        "H": asked_for("single_head.H", seen, all_H, 0.04),
        "Y": asked_for("single_head.Y", seen, all_Y, 0.1),
    }


def columns(d: int, num_heads: int, given: Matrices) -> dict[str, Explain]:
    """Ask which columns of a wide W each head takes, and for A B piece by piece."""
    width, parts = d // num_heads, {}
    for head in (0, num_heads - 1):
        sizes = dict(head=head, first=head * width, width=width, d=d, num_heads=num_heads)
        parts[f"head {head}"] = asked_for("columns.head", sizes)
    seen = _seen("columns", given)
    for head in (0, 1):
        one = seen | {"head": head, "other": seen[f"B{1 - head}"]}
        parts[f"A B{head}"] = asked_for("columns.piece", one, name=f"B{head}")
    return parts | {"A B": asked_for("columns.whole", seen)}


def multi_head(given: Matrices) -> dict[str, Explain]:
    """Ask for the pieces of Q, K and V of two heads; then for H and Y of another input."""
    seen, parts = _seen("multi_head", given), {}
    for name in "QKV":
        halves = seen[name].chunk(2, 1)
        for head, piece in enumerate(halves):
            one = {"wide": seen[name], "head": head, "piece": piece, "other": halves[1 - head]}
            parts[f"{name}{head}"] = asked_for("multi_head.piece", one)
    return parts | {name: asked_for(f"multi_head.{name}", seen) for name in "HY"}


def _seen(kind: str, given: Matrices) -> dict[str, Any]:
    """Return the names that lines of sheet.toml can use: the given ones, and those of `let`."""
    seen = {name: matrix.double() for name, matrix in given.items()} | {"torch": torch}
    for name, line in SAID[kind]["let"].items():
        seen[name] = eval(line, seen)
    return seen


def asked_for(
    where: str,
    seen: dict[str, Any],
    also: Sequence[torch.Tensor] = (),
    apart: float = 1e-4,
    **names: str,
) -> Explain:
    """Ask for a matrix as a table of sheet.toml says, whose lines see these things and names.

    What is in also is right as well, so far apart. A slip may give the right numbers by chance:
    then it is none.
    """
    kind, part = where.split(".")
    (_, right), (_, look), *slips = (
        (line.format(**names), said.format(**names)) for line, said in SAID[kind][part].items()
    )
    told: dict[tuple, str] = {}
    for line, said in slips:
        if line != right:
            told.setdefault(_nested(eval(line, seen)), said)
    every = tuple(dict.fromkeys(map(_nested, also)))
    return Explain("", _nested(eval(right, seen)), told, every, apart, look=look)


def _roundings(exact: torch.Tensor) -> list[torch.Tensor]:
    return [exact, *(exact.round(decimals=places) for places in (2, 3, 4))]


def _nested(matrix: Any) -> Any:
    if type(matrix) is not torch.Tensor:
        return matrix
    return tuple(map(_nested, matrix)) if matrix.dim() else matrix.item() + 0.0
