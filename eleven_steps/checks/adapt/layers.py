"""Where the four weights are in a module of somebody else's, and how their numbers are laid out.

A layout is the order of a weight's axes: "3 h d i" is that of queries, keys and values side by
side in one nn.Linear, heads in order, features in order, inputs last. Letters: 3 (queries, keys,
values), 2 (keys, values, or queries and their gate), h (heads), d (head_dim), i (inputs), o
(outputs of out_proj).
"""

import itertools
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import nn

from eleven_steps.checks.adapt.vocabulary import ROLE_NAMED
from eleven_steps.checks.run.cases import LAYERS

ROLES = {"qkv": LAYERS[:3], "kv": LAYERS[1:3]} | {name: (name,) for name in LAYERS}
ROLES |= {"q_gate": ("W_query", "W_gate")}

# The usual ones come first; of those that fit the shape, results tell which it is.
LAYOUTS = {
    "qkv": ("3 h d i", "h 3 d i", "h d 3 i", "i 3 h d", "i h 3 d", "i h d 3", "3 i h d"),
    "kv": ("2 h d i", "h 2 d i", "h d 2 i", "i 2 h d", "i h 2 d", "i h d 2", "2 i h d"),
    "out_proj": ("o h d", "h d o"),
    "q_gate": ("h 2 d i", "2 h d i"),
} | dict.fromkeys(LAYERS[:3], ("h d i", "i h d", "h i d"))


@dataclass(frozen=True)
class Kept:
    """Where one weight of ours, or several in one, is kept."""

    role: str  # a name in ROLES
    # A parameter's name, * for a number where each head has its own; "" where a bias stands alone
    weight: str
    bias: str  # the same of a bias; "" where there is none
    layout: str  # the order of the weight's axes

    def filled(
        self, ours: list[torch.Tensor], theirs: dict[str, nn.Parameter], bias: bool = False
    ) -> dict[str, torch.Tensor]:
        """Lay our weights, or biases, out as they are kept: a tensor for each parameter, by name.

        Ours come for each layer of the role as (heads, head_dim, i), or (o, heads, head_dim) of
        out_proj; of biases the same without i, or (o,). There is none where theirs has none.
        """
        names = each_of(self.bias if bias else self.weight, theirs)
        if not names:
            return {}
        letters = [letter for letter in self.layout.split() if not (bias and letter == "i")]
        if self.role != "out_proj":
            flat = _side_by_side(ours, letters)
        else:
            flat = ours[0] if bias else ours[0].permute(["ohd".index(letter) for letter in letters])
        flat = flat.reshape(len(names), *theirs[names[0]].shape)
        return dict(zip(names, flat.unbind(), strict=True))

    @property
    def told(self) -> str:
        """Where the weights are, in a few words."""
        name = re.sub(r"[._]?weight$", "", self.weight) or self.weight or self.bias
        usual = self.layout in ("h d i", "o h d")
        return f"{self.role} = {name}" + ("" if usual else f" ({self.layout})")


def each_of(pattern: str, names: Iterable[str]) -> list[str]:
    """The names that a pattern stands for, * for any number."""
    wanted = re.compile(re.escape(pattern).replace(r"\*", r"\d+"))
    return [name for name in names if pattern and wanted.fullmatch(name)]


def _side_by_side(ours: list[torch.Tensor], letters: list[str]) -> torch.Tensor:
    natural = [letter for letter in ("h", "d", "i") if letter in letters]
    inner = [letter for letter in letters if letter not in "23"]
    turned = [tensor.permute([natural.index(letter) for letter in inner]) for tensor in ours]
    if len(ours) == 1:
        return turned[0]
    axis = next(i for i, letter in enumerate(letters) if letter in "23")
    if axis == 0:  # widths may differ, where heads share keys
        return torch.cat([tensor.flatten() for tensor in turned])
    return torch.stack(turned, dim=axis)


def role_of(name: str) -> str:
    """The role of a parameter by its name, "W_query" for one; "" if it has none."""
    parts = re.sub(r"[._]?weight$", "", name).split(".")
    for part in reversed(parts):
        for role, pattern in ROLE_NAMED.items():
            if pattern.fullmatch(part):
                return role
    return ""


def bias_of(name: str, theirs: dict[str, nn.Parameter]) -> str:
    """The name, perhaps with *, of the bias that belongs to a weight; "" if there is none.

    Where none is named so, it is the one beside the weight that has one axis of it less.
    """
    owner, _, last = name.rpartition(".")
    for old, new in ("weight", "bias"), ("W", "b"), ("w", "b"):
        other = f"{owner}.{last.replace(old, new, 1)}".lstrip(".")
        if old in last and each_of(other, theirs):
            return other
    beside = [n for n in theirs if n != name and n.rpartition(".")[0] == owner]
    return beside[0] if name in theirs and beside and _lacks_axis(theirs, name, beside) else ""


def _lacks_axis(theirs: dict[str, nn.Parameter], name: str, beside: list[str]) -> bool:
    """Whether the only parameter beside a weight of more than two axes has its axes but inputs."""
    whole, some = theirs[name].shape, theirs[beside[0]].shape
    inputs_out = [whole[:at] + whole[at + 1 :] for at in range(len(whole))]
    return len(beside) == 1 and len(whole) > 2 and some in (*inputs_out, whole[-1:])


def weights_found(module: nn.Module) -> dict[str, list[str]]:
    """Names of the weights of each role; those of several heads are one name with *.

    Where one role is left and one weight, they belong together, whatever its name.
    """
    theirs = dict(module.named_parameters())
    shapes = {n: p.shape for n, p in theirs.items() if p.squeeze().dim() > 1}
    biases = {bias_of(n, theirs) for n in shapes}
    shapes = {n: shape for n, shape in shapes.items() if n not in biases}
    weights = [*shapes]
    patterns = {re.sub(r"\d+", "*", name) for name in weights}
    if len(weights) == 4 and len(patterns) == 1 and "*" in patterns.pop():
        # A list of four layers and nothing else: queries, keys, values, and what comes out.
        return dict(zip(LAYERS, ([name] for name in weights), strict=True))
    by_role: dict[str, list[str]] = {}
    for name in dict.fromkeys(re.sub(r"\.\d+\.", ".*.", weight) for weight in weights):
        one = name if "*" not in name or len(each_of(name, weights)) > 1 else ""
        one = one or each_of(name, weights)[0]
        three = _three_in_list(one, shapes)
        for role, weight in zip(LAYERS, three, strict=False) if three else [(role_of(one), one)]:
            by_role.setdefault(role, []).append(weight)
    unnamed, lost = by_role.pop("", []), {*LAYERS} - {n for role in by_role for n in ROLES[role]}
    for role in ("qkv", "kv", *LAYERS):
        if lost == {*ROLES[role]} and len(unnamed) == 1:
            by_role[role] = unnamed
    return by_role


def _three_in_list(pattern: str, shapes: dict[str, tuple[int, ...]]) -> list[str]:
    """The three layers of one shape in a list whose name says queries, keys, values; else none."""
    same = each_of(pattern, shapes)
    named = re.search(r"(?:qkv|query_?key_?value)\w*\.\*\.weight$", pattern, re.IGNORECASE)
    return same if named and len(same) == 3 and len({shapes[name] for name in same}) == 1 else []


def layouts_of(
    role: str, shape: tuple[int, ...], each_head: bool, sizes: dict[str, int], last: bool | None
) -> list[str]:
    """The layouts that a weight of a shape, perhaps that of one head, can have at sizes of letters.

    last says whether its inputs come last, as an nn.Linear's; None if its module does not say.
    """
    fitting = []
    for layout in LAYOUTS[role]:
        letters = layout.split()
        inputs_last = letters[0] == "o" or letters[-1] == "i"
        if last not in (None, inputs_last) or each_head and letters[0] != "h":
            continue
        if _merges([sizes[letter] for letter in letters[each_head:]], shape):
            fitting.append(layout)
    return fitting


def _merges(axes: list[int], shape: tuple[int, ...]) -> bool:
    """Whether neighbouring axes can be merged into a shape; axes of 1 may stand anywhere."""
    axes = [axis for axis in axes if axis != 1]
    for length in (length for length in shape if length != 1):
        size = 1
        while axes and size < length:
            size *= axes.pop(0)
        if size != length:
            return False
    return not axes


def misfits(
    module: nn.Module, weights: dict[str, str], sizes: dict[str, dict]
) -> Iterator[tuple[str, str, tuple[int, ...], tuple[int, ...]]]:
    """Yield what has none of the layouts of its role: role, name, its shape and an nn.Linear's.

    Of a list of heads it is how many they are, and how many they should be; arguments as all_kept.
    """
    parameters, modules = dict(module.named_parameters()), dict(module.named_modules())
    for role, pattern in weights.items():
        names, letters = each_of(pattern, parameters), sizes[role]
        each_head, shape = "*" in pattern, tuple(parameters[names[0]].shape)
        linear = isinstance(modules.get(names[0].rpartition(".")[0]), nn.Linear)
        if layouts_of(role, shape, each_head, letters, linear or None):
            if each_head and len(names) != letters["h"]:
                yield role, pattern.partition(".*")[0], (len(names),), (letters["h"],)
            continue
        if not linear or role_of(pattern) != role:  # which role it has is a guess
            continue
        axes = [letters[letter] for letter in LAYOUTS[role][0].split()[each_head:]]
        at = 1 if role == "out_proj" else -1
        yield role, names[0], shape, (math.prod(axes[:at]), math.prod(axes[at:]))


def all_kept(
    module: nn.Module, weights: dict[str, str], sizes: dict[str, dict], told: dict[str, str]
) -> Iterator[list[Kept]]:
    """Yield every way to read where the weights are, the usual ones first.

    The module is built at sizes that all differ. By role come the name of its weight, the sizes of
    the letters, and layouts that are told and need no guess.
    """
    parameters, choices = dict(module.named_parameters()), []
    modules = dict(module.named_modules())
    for role, pattern in weights.items():
        name = each_of(pattern, parameters)[0]
        owner = modules.get(name.rpartition(".")[0])
        last = {"Conv1D": False}.get(type(owner).__name__)  # GPT-2's, (inputs, outputs)
        last = True if isinstance(owner, nn.Linear) else last
        shape = tuple(parameters[name].shape)
        fitting = layouts_of(role, shape, "*" in pattern, sizes[role], last)
        layouts = [told[role]] if role in told else fitting
        bias = bias_of(pattern, parameters)
        choices.append([Kept(role, pattern, bias, layout) for layout in layouts])
    claimed = {place.bias for some in choices for place in some}
    for name in [p for p in parameters if p.endswith("_bias") and p not in claimed]:
        if (role := role_of(name.removesuffix("_bias"))) in LAYERS[:3]:  # behind all three
            choices.append([Kept(role, "", name, "h d i")])
    yield from map(list, itertools.product(*choices))
