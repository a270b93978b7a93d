"""Classes of packages, unmodified: those of wild.toml, and those that take more than it can say.

Each mistake was told in the thread that is its source; all but bark's were mended later.
"""

import sys
from typing import Optional

import torch
from wild_rows import HUB, TABLE, bare, found, in_table, row

for each in TABLE["classes"]:
    in_table(**each)


@row("vit-pytorch==1.26.11", "Attention, its norm taken out", causal=False)
def vit(d_out, num_heads, head_dim):
    module = found("vit_pytorch.vit:Attention")(d_out, num_heads, head_dim)
    module.norm = torch.nn.Identity()  # it takes x through a norm first
    return module


def lengths(module, x, hidden):
    """A call with the number of keys that each query may see."""
    return module(x, x, x, (~hidden).sum(-1)[None].repeat(len(x), 1))


@row("d2l==1.0.3", "MultiHeadAttention", call=lengths)
def d2l(d_out, num_heads, dropout, qkv_bias):
    module = found("d2l.torch:MultiHeadAttention")(d_out, num_heads, dropout, qkv_bias)
    module(*[torch.zeros(1, 2, d_out)] * 3, None)  # its layers are lazy: the first call makes them
    return module


DI_ENGINE = {"qkv": "attention_pre.0", "out_proj": "project.0"}


@row("di-engine==0.5.3", "Attention", layers=DI_ENGINE)
@row(
    "di-engine==0.3.1", "Attention", (6,), f"{HUB}/opendilab/DI-engine/issues/333", layers=DI_ENGINE
)
def di_engine(d_out, num_heads, head_dim, dropout):
    kind = found("ding.torch_utils.network.transformer:Attention", "ding.torch_utils.network")
    return kind(d_out, head_dim, d_out, num_heads, torch.nn.Dropout(dropout))


def twice(module, x, hidden):
    return module(x, x)


@row("torchtune==0.6.1", "MultiHeadAttention", call=twice)
@row(
    "torchtune==0.3.1",
    "MultiHeadAttention",
    (7,),
    f"{HUB}/meta-pytorch/torchtune/issues/1791",
    call=twice,
)
def torchtune(d_out, num_heads, head_dim, dropout, qkv_bias):
    bare("torchtune.modules", "torchtune.utils")
    from torchtune.modules.attention import MultiHeadAttention

    names = "q_proj", "k_proj", "v_proj", "output_proj"
    four = {name: torch.nn.Linear(d_out, d_out, qkv_bias) for name in names}
    sizes = {"embed_dim": d_out, "num_heads": num_heads, "num_kv_heads": num_heads}
    return MultiHeadAttention(**sizes, head_dim=head_dim, **four, attn_dropout=dropout)


def padded(module, x, hidden):
    """A call for each query, whose mask of padding hides what comes after it."""
    b, n, _ = x.shape
    out = module(x.repeat_interleave(n, 0), attn_mask=(~hidden).repeat(b, 1))
    return out.unflatten(0, (b, n))[:, range(n), range(n)]


@row(
    "timm==1.0.7",
    "EvaAttention",
    (6, 7),
    f"{HUB}/huggingface/pytorch-image-models/pull/2236",
    call=padded,
)
def eva(d_out, num_heads, dropout):
    kind = found("timm.models.eva:EvaAttention")
    module = kind(d_out, num_heads, qkv_bias=False, attn_drop=dropout)
    module.fused_attn = False  # the other branch was right
    return module


# Asked as they are: how they are built and called is found out


@row("openai-whisper==20250625", "MultiHeadAttention", unaided=True)
def whisper():
    bare("whisper.decoding", "whisper.transcribe")
    sys.modules["whisper.decoding"].decode = sys.modules["whisper.decoding"].detect_language = None
    sys.modules["whisper.transcribe"].transcribe = None
    return found("whisper.model:MultiHeadAttention")


# Mistakes of current releases, others than of the table


class Module(torch.nn.Module):
    """As fastai's, which a class need not initialise."""

    def __new__(cls, *args, **options):
        self = super().__new__(cls)
        torch.nn.Module.__init__(self)
        return self


@row(
    "tsai==0.4.1",
    "TST._MultiHeadAttention",
    (6,),
    f"{HUB}/timeseriesAI/tsai/blob/0.4.1/tsai/models/TST.py",
    unaided=True,
)
def tsai():
    bare("tsai.models.layers", "tsai.models.utils", "tsai.imports", "tsai.utils")
    names = {"nn": torch.nn, "Module": Module, "Tensor": torch.Tensor, "Optional": Optional}
    vars(sys.modules["tsai.imports"]).update(names, torch=torch, F=torch.nn.functional)
    return found("tsai.models.TST:_MultiHeadAttention")


@row(
    "pytorch-forecasting==1.8.0",
    "AttentionLayer of FullAttention",
    (),
    f"{HUB}/sktime/pytorch-forecasting/blob/v1.8.0/pytorch_forecasting/layers/_attention/"
    "_full_attention.py",
    says="bad operand type for unary -",
    call=lambda module, x, hidden: module(x, x, x, None),
)
def pytorch_forecasting(d_out, num_heads, dropout):
    bare("pytorch_forecasting.layers._attention")
    from pytorch_forecasting.layers._attention._attention_layer import AttentionLayer
    from pytorch_forecasting.layers._attention._full_attention import FullAttention

    return AttentionLayer(FullAttention(attention_dropout=dropout), d_out, num_heads)
