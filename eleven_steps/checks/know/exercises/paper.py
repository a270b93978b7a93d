"""The exercises for pencil and paper: what is right, what usual slips give, and fresh problems.

papers() maps identifiers to the seven exercises of the sheet; practice(kind, seed) makes more of
the same kind from small whole numbers. The heads here stand apart from helpers.attention: there is
one of them, without a mask, y = x W as on the sheet, and each slip is a variant of it.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import torch

from eleven_steps.checks.know.exercises.kinds import Explain
from eleven_steps.checks.know.exercises.lecture_tasks import TASKS
from helpers.examples import load_example


@dataclass(frozen=True)
class Words:
    """Ask for words: the name of a place, or a shape in letters.

    Args:
        answer: what is right; brackets, commas, underscores and capitals do not count.
        slips: sentences for wrong answers.
        wanted: what is expected.
    """

    answer: str
    slips: Mapping[str, str]
    wanted: str


@dataclass(frozen=True)
class Built:
    """Ask for a MultiHeadAttention, built with these arguments."""

    arguments: Mapping[str, float]


Part = Explain | Words | Built


@dataclass(frozen=True)
class Paper:
    """Ask for several things, to be written down one after the other.

    Args:
        identifier: "by_hand.3" for the third exercise of the sheet.
        parts: what is asked for, by name, in the order in which it is worked out.
        given: the matrices that it starts from.
        sizes: the sizes that it starts from.
    """

    identifier: str
    parts: Mapping[str, Part]
    given: Mapping[str, torch.Tensor] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)

    @property
    def right(self) -> dict[str, torch.Tensor]:
        """Every number that is asked for, exactly, as matrices by name."""
        numbers = {name: part for name, part in self.parts.items() if isinstance(part, Explain)}
        return {name: torch.atleast_2d(torch.tensor(part.answer)) for name, part in numbers.items()}


KINDS = ("shapes", "single head", "columns", "multi-head")
FRESH = tuple(f"practice.{kind.replace(' ', '_').replace('-', '_')}.1" for kind in KINDS)
MOST = 9  # the largest size, query, key, and half score in a fresh problem


def practice(kind: str, seed: int) -> Paper:
    """Make a fresh problem from small whole numbers, in which no slip gives the right answer.

    Args:
        kind: shapes, single head, columns or multi-head: exercise 1, 3, 4 or 5 of the sheet.
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
        paper = make[kind](f"practice.{kind.replace(' ', '_').replace('-', '_')}.{seed}", generator)
        if paper is not None and _telling(paper):
            return paper


# Exercise 1

LETTERS = 'a shape in letters, such as "B n d", is expected'
NO_BATCH = "One axis is missing: B sequences go through at once, and B stays in front."
STORED = "That is the layout nn.Linear stores, out x in. On this sheet y = x W: W is in x out."
FEATURES = "That compares features with features: Q K^T has a row and a column for each token."
NOT_SQUARE = "d_k and d_v need not be d now."


def shapes() -> Paper:
    """Exercise 1: the shape of everything in one head, in letters."""
    weight = {"d n": "A weight knows nothing of the tokens: their number n may change."}
    batch = {"B d d": "A weight is shared by all sequences: it has no B."}
    wide = {"n d": NO_BATCH, "B d n": "Tokens are the rows, features the columns."}
    square = {"n n": NO_BATCH, "B d d": FEATURES, "B n d": "Q K^T is a table of tokens by tokens."}
    scaled = square | {"B n": "The softmax keeps all the numbers; each row then sums to 1."}
    keys = "Values are never compared: their width d_v is their own."
    meet = "W_q and W_k share d_k, since a query and a key meet in a dot product."
    in_out = {"d d": NOT_SQUARE}
    return _words(
        "by_hand.1",
        {
            "W_q": ("d d", weight | batch),
            "Q": ("B n d", wide),
            "scores": ("B n n", square),
            "weights": ("B n n", scaled),
            "H": (
                "B n d",
                wide | {"B n n": "The weights mix the values: the values' width stays."},
            ),
            "W_o": ("d d", weight | batch),
            "Y": ("B n d", wide),
            "general W_q": ("d d_k", {"d_k d": STORED, "d d_v": meet} | in_out),
            "general W_k": ("d d_k", {"d_k d": STORED, "d d_v": meet} | in_out),
            "general W_v": ("d d_v", {"d_v d": STORED, "d d_k": keys} | in_out),
            "general H": ("B n d_v", {"B n d_k": keys, "B n d": NOT_SQUARE, "n d_v": NO_BATCH}),
            "general W_o": ("d_v d", {"d d_v": STORED, "d_k d": keys} | in_out),
        },
        LETTERS,
    )


def _fresh_shapes(identifier: str, generator: torch.Generator) -> Paper | None:
    B, n, d, d_k, d_v = torch.randint(2, MOST + 1, (5,), generator=generator).tolist()
    if len({B, n, d, d_k, d_v}) < 5:
        return None
    right = {
        "W_q": ((d, d_k), {(d_k, d): STORED}),
        "W_v": ((d, d_v), {(d_v, d): STORED, (d, d_k): "That is the width of queries and keys."}),
        "K": ((B, n, d_k), {(n, d_k): NO_BATCH, (B, n, d): "The keys are d_k wide."}),
        "scores": ((B, n, n), {(n, n): NO_BATCH, (B, d_k, d_k): FEATURES}),
        "H": ((B, n, d_v), {(n, d_v): NO_BATCH, (B, n, d_k): "H mixes values, d_v wide each."}),
        "W_o": ((d_v, d), {(d, d_v): STORED}),
        "Y": ((B, n, d), {(n, d): NO_BATCH, (B, n, d_v): "W_o is missing: Y is as wide as X."}),
    }
    parts = {name: Explain(name, answer, slips) for name, (answer, slips) in right.items()}
    sizes = {"B": B, "n": n, "d": d, "d_k": d_k, "d_v": d_v}
    return Paper(identifier, parts, sizes=sizes)


# Exercise 2

NAMES = ("W_q, W_k, W_v", "Q_h, K_h, V_h", "H_h", "concatenate", "add", "softmax", "W_o")


def diagram() -> Paper:
    """Exercise 2: what stands where in the block diagram."""
    weights, projected, output, joined, _, _, mixing = NAMES
    boxes = {
        projected: "Those are what such a box makes; the box itself is what is learned.",
        mixing: "W_o comes after the heads: these boxes belong to one head each.",
    }
    summed = "The heads are not added: each keeps columns of its own until W_o mixes them."
    answers = {
        "A": (weights, boxes),
        "B": (projected, {weights: "A wire carries numbers from a box; weights are in the box."}),
        "C": (
            output,
            {
                projected: "Those go into attention; this wire comes out of it.",
                "Y": "Y is what leaves the whole block.",
                "softmax": "The softmax is inside attention.",
            },
        ),
        "D": (joined, {"add": summed, mixing: "Before W_o can mix the heads, they are joined."}),
        "E": (mixing, {joined: "The heads are joined already, in the box below.", "add": summed}),
    }
    return _words("by_hand.2", answers, f"one of these names is expected: {'; '.join(NAMES)}")


# Exercise 3

Weights = Mapping[str, torch.Tensor]
CUT = "Cut off, not rounded: round to the nearest."


def single_head(identifier: str, given: Weights) -> Paper:
    """Work out one head without a mask, from X, W_q, W_k, W_v and W_o, and its usual slips."""
    X, W_q, W_k, W_v, W_o = (given[name].double() for name in ("X", "W_q", "W_k", "W_v", "W_o"))
    n, d_k = len(X), W_k.shape[1]
    Q, K, V = X @ W_q, X @ W_k, X @ W_v
    scores = Q @ K.T
    scaled = scores / d_k**0.5
    weights = torch.softmax(scaled, dim=-1)
    H = weights @ V
    future = torch.ones(n, n).triu(1).bool()
    masked = torch.softmax(scaled.masked_fill(future, -torch.inf), dim=-1)

    # Who rounds on the way is right too.
    all_H = [H for some in _rounded(weights) for H in _rounded(some @ V)]
    all_Y = [Y for some in all_H for Y in _rounded(some @ W_o)]

    def projected(name: str, right: torch.Tensor, W: torch.Tensor, others: Weights) -> Part:
        slips = [
            (X @ W.T, f"This is X times the transposed {name}. {STORED}"),
            (W @ X, f"The factors have changed places: it is X {name}, rows of X times columns."),
            (X * W, "Numbers at the same place are multiplied: take rows times columns."),
        ]
        slips += [(other, f"That is made with {its}.") for its, other in others.items()]
        return _numbers(right, slips)

    scale = "The scale is forgotten: divide by the square root of d_k."
    return Paper(
        identifier,
        {
            "Q": projected("W_q", Q, W_q, {"W_k": K, "W_v": V}),
            "K": projected("W_k", K, W_k, {"W_q": Q, "W_v": V}),
            "V": projected("W_v", V, W_v, {"W_q": Q, "W_k": K}),
            "scores": _numbers(
                scores,
                [
                    (Q @ K, "K is not transposed: a score is a row of Q times a row of K."),
                    (K @ Q.T, "This is K Q^T: in Q K^T the rows belong to the queries."),
                    (Q.T @ K, FEATURES),
                    (Q * K, "The products are not summed: a score is a whole dot product."),
                    (Q @ V.T, "Those are products with the values: the keys are compared."),
                    (scaled, "This is divided already: Q K^T alone comes first."),
                ],
            ),
            "scaled": _numbers(
                scaled,
                [
                    (scores, scale),
                    (scores / d_k, "This is divided by d_k: it is the square root of d_k."),
                    (scores * d_k**0.5, "This is multiplied by the square root: divide."),
                    (weights, "The softmax is done already: this part comes before it."),
                ],
                _rounded(scaled),
                0.04,
            ),
            "weights": _numbers(
                weights,
                [
                    (torch.softmax(scores, -1), scale),
                    (torch.softmax(scores / d_k, -1), "The scores are divided by d_k, no root."),
                    (
                        torch.softmax(scores * d_k**0.5, -1),
                        "The scores are multiplied, not divided.",
                    ),
                    (
                        torch.softmax(scaled, 0),
                        "The softmax runs over columns: each row sums to 1.",
                    ),
                    (torch.softmax(scaled.flatten(), 0).view(n, n), "Each row has its own sum."),
                    (masked, "A mask is applied: none is asked for, every token sees all."),
                    (weights.T, "Rows and columns have changed places: each row sums to 1."),
                    (scaled / scaled.sum(-1, True), "exp is missing: shares are of exp(score)."),
                    (scaled.exp(), "Divide by the sum of the row, so that each row sums to 1."),
                    ((weights * 100).floor() / 100, CUT),
                ],
                _rounded(weights),
                0.006,
            ),
            "H": _numbers(
                H,
                [
                    (weights.T @ V, "The weights are transposed: row 0 of them makes row 0 of H."),
                    (V @ weights, "The factors have changed places: H is weights V."),
                    (masked @ V, "A mask is applied: none is asked for."),
                    (torch.softmax(scaled, 0) @ V, "The softmax ran over columns."),
                    (scores @ V, "These are mixed by scores: the weights mix."),
                    (scaled @ V, "These are mixed by scaled scores: the weights mix."),
                    (weights @ X, "X is mixed: the values are, V = X W_v."),
                    (weights @ K, "Keys are mixed: the values are."),
                    (weights * V, "Numbers at the same place are multiplied: rows times columns."),
                ],
                all_H,
                0.04,
            ),
            "Y": _numbers(
                H @ W_o,
                [
                    (H, "W_o is forgotten."),
                    (H @ W_o.T, f"This is H times the transposed W_o. {STORED}"),
                    (W_o @ H, "The factors have changed places: Y is H W_o."),
                    (H @ W_o + X, "X is added: no residual is asked for."),
                    (masked @ V @ W_o, "A mask is applied: none is asked for."),
                ],
                all_Y,
                0.1,
            ),
        },
        given,
    )


def _fresh_head(identifier: str, generator: torch.Generator) -> Paper | None:
    given = {"X": torch.randint(0, 3, (2, 2), generator=generator)}
    for name in ("W_q", "W_k", "W_v", "W_o"):
        given[name] = torch.randint(-2, 4, (2, 2), generator=generator)
    queries, keys = given["X"] @ given["W_q"], given["X"] @ given["W_k"]
    scores = queries @ keys.T
    apart = scores.diff().abs()
    if torch.cat([queries, keys, scores / 2]).abs().max() > MOST or torch.equal(*queries):
        return None
    if apart.min() < 1 or apart.max() > 4:  # weights that are all the same, or all 0 and 1
        return None
    return single_head(identifier, given)


# Exercise 4


def columns(identifier: str, d: int, num_heads: int, given: Weights) -> Paper:
    """Ask which columns of a wide W each head takes, and for A B piece by piece."""
    A, B = given["A"].double(), given["B"].double()
    width, half = d // num_heads, B.shape[1] // 2
    parts: dict[str, Part] = {}
    for head in (0, num_heads - 1):
        first = head * width
        parts[f"head {head}"] = Explain(
            f"head {head}",
            (first, first + width - 1),
            {
                (first, first + width): "The last column belongs to the next head: count from 0.",
                (first + 1, first + width): "Columns are counted from 0.",
                (head, d - num_heads + head): "That takes every so many columns: a head's columns "
                "are neighbours.",
            },
        )
    pieces = {"A B0": B[:, :half], "A B1": B[:, half:]}
    for name, piece in pieces.items():
        (other,) = (A @ one for key, one in pieces.items() if key != name)
        slips = [
            (other, "That is the other half of the columns."),
            (A @ B, "That is all of A B: this head takes half of the columns."),
            (A @ B[:, int(name[-1]) :: 2], "That takes every other column: take neighbours."),
            (A @ piece.T, f"{name[2:]} is transposed here: rows of A times columns of {name[2:]}."),
            (piece @ A, "The factors have changed places: A comes first."),
            (A * piece, "Numbers at the same place are multiplied: take rows times columns."),
        ]
        parts[name] = _numbers(A @ piece, slips)
    slips = [
        (torch.cat([A @ B[:, half:], A @ B[:, :half]], 1), "The halves have changed places."),
        (torch.cat([A @ B[:, :half], A @ B[:, half:]]), "The halves stand side by side."),
        (A @ B[:, :half] + A @ B[:, half:], "The halves are not added: they stand side by side."),
    ]
    parts["A B"] = _numbers(A @ B, slips)
    return Paper(identifier, parts, given, {"d": d, "num_heads": num_heads})


def _fresh_columns(identifier: str, generator: torch.Generator) -> Paper:
    num_heads = int(torch.randint(2, 13, (), generator=generator))
    width = int(torch.randint(2, 33, (), generator=generator))
    given = {
        "A": torch.randint(-2, 4, (2, 2), generator=generator),
        "B": torch.randint(-2, 4, (2, 4), generator=generator),
    }
    return columns(identifier, num_heads * width, num_heads, given)


# Exercise 5


def multi_head(identifier: str, given: Weights) -> Paper:
    """Ask for the pieces of Q, K and V of two heads; then for H and Y of another input."""
    parts = {}
    for name in "QKV":
        wide = given[name].double()
        half = wide.shape[1] // 2
        for head in (0, 1):
            piece = wide[:, head * half : (head + 1) * half]
            other = wide[:, (1 - head) * half : (2 - head) * half]
            row = "That is the row of a token: a head takes columns, of all tokens."
            slips = [
                (other, "That is the other head: heads are counted from 0."),
                (wide[head], row),
                (wide[head : head + 1], row),
                (wide[:, head::2], "Those are every other column: a head's are neighbours."),
                (wide.reshape(2, 2, half)[head], "That cuts a row in two, and tears tokens apart."),
                (piece.T, "Rows and columns have changed places: a row is a token."),
            ]
            parts[f"{name}{head}"] = _numbers(piece, slips)
    H0, H1, W_o = (given[name].double() for name in ("H0", "H1", "W_o"))
    H, swapped = torch.cat([H0, H1], 1), torch.cat([H1, H0], 1)
    interleaved = torch.stack([H0, H1], -1).flatten(1)
    parts["H"] = _numbers(
        H,
        [
            (swapped, "The heads stand in the wrong order: head 0 comes first."),
            (torch.cat([H0, H1]), "The heads stand below each other: lay them side by side."),
            (H0 + H1, "The heads are added: lay them side by side."),
            ((H0 + H1) / 2, "The heads are averaged: lay them side by side."),
            (interleaved, "The heads' columns take turns: lay whole heads side by side."),
            (H @ W_o, "W_o is applied already: that is Y."),
        ],
    )
    parts["Y"] = _numbers(
        H @ W_o,
        [
            (H, "W_o is forgotten."),
            (H @ W_o.T, f"This is H times the transposed W_o. {STORED}"),
            (swapped @ W_o, "H has its heads in the wrong order: head 0 comes first."),
            (
                interleaved @ W_o,
                "In H the heads' columns take turns: lay whole heads side by side.",
            ),
        ],
    )
    return Paper(identifier, parts, given)


def _fresh_heads(identifier: str, generator: torch.Generator) -> Paper:
    given = {
        name: torch.randint(0, MOST + 1, (2, 4), generator=generator) for name in ("Q", "K", "V")
    }
    given |= {name: torch.randint(-1, 4, (2, 2), generator=generator) for name in ("H0", "H1")}
    given["W_o"] = torch.randint(-1, 3, (4, 4), generator=generator)
    return multi_head(identifier, given)


# Exercises 6 and 7


def two_wide() -> Paper:
    """Exercise 6: one argument of the wrapper, changed."""
    one_head = "That gives two features too, but from one head: num_heads=2 stays."
    return Paper(
        "by_hand.6",
        {
            "argument": Words(
                "d_out",
                {
                    "num_heads": one_head,
                    "d_in": "d_in has to fit the input: three features a token.",
                    "context_length": "That limits the tokens, not the features.",
                    "dropout": "That zeroes weights; no width changes.",
                },
                "the name of an argument is expected",
            ),
            "value": Explain(
                "value",
                1,
                {
                    2: "As it was: in the wrapper d_out counts for each head, so 4 features come.",
                    4: "In the wrapper d_out counts for each head: that makes 8 features.",
                    0.5: "Each of the two heads gives d_out features.",
                },
            ),
        },
    )


def smallest_gpt2() -> Paper:
    """Exercise 7: the module at the smallest GPT-2's size."""
    sizes = {"d_in": 768, "d_out": 768, "context_length": 1024, "num_heads": 12, "dropout": 0.0}
    return Paper(
        "by_hand.7",
        {"mha": Built(sizes), "head_dim": TASKS["shape.2"], "parameters": TASKS["out_proj.2"]},
    )


@functools.cache
def practised(identifier: str) -> Paper | None:
    """Return the fresh problem "practice.single_head.7"; None if it is not called so."""
    word, _, rest = identifier.partition(".")
    kind, _, seed = rest.rpartition(".")
    kind = kind.replace("_", " ").replace("multi head", "multi-head")
    if word != "practice" or kind not in KINDS or not seed.isdecimal():
        return None
    return practice(kind, int(seed))


# What the exercises are made with


def _words(identifier: str, answers: Mapping[str, tuple[str, Mapping]], wanted: str) -> Paper:
    return Paper(identifier, {name: Words(*each, wanted) for name, each in answers.items()})


def _numbers(
    right: torch.Tensor,
    slips: Sequence[tuple[torch.Tensor, str]],
    also: Sequence[torch.Tensor] = (),
    apart: float = 1e-4,
) -> Explain:
    """Ask for a matrix. A slip may give the right numbers by chance: then it is none."""
    kept: dict[tuple, str] = {}
    for number, sentence in slips:
        kept.setdefault(_nested(number), sentence)
    return Explain("", _nested(right), kept, tuple(dict.fromkeys(map(_nested, also))), apart)


def _rounded(exact: torch.Tensor) -> list[torch.Tensor]:
    return [exact, *(exact.round(decimals=places) for places in (2, 3, 4))]


def _nested(numbers: torch.Tensor) -> tuple | float:
    return tuple(map(_nested, numbers)) if numbers.dim() else numbers.item() + 0.0


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


def _telling_number(paper: Paper, asked: Mapping[str, Part], given: Weights) -> Paper:
    """Ask besides for numbers of another input: the sheet's own matrices hide some slips."""
    return replace(paper, parts={**paper.parts, **asked}, given={**paper.given, **given})


def _another_head() -> tuple[dict[str, Part], Weights]:
    """A score, and a number of Y, that no transposed matrix gives."""
    given = {
        "Q2": torch.tensor([[1, 2], [3, 0]]),
        "K2": torch.tensor([[2, 1], [0, 4]]),
        "weights2": torch.tensor([[1.0, 0.0], [0.5, 0.5]]),
        "V2": torch.tensor([[1, 3], [2, 0]]),
        "W_o2": torch.tensor([[1, 2], [0, 1]]),
    }
    score = Explain(
        "score",
        8,
        {
            9: "K is not transposed: a score is a row of Q times a row of K.",
            6: "That is K Q^T: in Q K^T the rows belong to the queries.",
            4: "That is query 0 with key 0: row 0, column 1 is asked for.",
        },
    )
    y = Explain(
        "y",
        5,
        {
            4: "V is transposed: row 0 of the weights mixes rows of V.",
            3: f"This is H times the transposed W_o. {STORED}",
            2: "V and W_o are both transposed.",
        },
    )
    return {"score": score, "y": y}, given


def _another_mix() -> tuple[dict[str, Part], Weights]:
    """A number of Y that no transposed W_o gives."""
    W_o = torch.tensor([[1, 2, 0, 0], [0, 1, 1, 0], [0, 0, 1, 2], [1, 0, 0, 1]])
    slips = {2: f"This is H times the transposed W_o. {STORED}"}
    return {"y": Explain("y", 5, slips)}, {"W_o2": W_o}


def _sheet() -> list[Paper]:
    single, multi = load_example("by_hand_single"), load_example("by_hand_multi")
    given = {name: single[name] for name in ("X", "W_q", "W_k", "W_v", "W_o")}
    heads = {name: multi[name] for name in ("Q", "K", "V", "H0", "H1", "W_o")}
    wide = {"A": load_example("intuition")["Q"], "B": multi["V"]}
    return [
        shapes(),
        diagram(),
        _telling_number(single_head("by_hand.3", given), *_another_head()),
        columns("by_hand.4", 64, 2, wide),
        _telling_number(multi_head("by_hand.5", heads), *_another_mix()),
        two_wide(),
        smallest_gpt2(),
    ]


NUMBERS = range(1, 8)
SHEET = tuple(f"by_hand.{number}" for number in NUMBERS)


@functools.cache
def papers() -> dict[str, Paper]:
    """The seven exercises of the sheet by identifier, worked out when the first is asked for."""
    return {paper.identifier: paper for paper in _sheet()}


def plain_words(words: str) -> list[str]:
    """Return the words alone, without brackets, commas, underscores, capitals and times signs."""
    return [word for word in re.findall(r"\w+", words.lower().replace("_", "")) if word != "x"]
