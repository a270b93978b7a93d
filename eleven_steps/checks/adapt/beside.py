"""What a forward of somebody else's gets beside x and a mask: positions, lengths, and Nones."""

import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from eleven_steps.checks.adapt.calls import Around, Call, output, ways
from eleven_steps.checks.run.isolate import Failure, attempt

TURNS = re.compile(r"(?:rope_|rotary_)?(?:pos(?:ition)?_emb(?:edding)?s?|emb)|rope|freqs(?:_\w+)?")
BASE = 1e4  # of the angles

# How cosines and sines come, from angles (b * num_tokens, head_dim / 2), b and head_dim.
FORMS: dict[str, Callable[[torch.Tensor, int, int], Any]] = {
    "(b, num_tokens, head_dim)": lambda a, b, d: _pair(_whole(a, d).unflatten(0, (b, -1))),
    "(num_tokens, head_dim)": lambda a, b, d: _pair(_whole(a, d)[: len(a) // b]),
    "(num_tokens, head_dim / 2)": lambda a, b, d: _pair(a[: len(a) // b]),
    "(num_tokens, head_dim / 2), complex": lambda a, b, d: _complex(a[: len(a) // b]),
    "(b, num_tokens, head_dim / 2), complex": lambda a, b, d: _complex(a.unflatten(0, (b, -1))),
    "(b, num_tokens, 1)": lambda a, b, d: _pair(a[:, :1].unflatten(0, (b, -1))),
}
PLAIN = {  # what else is asked for, from b, num_tokens and a tensor
    "position_ids": lambda b, n, x: torch.arange(n, device=x.device).expand(b, n),
    "start_pos": lambda b, n, x: 0,
    "layer_idx": lambda b, n, x: 0,
    "seq_len": lambda b, n, x: n,
    "max_seqlen": lambda b, n, x: n,
    "cu_seqlens": lambda b, n, x: n * torch.arange(b + 1, device=x.device, dtype=torch.int32),
} | dict.fromkeys(("use_cache", "output_attentions"), lambda b, n, x: False)
PLAIN |= dict.fromkeys(("past_key_values", "past_key_value", "layer_past"), lambda b, n, x: None)


OWN = "as its own rotary embedding makes them"


@dataclass(frozen=True)
class Beside(Around):
    """A way to call a forward that gets more than x and a mask.

    Args:
        way: the call itself.
        plain: the parameters that get something from PLAIN.
        turns: those that get cosines and sines: both in one, or one each.
        form: a name in FORMS, or OWN, as rotary makes them of the module's config.
        turning: whether they are those of positions; else cosines are 1 and sines 0.
        head_dim: features of a head.
    """

    way: Any
    plain: tuple[str, ...]
    turns: tuple[str, ...] = ()
    form: str = ""
    turning: bool = False
    head_dim: int = 2
    rotary: Any = None

    def __call__(self, module: Any, x: torch.Tensor, hidden: torch.Tensor, *other: Any) -> Any:
        """Call the module and return what it returns."""
        b, n = x.shape[self.first], len(hidden)
        more = {name: PLAIN[name](b, n, x) for name in self.plain}
        packed = "cu_seqlens" in more
        if self.turns:
            given = self._turning(module, 1 if packed else b, n, x)
            more |= zip(self.turns, given if len(self.turns) > 1 else (given,), strict=True)
        given = x.flatten(0, 1) if packed else x
        returned = self.way(functools.partial(module, **more), given, hidden, *other)
        if not packed:
            return returned
        out = output(returned, x.shape[-1])
        return out.unflatten(0, (b, n)) if isinstance(out, torch.Tensor) else out

    def _turning(self, module: Any, b: int, n: int, x: torch.Tensor) -> Any:
        """Cosines and sines as they are handed over."""
        if self.rotary:
            config = getattr(module, "func", module).config
            given = self.rotary(config)(x, torch.arange(n)[None])
            return given if self.turning else _still(given)
        pairs = -(-self.head_dim // 2)
        turns = BASE ** (-torch.arange(pairs, device=x.device, dtype=x.dtype) / pairs)
        angles = torch.arange(n, device=x.device, dtype=x.dtype)[:, None] * turns
        # (b * num_tokens, head_dim / 2), those of a text below those of the one before
        return FORMS[self.form]((angles * self.turning).repeat(b, 1), b, self.head_dim)

    def of_heads(self, head_dim: int) -> "Beside":
        """The same for heads of so many features."""
        return replace(self, head_dim=head_dim)

    @property
    def told(self) -> str:
        """The call in a few words."""
        more = [*self.plain]
        if self.turns:
            what = "of positions" if self.turning else "1 and 0"
            more.append(f"{', '.join(self.turns)}, cosines and sines {what}, {self.form}")
        return f"{self.way.told} with {', '.join(more)}"


def ways_beside(
    module: Any, causal: bool, turning: bool, width: int, head_dim: int
) -> Iterator[Any]:
    """Yield every way to call a forward that its parameters allow, with what it needs besides.

    Args:
        module: built.
        causal: whether later tokens are hidden.
        turning: whether queries and keys are turned by their positions.
        width: features of x.
        head_dim: features of a head.
    """
    every = inspect.signature(module.forward).parameters.values()
    needed = [each.name for each in every if each.default is each.empty]
    names = tuple(name for name in needed if name in PLAIN)
    turns, found = turned_by(module), []
    forms = [*((OWN, each) for each in rotaries(module)), *((form, None) for form in FORMS)]
    forms, without = forms if turns else [], [("", None)]
    for form, rotary in forms + without if turning else without + forms:
        handed = turns if form else ()
        plain = list(ways(module, causal, names + handed))
        more = [Beside(each, names, handed, form, turning, head_dim, rotary) for each in plain]
        found.append(more if names or handed else plain)
        if any(runs(each, module, width) for each in found[-1]):
            yield from found[-1]
            return
    yield from found[:2][-1]


def rotaries(module: Any) -> list[type]:
    """The rotary embeddings that stand beside a module with a config."""
    beside = vars(sys.modules[type(module).__module__]) if hasattr(module, "config") else {}
    named = [each for name, each in beside.items() if re.search("(?i)rotary|rope", name)]
    return [each for each in named if isinstance(each, type) and issubclass(each, nn.Module)]


def _still(given: Any) -> Any:
    """What turns nothing, laid out as cosines and sines are: 1 and 0."""
    if isinstance(given, tuple):
        return torch.ones_like(given[0]), torch.zeros_like(given[1])
    return torch.ones_like(given) if given.is_complex() else torch.zeros_like(given)


def turned_by(module: Any) -> tuple[str, ...]:
    """The parameters of a forward that get cosines and sines, by their names."""
    names = [*inspect.signature(module.forward).parameters]
    found = tuple(name for name in names if TURNS.fullmatch(name))[:1]
    return ("cos", "sin") if {"cos", "sin"} <= {*names} else found


def runs(call: Call, module: Any, width: int) -> bool:
    """Whether a call gives a tensor."""
    x, hidden = torch.ones(2, 3, width), torch.ones(3, 3, dtype=torch.bool).triu(1)
    x = x.transpose(0, 1) if getattr(call, "first", False) else x
    with torch.no_grad():
        returned = attempt(call, module, x, hidden)
    return not isinstance(returned, Failure)


def _pair(angles: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return angles.cos(), angles.sin()


def _whole(angles: torch.Tensor, head_dim: int) -> torch.Tensor:
    """An angle for each feature; the second half of a head has those of the first."""
    return torch.cat([angles, angles], -1)[:, :head_dim]


def _complex(angles: torch.Tensor) -> torch.Tensor:
    return torch.polar(torch.ones_like(angles), angles)
