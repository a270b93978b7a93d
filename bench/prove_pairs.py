"""Pair the weights of known modules with ours: (ours, theirs, offset).

ours = theirs + offset. Each theirs is a view into the module's own weights, so that copying works
in both directions; bench/prove.py asks that all weights of both are paired, each once.
"""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

Pairs = Iterator[tuple[torch.Tensor, torch.Tensor, float]]
LAYERS = "W_query W_key W_value"


def by_name(ours: nn.Module, theirs: nn.Module, names: str, offset: float = 0) -> Pairs:
    """Pair the names that both modules have, ours=theirs."""
    weights, others = dict(ours.named_parameters()), dict(theirs.named_parameters())
    for mine, other in (pair.split("=") for pair in names.split()):
        for name, weight in weights.items():
            like = other + name.removeprefix(mine)
            if (name == mine or name.startswith(f"{mine}.")) and like in others:
                yield weight, others[like].view_as(weight), offset


def three(ours: nn.Module, weights, biases=None) -> Pairs:
    """Pair the three layers of step 2 with three weights each."""
    for name, weight in zip(LAYERS.split(), weights, strict=True):
        yield getattr(ours, name).weight, weight, 0
    for name, bias in zip(LAYERS.split(), biases or (), strict=False):
        yield getattr(ours, name).bias, bias, 0


def in_rows(ours: nn.Module, theirs: nn.Module, names: str, heads: int) -> Pairs:
    """Pair a packed layer of theirs with several of ours, head by head: theirs=ours."""
    layer, layers = names.split("=")
    mine = [getattr(ours, name) for name in layers.split()]
    widths = [each.weight.shape[0] // heads for each in mine]
    for kind, whole in getattr(theirs, layer).named_parameters():
        for each, part in zip(mine, whole.unflatten(0, (heads, -1)).split(widths, 1), strict=True):
            yield getattr(each, kind).unflatten(0, (heads, -1)), part, 0


def torch_pairs(ours: nn.Module, theirs: nn.MultiheadAttention) -> Pairs:
    """Pair with nn.MultiheadAttention: three weights below each other."""
    yield from three(ours, theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3))
    yield from by_name(ours, theirs, "out_proj=out_proj")


@dataclass(frozen=True)
class Paired:
    """Hold a function that pairs the weights of two modules."""

    names: str = ""  # layers and weights, ours=theirs
    plus_one: str = ""  # norms that multiply by 1 + weight
    by_head: str = ""  # their layer that holds several of our layers, head by head: theirs=ours
    below: str = ""  # one that has them below each other
    more: str = ""  # what pairs all else

    def __call__(self, ours: nn.Module, theirs: nn.Module) -> Pairs:
        yield from by_name(ours, theirs, self.names)
        yield from by_name(ours, theirs, self.plus_one, 1)
        for names, heads in (self.by_head, ours.num_heads), (self.below, 1):
            yield from in_rows(ours, theirs, names, heads) if names else ()
        yield from MORE[self.more](ours, theirs) if self.more else ()


def gpt2(ours: nn.Module, theirs: nn.Module) -> Pairs:
    """Pair three weights that are stored side by side, as (d_in, d_out)."""
    yield from three(ours, theirs.c_attn.weight.T.chunk(3), theirs.c_attn.bias.chunk(3))
    yield ours.out_proj.weight, theirs.c_proj.weight.T, 0
    yield ours.out_proj.bias, theirs.c_proj.bias, 0


def shares(ours: nn.Module, theirs: nn.Module) -> Pairs:
    """Pair the four vectors from which DiffLlama makes its shares."""
    for place, name in enumerate(("lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2")):
        yield ours.shares[place], getattr(theirs, name), 0


MORE = {pair.__name__: pair for pair in (gpt2, shares)}
TABLE = tomllib.loads(Path(__file__).with_name("pairs.toml").read_text("utf-8"))["pairs"]
PAIRS = {model: Paired(**how) for models, how in TABLE.items() for model in models.split()}
