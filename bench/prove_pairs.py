"""Which weights of a known module are which of ours: (ours, theirs, offset).

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
    """Pair what ours has of names with its like; what ours has not is passed over."""
    weights, others = dict(ours.named_parameters()), dict(theirs.named_parameters())
    for pair in names.split():
        mine, other = pair.split("=")
        for name, weight in weights.items():
            if name == mine or name.startswith(f"{mine}."):
                yield weight, others[other + name.removeprefix(mine)].view_as(weight), offset


def three(ours: nn.Module, weights, biases=None) -> Pairs:
    """Pair the three layers of step 2 with three weights each."""
    for name, weight in zip(LAYERS.split(), weights, strict=True):
        yield getattr(ours, name).weight, weight, 0
    for name, bias in zip(LAYERS.split(), biases or (), strict=False):
        yield getattr(ours, name).bias, bias, 0


def head_by_head(ours: nn.Module, layer: nn.Linear, layers: str) -> Pairs:
    """Pair several layers of ours with one that holds them head by head."""
    names, by_head = layers.split(), (ours.num_heads, -1)
    widths = [getattr(ours, name).out_features // ours.num_heads for name in names]
    for kind, whole in layer.named_parameters():
        for name, part in zip(names, whole.unflatten(0, by_head).split(widths, 1), strict=True):
            yield getattr(getattr(ours, name), kind).unflatten(0, by_head), part, 0


def torch_pairs(ours: nn.Module, theirs: nn.MultiheadAttention) -> Pairs:
    """Pair with nn.MultiheadAttention: three weights below each other."""
    yield from three(ours, theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3))
    yield from by_name(ours, theirs, "out_proj=out_proj")


@dataclass(frozen=True)
class Paired:
    """How the weights of a module are paired with ours, which are called with both.

    names: layers and weights, ours=theirs. plus_one: norms that multiply by 1 + weight. by_head: a
    layer of theirs with several of ours head by head, theirs=ours. more: what pairs all else.
    """

    names: str = ""
    plus_one: str = ""
    by_head: str = ""
    more: str = ""

    def __call__(self, ours: nn.Module, theirs: nn.Module) -> Pairs:
        yield from by_name(ours, theirs, self.names)
        yield from by_name(ours, theirs, self.plus_one, 1)
        if self.by_head:
            layer, layers = self.by_head.split("=")
            yield from head_by_head(ours, getattr(theirs, layer), layers)
        yield from MORE[self.more](ours, theirs) if self.more else ()


def gpt2(ours: nn.Module, theirs: nn.Module) -> Pairs:
    """Pair three weights that lie side by side, stored as (d_in, d_out)."""
    yield from three(ours, theirs.c_attn.weight.T.chunk(3), theirs.c_attn.bias.chunk(3))
    yield ours.out_proj.weight, theirs.c_proj.weight.T, 0
    yield ours.out_proj.bias, theirs.c_proj.bias, 0


def shares(ours: nn.Module, theirs: nn.Module) -> Pairs:
    """Pair the four vectors that DiffLlama's shares are made of."""
    for place, name in enumerate(("lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2")):
        yield ours.shares[place], getattr(theirs, name), 0


def mixes(ours: nn.Module, theirs: nn.Module) -> Pairs:
    """Pair Kimi Linear's one convolution for queries, keys and values."""
    parts = theirs.conv1d.weight.chunk(3)
    for name, mix in zip(("query_mix", "key_mix", "value_mix"), parts, strict=True):
        yield getattr(ours, name).weight, mix, 0


def falcon(ours: nn.Module, theirs: nn.Module) -> Pairs:
    """Pair all queries, then the one key and the one value."""
    sizes = [ours.d_out, ours.head_dim, ours.head_dim]
    return three(ours, theirs.query_key_value.weight.split(sizes))


def mpt(ours: nn.Module, theirs: nn.Module) -> Pairs:
    """Pair three weights below each other."""
    return three(ours, theirs.Wqkv.weight.chunk(3))


def latent_queries(ours: nn.Module, theirs: nn.Module) -> Pairs:
    """Pair what makes DeepSeek's queries, of a latent or not."""
    latent = "W_query=q_a_proj query_latent_norm=q_a_layernorm W_query_up=q_b_proj"
    return by_name(ours, theirs, latent if hasattr(ours, "W_query_up") else "W_query=q_proj")


MORE = {pair.__name__: pair for pair in (gpt2, shares, mixes, falcon, mpt, latent_queries)}
TABLE = tomllib.loads(Path(__file__).with_name("pairs.toml").read_text("utf-8"))["pairs"]
PAIRS = {model: Paired(**how) for models, how in TABLE.items() for model in models.split()}
