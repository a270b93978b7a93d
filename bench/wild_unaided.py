"""Classes of packages, asked as they are: what is told besides stands in the row, one line at most.

An adapter here only says where the class is; how it is built and called is found out.
"""

import sys
from typing import Optional

import torch
from wild_rows import HUB, as_is, bare, found, right, wrong

BERT = {f"W_{name}": f"linear_layers.{i}" for i, name in enumerate(("query", "key", "value"))}


@right("openai-whisper==20250625", "MultiHeadAttention", unaided=True)
def whisper():
    bare("whisper.decoding", "whisper.transcribe")
    sys.modules["whisper.decoding"].decode = sys.modules["whisper.decoding"].detect_language = None
    sys.modules["whisper.transcribe"].transcribe = None
    return found("whisper.model:MultiHeadAttention")


def channels_first(module, x, hidden):
    """A call in which features stand before tokens."""
    return module(x.transpose(1, 2)).transpose(1, 2)


SEGMENT, BERT_PYTORCH = "segment_anything.modeling", "bert_pytorch.model"
TABS, DIFFUSION = "tab_transformer_pytorch", "denoising_diffusion_pytorch"
MODELS, NEW = "transformers.models", "transformers==5.23.0"
LLAMA, ENCODER = f"{MODELS}.llama.modeling_llama:LlamaAttention", {"causal": False}
as_is("segment-anything==1.0", f"{SEGMENT}.transformer:Attention", SEGMENT, **ENCODER)
as_is(
    "bert-pytorch==0.0.1a4",
    f"{BERT_PYTORCH}.attention.multi_head:MultiHeadedAttention",
    BERT_PYTORCH,
    layers=BERT | {"out_proj": "output_linear"},
)
as_is(
    "funasr==1.4.16",
    "funasr.models.transformer.attention:MultiHeadedAttention",
    *("funasr.models.transformer.utils", "funasr.models.lora"),
)
as_is("rtdl-revisiting-models==0.0.2", "rtdl_revisiting_models:MultiheadAttention", **ENCODER)
as_is("tab-transformer-pytorch==0.6.1", f"{TABS}.{TABS}:Attention", TABS, **ENCODER)
as_is(
    "tab-transformer-pytorch==0.6.1",
    f"{TABS}.ft_transformer:Attention",
    TABS,
    named="ft_transformer.Attention",
    **ENCODER,
)
as_is(
    "denoising-diffusion-pytorch==2.3.4",
    f"{DIFFUSION}.denoising_diffusion_pytorch_1d:Attention",
    DIFFUSION,
    call=channels_first,
    **ENCODER,
)
as_is("recbole==1.2.1", "recbole.model.layers:MultiHeadAttention", "recbole.model", "recbole.utils")
as_is(NEW, f"{MODELS}.bert.modeling_bert:BertAttention", named="BertAttention, bare")
as_is(NEW, f"{MODELS}.vit.modeling_vit:ViTAttention", named="ViTAttention, bare", **ENCODER)
as_is(NEW, LLAMA, named="LlamaAttention, bare")
as_is(NEW, LLAMA, named="LlamaAttention with gqa,rope", variant="gqa,rope")
as_is(NEW, f"{MODELS}.qwen3.modeling_qwen3:Qwen3Attention", variant="gqa,norm,rope")


# Mistakes of current releases


@wrong(
    "neuralforecast==3.3.0",
    "PatchTST._MultiheadAttention",
    (7,),
    f"{HUB}/Nixtla/neuralforecast/blob/v3.3.0/neuralforecast/models/patchtst.py",
    unaided=True,
    causal=False,
)
def neuralforecast():
    bare("neuralforecast.models", "neuralforecast.losses.pytorch")
    names = "neuralforecast.common._base_model", "neuralforecast.common._modules"
    return found("neuralforecast.models.patchtst:_MultiheadAttention", *names)


class Module(torch.nn.Module):
    """As fastai's, which a class need not initialise."""

    def __new__(cls, *args, **options):
        self = super().__new__(cls)
        torch.nn.Module.__init__(self)
        return self


@wrong(
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


@wrong(
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
