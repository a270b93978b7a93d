"""Ring attention: tokens split over processes, keys and values sent around a ring."""

from collections.abc import Callable

import torch
from torch import distributed as dist

from eleven_steps.helpers.attention import MultiHeadAttention, check_input, check_sizes


def attend_in_ring(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Compute steps 5 to 8 for this process's tokens, causally; all processes must call it.

    Args:
        queries, keys, values: (b, num_heads, tokens here, head_dim), the same shape in every
            process; process 0 has the first tokens. Keys and values may have fewer heads, each for
            a group of neighbouring queries.

    Returns:
        context (b, num_heads, tokens here, head_dim).

    Source: "Ring Attention with Blockwise Transformers" (2023).
    """
    return InRing.apply(queries, keys, values)


class InRing(torch.autograd.Function):
    """Attend to the blocks one by one; recompute their weights one by one in the backward pass."""

    @staticmethod
    def forward(
        ctx, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
    ) -> torch.Tensor:
        """Return the context, block by block; all are (b, heads, tokens here, head_dim)."""
        block, num_processes = torch.stack([keys, values]), dist.get_world_size()
        largest = torch.full_like(queries[..., :1], -torch.inf)  # (b, num_heads, tokens here, 1)
        total, context = torch.zeros_like(largest), torch.zeros_like(queries)
        for turn in range(num_processes):
            scaled, v = scores_of(queries, block, turn)
            before = largest  # finite after the first turn, because a token sees itself
            largest = torch.maximum(before, scaled.amax(dim=-1, keepdim=True))
            shrink, powers = torch.exp(before - largest), torch.exp(scaled - largest)
            total = total * shrink + powers.sum(dim=-1, keepdim=True)
            context = context * shrink + powers @ v
            if turn < num_processes - 1:
                block = pass_on(block, 1)
        context = context / total
        ctx.save_for_backward(queries, keys, values, context, largest + total.log())
        return context

    @staticmethod
    def backward(ctx, gradient: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Recompute the weights, and return gradients (b, heads, tokens here, head_dim)."""
        queries, keys, values, context, logarithm = ctx.saved_tensors
        block, num_processes = torch.stack([keys, values]), dist.get_world_size()
        gathered, of_queries = torch.zeros_like(block), torch.zeros_like(queries)
        common = (gradient * context).sum(dim=-1, keepdim=True)
        for turn in range(num_processes):
            scaled, v = scores_of(queries, block, turn)
            weights = torch.exp(scaled - logarithm)  # (b, num_heads, tokens here, tokens here)
            of_scores = weights * (gradient @ v.transpose(2, 3) - common) / v.shape[3] ** 0.5
            k = block[0].repeat_interleave(queries.shape[1] // keys.shape[1], dim=1)
            of_queries += of_scores @ k
            of_both = of_scores.transpose(2, 3) @ queries, weights.transpose(2, 3) @ gradient
            gathered += torch.stack(of_both).unflatten(2, (keys.shape[1], -1)).sum(dim=3)
            if turn < num_processes - 1:
                block, gathered = pass_on(torch.stack([block, gathered]), 1)
        gathered = pass_on(gathered, 1) if num_processes > 1 else gathered  # to its owner
        return of_queries, *gathered


def scores_of(
    queries: torch.Tensor, block: torch.Tensor, turn: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return scaled, masked scores (.., tokens here, tokens here) for a block, and its values.

    Key heads are copied here, after they were sent, so that few are sent.
    """
    place, num_processes = dist.get_rank(), dist.get_world_size()
    here = torch.arange(queries.shape[2], device=queries.device)
    token = place * len(here) + here
    key = (place - turn) % num_processes * len(here) + here  # positions of the keys in this block
    k, v = block.repeat_interleave(queries.shape[1] // block.shape[2], dim=2)
    scaled = queries @ k.transpose(2, 3) / k.shape[3] ** 0.5
    return scaled.masked_fill(key > token[:, None], -torch.inf), v


def pass_on(block: torch.Tensor, places: int) -> torch.Tensor:
    """Send a block (2, b, heads, tokens here, head_dim) on, and return the block received."""
    place, num_processes = dist.get_rank(), dist.get_world_size()
    block, incoming = block.detach().contiguous(), torch.empty_like(block).contiguous()
    ways = [
        dist.P2POp(dist.isend, block, (place + places) % num_processes),
        dist.P2POp(dist.irecv, incoming, (place - places) % num_processes),
    ]
    for way in dist.batch_isend_irecv(ways):
        way.wait()
    return incoming


def forward_in_ring(mha: MultiHeadAttention, x: torch.Tensor) -> torch.Tensor:
    """Compute all steps for x (b, tokens here, d_in), 5 to 8 in a ring; see forward_here."""
    return forward_here(mha, x, attend_in_ring)


def forward_here(mha: MultiHeadAttention, x: torch.Tensor, attend: Callable) -> torch.Tensor:
    """Compute all steps for this process's tokens; all processes must call it.

    Each process has the whole mha and computes the gradients of its own tokens: their sum over all
    processes is the whole gradient. There is no dropout.

    Args:
        mha: GroupedHeads may be a part of it.
        x: (b, tokens here, d_in), the same shape in every process.
        attend: computes steps 5 to 8 from queries, keys and values of the tokens here.

    Raises:
        TypeError, ValueError: as in MultiHeadAttention, all processes' tokens counted.
    """
    check_input(x, mha.W_query, mha.context_length // dist.get_world_size())
    queries, keys, values = (
        layer(x).unflatten(2, (-1, mha.head_dim)).transpose(1, 2)  # (b, heads, tokens here, ...)
        for layer in (mha.W_query, mha.W_key, mha.W_value)
    )
    context = attend(queries, keys, values)  # (b, num_heads, tokens here, head_dim)
    return mha.out_proj(context.transpose(1, 2).flatten(2))  # (b, tokens here, d_out)


def share_tokens(x: torch.Tensor, num_processes: int) -> list[torch.Tensor]:
    """Split x by tokens, (b, num_tokens / num_processes, d_in) for each process, in order."""
    check_sizes(num_processes=num_processes)
    num_tokens = x.shape[1]
    if num_tokens % num_processes:
        raise ValueError(
            f"x has {num_tokens} tokens and num_processes is {num_processes}: num_tokens must be "
            f"a multiple of num_processes, so that every process gets the same number of tokens"
        )
    return list(x.split(num_tokens // num_processes, dim=1))
