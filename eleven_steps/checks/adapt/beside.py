"""What a forward of somebody else's gets beside x and a mask: positions, lengths, and Nones."""

import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from types import NoneType
from typing import Any, get_args

import torch
from torch import nn

from eleven_steps.checks.adapt.calls import Around, Call, output, ways
from eleven_steps.checks.adapt.vocabulary import MASKS, NAMED
from eleven_steps.checks.run.isolate import attempt

BASE = 1e4  # of the angles

# How cosines and sines come, from angles (b * num_tokens, head_dim / 2), b and head_dim.
FORMS: dict[str, Callable[[torch.Tensor, int, int], Any]] = {
    "(b, num_tokens, head_dim)": lambda a, b, d: _cos_sin(_halves(a, d).unflatten(0, (b, -1))),
    "(num_tokens, head_dim)": lambda a, b, d: _cos_sin(_halves(a, d)[: len(a) // b]),
    "(num_tokens, head_dim / 2)": lambda a, b, d: _cos_sin(a[: len(a) // b]),
    "(num_tokens, head_dim / 2), complex": lambda a, b, d: _complex(a[: len(a) // b]),
    "(b, num_tokens, head_dim / 2), complex": lambda a, b, d: _complex(a.unflatten(0, (b, -1))),
    "(b, num_tokens, 1)": lambda a, b, d: _cos_sin(a[:, :1].unflatten(0, (b, -1))),
    "(1, 1, 1)": lambda a, b, d: _cos_sin(a[:1, :1, None]),
    "or 0 where they are added": lambda a, b, d: a.new_zeros(1, 1, 1),
}
ADDENDS = ("alibi", "residual", "rel_pos", "rel_2d_pos", "position_bias", "attention_bias")
ADDENDS += ("relative_position_bias", "object_queries")
PLAIN = {  # what else is asked for, from b, num_tokens and a tensor
    "position_ids": lambda b, n, x: torch.arange(n, device=x.device).expand(b, n),
    "start_pos": lambda b, n, x: 0,
    "layer_idx": lambda b, n, x: 0,
    "seq_len": lambda b, n, x: n,
    "max_seqlen": lambda b, n, x: n,
    "height": lambda b, n, x: 1,
    "width": lambda b, n, x: n,
    "cu_seqlens": lambda b, n, x: n * torch.arange(b + 1, device=x.device, dtype=torch.int32),
} | dict.fromkeys(("use_cache", "output_attentions"), lambda b, n, x: False)
PLAIN |= dict.fromkeys(("past_key_values", "past_key_value", "layer_past"), lambda b, n, x: None)
PLAIN |= dict.fromkeys(ADDENDS, lambda b, n, x: x.new_zeros(1, 1, 1))
MISSED = ("cu_seqlens", "position_ids", *ADDENDS)  # what a forward may not do without either

IN_PIECES = {*PLAIN} - {"seq_len", "max_seqlen", "height", "width", "cu_seqlens"}

OWN_ROTARY = "as its own rotary embedding makes them"
IMAGE, PACKED = "x (b, 1, num_tokens, d_in)", "x (1, b * num_tokens, d_in)"


@dataclass(frozen=True)
class Beside(Around):
    """A way to call a forward that gets more than x and a mask."""

    way: Any  # the call itself
    plain: tuple[str, ...]  # the parameters that get something from PLAIN, or else None
    nones: tuple[str, ...] = ()  # those of them that get None all the same
    turns: tuple[str, ...] = ()  # those that get cosines and sines: both in one, or one each
    form: str = ""  # a name in FORMS, or OWN_ROTARY, as rotary makes them of the module's config
    turning: bool = False  # whether they are those of positions; else cosines are 1 and sines 0
    head_dim: int = 2  # features of a head
    rotary: Any = None
    image: bool = False  # whether x gets an axis more: a row of an image, or a batch of one text
    before: int = 0  # tokens of the text that came earlier

    def __call__(self, module: Any, x: torch.Tensor, hidden: torch.Tensor, *other: Any) -> Any:
        """Call the module and return what it returns."""
        b, n = x.shape[self.first], len(hidden)
        more = dict.fromkeys(self.plain)
        more |= {e: PLAIN[e](b, n, x) for e in more if e in PLAIN and e not in self.nones}
        if "position_ids" in more and "position_ids" not in self.nones:
            more["position_ids"] = more["position_ids"] + self.before
        packed = "cu_seqlens" in more
        if self.turns:
            given = self._turning(module, b, n, x, packed)
            more |= zip(self.turns, given if len(self.turns) > 1 else (given,), strict=True)
        given = x.flatten(0, 1) if packed else x
        given = given.unsqueeze(int(not packed)) if self.image else given
        more |= getattr(module, "keywords", {})  # what somebody else hands over
        returned = self.way(functools.partial(module, **more), given, hidden, *other)
        if not (packed or self.image):
            return returned
        out = output(returned, x.shape[-1])
        if not isinstance(out, torch.Tensor):
            return out
        return out.flatten(0, -2).unflatten(0, (b, n)) if packed else out.squeeze(1)

    def _turning(self, module: Any, b: int, n: int, x: torch.Tensor, packed: bool) -> Any:
        """Cosines and sines as they are handed over."""
        places = torch.arange(self.before, self.before + n, device=x.device)
        if self.rotary:
            given = _as_its_own(self.rotary, getattr(module, "func", module), places, x)
            return given if self.turning else _still(given)
        pairs = -(-self.head_dim // 2)
        turns = BASE ** (-torch.arange(pairs, device=x.device, dtype=x.dtype) / pairs)
        angles = places.to(x.dtype)[:, None] * turns
        # (b * num_tokens, head_dim / 2), those of a text below those of the one before
        angles = (angles * self.turning).repeat(b, 1)
        return FORMS[self.form](angles, 1 if packed else b, self.head_dim)

    def of_heads(self, head_dim: int) -> "Beside":
        """The same for heads of so many features."""
        return replace(self, head_dim=head_dim)

    def after(self, before: int) -> "Beside":
        """The same for a piece of a text that goes on after so many tokens."""
        if before and (self.image or not {*self.plain} <= IN_PIECES):
            raise LookupError("what it gets besides is of whole texts")
        return replace(self, before=before)

    @property
    def told(self) -> str:
        """The call in a few words."""
        image = PACKED if "cu_seqlens" in self.plain else IMAGE
        more = [*self.plain, image] if self.image else [*self.plain]
        if self.turns:
            what = "of positions" if self.turning else "1 and 0"
            more.append(f"{', '.join(self.turns)}, cosines and sines {what}, {self.form}")
        return f"{self.way.told} with {', '.join(more)}"


def ways_beside(module: Any, causal: bool, turning: bool, width: int, head_dim: int) -> list[Any]:
    """Every way to call a forward that its parameters allow, with what it needs besides.

    Of what can be handed over it is the first with which there is a row for each token; else the
    first that runs; else the plainest. x has width features; turning says whether queries and keys
    are turned by their positions.
    """
    running, tried = [], []
    for found in _tries(module, causal, turning, head_dim):
        tried.append(found)
        for beside in found:
            shape = _shape(beside, module, width)
            if shape[:2] == (2, 3) and len(shape) == 3:
                return found
            image = getattr(beside, "image", False)  # of which any other shape tells nothing
            running = running or (found if shape and not image else [])
    return running or (tried[1] if tried[1:] and turned_by(module) else tried[0])


def _tries(module: Any, causal: bool, turning: bool, head_dim: int) -> Iterator[list[Any]]:
    """Yield all ways to call a forward with one choice of what it gets besides, then the next."""
    every = inspect.signature(module.forward).parameters.values()
    needed = [parameter for parameter in every if parameter.default is parameter.empty]
    names = [e.name for e in needed if e.name in PLAIN or e is not needed[0] and _may_be_none(e)]
    optional = [p.name for p in every if p not in needed or p.name in names]
    others = [*filter(NAMED["other_sequence"].fullmatch, optional)]
    others += [name for name in optional if name in MISSED and name not in names]
    turns, handed = turned_by(module), [(form, None) for form in FORMS]
    own = [(OWN_ROTARY, kind) for kind in rotaries(module)]
    forms = [*own, *handed, ("", None)] if turning else [("", None), *handed, *own]
    besides = [("", False), *((name, False) for name in others), ("", True)]
    able = tuple(p.name for p in needed if p.name in names and _may_be_none(p))
    forms = forms if turns else [("", None)]
    for nones, (also, image), (form, rotary) in product({able: 1, (): 1}, besides, forms):
        turned, gets_x = turns if form else (), "" if also in MISSED else also
        plain = tuple(name for name in (*names, also) if name not in ("", gets_x))
        found = [*ways(module, causal, plain + turned, gets_x)]
        if plain or turned or image:
            more = plain, nones, turned, form, turning, head_dim, rotary, image
            found = [Beside(more_inputs, *more) for more_inputs in found]
        yield found


def _may_be_none(parameter: inspect.Parameter) -> bool:
    """Whether None will do, as its annotation says; x, masks and positions are handed over."""
    name = parameter.name
    of_ours = name in (*MASKS, "key", "value") or NAMED["turns"].fullmatch(name)
    return not of_ours and NoneType in get_args(parameter.annotation)


def rotaries(module: Any) -> list[type]:
    """The rotary embeddings that stand beside a module with a config."""
    beside = vars(sys.modules[type(module).__module__]) if hasattr(module, "config") else {}
    named = [thing for name, thing in beside.items() if re.search("(?i)rotary|rope", name)]
    return [thing for thing in named if isinstance(thing, type) and issubclass(thing, nn.Module)]


def _as_its_own(rotary: type, module: Any, places: torch.Tensor, x: torch.Tensor) -> Any:
    """What a rotary embedding makes of a module's config, and of its kind of layer if it asks."""
    made, kinds = rotary(module.config).to(x.device), {}
    if "layer_type" in inspect.signature(made.forward).parameters:
        kinds["layer_type"] = module.config.layer_types[module.layer_idx]
    return made(x, places[None], **kinds)


def _still(given: Any) -> Any:
    """What turns nothing, laid out as cosines and sines are: 1 and 0."""
    if isinstance(given, tuple):
        return torch.ones_like(given[0]), torch.zeros_like(given[1])
    return torch.ones_like(given) if given.is_complex() else torch.zeros_like(given)


def turned_by(module: Any) -> tuple[str, ...]:
    """The parameters of a forward that get cosines and sines, by their names."""
    names = [*inspect.signature(module.forward).parameters]
    found = tuple(filter(NAMED["turns"].fullmatch, names))[:1]
    return ("cos", "sin") if {"cos", "sin"} <= {*names} else found


def _shape(call: Call, module: Any, width: int) -> tuple[int, ...]:
    """The shape of what a call gives for x (2, 3, width), tokens second; () if it gives none."""
    x, hidden = torch.ones(2, 3, width), torch.ones(3, 3, dtype=torch.bool).triu(1)
    x = x.transpose(0, 1) if call.first else x
    with torch.no_grad():
        out = attempt(lambda: output(call(module, x, hidden), width))
    if not isinstance(out, torch.Tensor):
        return ()
    return tuple(out.transpose(0, 1).shape if call.first and out.dim() > 1 else out.shape)


def _cos_sin(angles: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return angles.cos(), angles.sin()


def _halves(angles: torch.Tensor, head_dim: int) -> torch.Tensor:
    """An angle for each feature; the second half of a head has those of the first."""
    return torch.cat([angles, angles], -1)[:, :head_dim]


def _complex(angles: torch.Tensor) -> torch.Tensor:
    # Of half precision there are no complex numbers.
    angles = angles.to(torch.promote_types(angles.dtype, torch.float32))
    return torch.polar(torch.ones_like(angles), angles)
