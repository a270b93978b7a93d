"""The KV cache: keys and values, or their latents, stored from one call to the next."""

from dataclasses import dataclass, field

import torch

from eleven_steps.beyond.variants.module import Call, Part


@dataclass(eq=False)
class Cache(Part):
    """Cache keys and values, so that only new tokens go through the module: steps 4 and 6.

    x then holds only the new tokens. Each forward adds to the cache, also under trace. A new
    sequence needs a new Cache. Step 6 takes the rows of the new tokens from the same mask as ever,
    because the queries belong to the last keys.
    """

    # Keys and values of earlier calls, each (b, num_kv_heads, past, head_dim).
    kept: tuple[torch.Tensor, ...] = field(default=(), init=False, repr=False)
    # The keys of TopKeys, if the module has it, (b, past, index_dim).
    indexed: tuple[torch.Tensor, ...] = field(default=(), init=False, repr=False)
    order = 3  # after norm and rotation, which are done once, and before groups repeat heads

    @property
    def past(self) -> int:
        """Return how many tokens the cache holds."""
        return self.kept[0].shape[-2] if self.kept else 0

    @property
    def nbytes(self) -> int:
        """Return how many bytes the cache holds."""
        return sum(tensor.nbytes for tensor in (*self.kept, *self.indexed))

    def keep(self, *new: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Append new tokens to the cached ones, on the second last axis."""
        if self.kept:
            check_batch(self.kept[0], new[0])
            new = tuple(torch.cat(pair, dim=-2) for pair in zip(self.kept, new, strict=True))
        self.kept = new
        return new

    def transpose(self, call: Call, queries, keys, values):
        """Return all keys and values (b, num_kv_heads, tokens, head_dim), old and new."""
        return queries, *self.keep(keys, values)

    def index_keys(self, call: Call, keys):
        """Cache the keys of TopKeys, (b, 1, tokens, index_dim), and return old and new."""
        self.indexed = (torch.cat([*self.indexed, keys], dim=-2),)
        return self.indexed


class LatentCache(Cache):
    """Cache the latents of keys and values, which are far smaller: step 2.

    Attributes:
        kept: latents (b, past, latent_dim), and keys shared by all heads (b, past, rope_dim).
    """

    reason, needs, excludes = "stores latents", "Latent", "Cache"

    def project_latents(self, call: Call, latents, shared):
        """Return the latents (b, tokens, latent_dim) of all tokens, old and new."""
        return self.keep(latents, shared)

    def transpose(self, call: Call, queries, keys, values):
        """Return keys and values (b, heads, tokens, head_dim), made from all latents already."""
        return queries, keys, values


def check_batch(kept: torch.Tensor, new: torch.Tensor) -> None:
    """Raise unless the cached and the new tensor (b, ..., tokens, features) have the same b."""
    if kept.shape[0] != new.shape[0]:
        raise ValueError(
            f"x has b = {new.shape[0]} sequences, but the cache holds {kept.shape[0]}: "
            f"the same sequences, or a new cache, are expected"
        )
