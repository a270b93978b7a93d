"""What bench/in_the_wild.py judges: a row for each class, with the adapter that builds it."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate
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
        """Whether it is right."""
        return not self.source

    @property
    def asked(self) -> str:
        """How it is asked: bare, with options of the shell, with what is told, or built for it."""
        told = [each for each in ("layers", "call") if each in self.options]
        told += ["--full"] if self.options.get("causal") is False else []
        told += [f"--variant {self.options['variant']}"] if "variant" in self.options else []
        return ", ".join(told or ["bare"]) if self.unaided else "built"


ROWS: dict[str, Row] = {}
HUB = "https://github.com"


def right(package: str, name: str, **options: Any) -> Callable:
    """Put the adapter below into ROWS: the class is right."""
    return _row(package, name, (), "", options)


def wrong(package: str, name: str, steps: tuple[int, ...], source: str, **options: Any) -> Callable:
    """Put the adapter below into ROWS: the release shipped a mistake at one of these steps."""
    return _row(package, name, steps, source, options)


def _row(package, name, steps, source, options):
    def keep(build: Callable) -> Callable:
        more = {each: options.pop(each) for each in ("unaided", "says") if each in options}
        ROWS[f"{package} {name}"] = Row(
            package, name, steps, source, build, options=options, **more
        )
        return build

    return keep


# What several adapters share

DI_ENGINE = {"qkv": "attention_pre.0", "out_proj": "project.0"}


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


def linears(width: int, bias: bool, *names: str) -> dict[str, torch.nn.Linear]:
    """A square layer under each name."""
    return {name: torch.nn.Linear(width, width, bias) for name in names}


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


def twice(module, x, hidden):
    """A call with x for the queries, and for keys and values."""
    return module(x, x)


def without_norm(module):
    """The same without the norm that it takes x through first."""
    module.norm = torch.nn.Identity()
    return module
