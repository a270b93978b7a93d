"""Which weights of a known module are which of ours: (ours, theirs, offset).

ours = theirs + offset. Each theirs is a view into the module's own weights, so that copying works
in both directions.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import nn

Pairs = Iterator[tuple[torch.Tensor, torch.Tensor, float]]
LAYERS = ("W_query", "W_key", "W_value")


def three(ours: nn.Module, weights, biases=None) -> Pairs:
    """Pair the three layers of step 2 with three weights each."""
    for name, weight in zip(LAYERS, weights, strict=True):
        yield getattr(ours, name).weight, weight, 0
    for name, bias in zip(LAYERS, biases or (), strict=False):
        yield getattr(ours, name).bias, bias, 0


def last(ours: nn.Module, weight, bias) -> Pairs:
    """Pair out_proj, whose bias both have or neither."""
    yield ours.out_proj.weight, weight, 0
    if bias is not None:
        yield ours.out_proj.bias, bias, 0


def torch_pairs(ours: nn.Module, theirs: nn.MultiheadAttention) -> Pairs:
    """Pair with nn.MultiheadAttention: three weights below each other."""
    yield from three(ours, theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3))
    yield from last(ours, theirs.out_proj.weight, theirs.out_proj.bias)


def gpt2_pairs(ours: nn.Module, theirs: nn.Module) -> Pairs:
    """Pair with GPT-2: three weights side by side, stored as (d_in, d_out)."""
    yield from three(ours, theirs.c_attn.weight.T.chunk(3), theirs.c_attn.bias.chunk(3))
    yield from last(ours, theirs.c_proj.weight.T, theirs.c_proj.bias)


def llama_pairs(ours: nn.Module, theirs: nn.Module, norm_offset: float = 0) -> Pairs:
    """Pair with Llama and those built alike, with norms and sinks where there are some."""
    layers = [theirs.q_proj, theirs.k_proj, theirs.v_proj]
    biases = [layer.bias for layer in layers] if layers[0].bias is not None else None
    yield from three(ours, [layer.weight for layer in layers], biases)
    yield from last(ours, theirs.o_proj.weight, theirs.o_proj.bias)
    if hasattr(ours, "query_norm"):
        yield ours.query_norm.weight, theirs.q_norm.weight, norm_offset
        yield ours.key_norm.weight, theirs.k_norm.weight, norm_offset
    if hasattr(ours, "sinks"):
        yield ours.sinks, theirs.sinks, 0


def one_plus(ours: nn.Module, theirs: nn.Module) -> Pairs:
    """Pair with Gemma 3, whose norms multiply by 1 + weight."""
    return llama_pairs(ours, theirs, norm_offset=1)


def head_by_head(ours: nn.Module, layer: nn.Linear, names: Sequence[str]) -> Pairs:
    """Pair several layers of ours with one that holds them head by head."""
    by_head = ours.num_heads, -1
    widths = [getattr(ours, name).out_features // ours.num_heads for name in names]
    for each in ("weight", "bias") if layer.bias is not None else ("weight",):
        theirs = getattr(layer, each).unflatten(0, by_head).split(widths, dim=1)
        for name, part in zip(names, theirs, strict=True):
            yield getattr(getattr(ours, name), each).unflatten(0, by_head), part, 0


def bloom_pairs(ours: nn.Module, theirs: nn.Module) -> Pairs:
    """Pair with Bloom: head by head a query, a key and a value."""
    yield from head_by_head(ours, theirs.query_key_value, LAYERS)
    yield from last(ours, theirs.dense.weight, theirs.dense.bias)


def falcon_pairs(ours: nn.Module, theirs: nn.Module) -> Pairs:
    """Pair with Falcon: all queries, then the one key and the one value."""
    sizes = [ours.d_out, ours.head_dim, ours.head_dim]
    yield from three(ours, theirs.query_key_value.weight.split(sizes))
    yield from last(ours, theirs.dense.weight, None)


def lightning_pairs(ours: nn.Module, theirs: nn.Module) -> Pairs:
    """Pair with MiniMax's linear attention: head by head three, a norm and a gate."""
    yield from head_by_head(ours, theirs.qkv_proj, LAYERS)
    yield ours.context_norm.weight, theirs.norm.weight, 0
    yield ours.W_gate.weight, theirs.output_gate.weight, 0
    yield from last(ours, theirs.out_proj.weight, None)


def mpt_pairs(ours: nn.Module, theirs: nn.Module) -> Pairs:
    """Pair with MPT: three weights below each other, no biases."""
    yield from three(ours, theirs.Wqkv.weight.chunk(3))
    yield from last(ours, theirs.out_proj.weight, None)


def gated_pairs(ours: nn.Module, theirs: nn.Module) -> Pairs:
    """Pair with Qwen3-Next: head by head a query and a gate, norms that multiply by 1 + weight."""
    yield from head_by_head(ours, theirs.q_proj, ("W_query", "W_gate"))
    for name, layer in (("W_key", theirs.k_proj), ("W_value", theirs.v_proj)):
        yield getattr(ours, name).weight, layer.weight, 0
        if layer.bias is not None:
            yield getattr(ours, name).bias, layer.bias, 0
    yield from last(ours, theirs.o_proj.weight, theirs.o_proj.bias)
    yield ours.query_norm.weight, theirs.q_norm.weight, 1
    yield ours.key_norm.weight, theirs.k_norm.weight, 1


def latent_pairs(ours: nn.Module, theirs: nn.Module) -> Pairs:
    """Pair with DeepSeek: head by head, what makes a key and a value out of a latent."""
    if hasattr(ours, "W_query_up"):
        yield ours.W_query.weight, theirs.q_a_proj.weight, 0
        yield ours.query_latent_norm.weight, theirs.q_a_layernorm.weight, 0
        yield ours.W_query_up.weight, theirs.q_b_proj.weight, 0
    else:
        yield ours.W_query.weight, theirs.q_proj.weight, 0
    yield ours.W_down.weight, theirs.kv_a_proj_with_mqa.weight, 0
    yield ours.latent_norm.weight, theirs.kv_a_layernorm.weight, 0
    yield from head_by_head(ours, theirs.kv_b_proj, ("W_key", "W_value"))
    yield from last(ours, theirs.o_proj.weight, None)


def sparse_pairs(ours: nn.Module, theirs: nn.Module) -> Pairs:
    """Pair with DeepSeek-V3.2: as before it, and the indexer."""
    yield from latent_pairs(ours, theirs)
    yield ours.W_index_query.weight, theirs.indexer.wq_b.weight, 0
    yield ours.W_index_key.weight, theirs.indexer.wk.weight, 0
    yield ours.W_index_weight.weight, theirs.indexer.weights_proj.weight, 0
    yield ours.index_norm.weight, theirs.indexer.k_norm.weight, 0
    yield ours.index_norm.bias, theirs.indexer.k_norm.bias, 0


def difference_pairs(ours: nn.Module, theirs: nn.Module) -> Pairs:
    """Pair with DiffLlama: as Llama, and four vectors that the shares are made of."""
    yield from llama_pairs(ours, theirs)
    for place, name in enumerate(("lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2")):
        yield ours.shares[place], getattr(theirs, name), 0


def plain_pairs(ours: nn.Module, theirs: nn.Module) -> Pairs:
    """Pair with Llama 4, whose norms learn nothing."""
    yield from three(
        ours, [layer.weight for layer in (theirs.q_proj, theirs.k_proj, theirs.v_proj)]
    )
    yield from last(ours, theirs.o_proj.weight, None)


def block_pairs(ours: nn.Module, theirs: nn.Module) -> Pairs:
    """Pair with MiniMax-M3, whose norms multiply by 1 + weight, and its indexer of blocks."""
    yield from one_plus(ours, theirs)
    if theirs.indexer:
        yield ours.W_index_query.weight, theirs.indexer.q_proj.weight, 0
        yield ours.W_index_key.weight, theirs.indexer.k_proj.weight, 0
        yield ours.index_query_norm.weight, theirs.indexer.q_norm.weight, 1
        yield ours.index_norm.weight, theirs.indexer.k_norm.weight, 1


def delta_layer_pairs(ours: nn.Module, theirs: nn.Module) -> Pairs:
    """Pair with Kimi Linear's layers without a softmax: one convolution for all three."""
    yield from plain_pairs(ours, theirs)
    mixes = theirs.conv1d.weight.chunk(3)
    for name, mix in zip(("query_mix", "key_mix", "value_mix"), mixes, strict=True):
        yield getattr(ours, name).weight, mix, 0
    yield ours.W_share.weight, theirs.b_proj.weight, 0
    gate = theirs.forget_gate
    yield ours.W_fade[0].weight, gate.f_a_proj.weight, 0
    yield ours.W_fade[1].weight, gate.f_b_proj.weight, 0
    yield ours.fade_bias, gate.dt_bias, 0
    yield ours.fade_log, gate.A_log.flatten(), 0
    yield ours.W_gate[0].weight, theirs.g_a_proj.weight, 0
    yield ours.W_gate[1].weight, theirs.g_b_proj.weight, 0
    yield ours.head_norm.weight, theirs.o_norm.weight, 0


def shared_pairs(ours: nn.Module, theirs: nn.Module) -> Pairs:
    """Pair with Gemma 4: a layer may lack W_value, or keys and values both."""
    yield ours.W_query.weight, theirs.q_proj.weight, 0
    yield ours.query_norm.weight, theirs.q_norm.weight, 0
    if ours.W_key is not None:
        yield ours.W_key.weight, theirs.k_proj.weight, 0
        yield ours.key_norm.weight, theirs.k_norm.weight, 0
    if ours.W_value is not None:
        yield ours.W_value.weight, theirs.v_proj.weight, 0
    yield from last(ours, theirs.o_proj.weight, None)


def pool_pairs(ours: nn.Module, theirs: nn.Module) -> Pairs:
    """Pair with DeepSeek-V4: one key that is its value, pools, an indexer, two last layers."""
    yield ours.W_query.weight, theirs.q_a_proj.weight, 0
    yield ours.query_latent_norm.weight, theirs.q_a_norm.weight, 0
    yield ours.W_query_up.weight, theirs.q_b_proj.weight, 0
    yield ours.W_key.weight, theirs.kv_proj.weight, 0
    yield ours.key_norm.weight, theirs.kv_norm.weight, 0
    yield ours.sinks, theirs.sinks, 0
    yield ours.W_groups, theirs.o_a_proj.weight.unflatten(0, (theirs.o_a_proj.n_groups, -1)), 0
    yield from last(ours, theirs.o_b_proj.weight, None)
    for name, pool in (
        ("pool", theirs.compressor),
        ("index_pool", getattr(theirs.compressor, "indexer", None)),
    ):
        if pool is not None:
            yield getattr(ours, f"W_{name}").weight, pool.kv_proj.weight, 0
            yield getattr(ours, f"W_{name}_gate").weight, pool.gate_proj.weight, 0
            yield getattr(ours, f"{name}_bias"), pool.position_bias, 0
            yield getattr(ours, f"{name}_norm").weight, pool.kv_norm.weight, 0
    if hasattr(ours, "W_index_query"):
        yield ours.W_index_query.weight, pool.q_b_proj.weight, 0
        yield ours.W_index_weight.weight, pool.scorer.weights_proj.weight, 0


PAIRS = {
    "GPT2": gpt2_pairs,
    "Bloom": bloom_pairs,
    "Mpt": mpt_pairs,
    "Gemma3": one_plus,
    "Qwen3Next": gated_pairs,
    "Falcon": falcon_pairs,
    "GPTNeoX": bloom_pairs,
    "MiniMaxLightning": lightning_pairs,
    "Qwen3_5": gated_pairs,
    "DeepseekV32": sparse_pairs,
    "GlmMoeDsa": sparse_pairs,
    "DeepseekV2": latent_pairs,
    "DeepseekV3": latent_pairs,
    "DiffLlama": difference_pairs,
    "Llama4Text": plain_pairs,
    "MiniMaxM3VL": block_pairs,
    "KimiLinear": latent_pairs,
    "KimiLinearDelta": delta_layer_pairs,
    "Gemma4Text": shared_pairs,
    "DeepseekV4": pool_pairs,
} | dict.fromkeys(
    ["Llama", "Cohere", "Qwen3", "Gemma2", "Mistral", "GptOss", "SmolLM3"], llama_pairs
)
