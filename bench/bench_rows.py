"""Build the implementations that bench.py compares, all with the same parameters.

A builder takes a source of weights and returns a module from x (b, num_tokens, d_in) to the output.
"""

import functools
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

from helpers.attention import (
    FusedMultiHeadAttention,
    MultiHeadAttention,
    MultiHeadAttentionWrapper,
    future_mask,
)


def build_wrapper(source: FusedMultiHeadAttention) -> nn.Module:
    sizes = source.d_in, source.head_dim, source.context_length, 0.0, source.num_heads
    wrapper = MultiHeadAttentionWrapper(*sizes)
    for name in ("W_query", "W_key", "W_value"):
        blocks = getattr(source, name).weight.detach().split(source.head_dim)
        for head, block in zip(wrapper.heads, blocks, strict=True):
            getattr(head, name).weight = nn.Parameter(block)
    return nn.Sequential(wrapper, source.out_proj)


def build_by_name(source: FusedMultiHeadAttention, cls: type[nn.Module]) -> nn.Module:
    module = cls(source.d_in, source.d_out, source.context_length, 0.0, source.num_heads)
    module.load_state_dict(source.state_dict(), strict=False)  # a mask of its own stays
    return module


class TorchsModule(nn.Module):
    """Wrap nn.MultiheadAttention as causal self-attention that returns no weights.

    By default torch takes its fast path in eval mode without gradients.
    """

    def __init__(
        self, source: FusedMultiHeadAttention, need_weights: bool = False, fast_path: bool = False
    ):
        super().__init__()
        self.theirs = nn.MultiheadAttention(source.d_out, source.num_heads, batch_first=True)
        self.theirs.in_proj_weight = wide_weight(source)
        self.theirs.out_proj.load_state_dict(source.out_proj.state_dict())
        self.register_buffer("mask", future_mask(source.context_length))
        self.how = {"need_weights": need_weights, "is_causal": not need_weights}
        self.fast_path = fast_path

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch.backends.mha.set_fastpath_enabled(self.fast_path)
        return self.theirs(x, x, x, attn_mask=self.mask, **self.how)[0]


class OneProduct(nn.Module):
    """Apply one wide projection, then a given function of queries, keys and values."""

    def __init__(self, source: FusedMultiHeadAttention, attend: Callable[..., torch.Tensor]):
        super().__init__()
        self.qkv = nn.Linear(source.d_in, 3 * source.d_out, bias=False)
        self.qkv.weight = wide_weight(source)
        self.split = (3, source.num_heads, source.head_dim)
        self.out_proj, self.attend = source.out_proj, attend

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        queries, keys, values = self.qkv(x).unflatten(2, self.split).permute(2, 0, 3, 1, 4)
        context = self.attend(queries, keys, values)
        return self.out_proj(context.transpose(1, 2).flatten(2))


def build_masked(source: FusedMultiHeadAttention) -> nn.Module:
    keep = ~future_mask(source.context_length, source.out_proj.weight.device)
    return OneProduct(source, functools.partial(F.scaled_dot_product_attention, attn_mask=keep))


def build_flex(source: FusedMultiHeadAttention) -> nn.Module:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    sizes = None, None, source.context_length, source.context_length
    device = source.out_proj.weight.device
    blocks = create_block_mask(lambda b, h, query, key: query >= key, *sizes, device=device)
    torch._dynamo.reset()  # else it stops compiling after some sizes
    compiled = torch.compile(flex_attention, dynamic=False)
    return OneProduct(source, functools.partial(compiled, block_mask=blocks))


def build_lecture(source: FusedMultiHeadAttention) -> nn.Module:
    from llms_from_scratch.ch03 import MultiHeadAttention as Lecture

    return build_by_name(source, Lecture)


def build_lecture_sdpa(source: FusedMultiHeadAttention) -> nn.Module:
    from llms_from_scratch.ch03 import PyTorchMultiHeadAttention

    module = PyTorchMultiHeadAttention(source.d_in, source.d_out, source.num_heads)
    module.qkv.weight, module.proj = wide_weight(source), source.out_proj
    return module


def build_gpt2(source: FusedMultiHeadAttention) -> nn.Module:
    from transformers import GPT2Config
    from transformers.models.gpt2.modeling_gpt2 import GPT2Attention

    sizes = {"n_embd": source.d_out, "n_head": source.num_heads}
    sizes["n_positions"] = source.context_length
    config = GPT2Config(**sizes, attn_pdrop=0.0, resid_pdrop=0.0, attn_implementation="sdpa")
    module = GPT2Attention(config, layer_idx=0)
    module.c_attn.weight.data = wide_weight(source).data.T.contiguous()
    module.c_proj.weight.data = source.out_proj.weight.data.T.contiguous()
    module.c_proj.bias = source.out_proj.bias
    module.register_forward_hook(lambda module, args, outputs: outputs[0])
    return module


def build_x_transformers(source: FusedMultiHeadAttention) -> nn.Module:
    from x_transformers.x_transformers import Attention

    sizes = {"dim": source.d_out, "heads": source.num_heads, "dim_head": source.head_dim}
    module = Attention(**sizes, causal=True, flash=True)
    module.to_q, module.to_k, module.to_v = source.W_query, source.W_key, source.W_value
    module.to_out = source.out_proj
    return module


def wide_weight(source: FusedMultiHeadAttention) -> nn.Parameter:
    weights = [layer.weight.detach() for layer in (source.W_query, source.W_key, source.W_value)]
    return nn.Parameter(torch.cat(weights))  # (3 * d_out, d_in)


WRAPPER, EXPLICIT, FUSED = (
    cls.__name__ for cls in (MultiHeadAttentionWrapper, MultiHeadAttention, FusedMultiHeadAttention)
)
TORCHS, WITH_WEIGHTS = "nn.MultiheadAttention", "nn.MultiheadAttention, weights"
FAST_PATH = "nn.MultiheadAttention, fast path"
CAUSAL, MASKED = "SDPA, is_causal", "SDPA, mask"
FLEX, LECTURE = "FlexAttention, compiled", "llms-from-scratch, split"
ROWS = {
    WRAPPER: build_wrapper,
    EXPLICIT: functools.partial(build_by_name, cls=MultiHeadAttention),
    FUSED: functools.partial(build_by_name, cls=FusedMultiHeadAttention),
    TORCHS: TorchsModule,
    FAST_PATH: functools.partial(TorchsModule, fast_path=True),
    WITH_WEIGHTS: functools.partial(TorchsModule, need_weights=True),
    CAUSAL: functools.partial(
        OneProduct, attend=functools.partial(F.scaled_dot_product_attention, is_causal=True)
    ),
    MASKED: build_masked,
    FLEX: build_flex,
    LECTURE: build_lecture,
    "llms-from-scratch, SDPA": build_lecture_sdpa,
    "transformers, GPT2Attention": build_gpt2,
    "x-transformers, Attention": build_x_transformers,
}
BUILD_THE_MATRIX = {WRAPPER, EXPLICIT, FAST_PATH, WITH_WEIGHTS, LECTURE}  # one for each head


def run(module: nn.Module, x: torch.Tensor, backward: bool) -> list[torch.Tensor]:
    """Return the output or, with backward, the gradients of x and parameters."""
    if not backward:
        with torch.no_grad():
            return [module.eval()(x)]
    out = module.train()(x.requires_grad_())
    return [out, *torch.autograd.grad(out, [x, *module.parameters()], torch.ones_like(out))]


def prove(module: nn.Module, x: torch.Tensor, expected: list[torch.Tensor]) -> None:
    """Raise AssertionError unless a module gives the expected output, and gradient of x if any."""
    assert expected, "nothing to compare with"
    results = run(module, x, len(expected) > 1)[: len(expected)]
    for ours, theirs in zip(results, expected, strict=True):
        assert ours.numel(), "nothing was compared"
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
