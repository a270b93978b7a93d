"""What is kept from one call to the next: keys and values, or the latents they are made from."""

from dataclasses import dataclass, field

import torch

from eleven_steps.beyond.variants.module import Call, Part


@dataclass(eq=False)
class Cache(Part):
    """Keep keys and values, so that only new tokens go through the module: steps 4 and 6.

    x then holds the tokens that are new. Each forward adds to the cache, also under trace. A new
    sequence needs a new Cache. Step 6 cuts the mask's rows for the new tokens out of the same
    context_length x context_length mask: the queries stand at the end of longer keys.
    """

    # What earlier calls left, keys and values, each (b, num_kv_heads, past, head_dim).
    kept: tuple[torch.Tensor, ...] = field(default=(), init=False, repr=False)
    # The keys of TopKeys, if it stands beside, (b, past, index_dim).
    indexed: tuple[torch.Tensor, ...] = field(default=(), init=False, repr=False)
    turn = 3  # after norm and rotation, before groups share: what is kept is never done again

    @property
    def past(self) -> int:
        """Tokens kept so far."""
        return self.kept[0].shape[-2] if self.kept else 0

    @property
    def nbytes(self) -> int:
        """Bytes that are kept."""
        return sum(tensor.nbytes for tensor in (*self.kept, *self.indexed))

    def keep(self, *new: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Put new tokens behind those kept, on the axis of tokens, the last but one."""
        if self.kept:
            check_batch(self.kept[0], new[0])
            new = tuple(torch.cat(pair, dim=-2) for pair in zip(self.kept, new, strict=True))
        self.kept = new
        return new

    def transpose(self, call: Call, queries, keys, values):
        """Answer with keys and values (b, num_kv_heads, tokens, head_dim), old and new."""
        return queries, *self.keep(keys, values)

    def index_keys(self, call: Call, keys):
        """Keep the keys TopKeys chooses by, (b, 1, tokens, index_dim), and return old and new."""
        self.indexed = (torch.cat([*self.indexed, keys], dim=-2),)
        return self.indexed


class LatentCache(Cache):
    """Keep the latents that Latent makes keys and values from, which are far smaller: step 2.

    Attributes:
        kept: latents (b, past, latent_dim), and keys shared by all heads (b, past, rope_dim).
    """

    does, needs, apart = "keeps latents", "Latent", "Cache"

    def project_latents(self, call: Call, latents, shared):
        """Give Latent the latents (b, tokens, latent_dim) of all tokens, old and new."""
        return self.keep(latents, shared)

    def transpose(self, call: Call, queries, keys, values):
        """Leave keys and values (b, heads, tokens, head_dim) alone: they come of what is kept."""
        return queries, keys, values


def check_batch(kept: torch.Tensor, new: torch.Tensor) -> None:
    """Raise unless kept and new, (b, ..., tokens, features) both, are of as many sequences."""
    if kept.shape[0] != new.shape[0]:
        raise ValueError(
            f"x has b = {new.shape[0]} sequences, but the cache holds {kept.shape[0]}: "
            f"the same sequences, or a new cache, are expected"
        )
