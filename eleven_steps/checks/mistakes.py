"""Make the usual wrong attention classes, each by changing a few lines of the right one.

MISTAKES maps names to the mistakes of the lecture's class, in the order of the eleven steps;
CHANGE_MISTAKES those of changes since the lecture. Every lesson that breaks something, every check
that names a mistake, and every test of them reads mistakes.toml and changes.toml through these.
"""

import difflib
import functools
import inspect
import linecache
import re
import types
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from string import Template
from typing import Any

from eleven_steps.beyond import variants
from eleven_steps.checks.changes import changed_class, namespace_of
from eleven_steps.checks.sentences import read_toml
from eleven_steps.helpers import attention
from eleven_steps.helpers.trace import STEPS


@dataclass(frozen=True)
class Mistake:
    """One wrong function that learners write: other lines of MultiHeadAttention or its base class,
    or of eleven_steps.beyond.variants.
    """

    identifier: str  # name of the mistake, as in wrong_class("no_scale")
    step: int  # step at which the mistake is made, 1 to 11
    sentence: str  # what is wrong, what was expected and where to look; code is in backticks
    why: str  # why it matters
    edits: Mapping[str, str]  # new text by the name of a line, or by its text
    also: tuple[int, ...] = ()  # other steps whose mistakes come to the same function
    change: str = ""  # the variant that the mistake belongs to

    @property
    def steps(self) -> tuple[int, ...]:
        """Return every step at which this same function can be written, the usual one first."""
        return (self.step, *self.also)


def _mistake(
    identifier: str,
    lines: dict[str, str],
    step: str,
    change: str,
    sentence: str,
    why: str,
    also: Iterable[str] = (),
    qkv: Mapping[str, str] | None = None,
    **edits: str,
) -> Mistake:
    edits = {old: Template(new).substitute(lines) for old, new in edits.items()}
    for old, new in (qkv or {}).items():  # the same of keys and W_key, of values and W_value
        edit = old, Template(new).substitute(lines)
        for one, many in ("query", "queries"), ("key", "keys"), ("value", "values"):
            key, text = (line.replace("query", one).replace("queries", many) for line in edit)
            edits[key] = text
    steps = (STEPS.index(name) + 1 for name in also)
    sentence = Template(sentence).substitute(_SHARED)
    return Mistake(identifier, STEPS.index(step) + 1, sentence, why, edits, tuple(steps), change)


_CONTENT, _LATER = read_toml("mistakes.toml"), read_toml("changes.toml")
_SHARED = _CONTENT.pop("shared")
LINES: dict[str, str] = _CONTENT.pop("lines")
OTHER_LINES: dict[str, str] = _LATER.pop("lines")
MISTAKES: dict[str, Mistake] = {
    name: _mistake(name, LINES, step, "", **entry)
    for step, entries in _CONTENT.items()
    for name, entry in entries.items()
}
CHANGE_MISTAKES: dict[str, Mistake] = {
    name: _mistake(name, OTHER_LINES, step, change, **entry)
    for change, steps in _LATER.items()
    for step, entries in steps.items()
    for name, entry in entries.items()
}
NO_MASK = "masked = scores.masked_fill_(future, -torch.inf)", "masked = scores"
# Modules of eleven_steps.beyond.variants in which mistakes are planted, each after those it needs.
_MODULES = "module kv_cache alibi masks norms rope gqa softmax gates sparse linear_attention"
_BETWEEN, _OUR_CLASS = "\n\n# the next piece\n\n", "class VariantAttention"


# Classes with mistakes planted


def wrong_class(*identifiers: str) -> type[attention.MultiHeadAttention]:
    """Build MultiHeadAttention with the named mistakes planted.

    Args:
        identifiers: keys of MISTAKES, or one of CHANGE_MISTAKES; several plant all of them.

    Returns:
        A new class; its forward still records its steps, so that a trace shows the wrong numbers.

    Raises:
        KeyError: no mistake has that name.
        ValueError: two of the mistakes change the same line.
    """
    return class_of(edited_source(*identifiers), change_of(*identifiers))


def class_of(source: str, change: str = "") -> type[attention.MultiHeadAttention]:
    """Return the class that an edited source holds."""
    if not change:
        namespace = vars(attention) | {"__name__": "wrong"}
        exec(_compiled(source), namespace)
        return namespace["MultiHeadAttention"]
    namespace = dict(_right_parts())
    for piece, right in zip(source.split(_BETWEEN), _pieces(), strict=True):
        if piece != right or _OUR_CLASS in piece:  # whose base class may have changed
            exec(_compiled(piece), namespace)
    return changed_class(change, namespace_of(namespace))


@functools.cache
def _right_parts() -> dict[str, Any]:
    # A dataclass wants to find the module it is of.
    namespace = vars(attention) | {"__name__": variants.__name__}
    for piece in _pieces():
        exec(_compiled(piece), namespace)
    return namespace


@functools.cache
def _compiled(piece: str) -> types.CodeType:
    """Compile a piece of source so that tracebacks show it; most mistakes edit one piece."""
    filename = f"{attention.__file__}, edited, {zlib.crc32(piece.encode())}"  # a line of ours
    linecache.cache[filename] = (len(piece), None, piece.splitlines(keepends=True), filename)
    return compile(piece, filename, "exec")


def show_lines(*identifiers: str) -> str:
    """Return the right lines (marked -) and the wrong ones (marked +), for printing in a lesson."""
    both = _right_text(change_of(*identifiers)), edited_source(*identifiers)
    lines = ([line.split("  # ")[0].strip() for line in source.splitlines()] for source in both)
    compared = difflib.ndiff(*lines)
    return "\n".join(line.rstrip() for line in compared if line[:2] in ("- ", "+ "))


def edited_source(*identifiers: str, causal: bool = True) -> str:
    """Return the source of MultiHeadAttention and its base with the named mistakes planted.

    With mistakes of changes since the lecture it is that of eleven_steps.beyond.variants as well.

    Args:
        identifiers: names of mistakes.
        causal: whether the class hides later tokens.
    """
    edits = {name: edits_of(name) for name in identifiers}
    if not causal:
        edits["an encoder"] = dict([NO_MASK])
    return with_edits(_right_text(change_of(*identifiers)), edits)


def with_edits(source: str, edits: Mapping[str, Mapping[str, str]]) -> str:
    """Return a source with the texts of several edits replaced.

    Raises:
        ValueError: two want to change the same text.
    """
    texts: list[str] = []
    for who, own in edits.items():
        for old, new in own.items():
            if old not in source:
                others = f"which another of {', '.join(edits)} changes too"
                raise ValueError(f"{who} changes {old!r}, {others}")
            source = source.replace(old, f"\0{len(texts)}\0")  # hides new texts from later edits
            texts.append(new)
    return re.sub(r"\0(\d+)\0", lambda place: texts[int(place[1])], source)


def edits_of(identifier: str) -> dict[str, str]:
    """Return the text replacements of a mistake."""
    mistake = mistake_named(identifier)
    lines = OTHER_LINES if mistake.change else LINES
    return {lines.get(old, old): new for old, new in mistake.edits.items()}


def mistake_named(identifier: str) -> Mistake:
    """Return the mistake of a name; raise KeyError if there is none."""
    every = MISTAKES | CHANGE_MISTAKES
    if identifier not in every:
        near = difflib.get_close_matches(str(identifier), every, n=3, cutoff=0.0)
        raise KeyError(f"{identifier!r}: the name of a mistake is expected, as {', '.join(near)}")
    return every[identifier]


def change_of(*identifiers: str) -> str:
    """Return the variant that mistakes belong to, "" for the lecture's class."""
    return next((c for name in identifiers if (c := mistake_named(name).change)), "")


def _right_text(change: str) -> str:
    return _BETWEEN.join(_pieces()) if change else _right_source()


@functools.cache
def _right_source() -> str:
    source = inspect.getsource(attention)  # of the file: Python parses it whole to find one class
    return source[source.index("class _Causal") : source.index("class CausalAttention")].rstrip()


@functools.cache
def _pieces() -> tuple[str, ...]:
    """Return the sources of VariantAttention, its parts, and what it takes from the lecture."""
    lecture = _right_source()
    texts = [lecture[: lecture.index("    def forward(", lecture.index("class MultiHead"))]]
    for name in _MODULES.split():
        text = inspect.getsource(getattr(variants, name))
        texts += re.sub(rf"(?m)^(?={_OUR_CLASS})", _BETWEEN, text).split(_BETWEEN)
    ours = re.compile(r"^from eleven_steps\b[^(\n]*(\([^)]*\))?\n", re.MULTILINE)
    return tuple(ours.sub("", text) for text in texts)
