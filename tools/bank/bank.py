"""Make questions with four options: one from the class, three from classes with mistakes.

KINDS has the kinds of questions in kinds.toml by name, and WRITTEN the questions of
understanding.toml, which have no numbers. make(kind, seed) returns a question, and always the same
one for the same seed.
"""

import contextlib
import functools
import random
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from looks import grid, look, table
from torch import nn
from torch.nn.modules.module import register_module_forward_hook

from eleven_steps.checks.asking.cases import Case, seeded
from eleven_steps.checks.mistakes import LINES, MISTAKES
from eleven_steps.checks.reference import run_reference

BUILT = (
    "`MultiHeadAttention(d_in={d_in}, d_out={d_out}, context_length={context_length}, dropout=0.0, "
    "num_heads={num_heads})` gets x of shape ({b}, {num_tokens}, {d_in})."
)
OPTIONS = 4
DRAWS, CHOICES = 30, 40  # how often to draw numbers, and sets of mistakes, until all options differ
# (b, num_tokens, d_in, num_heads, head_dim) by the name of the sizes in kinds.toml. A row gets a
# random num_tokens, and "letters", which are not listed here, get five random sizes.
SIZES = {
    "small": (1, 3, 3, 2, 2),
    "wide": (1, 4, 3, 2, 3),
    "square": (1, 3, 2, 1, 2),
    "row": (1, 0, 5, 2, 3),
}
OTHER_LINE = "That line gives a different result here. "
OTHER_SLIP = "That is the result of a different mistake. "
SLIP = "That is the result of a mistake. "
MOST = 12  # the largest number in a table that a question shows
TWINS = {"queries": ("keys", "values"), "W_query": ("W_key", "W_value")}


def read(name: str) -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name(name).read_text("utf-8"))


@dataclass(frozen=True)
class Kind:
    """Hold one kind of question; kinds.toml says what its fields mean."""

    name: str
    ask: str
    show: str
    mistakes: tuple[str, ...]
    given: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ("",)
    lines: tuple[str, ...] | str = ()
    around: tuple[str, ...] = ()
    sizes: str = "letters"
    because: str = ""
    tells: str = ""


@dataclass(frozen=True)
class Option:
    """Hold one option: its text, and the feedback to those who choose it."""

    text: str
    why: str
    mistake: str = ""  # name of the mistake with which the option was computed


@dataclass(frozen=True)
class Question:
    """Hold a question, with its options in the order in which they are shown."""

    kind: str
    seed: int
    text: str
    options: tuple[Option, ...]
    right: int
    tells: str = ""

    @property
    def name(self) -> str:
        """Return the name of one variant, "scores.table.7"."""
        return f"{self.kind}.{self.seed}"


@dataclass(frozen=True)
class Drawn(Case):
    """Hold a case of small whole numbers."""

    row: int = 1  # the row that is asked about
    token: int = 1  # the token that is changed

    @property
    def x(self) -> torch.Tensor:
        return whole(f"x{self.seed}", (self.b, self.num_tokens, self.d_in))

    @property
    def changed_x(self) -> torch.Tensor:
        other = self.x
        other[0, self.token] += 1
        return other

    def weight(self, name: str, shape: Iterable[int]) -> torch.Tensor:
        return whole(f"{name}{self.seed}", shape)


def explained(name: str) -> str:
    """Return a sentence that describes a mistake, and one that says why it matters."""
    return f"{MISTAKES[name].sentence} {MISTAKES[name].why}"


def whole(name: str, shape: Iterable[int]) -> torch.Tensor:
    """Return whole numbers from -2 to 2 that depend on name and shape."""
    return seeded(name, shape).round().clamp(-2, 2) + 0.0


KINDS: dict[str, Kind] = {
    f"{step}.{name}": Kind(f"{step}.{name}", **entry)
    for step, kinds in read("kinds.toml").items()
    for name, entry in kinds.items()
}
WRITTEN: dict[str, dict] = {
    f"{step}.{name}": entry
    for step, entries in read("understanding.toml").items()
    for name, entry in entries.items()
}


@functools.lru_cache(maxsize=4096)
def make(name: str, seed: int, slips: int | None = None) -> Question:
    """Make a question.

    Args:
        name: the name of a kind, or of a question of understanding.
        seed: seeds the numbers and the order of the options. A question of understanding has no
            numbers.
        slips: seeds the choice of mistakes; seed unless given.

    Raises:
        KeyError: there is no such kind.
        ValueError: none of the draws gave four different options.
    """
    draw = random.Random(f"{name} {seed}")
    if name in WRITTEN:
        entry = WRITTEN[name]
        options = [Option(*parts) for parts in (entry["right"], *entry["wrong"])]
        return shuffled(name, seed, entry["ask"], options, draw)
    kind, slips = KINDS[name], seed if slips is None else slips
    for subject, others in choices(kind, random.Random(f"{name} {slips}")):
        for _ in range(DRAWS):
            case = drawn(kind, draw)
            with as_printed(kind):
                options = case and options_of(kind, case, subject, others)
                text = text_of(kind, case, subject) if options else ""
            if options:
                return shuffled(name, seed, text, options, draw, kind.tells)
    raise ValueError(f"{name}: no four options differ with seed {seed}")


@contextlib.contextmanager
def as_printed(kind: Kind) -> Iterator[None]:
    """Round the attention weights to two decimals while the block runs, if a question prints them.

    A learner computes with the printed weights, so the class has to as well. A hook rounds them
    after the class's dropout layer, because all weights pass through it and its probability is 0.
    """

    def rounded(module: nn.Module, given: tuple, weights: torch.Tensor) -> torch.Tensor | None:
        return weights.mul(100).round().div(100) if isinstance(module, nn.Dropout) else None

    after = any(at.startswith(("softmax", "context", "combine")) for at in kind.given)
    with register_module_forward_hook(rounded) if after else contextlib.nullcontext():
        run_reference.cache_clear()
        yield
    run_reference.cache_clear()


def choices(kind: Kind, draw: random.Random) -> Iterator[tuple[str, list[str]]]:
    """Yield pairs to try: the mistake in the question, and the mistakes of its wrong options."""
    for _ in range(CHOICES):
        subject = draw.choice(kind.subjects)
        others = [mistake for mistake in kind.mistakes if mistake != subject]
        yield subject, draw.sample(others, OPTIONS - 1)


def drawn(kind: Kind, draw: random.Random) -> Drawn | None:
    """Draw a case; return None if two of its sizes are equal where they must differ."""
    letters = draw.sample(range(2, 10), 5)
    pencil = SIZES.get(kind.sizes, letters)
    b, num_tokens, d_in, num_heads, head_dim = pencil
    if kind.sizes == "row":
        num_tokens = draw.randint(4, 8)
    d_out, context_length = num_heads * head_dim, num_tokens + draw.randint(1, 4)
    if pencil is letters and len({*letters, d_out, context_length}) < 7:
        return None
    return Drawn(
        *(b, num_tokens, d_in, d_out, num_heads, context_length),
        seed=draw.getrandbits(32),
        row=draw.randrange(1, num_tokens),
        token=draw.randrange(1, max(2, num_tokens - 1)),
    )


def options_of(kind: Kind, case: Drawn, subject: str, others: list[str]) -> list[Option] | None:
    """Return the right option and three wrong ones, or None if two of them are equal."""
    seen = [look(kind.show, case, [name] if name else []) for name in (subject, *others)]
    if seen[0] in seen[1:] or not all(readable(at, case) for at in kind.given):
        return None
    if kind.lines:
        lines = () if kind.lines == "planted" else kind.lines
        seen = [code(name, lines) for name in (subject, *others)]
    if len({*map(coarse, seen)}) < OPTIONS:
        return None
    because = explained(subject) if subject else filled(kind.because, case)
    start = OTHER_LINE if kind.lines else OTHER_SLIP if subject else SLIP
    feedback = [because, *(start + explained(name) for name in others)]
    return [Option(*parts) for parts in zip(seen, feedback, (subject, *others), strict=True)]


def coarse(text: str) -> str:
    """Return a text with rounded numbers, to find options that differ too little."""
    return re.sub(r"-?\d+\.\d\d", lambda found: str(round(float(found[0]), 1) + 0.0), text)


def readable(at: str, case: Drawn) -> bool:
    """Say whether a table has small numbers and no repeated row."""
    rows = grid(run_reference(case), *at.split())
    finite = rows[rows.isfinite()]
    return bool(finite.abs().max() <= MOST) and len(rows.unique(dim=0)) == len(rows)


def code(name: str, lines: Iterable[str] = ()) -> str:
    """Return lines of the class as a mistake makes them.

    Args:
        name: the mistake, or "" for the right class.
        lines: names of the lines to return; those that the mistake changes unless given. Lines
            that do the same to queries, keys and values are returned for the queries only.
    """
    edits = MISTAKES[name].edits if name else {}
    names = [*(lines or edits)]
    for one, twins in TWINS.items():
        if any(one in line for line in names):
            names = [line for line in names if not any(twin in line for twin in twins)]
    texts = [edits.get(line, LINES.get(line, line)) for line in names]
    return "\n".join(line.strip() for text in texts for line in text.splitlines())


def text_of(kind: Kind, case: Drawn, subject: str) -> str:
    """Return the text of a question: paragraphs, and indented blocks."""
    shown = look(kind.show, case, [subject] if subject else [])
    block = shown if kind.show.startswith(("shape", "last")) else block_of(shown)
    planted = block_of(code(subject, kind.around)) if "{line}" in kind.ask else ""
    asked = filled(kind.ask, case, shown=block, line=planted)
    return "\n\n".join([*(given(at, case) for at in kind.given), asked])


def given(at: str, case: Drawn) -> str:
    """Return a recorded tensor or a parameter of the right class as a table, with its name."""
    where, *head = at.split()
    called = where if where.endswith((".weight", ".bias")) else where.partition(".")[2]
    called += f", head {head[0]}" if head else ""
    return f"{called}:\n\n{block_of(table(run_reference(case), *at.split()))}"


def block_of(text: str) -> str:
    """Indent a text, so that it is shown unchanged."""
    return "\n".join(f"    {line}" for line in text.splitlines())


def filled(text: str, case: Drawn, **more: str) -> str:
    """Fill the braces of a text with sizes and positions."""
    letters = case.letters | {"row": case.row, "token": case.token, "last": case.num_tokens - 1}
    return text.format(built=BUILT.format(**letters), **letters, **more)


def shuffled(name: str, seed: int, text: str, options: list[Option], draw, tells="") -> Question:
    order = draw.sample(options, len(options))
    return Question(name, seed, text, tuple(order), order.index(options[0]), tells)
