"""How a constructor of somebody else's is called: which of our sizes each parameter asks for."""

import contextlib
import copy
import dis
import functools
import inspect
import itertools
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, NoneType
from typing import Any, get_args

from torch import nn

from eleven_steps.checks.adapt.vocabulary import SIZE_OF, WORDS
from eleven_steps.checks.run.cases import COUNTS, Case
from eleven_steps.checks.run.contract import sizes_besides
from eleven_steps.checks.run.isolate import Failure, attempt
from eleven_steps.checks.run.variant import Variant

CONFIGS = ("config", "cfg", "args", "conf", "hparams", "params", "opt")
PYTHONS = ("builtins", "typing", "inspect")
# What can be told besides: the ways that a config names, the first layer and the last, the order.
CHOICES = {"fused": ("eager", "sdpa"), "layer": (0, -1), "first": (True, False)}
WITHOUT = {"one_key": False, "relative": False, "relative_kind": "none", "rate": 1, "cross": False}
WITHOUT |= {"sparse": "original_full", "factor": 1.0}
CHOICES |= {name: (layer,) for name, layer in WITHOUT.items()} | {"query_latent": (None,)}
# Sizes that only a class with a change asks for, whether or not it is asked about with that
SIGNS = {"limit": "cap", "window": "window", "slopes": "alibi"}
ENDS = ("d_out", "num_heads", "num_kv_heads", "head_dim")  # also as memory_hidden_size
LAYER_COUNTS = "num_hidden_layers n_layers n_layer num_layers encoder_layers"

Build = Callable[..., Any]
Sizes = dict[str, Any]  # by our names, or by those of parameters


class Config(dict):
    """Our sizes under every name, as keys and as attributes; it remembers which were asked for."""

    def __init__(self, sizes: dict[str, Any]):
        super().__init__({w: sizes[size] for w, size in SIZE_OF.items() if size in sizes})
        self.asked: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        self.asked.add(SIZE_OF[name])
        return value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self:
            raise AttributeError(name)
        return self[name]

    def get(self, name: str, default: Any = None) -> Any:
        """As a dictionary's get."""
        return self[name] if name in self else default  # noqa: SIM401, that is this function


def built(build: Build, sizes: dict[str, Any]) -> tuple[Any, set[str]]:
    """Call a constructor, or a function that builds, with the sizes that its parameters ask for.

    Args:
        build: its parameters bear our names, or usual ones; a config is made of the class that it
            is annotated with, or else gets all of them. Of what is required, what is left is the
            width.
        sizes: by our names.

    Returns:
        (what it returns, the names of the sizes that it asked for).

    Raises:
        TypeError: parameters without a default ask for something else.
    """
    sizes = _usual(sizes)
    if any(SIZE_OF.get(e.name) == "share" and e.default is e.empty for e in _parameters(build)):
        sizes = {"share": 0.5} | sizes  # else what a class turns by default
    of, configs, strange = _asked_for(build, sizes)
    sized = [e for e in _parameters(build) if of[e.name] in sizes or e.name in strange]
    asked = {of[e.name] for e in sized if not _is_so(of[e.name], e.default)}
    asked |= {*of.values()} & {*SIGNS}
    named = configs | {parameter.name: sizes.get(of[parameter.name]) for parameter in sized}
    _set_layer(named, of, configs)
    # A cap or a window that nobody asks for is None, where it can be.
    made = attempt(_constructed, build, named, configs, sizes) if strange else None
    if strange and (isinstance(made, Failure) or {of[name] for name in strange} - {*SIGNS}):
        are = "are none" if len(strange) > 1 else "is none"
        raise TypeError(f"{' and '.join(map(repr, strange))} {are} of our sizes")
    made = made if strange else _constructed(build, named, configs, sizes)
    for config in configs.values():
        asked |= getattr(config, "asked", None) or _sizes_read(config, made)
    besides = {"nothing", "base", "eps", "scale", "norm", "share", "turned", "most_texts"}
    return made, asked - besides


def _constructed(build: Build, named: Sizes, configs: Sizes, sizes: Sizes) -> Any:
    """What a constructor makes; a config gets each of our sizes that it lacks, once it is read."""
    try:
        return build(**named)
    except AttributeError as error:
        lost, has = _field(error.name or ""), getattr(error.obj, "__dict__", None)
        parts = (e for c in configs.values() for e in getattr(c, "__dict__", {}).values())
        ours = any(error.obj is config for config in (*configs.values(), *parts))
        if lost not in {*sizes, *SIGNS} or not ours or has is None or error.name in has:
            raise
        has[error.name] = sizes.get(lost)
    return _constructed(build, named, configs, sizes)


def most_texts(module: nn.Module, build: Build) -> float:
    """For how many texts at once a module is made, as it says by name; infinity if it does not.

    What a function builds that does not tell its class is so by the class's default, or a config's.
    """
    names = WORDS["most_texts"].split()
    holds = [module, *(getattr(module, config, None) for config in CONFIGS)]
    said = [getattr(thing, name, None) for thing in holds for name in names]
    if build is not type(module):
        every = _parameters(type(module))
        said += [parameter.default for parameter in every if parameter.name in names]
        said += [getattr(parameter.annotation, n, None) for parameter in every for n in names]
    return min((number for number in said if type(number) is int), default=math.inf)


def left_as_is(build: Build, sizes: dict[str, Any]) -> list[inspect.Parameter]:
    """The parameters of a constructor that are told nothing, so that they are as by default."""
    found = attempt(_asked_for, build, _usual(sizes))
    if isinstance(found, Failure):
        return []
    of, configs, _ = found
    told = {*_usual(sizes), "device", "dtype"}
    return [e for e in _parameters(build) if of[e.name] not in told and e.name not in configs]


def flags_left(build: Build, sizes: dict[str, Any]) -> list[str]:
    """The flags that a class reads of its configs, of which nobody knows what they are for."""
    found = attempt(_asked_for, build, _usual(sizes))
    configs = () if isinstance(found, Failure) else found[1].values()
    read = sorted(name for name in _read_of_config(build) if not _field(name))
    return [n for n in read if any(type(attempt(getattr, c, n, 0)) is bool for c in configs)]


def _asked_for(build: Build, sizes: Sizes) -> tuple[dict[str, str], Sizes, list[str]]:
    """Which size each parameter asks for, the configs by name, and what is required besides."""
    parameters = _parameters(build)
    configs = {parameter.name: _config(parameter, build, sizes) for parameter in parameters}
    configs = {name: config for name, config in configs.items() if config is not None}
    of = {parameter.name: SIZE_OF.get(parameter.name, parameter.name) for parameter in parameters}
    # By our own name for a choice nobody asks for it: a `first` that has a default keeps that.
    keeps = (e for e in parameters if e.name in CHOICES or of[e.name] == "sparse")
    of |= {e.name: "" for e in keeps if e.default is not e.empty}
    if configs:  # which gives the width of x
        of |= {e.name: "" for e in parameters if of[e.name] == "d_in" and e.default is not e.empty}
    left = [p for p in parameters if of[p.name] not in sizes and p.name not in configs]
    required = [parameter.name for parameter in left if parameter.default is parameter.empty]
    of = _one_width(of, required, left, bool(configs))
    return of, configs, [name for name in required if of[name] not in sizes]


def whatever(variant: Variant) -> dict[str, Any]:
    """What a constructor may ask for that is the same in all cases of a variant."""
    base, share = variant.rope
    said = {"causal": "full" not in variant, "norm": "norm" in variant, "nothing": 0.0}
    said |= {"query_latent": None} if "latent" in variant else {}
    return said | {"base": base} | ({"share": share} if share < 1 else {})


def sizes_given(case: Case) -> dict[str, Any]:
    """All that a constructor may ask for in a case, by our names."""
    own = {name: size for name, size in case.letters.items() if name not in ("b", "num_tokens")}
    return own | {"dropout": 0.0, "qkv_bias": True} | whatever(case.variant) | sizes_besides(case)


def choices(asked: set[str]) -> Iterator[dict[str, Any]]:
    """Yield what a constructor can be told besides, each with each other."""
    names = [name for name in CHOICES if name in asked]
    for some in itertools.product(*(CHOICES[name] for name in names)):
        yield dict(zip(names, some, strict=True))


def _usual(sizes: dict[str, Any]) -> dict[str, Any]:
    """Our sizes, and those that follow from them."""
    usual: dict[str, Any] = {"base": 1e4, "eps": 1e-6, "norm": False}
    usual["most_texts"] = max(COUNTS)  # that a cache must have room for
    usual |= {n: some[0] for n, some in CHOICES.items() if some[0] is not None}
    if "num_heads" in sizes:
        usual["num_kv_heads"] = sizes["num_heads"]
    if "head_dim" in sizes:
        usual["scale"] = sizes["head_dim"] ** -0.5
        usual["turned"] = round(sizes["head_dim"] * sizes.get("share", 0.5))
    return usual | sizes


def _one_width(
    of: dict[str, str], required: list[str], left: list[inspect.Parameter], config: bool
) -> dict[str, str]:
    """Whose size each parameter is, where one is found by elimination.

    What alone is left of what is required is the width; an input's width that stands alone is the
    output's too; and where nothing is required, the first whole number is.
    """
    read = {*of.values()}
    if config or "d_out" in read:
        return of
    if "d_in" in read and not required and len(read) > 1:
        return {name: "d_out" if size == "d_in" else size for name, size in of.items()}
    whole = [p.name for p in left if type(p.default) is int and p.default > 1]
    found = required if required else whole[:1]
    if len(found) != 1 or "d_in" in read or "num_heads" not in read:
        return of
    return of | {found[0]: "d_out"}


@functools.cache
def _parameters(build: Build) -> tuple[inspect.Parameter, ...]:
    signature = attempt(inspect.signature, build, eval_str=True)
    if isinstance(signature, Failure):  # annotations may name what is not there
        signature = inspect.signature(build)
    every = signature.parameters.values()
    return tuple(e for e in every if e.kind not in (e.VAR_POSITIONAL, e.VAR_KEYWORD))


# Configs


def _config(parameter: inspect.Parameter, build: Build, sizes: dict[str, Any]) -> Any:
    called = _called(parameter.name)
    kinds = [parameter.annotation, *get_args(parameter.annotation)]
    kind = next((option for option in kinds if _is_config(option, 1)), None)
    if kind is None and called:  # of parts, as one of text and of vision; the base of all is none
        near = _nearby(build)
        named = (e for e in kinds if isinstance(e, type) and e.__name__.endswith("Config"))
        kind = next((e for e in named if near is None or not issubclass(near, e)), near)
    if kind is not None:  # a copy, since a constructor may write into its config
        return copy.deepcopy(_filled(kind, build, *sizes.items()))
    required = called and parameter.default is parameter.empty
    return Config({"share": 0.5} | sizes) if required else None


def _called(name: str) -> bool:
    return name in CONFIGS or name.endswith("config")


def _is_config(kind: Any, least: int = 2) -> bool:
    """Whether a class takes so many of width and heads, and is neither a module nor Python's."""
    if not isinstance(kind, type) or kind.__module__ in PYTHONS or issubclass(kind, nn.Module):
        return False
    return len({*map(_field, _field_names(kind))} & {"d_out", "num_heads"}) >= least


@functools.cache
def _field_names(kind: type) -> frozenset[str]:
    """The names of a config's fields: parameters, or attributes."""
    signature = attempt(inspect.signature, kind)
    names = () if isinstance(signature, Failure) else signature.parameters
    return frozenset((*names, *dir(kind)))


@functools.cache
def _nearby(build: Build) -> type | None:
    """The config beside a class that has most of what its code reads; None where none has any."""
    beside = vars(sys.modules.get(getattr(build, "__module__", "")) or object).values()
    some = [thing for thing in beside if isinstance(thing, type) and _is_config(thing)]
    read = read_by(build)
    name = getattr(build, "__name__", "")

    def nearness(kind: type) -> tuple[int, int]:
        alike = os.path.commonprefix([kind.__name__, name])
        return sum(field in _field_names(kind) for field in read), len(alike)

    best = max(some, key=nearness, default=None)
    own = best is not None and name.startswith(best.__name__.removesuffix("Config"))
    return best if own or best is None or nearness(best)[0] or not read else None


@functools.lru_cache(64)
def _filled(kind: type, build: Build, *named: tuple[str, Any]) -> Any:
    """A config of a class, its defaults aside from our sizes, as the code of build reads it.

    Of one that is made of parts it is the part that has what is read, unless the code names one.
    """
    read, sizes = read_by(build), dict(named)
    signature = attempt(inspect.signature, kind)
    names = {} if isinstance(signature, Failure) else signature.parameters
    if not any("sparse" in str(e.default) for e in names.values()):  # it has names of its own
        sizes.pop("sparse", None)
    given = {n: sizes[_field(n)] for n in names if _field(n) in sizes}
    flags = {n: bool(e) for n, e in given.items() if isinstance(names[n].default, bool)}
    given |= flags  # as token_dropout may be one
    if sum(_field(name) == "dropout" for name in read & names.keys()) > 1:
        given["dropout"] = 0.0  # of weights is the other, by a longer name
    config = attempt(kind, **given)
    if isinstance(config, Failure):
        # A field that holds one number, and not one for each stage, has one by default, or none.
        ones = {n for n, e in names.items() if isinstance(e.default, int | float | NoneType | type)}
        given = {n: e for n, e in given.items() if _field(n) not in WITHOUT and n in ones}
        config = attempt(kind, **_follow_ours(names, given) | given)
    if isinstance(config, Failure):  # what it refuses together it gets one by one
        config, names = kind(), ()
    attempt(_set_all, config, names, sizes)
    has = getattr(config, "__dict__", {})
    parts = {n: e for n, e in has.items() if _is_config(type(e))}  # of vision and text
    for part in parts.values():
        attempt(_set_all, part, (), sizes)
    if names_in_code(build) & parts.keys():
        return config
    return max((config, *parts.values()), key=lambda cls: sum(_has(cls, n) for n in read))


def _has(config: Any, name: str) -> bool:
    """Whether a config has a field: one that differs from layer to layer may raise."""
    return attempt(hasattr, config, name) is True


def _follow_ours(names: Any, given: dict[str, Any]) -> dict[str, Any]:
    """What else a config gets that refuses our sizes: what is by default as one of them is so."""
    defaults = {name: parameter.default for name, parameter in names.items()}
    whole = {name: default for name, default in defaults.items() if type(default) is int}
    ours = {whole[n]: size for n, size in given.items() if n in whole}
    return {n: ours[size] for n, size in whole.items() if size in ours}


def _set_all(config: Any, but: Iterable[str], sizes: dict[str, Any]) -> None:
    """Give a config's attributes our sizes, but those that it was made with."""
    for name in {*SIZE_OF, *getattr(config, "__dict__", ())} - {*but}:
        with contextlib.suppress(Exception):  # what cannot be read or set stays
            if _field(name) in sizes and hasattr(config, name):
                setattr(config, name, sizes[_field(name)])


@functools.cache
def _field(name: str) -> str:
    """The size that a config's field holds, by its name or the end of it; "" if it holds none."""
    parts = name.split("_")
    ends = ("_".join(parts[i:]) for i in range(1, len(parts) - 1))  # one word says too little
    found = (SIZE_OF[ending] for ending in ends if SIZE_OF.get(ending) in ENDS)
    rate = "dropout" if "att" in name else "nothing"  # of weights; else of what the block does
    of_dropout = re.search(r"dropout(_prob|_rate|_p)?$", name)
    return SIZE_OF.get(name) or next(found, rate if of_dropout else "")


def _set_layer(named: dict[str, Any], of: dict[str, str], configs: dict[str, Any]) -> None:
    """Put the number of the last layer where -1 stands for it."""
    counts = (attempt(getattr, c, n, 0) for c in configs.values() for n in LAYER_COUNTS.split())
    last = next((number - 1 for number in counts if type(number) is int and number), 0)
    for name, value in named.items():
        if of[name] == "layer" and value == -1:
            named[name] = last


def _sizes_read(config: Any, made: Any) -> set[str]:
    """Which of our sizes the code of a module reads from its config."""
    modules = made.modules() if isinstance(made, nn.Module) else ()
    read = set().union(*(fields_of(kind) for kind in {type(module) for module in modules}))
    has = {name for name in read if _has(config, name)}
    kind = type(config)
    return {_field(name) for name in has if not _is_so(_field(name), getattr(kind, name, ...))}


def _is_so(size: str, default: Any) -> bool:
    """Whether a class does by default without what the lecture's class does not have."""
    return size in WITHOUT and default == WITHOUT[size]


@functools.cache
def names_in_code(kind: Any) -> frozenset[str]:
    """The names that stand in the code of a class; none in that of a function."""
    said = (name for code in _codes(kind) for name in (*code.co_names, *code.co_consts))
    return frozenset(text for text in said if isinstance(text, str))


def _codes(kind: Any) -> list[CodeType]:
    kinds = kind.__mro__ if isinstance(kind, type) else ()
    own = (vars(cls).values() for cls in kinds if not cls.__module__.startswith("torch."))
    return [value.__code__ for values in own for value in values if inspect.isfunction(value)]


@functools.cache
def read_by(kind: Any) -> frozenset[str]:
    """The names of sizes that stand in the code of a class."""
    return frozenset(filter(_field, names_in_code(kind)))


def fields_of(kind: Any) -> frozenset[str]:
    """The names of sizes that are read of a config."""
    return _read_of_config(kind) & read_by(kind)


@functools.cache
def _read_of_config(kind: Any) -> frozenset[str]:
    """What is read of a config: what comes next after its name, or one given to it."""
    read: set[str] = set()
    for code in _codes(kind):
        pairs = [*itertools.pairwise(dis.get_instructions(code))]
        after = [(a, b) for a, b in pairs if _called(str(a.argval).rstrip("')"))]
        given = {b.argval for _, b in after if b.opname == "STORE_FAST"}
        after += [(a, b) for a, b in pairs if a.opname == "LOAD_FAST" and a.argval in given]
        read |= {b.argval for _, b in after if isinstance(b.argval, str)}
    return frozenset(read)
