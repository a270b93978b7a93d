"""Compute what is right in a case: each value of the eleven steps, in each order of axes."""

import functools
import math
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from eleven_steps.checks.asking.cases import Case, build
from eleven_steps.helpers.attention import MultiHeadAttention
from eleven_steps.helpers.trace import trace

AXES = {"b": "b", "n": "num_tokens", "i": "num_tokens", "j": "num_tokens", "h": "num_heads"}
AXES |= {"d": "head_dim", "hd": "d_out", "e": "d_in", "o": "d_out", "c": "context_length"}

# The orders of axes that occur in right classes, and the steps that are done by then. An axis is a
# word, and "bh" is b and h joined. An order without h is one head's part.
PROJECTED = {"b n hd": "2", "b n h d": "2 3", "b n d": "2 3 4", "b d n": "2 3 4"}
PROJECTED |= dict.fromkeys(
    ["b h n d", "b h d n", "bh n d", "bh d n", "h b n d", "h b d n"], "2 3 4"
)
SCORED = dict.fromkeys(["b h i j", "bh i j", "h b i j", "b i j", "b h j i", "bh j i", "b j i"], "")
GATHERED = {"b n h d": "9", "b n hd": "9 10"}
GATHERED |= dict.fromkeys(["b h n d", "bh n d", "h b n d", "b h d n"], "") | {"b n d": "9"}
HIDDEN = -1e8


@dataclass(frozen=True, eq=False)
class Known:
    """Hold a right value: a tensor in one order of axes, a mask, a size, a factor or a layer."""

    kind: str  # "keys", "scores", "mask", "size", ...
    name: str  # its name in messages
    steps: frozenset[int]  # steps that are done in this order of axes
    value: Any = field(repr=False)
    layout: str = ""
    head: int | None = None  # number of the head, for one head's part

    @property
    def axes(self) -> str:
        """Return its axes in letters, "(b, num_tokens, d_out)"."""
        words = (AXES.get(w) or " * ".join(AXES[a] for a in w) for w in self.layout.split())
        return "(" + ", ".join(words) + ")"


def laid_out(tensor: torch.Tensor, axes: str, layout: str, head: int | None) -> torch.Tensor:
    """Reorder a tensor's axes, named by letters; h is left out for one head."""
    if head is not None:
        tensor, axes = tensor.select(axes.index("h"), head), axes.replace("h", "")
    words = layout.split()
    size = dict(zip(axes, tensor.shape, strict=True))
    tensor = tensor.permute([axes.index(a) for word in words for a in word])
    return tensor.reshape([math.prod(size[a] for a in word) for word in words])


class Right:
    """Hold every right value of one case."""

    def __init__(self, case: Case, reference: Any = MultiHeadAttention):
        mha = build(reference, case)
        self.case = case = replace(case, num_heads=mha.num_heads)  # a variant may have fewer
        self.module, self.x = mha, case.x
        steps = {step.name: step.tensors for step in trace(mha, case.x)}
        self.out = steps["out_proj"]["out"]
        self.known: list[Known] = [
            Known("x", "x", frozenset({1}), self.x, "b n e"),
            Known("out", "the output", frozenset(range(2, 12)), self.out, "b n o"),
        ]
        root = case.head_dim**0.5
        for kind, viewed in steps["view"].items():
            tensor = steps["transpose"][kind].transpose(1, 2)
            if not same(viewed, tensor):  # a variant repeats or rotates heads at step 4
                started = {layout: "2 3" for layout in PROJECTED}
                self._add(kind, f"the {kind} of step 3", "", viewed, "bnhd", started)
            self._add(kind, f"the {kind}", "", tensor, "bnhd", PROJECTED)
            if kind != "values":
                self._add(kind, f"the scaled {kind}", "7", tensor / root, "bnhd", PROJECTED)
        scores, masked = steps["scores"]["scores"], steps["mask"]["masked"]
        for name, done, tensor in (
            ("the scores", "", scores),
            ("the masked scores", "6", masked),
            ("the scaled scores", "7", scores / root),
            ("the scaled and masked scores", "6 7", masked / root),
        ):
            self._add("scores", name, "2 3 4 5 " + done, tensor, "bhij", SCORED)
        weights, context = steps["softmax"]["weights"], steps["reformat"]["context"]
        self._add("weights", "the weights", "2 3 4 5 6 7", weights, "bhij", SCORED)
        self._add("context", "the context", "2 3 4 5 6 7 8", context, "bnhd", GATHERED)
        if not same(scores, masked):  # a reference that hides nothing has no right mask
            self._masks()
        for name, size in case.letters.items():
            self.known.append(Known("size", name, frozenset({1}), size))
        for name, shape in (
            ("(b, num_tokens, d_in)", self.x.shape),
            ("(b, num_tokens)", self.x.shape[:2]),
        ):
            self.known.append(Known("size", name, frozenset({1}), shape))
        self.known.append(Known("size", "3 * d_out", frozenset({2}), 3 * case.d_out))
        for head in range(case.num_heads):
            for end, name in enumerate(("the starts of the heads", "the ends of the heads")):
                place = (head + end) * case.head_dim
                self.known.append(Known("size", name, frozenset({3}), place, "", head))
        for name, factor in (("head_dim**0.5", root), ("head_dim**-0.5", 1 / root)):
            self.known.append(Known("factor", name, frozenset({7}), factor))
        for name, layer in mha.named_children():
            step = {"out_proj": 11, "dropout": 7}.get(name, 2)
            self.known.append(Known("layer", f"as {name}", frozenset({step}), layer))

    def _add(self, kind, name, done, tensor, axes, layouts):
        for layout, more in layouts.items():
            steps = frozenset(map(int, (done + " " + more).split()))
            heads = [None] if "h" in layout else range(tensor.shape[axes.index("h")])
            for head in heads:
                value = laid_out(tensor, axes, layout, head)
                self.known.append(Known(kind, name, steps, value, layout, head))

    def _masks(self):
        for size, layout in ((self.case.num_tokens, "i j"), (self.case.context_length, "c c")):
            future = torch.ones(size, size, dtype=torch.bool).triu(1)
            filled = torch.zeros(size, size).masked_fill(future, -torch.inf)
            for name, mask in (
                ("a mask that is True above the diagonal", future),
                ("a mask that is True up to the diagonal", ~future),
                ("a mask of ones above the diagonal", future.float()),
                ("a mask of ones up to the diagonal", (~future).float()),
                ("a mask of -inf above the diagonal", filled),
            ):
                for value in (mask, mask[None, None]):
                    self.known.append(Known("mask", name, frozenset({6}), value, layout))

    def read(self, value: Any) -> Known | None:
        """Return the right value that a value equals, or None."""
        if isinstance(value, list | tuple) and value:
            parts = [self.read(part) for part in value]
            return parts[0] if all(part and part.kind != "size" for part in parts) else None
        if isinstance(value, torch.Tensor) and value.dim() and value.numel():
            return next((k for k in self.known if same(k.value, value)), None)
        return None


def same(one: Any, other: Any) -> bool:
    """Say whether two tensors agree up to rounding."""
    kinds = (
        isinstance(one, torch.Tensor) and one.layout == other.layout and one.device == other.device
    )
    if not kinds or one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype == torch.bool:
        return torch.equal(one, other)
    if other.is_floating_point():
        other = other.masked_fill(other < HIDDEN, -torch.inf)  # -1e9 hides as -inf does
    return torch.allclose(one, other, rtol=1e-4, atol=1e-5, equal_nan=False)


@functools.cache
def right_of(case: Case, reference: Any = MultiHeadAttention) -> Right:
    """Compute all right values, once for each case.

    Args:
        case: sizes, weights and x.
        reference: a class whose forward takes record, as MultiHeadAttention's does.
    """
    return Right(case, reference)
