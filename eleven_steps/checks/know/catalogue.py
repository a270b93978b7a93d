"""The usual wrong attention classes, each a small edit of the right one's source.

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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from string import Template
from types import SimpleNamespace
from typing import Any

from eleven_steps.beyond import variants
from eleven_steps.checks.know.sentences import read
from helpers import attention
from helpers.trace import STEPS

Edit = tuple[str, str]


@dataclass(frozen=True)
class Mistake:
    """One wrong function that learners write: edits of the source of MultiHeadAttention and its
    base class, or of eleven_steps.beyond.variants.
    """

    identifier: str  # as in wrong_class("no_scale")
    step: int  # at which it is made, 1 to 11
    sentence: str  # what is wrong, what was expected and where to look; code stands in backticks
    why: str  # it matters
    edits: tuple[Edit, ...]  # pairs of old and new text
    also: tuple[int, ...] = ()  # other steps whose mistakes come to the same function
    variant: str = ""  # the change it is made in, by its name in contract.VARIANTS

    @property
    def told(self) -> str:
        """What is wrong, and why it matters."""
        return f"{self.sentence} {self.why}"

    @property
    def steps(self) -> tuple[int, ...]:
        """Every step at which this same function can be written, the usual one first."""
        return (self.step, *self.also)


# What the files hold


def _loaded(name: str) -> tuple[dict[str, str], dict[str, dict[str, dict]]]:
    """The named lines of a file, and its mistakes under the tables they stand in."""
    content = read(name)
    return content.pop("lines"), content


def _mistake(
    identifier: str,
    lines: dict[str, str],
    step: str,
    variant: str = "",
    edits: list[list[str]] = (),
    qkv_edits: list[list[str]] = (),
    also: list[str] = (),
    **sentences: str,
) -> Mistake:
    every = [*edits, *(each for edit in qkv_edits for each in _for_q_k_v(lines, *edit))]
    return Mistake(
        identifier,
        STEPS.index(step) + 1,
        edits=tuple(tuple(Template(text).substitute(lines) for text in edit) for edit in every),
        also=tuple(STEPS.index(name) + 1 for name in also),
        variant=variant,
        **sentences,
    )


def _for_q_k_v(lines: dict[str, str], old: str, new: str) -> Iterator[Edit]:
    """An edit of W_query and queries, and the same of W_key and keys, W_value and values."""
    edit = [Template(text).substitute(lines) for text in (old, new)]
    for one, many in ("query", "queries"), ("key", "keys"), ("value", "values"):
        yield tuple(text.replace("query", one).replace("queries", many) for text in edit)


LINES, _BY_STEP = _loaded("mistakes.toml")
_OTHER_LINES, _BY_VARIANT = _loaded("changes.toml")
MISTAKES: dict[str, Mistake] = {
    name: _mistake(name, LINES, step, **entry)
    for step, entries in _BY_STEP.items()
    for name, entry in entries.items()
}
VARIANT_MISTAKES: dict[str, Mistake] = {
    name: _mistake(name, _OTHER_LINES, variant=variant, **entry)
    for variant, entries in _BY_VARIANT.items()
    for name, entry in entries.items()
}

# Lines of the lecture's class as they stand in eleven_steps.beyond.variants.
_LATER = (
    (LINES["future"], "hidden = self.mask[start:end, :end]"),
    ("future", "hidden"),
    (LINES["scaled"], "scaled = masked.div_(self.key_dim**0.5)"),
    (LINES["softmax"], 'weights = replacing("softmax", self)(call, scaled)'),
)
_WITHIN = {"cache": "rope"}  # what is kept has been turned
_ANEW = {"linear": (6, 7)}  # steps that leave no sense in what is said of the lecture's
_BETWEEN = "\n\n# the next file\n\n"
_PROJECTED = "num_keys = keys.shape[1]"  # once the three are made, in eleven_steps.beyond.variants


# Classes with mistakes planted


def wrong_class(*identifiers: str, variant: str = "") -> type[attention.MultiHeadAttention]:
    """Build MultiHeadAttention with the named mistakes planted.

    Args:
        identifiers: keys of MISTAKES or VARIANT_MISTAKES; several plant all of them.
        variant: the change that the class is to have, as check_attention calls it; that of the
            mistakes if it is not given.

    Returns:
        A new class; its forward still records its steps, so that a trace shows the wrong numbers.
        With a variant it is built and called as check_attention says.

    Raises:
        KeyError: no mistake has that name.
        ValueError: two of the mistakes change the same line.
    """
    variant = variant or _variant_of(identifiers)
    return class_of(edited_source(*identifiers, variant=variant), variant)


def class_of(source: str, variant: str = "") -> type[attention.MultiHeadAttention]:
    """Return the class that an edited source holds."""
    # A dataclass wants to find the module it is of.
    namespace = vars(attention) | {"__name__": variants.__name__ if variant else "wrong"}
    for piece in source.split(_BETWEEN):
        exec(_compiled(piece), namespace)
    return fitted(namespace, variant) if variant else namespace["MultiHeadAttention"]


@functools.cache
def _compiled(piece: str) -> types.CodeType:
    """The code of a piece of source, which tracebacks show; most mistakes edit one of several."""
    filename = f"{attention.__file__}, edited, {zlib.crc32(piece.encode())}"  # a line of ours
    linecache.cache[filename] = (len(piece), None, piece.splitlines(keepends=True), filename)
    return compile(piece, filename, "exec")


def show_lines(*identifiers: str) -> str:
    """Return the right lines (marked -) and the wrong ones (marked +), for printing in a lesson.

    Args and errors as in wrong_class.
    """
    right, wrong = (
        [line.split("  # ")[0].strip() for line in source.splitlines()]
        for source in (edited_source(variant=_variant_of(identifiers)), edited_source(*identifiers))
    )
    changes = difflib.ndiff(right, wrong)
    return "\n".join(line.rstrip() for line in changes if line[:2] in ("- ", "+ "))


def edited_source(*identifiers: str, variant: str = "") -> str:
    """Return the source of MultiHeadAttention and its base with the named mistakes planted.

    With a variant it is that of eleven_steps.beyond.variants as well, whatever the variant.
    """
    variant = variant or _variant_of(identifiers)
    source = _variant_source() if variant else _right_source()
    for identifier in identifiers:
        for old, new in edits_of(identifier, variant):
            if source.count(old) != 1:
                raise ValueError(
                    f"{identifier} changes {old!r}, found {source.count(old)} times after "
                    f"{identifiers}: once is expected"
                )
            source = source.replace(old, new)
    return source


def edits_of(identifier: str, variant: str = "") -> tuple[tuple[str, str], ...]:
    """Return a mistake's edits; one of the lecture's class as it is made in beyond.variants."""
    mistake = named(identifier)
    return tuple(map(_later, mistake.edits)) if variant and not mistake.variant else mistake.edits


def _later(edit: tuple[str, str]) -> tuple[str, str]:
    if edit[0] in (LINES[name] for name in ("queries", "keys", "values")):
        return _PROJECTED, f"{edit[1]}\n        {_PROJECTED}"
    for lecture, later in _LATER:
        edit = tuple(text.replace(lecture, later) for text in edit)
    return edit


def named(identifier: str) -> Mistake:
    """Return the mistake of a name; raise KeyError if there is none."""
    every = MISTAKES | VARIANT_MISTAKES
    if identifier not in every:
        near = difflib.get_close_matches(str(identifier), every, n=3, cutoff=0.0)
        raise KeyError(f"{identifier!r}: the name of a mistake is expected, as {', '.join(near)}")
    return every[identifier]


@functools.cache
def mistakes_of(variant: str) -> dict[str, Mistake]:
    """Return what can go wrong with a variant: its own mistakes, then the lecture's."""
    if not variant:
        return MISTAKES
    source = _variant_source()
    some = variant, _WITHIN.get(variant)
    own = {name: each for name, each in VARIANT_MISTAKES.items() if each.variant in some}
    return own | {
        name: each
        for name, each in MISTAKES.items()
        if each.step not in _ANEW.get(variant, ())
        and all(source.count(old) == 1 for old, _ in edits_of(name, variant))
    }


def _variant_of(identifiers: tuple[str, ...]) -> str:
    return next(filter(None, (named(each).variant for each in identifiers)), "")


@functools.cache
def _right_source() -> str:
    source = inspect.getsource(attention)  # of the file: Python parses it whole to find one class
    return source[source.index("class _Causal") : source.index("class CausalAttention")].rstrip()


@functools.cache
def _variant_source() -> str:
    """The source of the parts, and of what VariantAttention takes from the lecture's class."""
    lecture = _right_source()
    own = lecture.index("    def forward(", lecture.index("class MultiHeadAttention"))
    texts = [lecture[:own]]
    for name in ("module", "keep", "look", "turn", "project", "weigh", "choose", "linear"):
        texts.append(inspect.getsource(getattr(variants, name)))
    return re.sub(r"(?m)^from (helpers|eleven_steps)\b.*\n", "", _BETWEEN.join(texts))


# The right class of a change since the lecture, built and called as a learner's class is

# The parts that the module is built with, from what a constructor gets besides.
BUILT: dict[str, Callable[..., list[Any]]] = {
    "gqa": lambda room, num_kv_heads: [room.GroupedHeads(num_kv_heads)],
    "norm": lambda room: [room.Norm()],
    "rope": lambda room: [room.Rope()],
    "alibi": lambda room, slopes: [room.Alibi()],
    "cap": lambda room, limit: [room.Cap(limit)],
    "full": lambda room: [room.Full()],
    "window": lambda room, window: [room.Window(window)],
    "padding": lambda room: [],
    "topk": lambda room, top_keys, index_heads, index_dim: [
        room.TopKeys(top_keys, index_heads, index_dim)
    ],
    "other": lambda room: [],
    "sinks": lambda room: [room.Sinks()],
    "gate": lambda room: [room.Gate()],
    "latent": lambda room, latent_dim, rope_dim: [
        room.Latent(latent_dim, rope_dim),
        room.Rope(width=rope_dim),
    ],
    "cache": lambda room: [room.Rope()],
    "linear": lambda room, decays: [room.Linear(tuple(decays.tolist()))],
}


def fitted(names: dict[str, Any], variant: str) -> type:
    """Make the class of a variant that is called as contract.called calls a learner's.

    Args:
        names: what eleven_steps.beyond.variants holds, or an edited copy of it.
        variant: which change.
    """
    room = SimpleNamespace(**names)

    class Fitted(room.VariantAttention):
        def __init__(self, d_in, d_out, context_length, dropout, heads, qkv_bias=False, **sizes):
            parts = BUILT[variant](room, **sizes)
            super().__init__(d_in, d_out, context_length, dropout, heads, qkv_bias, parts)

        def forward(self, x, given=None, record=attention.record_nothing):
            kind = {"padding": room.Padding, "other": room.OtherSequence}.get(variant)
            if variant == "cache":
                cache = given or room.Cache()
                return room.VariantAttention.forward(self.plus(cache), x, record), cache
            twin = self.plus(kind(given)) if kind else self
            return room.VariantAttention.forward(twin, x, record)

    return Fitted
