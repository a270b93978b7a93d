"""Attention split by tokens, and by heads between two all-to-all exchanges (Ulysses)."""

import torch
from torch import distributed as dist

from eleven_steps.beyond.processes.ring import forward_here
from eleven_steps.beyond.processes.shared_heads import check_shares
from eleven_steps.helpers.attention import MultiHeadAttention


def attend_by_exchange(
    queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
) -> torch.Tensor:
    """Do steps 5 to 8 with some heads of all tokens, causally; all processes must call it.

    Args:
        queries, keys, values: (b, num_heads, tokens here, head_dim), the same shape in every
            process; process 0 has the first tokens. Keys and values may have fewer heads, each for
            a group of neighbouring queries.

    Returns:
        context (b, num_heads, tokens here, head_dim).

    Source: "DeepSpeed Ulysses" (2023).
    """
    num_processes, num_heads = dist.get_world_size(), queries.shape[1]
    check_shares(num_heads, num_processes, keys.shape[1])
    copies = max(1, num_processes // keys.shape[1])  # so that every process gets a key head
    keys, values = (heads.repeat_interleave(copies, dim=1) for heads in (keys, values))
    queries, keys, values = (Exchanged.apply(t, 1, 2) for t in (queries, keys, values))
    context = torch.nn.functional.scaled_dot_product_attention(
        queries, keys, values, is_causal=True, enable_gqa=True
    )  # (b, heads here, num_tokens, head_dim), block by block
    return Exchanged.apply(context, 2, 1)


class Exchanged(torch.autograd.Function):
    """Exchange parts of one axis for parts of another; backward exchanges the gradients."""

    @staticmethod
    def forward(ctx, here: torch.Tensor, give: int, get: int) -> torch.Tensor:
        """Return (b, num_heads, num_tokens, head_dim): a part along give, the whole along get."""
        ctx.axes = give, get
        return exchange(here, give, get)

    @staticmethod
    def backward(ctx, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        """Return the gradient (b, num_heads, tokens, head_dim), exchanged in reverse."""
        give, get = ctx.axes
        return exchange(gradient, get, give), None, None


def exchange(here: torch.Tensor, give: int, get: int) -> torch.Tensor:
    """Split a tensor (b, num_heads, tokens, head_dim) along axis give, and join along axis get."""
    parts = torch.stack(here.detach().chunk(dist.get_world_size(), dim=give))
    incoming = torch.empty_like(parts)
    dist.all_to_all_single(incoming, parts)
    return torch.cat(incoming.unbind(), dim=get)


def forward_by_exchange(mha: MultiHeadAttention, x: torch.Tensor) -> torch.Tensor:
    """Compute all steps for x (b, tokens here, d_in), 5 to 8 by exchange; see forward_here."""
    return forward_here(mha, x, attend_by_exchange)
