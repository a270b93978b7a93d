"""The usual wrong attention classes, each made of the right one by a few other lines.

MISTAKES maps names to the mistakes of the lecture's class, in the order of the eleven steps;
VARIANT_MISTAKES those of changes since the lecture. Every lesson that breaks something, every check
that names a mistake, and every test of them reads mistakes.toml and changes.toml through these.
"""

import difflib
import functools
import inspect
import linecache
import re
import types
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from string import Template
from types import SimpleNamespace
from typing import Any

from eleven_steps.beyond import variants
from eleven_steps.checks.know.elsewhere import has_no_place, in_variants, ruled_out
from eleven_steps.checks.know.sentences import read_toml
from eleven_steps.checks.run.variant import LECTURE, VARIANTS, Variant
from eleven_steps.helpers import attention
from eleven_steps.helpers.trace import STEPS


@dataclass(frozen=True)
class Mistake:
    """One wrong function that learners write: other lines of MultiHeadAttention or its base class,
    or of eleven_steps.beyond.variants.
    """

    identifier: str  # as in wrong_class("no_scale")
    step: int  # at which it is made, 1 to 11
    sentence: str  # what is wrong, what was expected and where to look; code stands in backticks
    why: str  # why it matters
    edits: Mapping[str, str]  # by the name of a line, or by its text: what stands there instead
    also: tuple[int, ...] = ()  # other steps whose mistakes come to the same function
    change: str = ""  # since the lecture, that it is made in

    @property
    def told(self) -> str:
        """What is wrong, and why it matters."""
        return f"{self.sentence} {self.why}"

    @property
    def steps(self) -> tuple[int, ...]:
        """Every step at which this same function can be written, the usual one first."""
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
VARIANT_MISTAKES: dict[str, Mistake] = {
    name: _mistake(name, OTHER_LINES, step, change, **entry)
    for change, steps in _LATER.items()
    for step, entries in steps.items()
    for name, entry in entries.items()
}
_BETWEEN, _OUR_CLASS = "\n\n# the next piece\n\n", "class VariantAttention"


# Classes with mistakes planted


def wrong_class(*identifiers: str, variant: str = "") -> type[attention.MultiHeadAttention]:
    """Build MultiHeadAttention with the named mistakes planted.

    Args:
        identifiers: keys of MISTAKES or VARIANT_MISTAKES; several plant all of them.
        variant: the change that the class is to have, as check_attention calls it, or several,
            "gqa,rope"; those of the mistakes if none is given.

    Returns:
        A new class; its forward still records its steps, so that a trace shows the wrong numbers.
        With a variant it is built and called as check_attention says.

    Raises:
        KeyError: no mistake has that name.
        ValueError: two of the mistakes change the same line; one of them cannot be made in the
            variant; there is no such variant, or its changes do not go together.
    """
    wanted = Variant.of(variant) or _variant_of(identifiers)
    return class_of(edited_source(*identifiers, variant=wanted), wanted)


def class_of(source: str, variant: Variant = LECTURE) -> type[attention.MultiHeadAttention]:
    """Return the class that an edited source holds."""
    if not variant:
        namespace = vars(attention) | {"__name__": "wrong"}
        exec(_compiled(source), namespace)
        return namespace["MultiHeadAttention"]
    namespace = dict(_right_parts())
    for piece, right in zip(source.split(_BETWEEN), _pieces(), strict=True):
        if piece != right or _OUR_CLASS in piece:  # whose base may be another
            exec(_compiled(piece), namespace)
    return fitted(namespace, variant)


@functools.cache
def _right_parts() -> dict[str, Any]:
    # A dataclass wants to find the module it is of.
    namespace = vars(attention) | {"__name__": variants.__name__}
    for piece in _pieces():
        exec(_compiled(piece), namespace)
    return namespace


@functools.cache
def _compiled(piece: str) -> types.CodeType:
    """The code of a piece of source, which tracebacks show; most mistakes edit one of several."""
    filename = f"{attention.__file__}, edited, {zlib.crc32(piece.encode())}"  # a line of ours
    linecache.cache[filename] = (len(piece), None, piece.splitlines(keepends=True), filename)
    return compile(piece, filename, "exec")


def show_lines(*identifiers: str) -> str:
    """Return the right lines (marked -) and the wrong ones (marked +), for printing in a lesson."""
    variant = _variant_of(identifiers)
    both = edited_source(variant=variant), edited_source(*identifiers, variant=variant)
    lines = ([line.split("  # ")[0].strip() for line in source.splitlines()] for source in both)
    compared = difflib.ndiff(*lines)
    return "\n".join(line.rstrip() for line in compared if line[:2] in ("- ", "+ "))


def edited_source(*identifiers: str, variant: Variant = LECTURE) -> str:
    """Return the source of MultiHeadAttention and its base with the named mistakes planted.

    With a variant it is that of eleven_steps.beyond.variants as well, whatever the variant.
    """
    for identifier in identifiers:
        if reason := cannot(identifier, variant):
            raise ValueError(f"{identifier} cannot be made in variant {str(variant)!r}: {reason}")
    source = _BETWEEN.join(_pieces()) if variant else _right_source()
    return with_edits(source, {name: edits_of(name, variant) for name in identifiers})


def with_edits(source: str, edits: Mapping[str, Mapping[str, str]]) -> str:
    """Return a source in which texts are others, by who wants them to be.

    Raises:
        ValueError: two want to change the same text.
    """
    texts: list[str] = []
    for who, own in edits.items():
        for old, new in own.items():
            if old not in source:
                others = f"which another of {', '.join(edits)} changes too"
                raise ValueError(f"{who} changes {old!r}, {others}")
            source = source.replace(old, f"\0{len(texts)}\0")  # so that no edit meets another's
            texts.append(new)
    return re.sub(r"\0(\d+)\0", lambda place: texts[int(place[1])], source)


def edits_of(identifier: str, variant: Variant) -> dict[str, str]:
    """Return what a mistake puts in place of texts; of the lecture's, as they are in a variant."""
    mistake = mistake_named(identifier)
    if mistake.change:
        return {OTHER_LINES.get(old, old): new for old, new in mistake.edits.items()}
    if not variant:
        return {LINES.get(old, old): new for old, new in mistake.edits.items()}
    return in_variants(mistake.edits, LINES, _BETWEEN.join(_pieces()))


def mistake_named(identifier: str) -> Mistake:
    """Return the mistake of a name; raise KeyError if there is none."""
    every = MISTAKES | VARIANT_MISTAKES
    if identifier not in every:
        near = difflib.get_close_matches(str(identifier), every, n=3, cutoff=0.0)
        raise KeyError(f"{identifier!r}: the name of a mistake is expected, as {', '.join(near)}")
    return every[identifier]


def cannot(identifier: str, variant: Variant) -> str:
    """Return why a mistake cannot be made in a variant, or nothing where it can."""
    mistake, changes = mistake_named(identifier), variant.changes
    if mistake.change and mistake.change not in changes:
        return f"it is a mistake of {mistake.change!r}"
    reason = ruled_out(identifier, changes)
    if reason or mistake.change:
        return reason
    return has_no_place(identifier, STEPS[mistake.step - 1], mistake.edits, changes)


@functools.cache
def mistakes_of(variant: Variant) -> dict[str, Mistake]:
    """Return what can go wrong with a variant: its own mistakes, then the lecture's."""
    every = VARIANT_MISTAKES | MISTAKES if variant else MISTAKES
    return {name: mistake for name, mistake in every.items() if not cannot(name, variant)}


def _variant_of(identifiers: tuple[str, ...]) -> Variant:
    return Variant.of(",".join(mistake_named(identifier).change for identifier in identifiers))


@functools.cache
def _right_source() -> str:
    source = inspect.getsource(attention)  # of the file: Python parses it whole to find one class
    return source[source.index("class _Causal") : source.index("class CausalAttention")].rstrip()


@functools.cache
def _pieces() -> tuple[str, ...]:
    """The sources of what VariantAttention takes from the lecture's class, of it, and of parts."""
    lecture = _right_source()
    texts = [lecture[: lecture.index("    def forward(", lecture.index("class MultiHead"))]]
    for name in ("module", "keep", "look", "turn", "project", "weigh", "choose", "linear"):
        text = inspect.getsource(getattr(variants, name))
        texts += re.sub(rf"(?m)^(?={_OUR_CLASS})", _BETWEEN, text).split(_BETWEEN)
    ours = re.compile(r"^from eleven_steps\b[^(\n]*(\([^)]*\))?\n", re.MULTILINE)
    return tuple(ours.sub("", text) for text in texts)


# The right class of changes since the lecture, built and called as a learner's class is

# The parts that the module is built with, from what a constructor gets besides. What is not here is
# brought by each call.
BUILT: dict[str, Callable[..., list[Any]]] = {
    "gqa": lambda room, heads, *_: [room.GroupedHeads(heads)],
    "norm": lambda room, n=None: [
        room.Norm(1e-5 if n == 2 else 1e-6, n != 0, n != 0, n == 1, n == 2)
    ],
    "vnorm": lambda room: [room.ValueNorm()],
    "rope": lambda room, base=1e4, share=1: [
        room.Rope(base, width=share if share < 1 else None, first=True)
    ],
    "alibi": lambda room, slopes: [room.Alibi()],
    "cap": lambda room, limit: [room.Cap(limit)],
    "full": lambda room: [room.Full()],
    "window": lambda room, size: [room.Window(size)],
    "topk": lambda room, *sizes: [room.TopKeys(*sizes)],
    "sinks": lambda room: [room.Sinks()],
    "unscaled": lambda room: [room.Unscaled()],
    "gate": lambda room, whole=0: [room.HeadGate() if whole == 1 else room.Gate()],
    "latent": lambda room, width, turned: [room.Latent(width, turned), room.Rope(width=turned)],
    "linear": lambda room, decays: [room.Linear(tuple(decays.tolist()))],
}


def fitted(names: dict[str, Any], variant: Variant) -> type:
    """Make the class of a variant that is called as contract.called calls a learner's.

    The names are what eleven_steps.beyond.variants holds, or an edited copy of it.
    """
    room, changes = SimpleNamespace(**names), variant.changes

    class Fitted(room.VariantAttention):
        def __init__(self, *lecture, **named):
            parts = {}  # one of a kind: a latent turns a few features where rope turns all
            for change in filter(BUILT.get, changes):
                own = [named.pop(size) for size in VARIANTS[change]]
                own += variant.numbers(change)
                parts |= {type(part): part for part in BUILT[change](room, *own)}
            super().__init__(*lecture, parts=parts.values(), **named)

        def forward(self, x, *given, record=attention.record_nothing):
            rest, brought = iter(given), []
            if "other" in changes:
                brought.append(room.OtherSequence(next(rest)))
            if "padding" in changes:
                brought.append(room.Padding(next(rest)))
            if "cache" not in changes:
                return room.VariantAttention.forward(self.plus(*brought), x, record)
            past = next(rest, None) or (room.State() if "linear" in changes else room.Cache())
            return room.VariantAttention.forward(self.plus(*brought, past), x, record), past

    return Fitted
