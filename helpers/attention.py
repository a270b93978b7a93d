"""Causal attention four ways: one head, a stack of heads, all heads in one product, and fused.

Letters used everywhere: b (sequences in the batch), num_tokens, d_in and d_out (features per
token), num_heads, head_dim = d_out / num_heads, context_length (the most tokens allowed).
"""

import copy
from collections.abc import Callable

import torch
from torch import nn


def record_nothing(name: str, **tensors: torch.Tensor) -> None:
    """Ignore the tensors of a step: the record of a forward pass that nobody traces."""


class _Causal(nn.Module):
    """Hold what every causal attention here needs: a mask, checked sizes and checked input.

    The mask says which scores look into the future. It is worked out from context_length alone: a
    mask found in a checkpoint may use another dtype or another polarity, so it is never trusted.
    """

    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float):
        super().__init__()
        check_sizes(d_in=d_in, d_out=d_out, context_length=context_length)
        check_dropout(dropout)
        self.d_in = d_in
        self.d_out = d_out
        self.context_length = context_length
        self.register_buffer("mask", future_mask(context_length))

    def _apply(self, fn, recurse=True):
        mask = getattr(self, "mask", None)
        super()._apply(fn, recurse)
        if mask is not None and mask.is_meta:  # to_empty gave it memory, and nobody would fill that
            self.mask = future_mask(self.context_length, self.mask.device)
        return self

    def _load_from_state_dict(self, state_dict, prefix, *args):
        device = state_dict.get(prefix + "W_query.weight", self.mask).device
        state_dict[prefix + "mask"] = future_mask(self.context_length, device)
        super()._load_from_state_dict(state_dict, prefix, *args)


class MultiHeadAttention(_Causal):
    """Let every token gather information from itself and the tokens before it, in several heads.

    Args:
        d_in: features of each input token.
        d_out: features of each output token, all heads together; a multiple of num_heads.
        context_length: the most tokens a sequence may have.
        dropout: share of the attention weights set to zero in training, from 0 to below 1.
        num_heads: heads that d_out is split into, head_dim = d_out / num_heads features each.
        qkv_bias: whether W_query, W_key and W_value add a bias.

    Raises:
        TypeError: a size is not an int, or dropout is not a number.
        ValueError: a size is not positive, d_out is not a multiple of num_heads, or dropout is
            outside [0, 1).

    In float16 a raw score above 65,504 becomes infinite here, because step 7 divides after step 5,
    and its row NaN. FusedMultiHeadAttention and bfloat16 have no such limit.

    Source: the causal multi-head attention of "Attention Is All You Need" (2017), section 3.2, in
    the parameter names, initialisation order and state_dict of the lecture this course follows.
    """

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
    ):
        super().__init__(d_in, d_out, context_length, dropout)
        check_heads(d_out, num_heads)
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: torch.Tensor, record: Callable[..., None] = record_nothing
    ) -> torch.Tensor:
        """Take x (b, num_tokens, d_in) through the eleven steps to out (b, num_tokens, d_out).

        Args:
            x: floating point, (b, num_tokens, d_in), at most context_length tokens.
            record: called once a step as record(name, **tensors), with the live tensors: copy what
                you keep, since steps 6 and 7 write over the scores.

        Raises:
            TypeError: x is not a floating-point tensor of the module's dtype.
            ValueError: x has no token, is not 3-D, is not d_in wide, or has too many tokens. A
                batch of b = 0 sequences is taken, as torch's own layers take it.
        """
        # 1 shape
        check_input(x, self.W_query, self.context_length)
        b, num_tokens, _ = x.shape  # (b, num_tokens, d_in)
        record("shape", x=x)

        # 2 project
        queries = self.W_query(x)  # (b, num_tokens, d_out)
        keys = self.W_key(x)  # (b, num_tokens, d_out)
        values = self.W_value(x)  # (b, num_tokens, d_out)
        record("project", queries=queries, keys=keys, values=values)

        # 3 view
        split = (b, num_tokens, self.num_heads, self.head_dim)
        queries = queries.view(split)  # (b, num_tokens, num_heads, head_dim)
        keys = keys.view(split)  # (b, num_tokens, num_heads, head_dim)
        values = values.view(split)  # (b, num_tokens, num_heads, head_dim)
        record("view", queries=queries, keys=keys, values=values)

        # 4 transpose
        queries = queries.transpose(1, 2)  # (b, num_heads, num_tokens, head_dim)
        keys = keys.transpose(1, 2)  # (b, num_heads, num_tokens, head_dim)
        values = values.transpose(1, 2)  # (b, num_heads, num_tokens, head_dim)
        record("transpose", queries=queries, keys=keys, values=values)

        # 5 scores
        scores = queries @ keys.transpose(2, 3)  # (b, num_heads, num_tokens, num_tokens)
        record("scores", scores=scores)

        # 6 mask
        future = self.mask[:num_tokens, :num_tokens]  # (num_tokens, num_tokens)
        masked = scores.masked_fill_(future, -torch.inf)  # (b, num_heads, num_tokens, num_tokens)
        record("mask", masked=masked)

        # 7 softmax
        scaled = masked.div_(self.head_dim**0.5)  # (b, num_heads, num_tokens, num_tokens)
        weights = torch.softmax(scaled, dim=-1)  # (b, num_heads, num_tokens, num_tokens)
        weights = self.dropout(weights)  # (b, num_heads, num_tokens, num_tokens)
        record("softmax", weights=weights)

        # 8 context
        context = weights @ values  # (b, num_heads, num_tokens, head_dim)
        record("context", context=context)

        # 9 reformat
        context = context.transpose(1, 2)  # (b, num_tokens, num_heads, head_dim)
        record("reformat", context=context)

        # 10 combine
        context = context.contiguous().view(b, num_tokens, self.d_out)  # (b, num_tokens, d_out)
        record("combine", context=context)

        # 11 out_proj
        out = self.out_proj(context)  # (b, num_tokens, d_out)
        record("out_proj", out=out)
        return out


class CausalAttention(_Causal):
    """Attend with one head, d_out features wide: step 2 and steps 5 to 8, nothing to split.

    Args and errors as in MultiHeadAttention, without num_heads.
    """

    def __init__(
        self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False
    ):
        super().__init__(d_in, d_out, context_length, dropout)
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Take x (b, num_tokens, d_in) to context (b, num_tokens, d_out); errors as above."""
        check_input(x, self.W_query, self.context_length)
        num_tokens = x.shape[1]
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)  # (b, num_tokens, num_tokens)
        masked = scores.masked_fill(self.mask[:num_tokens, :num_tokens], -torch.inf)
        weights = self.dropout(torch.softmax(masked / self.d_out**0.5, dim=-1))
        return weights @ values  # (b, num_tokens, d_out)


class MultiHeadAttentionWrapper(nn.Module):
    """Run num_heads separate CausalAttention heads and lay their outputs side by side.

    Args and errors as in MultiHeadAttention, but d_out is the width of each head: the output is
    d_out * num_heads wide. There is no out_proj, and the heads run one after another.
    """

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
    ):
        super().__init__()
        check_sizes(num_heads=num_heads)
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias)
            for _ in range(num_heads)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Take x (b, num_tokens, d_in) to (b, num_tokens, d_out * num_heads); a head checks x."""
        return torch.cat([head(x) for head in self.heads], dim=-1)


class FusedMultiHeadAttention(MultiHeadAttention):
    """Do what MultiHeadAttention does, faster, and without its (num_tokens, num_tokens) tensors.

    Steps 5 to 8 are one call of torch's scaled_dot_product_attention, which works block by block
    and needs no mask to be causal. (On a CPU, torch builds the large tensors after all where
    dropout acts in training.) Checkpoints of MultiHeadAttention fit, and the other way round.

    Args and errors as in MultiHeadAttention.

    Source: "FlashAttention" (2022), as torch implements it.
    """

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
    ):
        check_sizes(context_length=context_length)
        super().__init__(d_in, d_out, 1, dropout, num_heads, qkv_bias)  # 1: the mask stays small
        self.context_length = context_length
        self.mask = None

    def _load_from_state_dict(self, state_dict, prefix, *args):
        state_dict.pop(prefix + "mask", None)
        nn.Module._load_from_state_dict(self, state_dict, prefix, *args)

    def forward(
        self, x: torch.Tensor, record: Callable[..., None] = record_nothing
    ) -> torch.Tensor:
        """Take x (b, num_tokens, d_in) to out (b, num_tokens, d_out); errors as above.

        Given a record, it takes the eleven steps one by one, as MultiHeadAttention does.
        """
        check_input(x, self.W_query, self.context_length)
        b, num_tokens, _ = x.shape
        if record is not record_nothing:
            twin = copy.copy(self)  # so that two threads may record at once
            twin._buffers = {"mask": future_mask(num_tokens, x.device)}
            return MultiHeadAttention.forward(twin, x, record)

        split = (b, num_tokens, self.num_heads, self.head_dim)
        context = nn.functional.scaled_dot_product_attention(
            self.W_query(x).view(split).transpose(1, 2),  # (b, num_heads, num_tokens, head_dim)
            self.W_key(x).view(split).transpose(1, 2),  # (b, num_heads, num_tokens, head_dim)
            self.W_value(x).view(split).transpose(1, 2),  # (b, num_heads, num_tokens, head_dim)
            dropout_p=self.dropout.p if self.dropout.training else 0.0,
            is_causal=True,
        )  # (b, num_heads, num_tokens, head_dim)
        context = context.transpose(1, 2).reshape(b, num_tokens, self.d_out)
        return self.out_proj(context)  # (b, num_tokens, d_out)


def future_mask(context_length: int, device: torch.device | None = None) -> torch.Tensor:
    """Return (context_length, context_length), True where a key comes after its query."""
    every = torch.ones(context_length, context_length, dtype=torch.bool, device=device)
    return every.triu(diagonal=1)


def check_sizes(**sizes: int) -> None:
    """Raise unless every size is a positive int; bools do not count as sizes."""
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool):
            raise TypeError(
                f"{name} is {size!r} ({type(size).__name__}): a positive int is expected"
            )
        if size < 1:
            raise ValueError(f"{name} is {size}: a positive int is expected")


def check_heads(d_out: int, num_heads: int) -> None:
    """Raise unless d_out features can be shared out evenly among num_heads."""
    check_sizes(d_out=d_out, num_heads=num_heads)
    if d_out % num_heads:
        raise ValueError(
            f"d_out is {d_out} and num_heads is {num_heads}: d_out must be a multiple of "
            f"num_heads, so that each head gets head_dim = d_out / num_heads features"
        )


def check_dropout(dropout: float) -> None:
    """Raise unless dropout is a share from 0 to below 1."""
    if not isinstance(dropout, int | float) or isinstance(dropout, bool):
        raise TypeError(f"dropout is {dropout!r} ({type(dropout).__name__}): a number is expected")
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout is {dropout}: a share from 0 to below 1 is expected")


def check_input(x: torch.Tensor, layer: nn.Module, context_length: int) -> None:
    """Raise unless x is (b, num_tokens, d_in), fits layer and context_length.

    A layer that was swapped, quantized or wrapped is asked only for what it has: in_features, and
    a floating-point weight.
    """
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"x is a {type(x).__name__}: a tensor (b, num_tokens, d_in) is expected")
    if x.is_nested:
        raise TypeError(
            "x is nested, with sequences of several lengths: fill them up at the end to one "
            "(b, num_tokens, d_in) with torch.nested.to_padded_tensor; no token sees what comes "
            "after it"
        )
    if x.dim() != 3:
        raise ValueError(
            f"x has shape {tuple(x.shape)}, {x.dim()} dimensions: "
            f"three are expected, (b, num_tokens, d_in)"
        )
    if x.shape[1] == 0 or x.shape[2] == 0:
        raise ValueError(
            f"x has shape {tuple(x.shape)}: at least one token of one feature is expected"
        )
    d_in = getattr(layer, "in_features", x.shape[2])
    if x.shape[2] != d_in:
        raise ValueError(
            f"x has {x.shape[2]} features per token, but d_in is {d_in}: "
            f"x of shape (b, num_tokens, {d_in}) is expected"
        )
    if x.shape[1] > context_length:
        raise ValueError(
            f"x has {x.shape[1]} tokens, but context_length is {context_length}: "
            f"cut x or build the module longer"
        )
    if not x.is_floating_point():
        raise TypeError(f"x holds {x.dtype}: floating-point numbers are expected; try x.float()")
    weight = getattr(layer, "weight", None)
    if not isinstance(weight, torch.Tensor) or not weight.is_floating_point():
        return  # quantized: what it takes is its own affair
    kind = x.device.type
    autocast = torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)
    if x.dtype != weight.dtype and not autocast:
        raise TypeError(
            f"x holds {x.dtype}, but the weights hold {weight.dtype}: convert one of them, "
            f"x.to({weight.dtype}) for one"
        )
