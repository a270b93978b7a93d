"""Every part, alone and among others, and a module of telling sizes to put it into."""

# ruff: noqa: F403, F405 - PARTS names every part there is

import torch
from sizes import TELLING
from torch import nn

from eleven_steps.beyond.variants import *

B, TOKENS, D_IN, D_OUT, HEADS = TELLING
LEFT = torch.tensor([[True] * 2 + [False] * 5, [False] * 7])
OTHER = torch.randn(B, 4, D_IN, generator=torch.Generator().manual_seed(3))

# Each part with the first step at which the trace may differ from a module without it.
PARTS = {
    "grouped": ([GroupedHeads(1)], 2),
    "norm": ([Norm()], 4),
    "rope halves": ([Rope()], 4),
    "rope neighbours": ([Rope(pairing="neighbours")], 4),
    "rope in part": ([Rope(width=2)], 4),
    "rope in first part": ([Rope(width=2, first=True)], 4),
    "rope, linear": ([Rope(scaling=LinearScaling(4))], 4),
    "rope, llama 3": ([Rope(base=9.0, scaling=Llama3Scaling(4, 16))], 4),
    "rope, yarn": ([Rope(scaling=YarnScaling(4, 300)), Alibi(), Sinks()], 4),
    "alibi": ([Alibi()], 5),
    "cap": ([Cap(0.1)], 5),
    "full": ([Full()], 6),
    "window": ([Window(3)], 6),
    "padding left": ([Padding(LEFT)], 6),
    "padding right": ([Padding(LEFT.flip(1))], 6),
    "sinks": ([Sinks()], 7),
    "gate": ([Gate()], 10),
    "latent": ([Latent(4)], 2),
    "latent with rope": ([Latent(4, 2), Rope(width=2)], 2),
    "latent of queries": ([Latent(4), QueryLatent(3)], 2),
    "top keys": ([TopKeys(2, 3, 4)], 6),
    "top keys, latent": (
        [Latent(4, 2), QueryLatent(3), Rope(width=2), TopKeys(2, 3, 4, Rope(width=2, first=True))],
        2,
    ),
    "linear": ([Linear((0.5, 0.2, 0.0))], 4),
    "linear, gate": ([Linear((0.5, 0.2, 0.0)), Gate(), Window(3), Rope()], 4),
    "norm that learns nothing": ([Norm(queries=False, keys=False)], 4),
    "values are keys": ([KeysAsValues(), Norm(queries=False), ValueNorm(as_keys=True)], 2),
    "values normed": ([ValueNorm()], 4),
    "values rotated": ([Rope(), RotatedValues(Rope())], 4),
    "temperature": ([Temperature(0.5, 3)], 4),
    "chunks": ([Chunks(3)], 6),
    "unscaled": ([Unscaled()], 7),
    "few pairs": ([Rope(scaling=FirstPairs(0.5))], 4),
    "delta": ([Delta()], 2),
    "pools": ([Rope(), Window(2), Pool(3)], 4),
    "pools that overlap": ([Window(2), Pool(2, overlap=True), TopPools(1, 2, 4)], 4),
    "grouped out": ([GroupedOut(3, 2)], 10),
    "other": ([OtherSequence(OTHER)], 2),
    "many": ([GroupedHeads(1), Norm(), Rope(), Alibi(), Window(3), Sinks(), Gate()], 2),
}


def make(parts, dtype=torch.float32, **options):
    """Return a seeded module, its learned numbers all different, and an x."""
    torch.manual_seed(0)
    mha = VariantAttention(D_IN, D_OUT, TOKENS + 2, 0.0, HEADS, parts=parts, **options).to(dtype)
    for parameter in mha.parameters():
        nn.init.normal_(parameter, std=0.7)
    return mha, torch.randn(B, TOKENS, D_IN, dtype=dtype)
