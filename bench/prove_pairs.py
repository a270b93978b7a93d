"""Which weights of a known module are which of ours: (ours, theirs, offset).

ours = theirs + offset. Each theirs is a view into the module's own weights, so that copying works
in both directions; bench/prove.py asks that all weights of both are paired, each once.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import nn

Pairs = Iterator[tuple[torch.Tensor, torch.Tensor, float]]
LAYERS = "W_query W_key W_value"
# Layers and weights, ours=theirs.
KEYS = "W_key=k_proj W_value=v_proj out_proj=o_proj sinks=sinks"
LLAMA = f"W_query=q_proj {KEYS}"
NORMS = "query_norm=q_norm key_norm=k_norm"
LATENT = "W_down=kv_a_proj_with_mqa latent_norm=kv_a_layernorm out_proj=o_proj"
QUERY_LATENT = "W_query=q_a_proj query_latent_norm=q_a_layernorm W_query_up=q_b_proj"
INDEXER = """W_index_query=indexer.wq_b W_index_key=indexer.wk index_norm=indexer.k_norm
    W_index_weight=indexer.weights_proj W_index_gate.weight=indexer.index_kpool_compress_gate
    index_bias=indexer.index_kpool_compress_ape"""
BLOCKS = "W_index_query=indexer.q_proj W_index_key=indexer.k_proj"
BLOCK_NORMS = "index_query_norm=indexer.q_norm index_norm=indexer.k_norm"
DELTA = """W_share=b_proj W_fade.0=forget_gate.f_a_proj W_fade.1=forget_gate.f_b_proj
    fade_bias=forget_gate.dt_bias fade_log=forget_gate.A_log W_gate.0=g_a_proj W_gate.1=g_b_proj
    head_norm=o_norm"""
POOLS = """W_query=q_a_proj query_latent_norm=q_a_norm W_query_up=q_b_proj W_key=kv_proj
    key_norm=kv_norm sinks=sinks W_groups=o_a_proj.weight out_proj=o_b_proj
    W_pool=compressor.kv_proj W_pool_gate=compressor.gate_proj pool_norm=compressor.kv_norm
    pool_bias=compressor.position_bias W_index_pool=compressor.indexer.kv_proj
    W_index_pool_gate=compressor.indexer.gate_proj index_pool_norm=compressor.indexer.kv_norm
    index_pool_bias=compressor.indexer.position_bias W_index_query=compressor.indexer.q_b_proj
    W_index_weight=compressor.indexer.scorer.weights_proj"""


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
    layer of theirs with several of ours head by head, theirs=ours. more: what has a way of its own.
    """

    names: str = ""
    plus_one: str = ""
    by_head: str = ""
    more: Callable[[nn.Module, nn.Module], Pairs] | None = None

    def __call__(self, ours: nn.Module, theirs: nn.Module) -> Pairs:
        yield from by_name(ours, theirs, self.names)
        yield from by_name(ours, theirs, self.plus_one, 1)
        if self.by_head:
            layer, layers = self.by_head.split("=")
            yield from head_by_head(ours, getattr(theirs, layer), layers)
        yield from self.more(ours, theirs) if self.more else ()


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


def latent_queries(ours: nn.Module, theirs: nn.Module) -> Pairs:
    """Pair what makes DeepSeek's queries, of a latent or not."""
    return by_name(ours, theirs, QUERY_LATENT if hasattr(ours, "W_query_up") else "W_query=q_proj")


BLOOM = Paired("out_proj=dense", by_head=f"query_key_value={LAYERS}")
PLUS_ONE = Paired(f"{LLAMA} {BLOCKS}", f"{NORMS} {BLOCK_NORMS}")
GATED = Paired(KEYS, NORMS, "q_proj=W_query W_gate")
DELTA_LAYER = Paired(f"{LLAMA} {DELTA}", more=mixes)
PAIRS = {
    "GPT2": Paired(more=gpt2),
    "Bloom": BLOOM,
    "GPTNeoX": BLOOM,
    "Falcon": Paired("out_proj=dense", more=falcon),
    "Mpt": Paired("out_proj=out_proj", more=lambda o, t: three(o, t.Wqkv.weight.chunk(3))),
    "Gemma3": PLUS_ONE,
    "MiniMaxM3VL": PLUS_ONE,
    "Qwen3Next": GATED,
    "Qwen3_5": GATED,
    "MiniMaxLightning": Paired(
        "context_norm=norm W_gate=output_gate out_proj=out_proj", by_head=f"qkv_proj={LAYERS}"
    ),
    "DiffLlama": Paired(LLAMA, more=shares),
    "KimiLinearDelta": DELTA_LAYER,
    "Glm5NextTextLinear": DELTA_LAYER,
    "DeepseekV4": Paired(POOLS),
}
PAIRS |= dict.fromkeys(
    ["DeepseekV2", "DeepseekV3", "DeepseekV32", "GlmMoeDsa", "KimiLinear", "Glm5NextText"],
    Paired(f"{LATENT} {INDEXER}", by_head="kv_b_proj=W_key W_value", more=latent_queries),
)
PAIRS |= dict.fromkeys(
    ["Llama", "Cohere", "Qwen3", "Gemma2", "Mistral", "GptOss", "SmolLM3", "Llama4Text"]
    + ["Gemma4Text"],
    Paired(f"{LLAMA} {BLOCKS} {NORMS} {BLOCK_NORMS}"),
)
