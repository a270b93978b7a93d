"""How a forward of somebody else's is called: with x alone or three times, with which mask."""

import functools
import inspect
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, is_dataclass, replace
from typing import Any, ClassVar

import torch

from eleven_steps.checks.adapt.vocabulary import FLAGS, MASKS, NAMED
from eleven_steps.checks.run.cases import seeded
from eleven_steps.checks.run.copies import tensors_in
from eleven_steps.checks.run.isolate import attempt
from eleven_steps.checks.run.places import source_around

# call(module, x, hidden): hidden (num_tokens, num_tokens) is True where a key must not be seen.
Call = Callable[..., Any]

LENGTH = "how many tokens are none", "how many are none, and stand last"
BY_MODULE = ("count", "flag")  # what a parameter gets where a module itself keeps the rest
SHAPES = {
    "(num_tokens, num_tokens)": (),
    "(b, 1, num_tokens, num_tokens)": (None, None),
    "(b, num_tokens, num_tokens)": (None,),
    "(num_tokens, num_tokens, 1)": (..., None),
}
# Of what every text hides, (num_tokens, num_tokens), and what is filling, (b, num_tokens).
FILLED: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "(b, num_tokens)": lambda hidden, filled: filled,
    "(b, 1, 1, num_tokens)": lambda hidden, filled: filled[:, None, None],
}
OF_EACH = FILLED | {  # which masks of other names may be, too
    "(b, num_tokens, num_tokens)": lambda hidden, filled: hidden | filled[:, None],
    "(b, 1, num_tokens, num_tokens)": lambda hidden, filled: (hidden | filled[:, None])[:, None],
    "(b * num_heads, num_tokens, num_tokens)": lambda hidden, filled: hidden | filled[:, None],
}
KINDS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "True where a key is seen": lambda hidden, x: ~hidden,
    "True where a key is hidden": lambda hidden, x: hidden,
    "-inf where a key is hidden": lambda h, x: x.new_zeros(h.shape).masked_fill(h, -torch.inf),
    "1 where a key is seen": lambda hidden, x: (~hidden).to(x.dtype),
    "1 where a key is hidden": lambda hidden, x: hidden.to(x.dtype),
}
# In what is said of a mask: that it holds truths; that it holds numbers, which are added.
TRUTHS = re.compile(
    r"\bbool|\btrue\b|\b1s?\s*(?:[/=:]|for|where|if|at|on|means?|keeps?)|\b0/1\b", re.IGNORECASE
)
SAID_ADDED = re.compile(r"\badd(ed|itive)\b", re.IGNORECASE)
NUMBERS = re.compile(r"inf\b|\badd|\bbias|negative|1e\d|float", re.IGNORECASE)
INTEGERS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "True where a key is seen": lambda hidden, x: (~hidden).long(),
    "True where a key is hidden": lambda hidden, x: hidden.long(),
}
SUMS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "-10000 where a key is hidden": lambda hidden, x: -1e4 * hidden.to(x.dtype),
    "numbers that are added": lambda hidden, x: seeded("sum", hidden.shape).to(x) - 1e4 * hidden,
}


def shaped(mask: torch.Tensor, shape: str, b: int) -> torch.Tensor:
    """A mask (num_tokens, num_tokens) as it is handed over in a shape of SHAPES to b texts."""
    mask = mask[SHAPES[shape]]
    return mask.expand(b, *mask.shape[1:]) if "(b," in shape else mask


def kinds_of(module: Any, mask: str) -> list[str]:
    """What a mask may hold, names in KINDS: nothing to add where its class says that it is truths.

    An annotation says so, or the lines about the mask in a docstring.
    """
    annotation = inspect.signature(module.forward).parameters[mask].annotation
    said = said_of(module, mask)
    truths = TRUTHS.search(f"{annotation} {said}") and not NUMBERS.search(said)
    return [kind for kind in KINDS if not (truths and "inf" in kind)]


def said_of(module: Any, mask: str) -> str:
    """The lines about a mask in the docstrings and comments of a class."""
    docs = module.forward.__doc__, type(module).__doc__
    docs = "\n".join([*filter(None, docs), *re.findall("#.*", source_around(type(module))[0])])
    lines = re.findall(rf"\b{mask}\b[^\n]*(?:\n[^\n:#]+$)*", docs, re.MULTILINE)
    return " ".join(re.split(r"[;,]\s+\w+:", line)[0] for line in lines)  # to the next name


def shapes_said(said: str) -> list[str]:
    """The shapes in OF_EACH that are said of a mask, whatever the letters: b comes first."""
    every = re.findall(r"[(\[]((?:b|bsz?|batch(?:_?size)?)(?:, *\w+)+)[)\]]", said, re.IGNORECASE)
    ones = [[axis == "1" for axis in re.split(", *", axes)] for axes in every]
    return [e for e in OF_EACH if [axis == "1" for axis in e[1:-1].split(", ")] in ones]


@dataclass(frozen=True)
class Way:
    """One way to call a forward; calling it calls a module so."""

    # The parameters that get x, by keyword; empty for the first by place
    names: tuple[str, ...] = ()
    mask: str = ""  # the parameter that gets a mask; "" for none
    kind: str = ""  # what the mask holds, a name in KINDS; "flag" where it is a flag
    shape: str = ""  # the mask's, a name in SHAPES
    first: bool = False  # whether tokens come first, (num_tokens, b, d_in)
    turns: ClassVar[tuple[str, ...]] = ()  # the parameters that get cosines and sines

    def __call__(self, module: Any, x: torch.Tensor, hidden: torch.Tensor, *other: Any) -> Any:
        """Call the module and return what it returns; x has tokens first where they come first.

        Where there is another sequence, all parameters but the first get it.
        """
        named = dict.fromkeys(self.names, *other or [x]) | dict.fromkeys(self.names[:1], x)
        if self.kind == "flag":
            named[self.mask] = True
        elif self.mask:
            mask = (KINDS | SUMS)[self.kind](hidden, x)
            named[self.mask] = shaped(mask, self.shape, x.shape[self.first])
        return module(**named) if self.names else module(x, **named)

    @property
    def told(self) -> str:
        """The call in a few words."""
        order = "(num_tokens, b, d_in)" if self.first else "x"
        text = ", ".join(f"{name}=x" for name in self.names) or order
        if self.kind == "flag":
            text += f", {self.mask}=True"
        elif self.mask:
            text += f", {self.mask} {self.shape}, {self.kind}"
        with_order = f" with {order}" if self.first and self.names else ""
        return f"forward({text}){with_order}"

    @property
    def way(self) -> "Way":
        """What it is without what may be around it: itself."""
        return self

    def of_heads(self, head_dim: int) -> "Way":
        """The same for heads of so many features: itself."""
        return self

    def after(self, before: int) -> "Way":
        """The same for a piece of a text that goes on after so many tokens: itself."""
        return self


@dataclass(frozen=True)
class Given(Way):
    """A way to call that is a function, which whoever asks has told."""

    function: Call = None

    def __call__(self, *module_and_x: Any) -> Any:
        """Call the function."""
        return self.function(*module_and_x)

    told = "call"


class Around:
    """What is done around a way to call; all else is the way's."""

    way: Any

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "way":
            raise AttributeError(name)
        return getattr(self.way, name)

    def of_heads(self, head_dim: int) -> "Around":
        """The same for heads of so many features."""
        return replace(self, way=self.way.of_heads(head_dim))

    def after(self, before: int) -> "Around":
        """The same for a piece of a text that goes on after so many tokens."""
        return replace(self, way=self.way.after(before))


@dataclass(frozen=True)
class Padded(Around):
    """A way in which a parameter is told what is filling."""

    way: Any  # how the rest is handed over
    filled: str  # the parameter
    kind: str  # what it holds, a name in KINDS
    shape: str  # a name in OF_EACH
    integers: bool = False  # whether it holds 1 and 0 for True and False
    num_heads: int = 1  # which get a mask each, where the shape says so

    def __call__(self, module: Any, x: torch.Tensor, hidden: torch.Tensor, *beside: Any) -> Any:
        """Call the module; the last of beside, (b, num_tokens), is True for filling."""
        *other, filled = beside
        if self.shape == "(b,)":
            mask = (~filled).sum(1)
        else:
            kinds = INTEGERS if self.integers else KINDS
            mask = kinds[self.kind](OF_EACH[self.shape](hidden, filled), x)
            each = self.num_heads if "num_heads" in self.shape else 1
            mask = mask.repeat_interleave(each, dim=0)
        return self.way(functools.partial(module, **{self.filled: mask}), x, hidden, *other)

    @classmethod
    def of(cls, way: Any, names: Iterable[str]) -> "Iterator[Padded]":
        """Yield every such way around another, for parameters of these names."""
        return itertools.starmap(cls, itertools.product([way], names, KINDS, FILLED))

    @property
    def told(self) -> str:
        """The call in a few words."""
        return f"{self.way.told} with {self.filled} {self.shape}, {self.kind}"


@dataclass(frozen=True)
class InPieces(Around):
    """A way in which a text comes in pieces, each with what was kept of those before."""

    way: Any  # how a piece is handed over
    past: str  # the parameter that gets what is kept
    # What it gets: the "first", "second" or "all" of what is returned beside the output, a "dict"
    # that forward fills, the "count" of tokens before, or a "flag", True
    gets: str
    flags: tuple[str, ...]  # parameters that must be True for anything to be kept
    width: int  # of an output
    forks: bool = False  # whether from each past another piece is read as well
    between: Callable[[], Any] = bool  # is called after each piece
    single: bool = False  # whether tokens come one by one after the first piece
    begin: int = 0  # tokens of the first piece; 0 for half

    def __call__(
        self, module: Any, x: torch.Tensor, hidden: torch.Tensor, *filled: torch.Tensor
    ) -> torch.Tensor:
        """Call the module with one piece after the other, and put the outputs together.

        filled (b, num_tokens) is True for filling, where way tells it, of the text so far.
        """
        axis, more = 1 - self.first, dict.fromkeys(self.flags, True)
        half = self.begin or (len(hidden) + 1) // 2
        rest = len(hidden) - half
        lengths = half, *([1] * rest if self.single else (1, rest - 1))
        outs, past = [], {self.past: {}} if self.gets == "dict" else {}
        for name in resets(module) if self.gets == "flag" else ():
            getattr(module, name)()
        for piece in x.split([length for length in lengths if length > 0], dim=axis):
            handed = functools.partial(module, **more, **past)
            before = sum(out.shape[axis] for out in outs)
            seen, way = before + piece.shape[axis], self.way.after(before)
            hides = hidden[before:seen, :seen]
            returned = way(handed, piece, hides, *(tensor[:, :seen] for tensor in filled))
            outs.append(output(returned, self.width))
            self.between()
            if self.gets in BY_MODULE:
                past = {self.past: seen} if self.gets == "count" else {}
                continue
            if self.gets == "dict":
                if not past[self.past]:
                    raise LookupError("nothing is kept in the dict")
                continue
            table = piece.shape[axis], seen  # of weights, for the tokens of a piece and all so far
            rest = [e for e in _parts_of(returned) if not (e is outs[-1] or ends_in(e, table))]
            if len(rest) < 1 + (self.gets == "second"):
                raise LookupError("nothing is returned that could be kept")
            kept = tuple(rest) if self.gets == "all" else rest[self.gets == "second"]
            earlier, past = past, {self.past: kept}
            here, before = ({*map(id, tensors_in([some]))} for some in (past, earlier))
            if self.forks and earlier and not here & before:  # else it is written in place
                way(handed, piece.flip(-1), hides)
        return torch.cat(outs, dim=axis)

    @classmethod
    def of(cls, module: Any, way: Any, width: int) -> "Iterator[InPieces]":
        """Yield every such way that the parameters of a module's forward allow."""
        names = list(inspect.signature(module.forward).parameters)
        flags = tuple(filter(NAMED["flag_kept"].fullmatch, names))
        for past in [n for n in filter(NAMED["past"].fullmatch, names) if n not in flags]:
            every = "first", "second", "all", "dict"
            yield from (cls(way, past, gets, flags, width) for gets in every)
        for past in filter(NAMED["start"].fullmatch, names):
            yield cls(way, past, "count", flags, width)
        yield from (cls(way, flag, "flag", flags, width) for flag in flags[:1])


def resets(module: Any) -> list[str]:
    """The methods of a module, by their names, that make it forget the text so far."""
    own = dir(type(getattr(module, "func", module)))
    return [*filter(NAMED["reset"].fullmatch, own)]


def begins(cls: Any) -> bool:
    """Whether forward must be told where a text begins: what it keeps is not for training."""
    return any(map(NAMED["start"].fullmatch, getattr(getattr(cls, "call", None), "plain", ())))


def _parts_of(returned: Any) -> list[Any]:
    """What is returned, part by part, without what holds no tensor."""
    if is_dataclass(returned):
        parts = vars(returned).values()
    elif isinstance(returned, dict):
        parts = returned.values()
    else:
        parts = returned if isinstance(returned, tuple | list) else [returned]
    return [part for part in parts if any(True for _ in tensors_in(part))]


def ends_in(part: Any, axes: tuple[int, ...]) -> bool:
    """Whether a part is a tensor whose last axes are these, behind others."""
    return isinstance(part, torch.Tensor) and part.dim() > 2 and part.shape[-2:] == axes


def left_alone(module: Any, *calls: Call) -> list[str]:
    """The parameters of a module's forward that have a default, which none of these calls gives."""
    signature, given = inspect.signature(module.forward), set()

    def forward(*args: Any, **named: Any) -> Any:
        given.update(signature.bind_partial(*args, **named).arguments)
        return args[0] if args else next(iter(named.values()))

    forward.config = getattr(module, "config", None)
    hidden = torch.ones(3, 3, dtype=torch.bool).triu(1)
    for call in calls:
        attempt(call, forward, torch.ones(2, 3, 4), hidden)
    every = signature.parameters.values()
    return [e.name for e in every if e.default is not e.empty and e.name not in given]


def output(returned: Any, d_out: int) -> Any:
    """The first tensor (b, num_tokens, d_out) of whatever is returned, or else the first tensor."""
    several = vars(returned).values() if is_dataclass(returned) else [returned]
    every = list(tensors_in(several))
    fitting = (tensor for tensor in every if tensor.dim() == 3 and tensor.shape[-1] == d_out)
    return next(fitting, every[0] if every else returned)


def ways(module: Any, causal: bool, but: tuple[str, ...] = (), also: str = "") -> Iterator[Way]:
    """Yield every way to call a module's forward that its parameters allow, plain ones first.

    Parameters in but get something else; also is one with a default that gets x, "" for none.
    """
    every = [e for e in inspect.signature(module.forward).parameters.values() if e.name not in but]
    usual = [p for p in every if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    names = [parameter.name for parameter in usual]
    mask = next((name for name in MASKS if name in names), "")
    flag = next((name for name in FLAGS if name in names), "")
    wanted = [p for p in usual if p.default is p.empty or p.name == also]
    needed = [parameter.name for parameter in wanted if parameter.name not in (mask, flag)]
    # One that stands alone may go by place; several are the queries, keys and values.
    by_name = len(needed) > 1 or any(e.kind is e.KEYWORD_ONLY for e in wanted if e.name in needed)
    given = tuple(needed) if by_name else ()
    optional = mask and next(e for e in usual if e.name == mask).default is not inspect._empty
    for first in (False, True):
        if not mask or optional:
            yield Way(given, first=first)
        if flag and causal:
            yield Way(given, flag, "flag", first=first)
        if mask and (causal or not optional):
            forms = itertools.product(kinds_of(module, mask), SHAPES)
            yield from (Way(given, mask, *form, first) for form in forms)
