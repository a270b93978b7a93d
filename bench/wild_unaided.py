"""Classes of packages, asked as they are: what is told besides stands in the row, one line at most.

An adapter here only says where the class is; how it is built and called is found out.
"""

import sys
from typing import Optional

import torch
from wild_rows import HUB, bare, right, wrong

BERT = {f"W_{name}": f"linear_layers.{i}" for i, name in enumerate(("query", "key", "value"))}


@right("openai-whisper==20250625", "MultiHeadAttention", unaided=True)
def whisper():
    bare("whisper.decoding", "whisper.transcribe")
    sys.modules["whisper.decoding"].decode = sys.modules["whisper.decoding"].detect_language = None
    sys.modules["whisper.transcribe"].transcribe = None
    from whisper.model import MultiHeadAttention

    return MultiHeadAttention


@right("segment-anything==1.0", "Attention", unaided=True, causal=False)
def segment_anything():
    bare("segment_anything.modeling")
    from segment_anything.modeling.transformer import Attention

    return Attention


@right(
    "bert-pytorch==0.0.1a4",
    "MultiHeadedAttention",
    unaided=True,
    layers=BERT | {"out_proj": "output_linear"},
)
def bert_pytorch():
    bare("bert_pytorch.model")
    from bert_pytorch.model.attention.multi_head import MultiHeadedAttention

    return MultiHeadedAttention


@right("funasr==1.4.16", "MultiHeadedAttention", unaided=True)
def funasr():
    bare("funasr.models.transformer.utils", "funasr.models.lora")
    from funasr.models.transformer.attention import MultiHeadedAttention

    return MultiHeadedAttention


@right("rtdl-revisiting-models==0.0.2", "MultiheadAttention", unaided=True, causal=False)
def rtdl():
    from rtdl_revisiting_models import MultiheadAttention

    return MultiheadAttention


@right("tab-transformer-pytorch==0.6.1", "Attention", unaided=True, causal=False)
def tab_transformer():
    bare("tab_transformer_pytorch")
    from tab_transformer_pytorch.tab_transformer_pytorch import Attention

    return Attention


@right("tab-transformer-pytorch==0.6.1", "ft_transformer.Attention", unaided=True, causal=False)
def ft_transformer():
    bare("tab_transformer_pytorch")
    from tab_transformer_pytorch.ft_transformer import Attention

    return Attention


def channels_first(module, x, hidden):
    """A call in which features stand before tokens."""
    return module(x.transpose(1, 2)).transpose(1, 2)


@right(
    "denoising-diffusion-pytorch==2.3.4",
    "Attention",
    unaided=True,
    call=channels_first,
    causal=False,
)
def denoising_diffusion():
    bare("denoising_diffusion_pytorch")
    from denoising_diffusion_pytorch.denoising_diffusion_pytorch_1d import Attention

    return Attention


@right("recbole==1.2.1", "MultiHeadAttention", unaided=True)
def recbole():
    bare("recbole.model", "recbole.utils")
    from recbole.model.layers import MultiHeadAttention

    return MultiHeadAttention


@right("transformers==5.23.0", "BertAttention, bare", unaided=True)
def bert():
    from transformers.models.bert.modeling_bert import BertAttention

    return BertAttention


@right("transformers==5.23.0", "ViTAttention, bare", unaided=True, causal=False)
def vit():
    from transformers.models.vit.modeling_vit import ViTAttention

    return ViTAttention


@right("transformers==5.23.0", "LlamaAttention, bare", unaided=True)
def llama():
    from transformers.models.llama.modeling_llama import LlamaAttention

    return LlamaAttention


@right("transformers==5.23.0", "LlamaAttention with gqa,rope", unaided=True, variant="gqa,rope")
def llama_turned():
    from transformers.models.llama.modeling_llama import LlamaAttention

    return LlamaAttention


@right("transformers==5.23.0", "Qwen3Attention", unaided=True, variant="gqa,norm,rope")
def qwen3():
    from transformers.models.qwen3.modeling_qwen3 import Qwen3Attention

    return Qwen3Attention


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
    bare("neuralforecast.common._base_model", "neuralforecast.common._modules")
    from neuralforecast.models.patchtst import _MultiheadAttention

    return _MultiheadAttention


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
    from tsai.models.TST import _MultiHeadAttention

    return _MultiHeadAttention


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
