"""Pictures whose numbers can be touched: point at one, pin it, drag a number of x."""

import base64
import json
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy
import torch
import traitlets

from eleven_steps.pictures import Linear, draw_numbers, pairs, reach_all, tell, written
from eleven_steps.pictures.numbers import unravel
from eleven_steps.pictures.tensors import TracedStep
from eleven_steps.sliders.lesson import run, tokens
from eleven_steps.sliders.live import Live, script, style
from helpers.attention import MultiHeadAttention
from helpers.trace import trace

PROJECTIONS = ("W_query", "W_key", "W_value")


@dataclass(frozen=True)
class Matrices:
    """Hold what a step multiplies with (features in, features out) as a step of a trace."""

    tensors: dict[str, torch.Tensor]
    number: int
    name: str
    letters: str


class Touch(Live):
    """Show steps of a forward pass whose numbers answer when they are pointed at or dragged.

    Everything that is shown comes from Python: the drawing, what belongs together, the words. The
    page asks for new numbers when one of x is dragged, and gets those that changed.

    Attributes:
        still: the drawing as it begins.
        x: the input (1, num_tokens, d_in) as it stands now.
    """

    _esm = script("ask", "listen", "fit", "touch")
    _css = style("look", "fit", "touch")
    svg = traitlets.Unicode().tag(sync=True)
    book = traitlets.Dict().tag(sync=True)
    told = traitlets.List().tag(sync=True)

    def __init__(self, mha: MultiHeadAttention, x: torch.Tensor, steps: Sequence[str] = ()):
        self.mha, self.x = deepcopy(mha), x.clone()
        self.named = steps
        self.start = [each.clone() for each in self.movable()]
        traced = self.trace()
        self.still = draw_numbers(traced, steps)
        self.first = self.texts, self.words = written(traced), self.say(traced)
        starts, count = {}, 0
        for step in traced:
            for name, tensor in step.tensors.items():
                starts[f"{step.name}.{name}"] = count
                count += tensor.numel()
        bits = reach_all(traced).numpy()
        super().__init__(
            svg=self.still.svg,
            book={
                "starts": starts,
                "count": count,
                "movable": sum(each.numel() for each in self.movable()),
                "what": "x or of a W" if "W" in steps else "x",
                "links": packed(bits),
                "pairs": {str(made): those for made, those in pairs(traced).items()},
            },
            told=self.words,
        )
        self.on_msg(self.answer)

    def trace(self) -> list[TracedStep]:
        """Return the steps as they are now, with the matrices of 2 and 11 where they are shown."""
        steps = trace(self.mha, self.x)
        if "W" in self.named:
            layers = {name: getattr(self.mha, name) for name in PROJECTIONS}
            matrices = {name: layer.weight.detach().T for name, layer in layers.items()}
            steps.insert(1, Matrices(matrices, 2, "W", "(d_in, d_out)"))
        if "weight" in self.named:
            matrices = {"out_proj.weight.T": self.mha.out_proj.weight.detach().T}
            steps.insert(-1, Matrices(matrices, 11, "weight", "(d_out, d_out)"))
        return steps

    def movable(self) -> list[torch.Tensor]:
        """Return the tensors whose numbers can be dragged, in the order of the steps."""
        kept = [self.x]
        return kept + list(self.trace()[1].tensors.values()) if "W" in self.named else kept

    def say(self, traced: Sequence[TracedStep]) -> list[tuple[str, str]]:
        """Return what is said of every number, in order: what and where it is, how it is made."""
        return [(told.words, told.made) for told in tell(traced, linears(self.mha))]

    def answer(self, widget: Any, question: dict[str, Any], buffers: Any) -> None:
        """Set a number, or all back, if the page asks; send what changed: numbers, then words.

        A page that has just been drawn asks for nothing, and gets all that changed before.
        """
        texts, words = self.first
        if "at" in question or "back" in question:
            texts, words = self.texts, self.words
        if "at" in question:
            self.move(question["at"], question["value"])
        if "back" in question:
            self.put_back()
        traced = self.trace()
        self.texts = written(traced)
        cells, moved = changed(texts, self.texts), self.texts != self.first[0]
        self.send({"turn": question["turn"], "cells": cells, "moved": moved})
        self.words = self.say(traced)
        self.send({"words": changed(words, self.words)})

    def move(self, at: int, value: float) -> None:
        """Set the number at a place, counted through all that can be dragged."""
        for tensor in self.movable():
            if at < tensor.numel():
                tensor[unravel(at, tensor.shape)] = value
                return
            at -= tensor.numel()

    def put_back(self) -> None:
        """Set all that can be dragged to what it was at first."""
        for tensor, first in zip(self.movable(), self.start, strict=True):
            tensor.copy_(first)

    def states(self) -> tuple[str, str, str]:
        """Return how many numbers answer, and all that is shown of them."""
        every = json.dumps([self.svg, self.book, self.told])
        return f"{self.book['count']} numbers to touch", "all that is shown", every


def explore_numbers(*steps: str) -> Touch:
    """Touch the numbers of some steps, or of the whole block: where they come from, where they go.

    Args:
        steps: names of the steps to show, all eleven if none is named; "W" shows what step 2
            multiplies with, "weight" what step 11 does.

    Raises:
        ValueError: there is no such step.
    """
    mha, _ = run()
    return Touch(mha, tokens(), steps)


def changed(before: Sequence[Any], now: Sequence[Any]) -> dict[int, Any]:
    """Return what is not as it was, by its place."""
    both = enumerate(zip(before, now, strict=True))
    return {i: new for i, (old, new) in both if new != old}


def linears(mha: MultiHeadAttention) -> dict[str, Linear]:
    """Return what makes queries, keys, values and out: its name, its matrix, its bias."""
    layers = {
        "queries": ("W_query", mha.W_query),
        "keys": ("W_key", mha.W_key),
        "values": ("W_value", mha.W_value),
        "out": ("out_proj.weight.T", mha.out_proj),
    }
    return {
        name: (called, layer.weight.detach().T, None if layer.bias is None else layer.bias.detach())
        for name, (called, layer) in layers.items()
    }


def packed(bits: Any) -> str:
    """Write booleans as base64, eight to a byte, the first one highest."""
    return base64.b64encode(numpy.packbits(bits).tobytes()).decode()
