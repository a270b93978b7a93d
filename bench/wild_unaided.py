"""Classes of packages, asked as they are: how they are built and called is found out.

Most stand in wild.toml. A function here only says where a class is that needs more than that.
"""

import sys
from typing import Optional

import torch
from wild_rows import HUB, TABLE, as_is, bare, found, right, wrong


@right("openai-whisper==20250625", "MultiHeadAttention", unaided=True)
def whisper():
    bare("whisper.decoding", "whisper.transcribe")
    sys.modules["whisper.decoding"].decode = sys.modules["whisper.decoding"].detect_language = None
    sys.modules["whisper.transcribe"].transcribe = None
    return found("whisper.model:MultiHeadAttention")


def channels_first(module, x, hidden):
    """A call in which features stand before tokens."""
    return module(x.transpose(1, 2)).transpose(1, 2)


as_is(
    "denoising-diffusion-pytorch==2.3.4",
    "denoising_diffusion_pytorch.denoising_diffusion_pytorch_1d:Attention",
    ["denoising_diffusion_pytorch"],
    call=channels_first,
    causal=False,
)
for row in TABLE["as_is"]:
    as_is(**row)


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
