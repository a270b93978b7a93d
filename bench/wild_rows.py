"""What bench/in_the_wild.py judges: a row for each class, with the adapter that builds it."""

import pkgutil
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import Parameter, Signature
from itertools import accumulate
from pathlib import Path
from types import ModuleType
from typing import Any

import torch


@dataclass(frozen=True)
class Row:
    """A class of a package, and what is expected of it.

    Args:
        package: with its version, as pip takes it.
        name: of the class.
        steps: those that may be named where it is wrong; none where it is right.
        source: where the mistake is told, or mended.
        build: its adapter, a function that asks for our sizes by their names.
        unaided: whether build returns the class itself, to be asked as it is.
        says: what is said of it where it cannot be judged, since it raises.
        options: what check_attention is given besides.
    """

    package: str
    name: str
    steps: tuple[int, ...]
    source: str
    build: Callable[..., torch.nn.Module]
    unaided: bool = False
    says: str = ""
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def is_right(self) -> bool:
        return not self.source

    @property
    def asked(self) -> str:
        """How it is asked: bare, with options of the shell, with what is told, or built for it."""
        told = [name for name in ("layers", "call") if name in self.options]
        told += ["--full"] if self.options.get("causal") is False else []
        told += [f"--variant {self.options['variant']}"] if "variant" in self.options else []
        return ", ".join(told or ["bare"]) if self.unaided else "built"


ROWS: dict[str, Row] = {}
HUB = "https://github.com"
OURS = ["d_in", "d_out", "context_length", "dropout", "num_heads", "head_dim", "qkv_bias", "config"]
TABLE = tomllib.loads(Path(__file__).with_name("wild.toml").read_text("utf-8"))


def row(
    package: str,
    name: str,
    steps: tuple[int, ...] = (),
    source: str = "",
    unaided: bool = False,
    says: str = "",
    **options: Any,
) -> Callable:
    """Put the adapter below into ROWS: right, or a release with a mistake at one of these steps."""

    def keep(build: Callable) -> Callable:
        told = unaided, says, options
        ROWS[f"{package} {name}"] = Row(package, name, steps, source, build, *told)
        return build

    return keep


def in_table(
    place: str,
    build: Mapping[str, Any] | None = None,
    first: Sequence[str] = (),
    package: str = "",
    broke: str = "",
    steps: Sequence[int] = (),
    source: str = "",
    named: str = "",
    **options: Any,
) -> None:
    """Put classes into ROWS as wild.toml says."""
    name, is_bare = named or place.partition(":")[2], build is None
    adapter = (lambda: found(place, *first)) if is_bare else builder(place, first, **build)
    if "call" in options:
        options["call"] = CALLS[options["call"]]
    if "layers" in options:  # a table cannot hold None
        options["layers"] = {ours: at or None for ours, at in options["layers"].items()}
    for release, at, told in (package, (), ""), (broke, tuple(steps), f"{HUB}/{source}"):
        if release:
            row(release, name, at, told, unaided=is_bare, **options)(adapter)


def builder(
    place: str,
    first: Sequence[str],
    given: Sequence = (),
    named: Mapping[str, Any] | None = None,
    config: str = "",
) -> Callable[..., torch.nn.Module]:
    """Return the adapter of a class that takes what is given, and what is named."""
    named = named or {}
    asked = [size for size in OURS if size in [*given, *named.values()]]

    def build(**sizes):
        kind = found(place, *first)
        by_place = [sizes.get(value, value) for value in given]
        by_name = {name: sizes.get(value, value) for name, value in named.items()}
        if config:
            return kind(found(f"{place.partition(':')[0]}:{config}")(**by_name), *by_place)
        return kind(*by_place, **by_name)

    build.__signature__ = Signature(Parameter(size, Parameter.KEYWORD_ONLY) for size in asked)
    return build


def found(place: str, *first: str) -> Any:
    """Return the class at "module:Class"; the packages named first are imported bare."""
    bare(*first)
    return pkgutil.resolve_name(place)


# What several adapters share


def a_type(name: str) -> type:
    """What a bare package has under the name of a class; only annotations ask for it."""
    if name[0].isupper():
        return object
    raise AttributeError(name)


def bare(*packages: str) -> None:
    """Let modules of these packages be imported without all that the packages import first."""
    for package in packages:
        for name in accumulate(package.split("."), "{}.{}".format):
            parent, _, last = name.rpartition(".")
            places = sys.modules[parent].__path__ if parent else sys.path
            module = sys.modules.setdefault(name, ModuleType(name))
            module.__path__ = [f"{place}/{last}" for place in places]
            module.__getattr__, module.__version__ = a_type, "0"


def added(x, hidden):
    """A mask (1, 1, num_tokens, num_tokens) that is added to the scores."""
    return x.new_zeros(hidden.shape).masked_fill(hidden, -torch.inf)[None, None]


def masked(module, x, hidden):
    """A call with a mask that is added to the scores."""
    return module(x, attention_mask=added(x, hidden))


def turned(module, x, hidden):
    """A call with the cosines and sines of positions, at base 10,000."""
    place = torch.arange(x.shape[1], device=x.device)[:, None]
    turns = place * 1e4 ** -(torch.arange(0, module.head_dim, 2, device=x.device) / module.head_dim)
    turns = torch.cat([turns, turns], -1)[None]
    places = turns.cos().to(x), turns.sin().to(x)
    return module(x, position_embeddings=places, attention_mask=added(x, hidden))


def channels_first(module, x, hidden):
    """A call in which features stand before tokens."""
    return module(x.transpose(1, 2)).transpose(1, 2)


CALLS = {call.__name__: call for call in (masked, turned, channels_first)}
