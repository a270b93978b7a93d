"""Tensor parallelism: heads split over processes, with one all-reduce for the output."""

from collections.abc import Callable

import torch
from torch import distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from eleven_steps.beyond.variants import GroupedHeads, VariantAttention
from eleven_steps.helpers.attention import MultiHeadAttention, check_sizes, record_nothing

PROJECTIONS = "W_query", "W_key", "W_value"


class SharedHeads(VariantAttention):
    """Compute attention with the heads of one process, and sum over all processes at step 11.

    Steps 2 to 10 are the same for fewer heads: rows of W_query, W_key and W_value, and columns of
    out_proj. If there are fewer key heads than processes, neighbouring processes hold copies of
    one. Only process 0 has the bias of out_proj, so that the sum contains it once. Each process
    draws its own dropout.

    Args:
        mha: the whole attention; its numbers are copied. GroupedHeads may be a part of it.
        place: which share, from 0 to num_processes - 1.
        num_processes: how many shares there are.

    Raises:
        ValueError: the heads cannot be split evenly, or mha has other parts.

    Source: "Megatron-LM" (2019), section 3.
    """

    def __init__(self, mha: MultiHeadAttention, place: int, num_processes: int):
        num_kv_heads = check_cut(mha, num_processes)
        heads, keys_here = mha.num_heads // num_processes, max(1, num_kv_heads // num_processes)
        features, biased = heads * mha.head_dim, mha.W_query.bias is not None
        sizes = mha.d_in, features, mha.context_length, mha.dropout.p, heads, biased
        super().__init__(*sizes, parts=[GroupedHeads(keys_here)])
        self.copies = max(1, num_processes // num_kv_heads)  # processes with the same keys
        added_here = place == 0 and mha.out_proj.bias is not None
        self.out_proj = nn.Linear(features, mha.out_proj.out_features, bias=added_here)
        here = slice(place * features, (place + 1) * features)
        first = place * num_kv_heads // num_processes
        keys = slice(first * mha.head_dim, (first + keys_here) * mha.head_dim)
        with torch.no_grad():
            for name, rows in zip(PROJECTIONS, (here, keys, keys), strict=True):
                mine, whole = getattr(self, name), getattr(mha, name)
                mine.weight.copy_(whole.weight[rows])
                if biased:
                    mine.bias.copy_(whole.bias[rows])
            self.out_proj.weight.copy_(mha.out_proj.weight[:, here])  # columns
            if added_here:
                self.out_proj.bias.copy_(mha.out_proj.bias)

    def forward(
        self, x: torch.Tensor, record: Callable[..., None] = record_nothing
    ) -> torch.Tensor:
        """Return the whole out (b, num_tokens, d_out) of x (b, num_tokens, d_in).

        All processes must call it, with the same x. Errors as in MultiHeadAttention.
        """
        return Added.apply(super().forward(Copied.apply(x), record))


class Added(torch.autograd.Function):
    """Sum a tensor over all processes; the gradient passes through unchanged."""

    @staticmethod
    def forward(ctx, part: torch.Tensor) -> torch.Tensor:
        """Return the sum of all processes' parts, each (b, num_tokens, d_out)."""
        out = part.detach().clone(memory_format=torch.contiguous_format)
        dist.all_reduce(out)
        return out

    @staticmethod
    def backward(ctx, gradient: torch.Tensor) -> torch.Tensor:
        """Return the gradient of the sum, (b, num_tokens, d_out), for each part."""
        return gradient


class Copied(torch.autograd.Function):
    """Pass x through unchanged; sum its gradients over all processes."""

    @staticmethod
    def forward(ctx, x: torch.Tensor) -> torch.Tensor:
        """Return x (b, num_tokens, d_in)."""
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient: torch.Tensor) -> torch.Tensor:
        """Return the sum of the gradients of all processes, (b, num_tokens, d_in)."""
        gradient = gradient.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(gradient)
        return gradient


def add_up_copies(share: SharedHeads) -> None:
    """Sum the gradients of copied key heads over their copies, after a backward pass.

    All processes must call it. Without copies it does nothing.
    """
    if share.copies > 1:
        neighbours, _ = dist.new_subgroups(share.copies)
        for parameter in (*share.W_key.parameters(), *share.W_value.parameters()):
            dist.all_reduce(parameter.grad, group=neighbours)


def check_cut(mha: MultiHeadAttention, num_processes: int) -> int:
    """Return how many key heads mha has; raise unless its heads can be split evenly."""
    parts, num_kv_heads = getattr(mha, "parts", ()), getattr(mha, "num_kv_heads", mha.num_heads)
    if other := [part for part in parts if not isinstance(part, GroupedHeads)]:
        raise ValueError(f"parts hold {other[0]}: only GroupedHeads can be cut by heads here")
    check_shares(mha.num_heads, num_processes, num_kv_heads)
    return num_kv_heads


def check_shares(num_heads: int, num_processes: int, num_kv_heads: int | None = None) -> None:
    """Raise unless query heads and key heads divide evenly among num_processes."""
    check_sizes(num_heads=num_heads, num_processes=num_processes)
    if num_heads % num_processes:
        raise ValueError(
            f"num_heads is {num_heads} and num_processes is {num_processes}: num_heads must be a "
            f"multiple of num_processes, so that every process gets the same number of heads"
        )
    num_kv_heads = num_kv_heads or num_heads
    if num_kv_heads % num_processes and num_processes % num_kv_heads:
        raise ValueError(
            f"num_kv_heads is {num_kv_heads} and num_processes is {num_processes}: one must be a "
            f"multiple of the other, so that every process gets the same number of key heads, or "
            f"a copy of one"
        )


def share_heads(mha: MultiHeadAttention, num_processes: int) -> list[SharedHeads]:
    """Split mha by heads, and return the share of each process; errors as in SharedHeads."""
    check_cut(mha, num_processes)
    return [SharedHeads(mha, place, num_processes) for place in range(num_processes)]


def parallelize(mha: MultiHeadAttention) -> MultiHeadAttention:
    """Split mha in place by torch's own tensor parallelism; all processes must call it."""
    num_processes = dist.get_world_size()
    check_shares(mha.num_heads, num_processes)
    mesh = init_device_mesh(mha.W_query.weight.device.type, (num_processes,))
    plan = {name: ColwiseParallel() for name in PROJECTIONS} | {"out_proj": RowwiseParallel()}
    mha.num_heads //= num_processes  # steps 3 to 10 work on the heads of one process
    mha.d_out //= num_processes
    return parallelize_module(mha, mesh, plan)
