"""A module of somebody else's inside a class that is built and called as the lecture's is."""

import functools
import re
import sys
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import nn
from torch.func import functional_call

from eleven_steps.checks.adapt.built import Build, built, most_texts, whatever
from eleven_steps.checks.adapt.calls import Call, output
from eleven_steps.checks.adapt.layers import ROLES, Kept, each_of
from eleven_steps.checks.adapt.vocabulary import ADDED_NAMED
from eleven_steps.checks.run.cases import LAYERS, Case, Cases, cases_of, close
from eleven_steps.checks.run.copies import tensors_in
from eleven_steps.checks.run.isolate import Failure, attempt
from eleven_steps.checks.run.making import construct
from eleven_steps.checks.run.reached import followed
from eleven_steps.checks.run.variant import LECTURE, Variant

TURNED = ("W_query", "W_key", "query_norm", "key_norm")  # where positions turn queries and keys


class Called(nn.Module):
    """Somebody's module with the way to call it, so that its weights can be exchanged in a call."""

    def __init__(self, inner: nn.Module, call: Call):
        super().__init__()
        self.inner, self.call = inner, call

    def forward(self, x: torch.Tensor, hidden: torch.Tensor, *beside: torch.Tensor) -> Any:
        """What the call gives."""
        return followed(self.call, self.inner, x, hidden, *beside)


class _Skipped:
    """A hook that hands on what came in, at the last of so many calls in a forward."""

    def __init__(self, times: int):
        self.times, self.calls = times, 0

    def __call__(self, module: nn.Module, args: tuple, out: torch.Tensor) -> torch.Tensor | None:
        self.calls += 1
        return None if self.calls % self.times else args[0]


# A block around attention: a norm before its layers or after, and the sum with x


def norms(module: nn.Module, width: int) -> list[str]:
    """The names of the norms of x or of the output: their weights are as wide."""
    every = ((name, layer) for name, layer in module.named_modules() if is_norm(layer))
    weights = ((name, getattr(layer, "weight", None)) for name, layer in every)
    return [name for name, weight in weights if getattr(weight, "shape", None) == (width,)]


def is_norm(module: nn.Module) -> bool:
    """Whether a module is a norm, by the name of its class."""
    return "norm" in type(module).__name__.lower()


class Block:
    """Takes a norm of x away, and gives back what out_proj gave where no more than block follows.

    What follows may be a sum with x, a norm, or both, in any order; all else stays as it is. last
    is the name of inner's out_proj, or "" if it has none; x has width features.
    """

    def __init__(self, inner: nn.Module, width: int, last: str):
        self.x = self.out = None
        self.normed: list[tuple[torch.Tensor, torch.Tensor]] = []  # behind out_proj: before, after
        for name in norms(inner, width):
            inner.get_submodule(name).register_forward_hook(self._norm)
        if last:
            inner.get_submodule(last).register_forward_hook(self._keep)

    def begin(self, x: torch.Tensor | None) -> None:
        """Get ready for a call with x."""
        self.x, self.out, self.normed = x, None, []

    def end(self, module: nn.Module, returned: Any) -> Any:
        """What out_proj gave, where what is returned is that with no more than a block around."""
        out, x, normed = self.out, self.x, self.normed
        self.begin(None)  # nothing is kept
        if not isinstance(returned, torch.Tensor) or out is None or returned.shape != out.shape:
            return returned
        if module.training:  # dropout may act in between
            return out
        firsts = [out, out + x if out.shape == x.shape else out]
        lasts = firsts + [b for a, b in normed if any(close(a, first) for first in firsts)]
        lasts += [end + x for end in lasts if end.shape == x.shape]
        return out if any(close(returned, end) for end in lasts) else returned

    def _norm(self, norm: nn.Module, args: tuple, out: Any) -> torch.Tensor | None:
        if self.out is not None:
            self.normed.append((args[0], next(tensors_in([out]))))
        of_x = self.x is not None and args[0].shape == self.x.shape
        return args[0] if of_x and args[0].data_ptr() == self.x.data_ptr() else None

    def _keep(self, layer: nn.Module, args: tuple, out: Any) -> None:
        self.out = next(tensors_in([out]))  # beside it there may be a scale


class Adapted(nn.Module):
    """A wrapper with the lecture's four layers, whose weights are lent to the module inside.

    x is filled up with zeros where the module wants one width. A bias of out_proj that it lacks is
    added behind it, and so is out_proj itself where it has none.

    Raises:
        ValueError: the module cannot have the sizes.
    """

    build: ClassVar[Build]
    choice: ClassVar[dict[str, Any]] = {}  # what the constructor is told besides sizes
    kept: ClassVar[list[Kept]]
    call: ClassVar[Call]
    asked: ClassVar[set[str]]  # which of our sizes build asks for
    lacks: ClassVar[frozenset[str]]  # biases that it has under no qkv_bias
    causal: ClassVar[bool]
    told: ClassVar[str]  # how it is read, in a line
    variant: ClassVar[Variant] = LECTURE  # the changes since the lecture that it is read with
    around: ClassVar[bool] = False  # whether a block around attention is left aside
    paired: ClassVar[bool] = False  # whether neighbouring features of a head turn together
    widened: ClassVar[int] = 1  # how many times as wide as d_out / num_heads its heads are
    aside: ClassVar[tuple[str, ...]] = ()  # parameters left aside: norms out, all else at 0

    def __init__(
        self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, **more: Any
    ):
        super().__init__()
        head_dim, wide = self.widened * d_out // num_heads, self.widened * d_out
        if dropout and "dropout" not in self.asked:
            raise ValueError("there is no dropout")
        given = {
            **{"d_in": d_in, "d_out": d_out, "num_heads": num_heads, "head_dim": head_dim},
            **{"context_length": context_length, "dropout": dropout, "qkv_bias": qkv_bias},
            **whatever(self.variant),
            **more,
            **self.choice,
        }
        inner, _ = built(type(self).build, given)
        self.width = d_in if "d_in" in self.asked else d_out
        if self.width < d_in:
            raise ValueError(f"x is {d_in} wide, and the module {self.width}")
        of_keys = more.get("num_kv_heads", num_heads) * head_dim
        latent, self.rope_dim = more.get("latent_dim", 0), more.get("rope_dim", 0)
        shapes = (d_in, wide + num_heads * self.rope_dim), *[(latent or d_in, of_keys)] * 2
        for name, (columns, rows) in zip(LAYERS, shapes, strict=False):
            bias = qkv_bias and f"{name}.bias" not in self.lacks
            setattr(self, name, nn.Linear(columns, rows, bias=bias))
        if any(place.role == "q_gate" for place in self.kept):
            self.W_gate = nn.Linear(d_in, wide, bias=self.W_query.bias is not None)
        self.out_proj = nn.Linear(wide, d_out)
        self.head_dim, self.window = head_dim, more.get("window", sys.maxsize)
        names = dict(inner.named_parameters())
        some = [place.weight or place.bias for place in self.kept]
        if lost := [place for place in some if not each_of(place, names)]:
            raise ValueError(f"there is no {lost[0]}")
        self.adds = self.added_to(inner)
        for name in self.aside:
            if is_norm(owner := inner.get_submodule(name.rpartition(".")[0])):
                owner.register_forward_hook(lambda norm, args, out: args[0])
        call = type(self).call
        turning = self.rope_dim or round(head_dim * self.variant.rope[1], 6)
        if turning % 2 and (call.turns or "rope" in self.variant):
            raise ValueError(f"features turn in pairs, and {turning:g} are none")
        self.called = Called(inner, call.of_heads(self.rope_dim or head_dim))
        last = next((place.weight for place in self.kept if place.role == "out_proj"), "")
        last = last.rpartition(".")[0]
        self.block = Block(inner, self.width, last) if self.around else None
        self.set_aside = self.dropped_last(given) if dropout else {}
        for name, times in self.set_aside.items():
            inner.get_submodule(name).register_forward_hook(_Skipped(times))

    @classmethod
    def but(cls, **fields: Any) -> "type[Adapted]":
        """The same wrapper with other fields."""
        return adapted(cls.__name__, cls, **fields)

    def forward(self, x: torch.Tensor, *beside: torch.Tensor) -> Any:
        """Take x (b, num_tokens, d_in) through the module inside, with our weights in it.

        beside is what the variant has besides: another sequence, which tokens are filling.
        """
        num_tokens = x.shape[1]
        hidden = torch.zeros(num_tokens, num_tokens, dtype=torch.bool, device=x.device)
        if self.causal:
            hidden = (~hidden).triu(1) | (~hidden).tril(-self.window)
        asked = x
        x, *beside = (_filled_up(e, self.width) if e.dim() == 3 else e for e in (x, *beside))
        writes = None if x.is_inference() else x._version
        lent, first = self.lent(), self.called.call.first
        given = x.transpose(0, 1) if first else x
        if self.block:
            self.block.begin(given)
        returned = functional_call(self.called, lent, (given, hidden, *beside))
        if writes is not None and x._version != writes:  # into ours, not into the x of the caller
            with torch.no_grad():
                asked.copy_(x[..., : asked.shape[2]])
        out = output(returned, self.out_proj.out_features)
        out = self.block.end(self, out) if self.block else out
        if not isinstance(out, torch.Tensor):
            return out
        out = out.transpose(0, 1) if first else out
        last = [place for place in self.kept if place.role == "out_proj"]
        if not last:
            return self.out_proj(out)
        has_bias = each_of(f"inner.{last[0].bias}", lent) if last[0].bias else False
        return out if has_bias else out + self.out_proj.bias

    def added_to(self, inner: nn.Module) -> dict[str, tuple[str, torch.Tensor]]:
        """Make what the variant adds; return where each parameter is inside, and what it is less.

        A norm whose weight starts at 0 multiplies by 1 more than its weight.

        Raises:
            ValueError: there is no such parameter inside.
        """
        parameters, adds = dict(inner.named_parameters()), {}
        for layer in (layer for layer in self.variant.layers if not hasattr(self, layer)):
            found = {n: m[1] for n in parameters if (m := named_as(layer, n))}
            mine = {n: part if part in ("", ".bias") else ".weight" for n, part in found.items()}
            if not mine:
                raise ValueError(f"there is no {layer}")
            if layer == "W_gate" and self.W_query.bias is None:  # nor has the gate one of ours
                self.aside = *self.aside, *(n for n, part in mine.items() if part == ".bias")
                mine = {n: part for n, part in mine.items() if part != ".bias"}
            shapes = {part: tuple(parameters[n].shape) for n, part in mine.items()}
            if layer in ("W_gate", "W_down"):  # which read x, and that is not filled up
                wide = self.W_query.in_features
                shapes |= {part: (s[0], wide) for part, s in shapes.items() if len(s) == 2}
            setattr(self, layer, _of_shapes(shapes))
            for name, part in mine.items():
                less = "norm" in layer and part == ".weight" and not parameters[name].any()
                adds[layer + part] = name, float(less)
        return adds

    def dropped_last(self, given: dict[str, Any]) -> dict[str, int]:
        """Which nn.Dropout of the module acts on what it returns, and how often each is called.

        It belongs to the block around attention, as GPT-2's resid_dropout, and is not judged. It is
        looked for in another module, so that nothing of this one is kept or drawn.
        """
        calls: dict[str, list[torch.Tensor]] = {}
        with torch.random.fork_rng(devices=()):
            other = built(type(self).build, given)[0]
            for name, layer in other.named_modules():
                if isinstance(layer, nn.Dropout):
                    keep = calls.setdefault(name, []).append
                    layer.register_forward_hook(lambda _, args, out, keep=keep: keep(out))
            x, hidden = torch.ones(1, 2, self.width), torch.ones(2, 2, dtype=torch.bool).triu(1)
            x = x.transpose(0, 1) if self.called.call.first else x
            out = output(attempt(self.called.call, other, x, hidden), self.out_proj.out_features)
        memory = out.data_ptr() if isinstance(out, torch.Tensor) else None
        return {name: len(o) for name, o in calls.items() if o and o[-1].data_ptr() == memory}

    def lent(self) -> dict[str, torch.Tensor]:
        """Our weights and biases as the module inside keeps them, by name."""
        theirs, lent = dict(self.called.inner.named_parameters()), {}
        for place in self.kept:
            named = {name: getattr(self, name) for name in ROLES[place.role]}
            layer = named.get("out_proj")
            if layer is not None:
                weights, biases = [layer.weight.unflatten(1, (-1, self.head_dim))], [layer.bias]
            else:
                zeros = self.out_proj.bias.new_zeros
                biases = [
                    zeros(len(e.weight)) if e.bias is None else e.bias for e in named.values()
                ]
                reads_x = "W_query" in named or not self.rope_dim  # and is filled up as x is
                more = 0, self.width - self.W_query.in_features if reads_x else 0
                weights = [nn.functional.pad(layer.weight, more) for layer in named.values()]
                turned = {"W_query": self.rope_dim}
                many = [(-1, self.head_dim + turned.get(name, 0)) for name in named]
                weights = [e.unflatten(0, n) for e, n in zip(weights, many, strict=True)]
                biases = [e.view(n) for e, n in zip(biases, many, strict=True)]
                weights, biases = (map(self._in_pairs, named, some) for some in (weights, biases))
            lent |= place.filled([*weights], theirs) | place.filled([*biases], theirs, bias=True)
        for ours, (name, less) in self.adds.items():
            tensor = self.get_parameter(ours) - less
            if tensor.dim() == 2:
                tensor = nn.functional.pad(tensor, (0, self.width - tensor.shape[1]))
            if (layer := ours.partition(".")[0]) in TURNED:  # of one head, or of all
                tensor = self._in_pairs(layer, tensor.view(-1, self.head_dim)).flatten()
            tensor = self._in_pairs(layer, tensor[None])[0] if layer == "W_down" else tensor
            lent[name] = tensor
        lent |= {name: torch.zeros_like(theirs[name]) for name in self.aside}
        return {f"inner.{name}": tensor for name, tensor in lent.items()}

    def unlent(self) -> dict[str, nn.Parameter]:
        """The parameters of the module inside that no layer of ours is lent to."""
        lent = {name.removeprefix("inner.") for name in self.lent()}
        inner = self.called.inner.named_parameters()
        return {n: p for n, p in inner if n not in lent and p.requires_grad}

    def _in_pairs(self, layer: str, tensor: torch.Tensor) -> torch.Tensor:
        """(heads, head_dim, ...) with the features that turn together side by side, if they are."""
        last = self.rope_dim  # features, or else the first turn
        if not self.paired or layer not in (("W_query", "W_down") if last else TURNED):
            return tensor
        many = -last or round(self.head_dim * self.variant.rope[1])
        some = [*tensor.tensor_split([many], dim=1)]
        at = 1 if last else 0
        some[at] = some[at].unflatten(1, (2, -1)).transpose(1, 2).flatten(1, 2)
        return torch.cat(some, 1)


def named_as(layer: str, name: str) -> re.Match | None:
    """Whether a parameter is named as one of a layer that was added; its group is which."""
    pattern = ADDED_NAMED.get(layer)
    return pattern and pattern.fullmatch(name)


def _filled_up(x: torch.Tensor, width: int) -> torch.Tensor:
    """x (b, num_tokens, d_in) with zeros behind, up to a width; it lies in memory as it did."""
    more = 0, width - x.shape[2]
    if x.stride(0) == 0 and len(x) > 1:
        return nn.functional.pad(x[:1], more).expand(len(x), -1, -1)
    wide = nn.functional.pad(x, more)
    return wide if x.is_contiguous() else wide.mT.contiguous().mT


def _of_shapes(shapes: dict[str, tuple[int, ...]]) -> nn.Module | nn.Parameter:
    """A parameter, or a layer that holds some."""
    if "" in shapes:
        return nn.Parameter(torch.zeros(shapes[""]))
    layer = nn.Module()
    for part, shape in shapes.items():
        layer.register_parameter(part[1:], nn.Parameter(torch.zeros(shape)))
    return layer


def adapted(name: str, base: type[Adapted] = Adapted, **fields: Any) -> type[Adapted]:
    """A class around what fields["build"] builds; the fields are those of Adapted."""
    functions = {n: staticmethod(f) for n, f in fields.items() if n in ("build", "call")}
    return type(name, (base,), fields | functions)


# What is left out where a module cannot have it


def is_adapted(cls: Any) -> bool:
    """Whether a class is one from elsewhere, as it is read here."""
    return isinstance(cls, type) and issubclass(cls, Adapted)


def takes(cls: Any, case: Case) -> bool:
    """Whether a class can have the sizes of a case; a class that is not adapted must."""
    return not refusal(cls, case)


@functools.cache
def refusal(cls: Any, case: Case) -> str:
    """Why an adapted class cannot have the sizes of a case; "" if it can."""
    if not is_adapted(cls):
        return ""
    made = attempt(construct, cls, case, case.qkv_bias)
    if isinstance(made, Failure):
        return made.text
    most = most_texts(made.called.inner, cls.build)
    return f"it is made for {most} texts at most" if case.b > most else ""


def cases_for(cls: Any, variant: Variant) -> Cases:
    """The cases of a variant whose sizes a class can have."""
    cases = cases_of(variant)
    lists = {name: getattr(cases, name) for name in ("every", "simpler", "sized", "rare")}
    held = {name: tuple(e for e in some if takes(cls, e)) for name, some in lists.items()}
    if is_adapted(cls):  # whose output may be a table's shape
        held = {n: tuple(e for e in some if e.num_tokens != e.d_out) for n, some in held.items()}
    return replace(cases, **held)
