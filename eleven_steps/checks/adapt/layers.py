"""Where the four weights are in a module of somebody else's, and how their numbers are laid out.

A layout is the order of a weight's axes: "3 h d i" is that of queries, keys and values side by
side in one nn.Linear, heads in order, features in order, inputs last. Letters: 3 (queries, keys,
values), 2 (keys, values), h (heads), d (head_dim), i (inputs), o (outputs of out_proj).
"""

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn

from eleven_steps.checks.run.cases import LAYERS

ROLES = {"qkv": LAYERS[:3], "kv": LAYERS[1:3]} | {name: (name,) for name in LAYERS}

# What the layers are called elsewhere; around each word may stand what says that it is a layer.
_AROUND = r"(?:w|to|in|fc|lin|linear|proj|dense|layer|weight|net|transform|projection)"
_WORDS = {
    "qkv": r"c_?attn|qkv|kqv|query_?key_?value|in_proj|attn|att|kqv",
    "kv": r"kv|key_?value",
    "W_query": r"q|query|queries",
    "W_key": r"k|key|keys",
    "W_value": r"v|value|values",
    "out_proj": r"o|out|output|proj|c_proj|projection|dense|fc|unify_?heads|combine|merge",
}
_NAMED = {
    role: re.compile(rf"_?(?:{_AROUND}_?)?(?:{words})(?:_?{_AROUND})?s?_?", re.IGNORECASE)
    for role, words in _WORDS.items()
}
# The usual ones come first; of those that fit the shape, results tell which it is.
LAYOUTS = {
    "qkv": ("3 h d i", "h 3 d i", "h d 3 i", "i 3 h d", "i h 3 d", "i h d 3"),
    "kv": ("2 h d i", "h 2 d i", "h d 2 i", "i 2 h d", "i h 2 d", "i h d 2"),
    "out_proj": ("o h d", "h d o"),
} | dict.fromkeys(LAYERS[:3], ("h d i", "i h d", "h i d"))


@dataclass(frozen=True)
class Place:
    """Where one weight of ours, or several in one, is kept.

    Args:
        role: which: a name in ROLES.
        weights: names of parameters; several where each head has its own.
        biases: the same of biases; empty where there are none.
        layout: the order of the weight's axes.
    """

    role: str
    weights: tuple[str, ...]
    biases: tuple[str, ...]
    layout: str

    def filled(self, ours: list[torch.Tensor], shape: torch.Size, bias: bool) -> dict:
        """Lay our weights, or biases, out as they are kept here.

        Args:
            ours: for each layer of the role (heads, head_dim, i), or (o, heads, head_dim) of
                out_proj; of biases the same without i, or (o,).
            shape: of each parameter.
            bias: whether these are biases.

        Returns:
            A tensor for each parameter, by name.
        """
        letters = [each for each in self.layout.split() if not (bias and each == "i")]
        if self.role == "out_proj":
            flat = ours[0] if bias else ours[0].permute([("o h d").split().index(e) for e in letters])
        else:
            flat = _side_by_side(ours, letters)
        names = self.biases if bias else self.weights
        return dict(zip(names, flat.reshape(len(names), *shape).unbind(), strict=True))

    @property
    def told(self) -> str:
        """Where the weights are, in a few words."""
        names = dict.fromkeys(re.sub(r"[._]?(in_proj_)?weight$", "", n) or n for n in self.weights)
        first, *others = names
        where = f"{first} and {len(others)} more, one a head" if others else first
        usual = self.layout in ("h d i", "o h d")
        return f"{self.role} = {where}" + ("" if usual else f" ({self.layout})")


def _side_by_side(ours: list[torch.Tensor], letters: list[str]) -> torch.Tensor:
    natural = [each for each in ("h", "d", "i") if each in letters]
    inner = [each for each in letters if each not in "23"]
    turned = [each.permute([natural.index(letter) for letter in inner]) for each in ours]
    if len(ours) == 1:
        return turned[0]
    axis = next(i for i, letter in enumerate(letters) if letter in "23")
    if axis == 0:  # widths may differ, where heads share keys
        return torch.cat([each.flatten() for each in turned])
    return torch.stack(turned, dim=axis)


def role_of(name: str) -> str:
    """The role of a parameter by its name, "W_query" for one; "" if it has none."""
    parts = re.sub(r"[._]?weight$", "", name).split(".")
    for part in reversed(parts):
        for role, pattern in _NAMED.items():
            if pattern.fullmatch(part):
                return role
    return ""


def bias_of(name: str, parameters: dict[str, nn.Parameter]) -> str:
    """The name of the bias that belongs to a weight; "" if there is none."""
    owner, _, last = name.rpartition(".")
    for old, new in ("weight", "bias"), ("W_", "b_"), ("w_", "b_"):
        other = f"{owner}.{last.replace(old, new)}".lstrip(".")
        if old in last and other in parameters:
            return other
    return ""


def found(module: nn.Module) -> dict[str, list[str]]:
    """The weights of each role, by names; several of one role where each head has its own."""
    weights = {n: p for n, p in module.named_parameters() if p.dim() > 1}
    by_role: dict[str, list[str]] = {}
    if same := _four_alike(weights):
        return dict(zip(LAYERS, ([name] for name in same), strict=True))
    for name in weights:
        by_role.setdefault(role_of(name), []).append(name)
    by_role.pop("", None)
    if len(named := by_role.get("out_proj", [])) > 1:  # the more telling name, "dense" is any
        sure = [n for n in named if re.search(r"out|proj|\bo\b|W_O", n)]
        by_role["out_proj"] = sure or named
    return by_role


def _four_alike(weights: dict[str, nn.Parameter]) -> list[str]:
    """The four of a list of layers: queries, keys, values, and what comes out, in this order."""
    lists = itertools.groupby(weights, key=lambda name: re.sub(r"\d+", "*", name))
    groups = [(pattern, list(names)) for pattern, names in lists]
    return next((names for p, names in groups if "*" in p and len(names) == 4 == len(weights)), [])


def layouts_of(role: str, shape: tuple[int, ...], count: int, sizes: dict, linear: bool) -> list:
    """The layouts that a weight of a shape can have.

    Args:
        role: a name in ROLES.
        shape: of one parameter.
        count: how many parameters there are, one a head.
        sizes: of the letters.
        linear: whether it is an nn.Linear's, whose inputs come last.
    """
    first = ("o",) if role == "out_proj" and count == 1 else ()
    fitting = []
    for layout in LAYOUTS[role]:
        letters = layout.split()
        if linear and letters[-1] != "i" and letters[0] not in ("o", *first):
            continue
        if count > 1 and letters[0] != "h":
            continue
        if _merges([sizes[letter] for letter in letters[count > 1 :]], shape):
            fitting.append(layout)
    return fitting


def _merges(axes: list[int], shape: tuple[int, ...]) -> bool:
    """Whether neighbouring axes can be merged into a shape; axes of one may stand anywhere."""
    shape = tuple(each for each in shape if each != 1)
    axes = [each for each in axes if each != 1]
    for each in shape:
        size = 1
        while axes and size < each:
            size *= axes.pop(0)
        if size != each:
            return False
    return not axes or math.prod(axes) == 1


def places(
    module: nn.Module, by_role: dict[str, list[str]], sizes: dict[str, dict], told: dict[str, str]
) -> Iterator[list[Place]]:
    """Yield every way to read where the weights are, the usual ones first.

    Args:
        module: built at sizes that all differ.
        by_role: names of the weights of each role.
        sizes: of the letters, by role.
        told: layouts that need no guess, by role.
    """
    parameters = dict(module.named_parameters())
    modules = dict(module.named_modules())
    choices = []
    for role, names in by_role.items():
        owner = modules.get(names[0].rpartition(".")[0])
        shape = tuple(parameters[names[0]].shape)
        layouts = [told[role]] if role in told else layouts_of(
            role, shape, len(names), sizes[role], isinstance(owner, nn.Linear)
        )
        biases = tuple(filter(None, (bias_of(name, parameters) for name in names)))
        choices.append([Place(role, tuple(names), biases, layout) for layout in layouts])
    yield from map(list, itertools.product(*choices))
