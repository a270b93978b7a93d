"""Shared keys and values: keys that are also values, or keys of an earlier layer."""

from dataclasses import dataclass, field

import torch
from torch import nn

from eleven_steps.beyond.variants.module import Call, Part
from eleven_steps.beyond.variants.rope import Rope


@dataclass(frozen=True)
class KeysAsValues(Part):
    """Use the keys as values too, and save W_value: step 2.

    Source: Gemma 4 (2026), layers without a window of the larger models.
    """

    order = 5  # after groups, which create a W_value

    def learn(self, mha):  # noqa: D102
        mha.W_value = None

    def project(self, call: Call):
        """Return queries and keys, and the keys again as values."""
        (queries,) = call.change("project_queries", call.mha.W_query(call.x))
        keys = call.mha.W_key(call.x)
        return queries, keys, keys


@dataclass(frozen=True)
class RotatedValues(Part):
    """Rotate values as Rope rotates keys, and rotate the context back: steps 4 and 8.

    A key that is also a value has been rotated. Rotating the context back by the position of the
    query leaves each value rotated by its distance.

    Source: DeepSeek-V4 (2026), as transformers' DeepseekV4Attention.
    """

    rope: Rope
    order = 2

    def transpose(self, call: Call, queries, keys, values):
        """Rotate values (b, num_heads, num_keys, head_dim) to their positions."""
        return queries, keys, self.rope.rotated(values, call.end)

    def context(self, call: Call, context):
        """Rotate context (b, num_heads, num_tokens, head_dim) back by each query's position."""
        positions = torch.arange(call.end - call.x.shape[1], call.end, device=context.device)
        return (self.rope.rotated_to(context, -positions),)


@dataclass(eq=False)
class Lender(Part):
    """Store keys, values and mask of the last call for a later layer: steps 4 and 6."""

    # Keys and values, (b, num_kv_heads, num_keys, head_dim) each.
    lent: tuple[torch.Tensor, ...] = field(default=(), init=False, repr=False)
    # The mask of step 6, (b, 1, num_tokens, num_keys).
    hidden: tuple[torch.Tensor, ...] = field(default=(), init=False, repr=False)
    order = 4  # after rotation, cache and indexer

    def transpose(self, call: Call, queries, keys, values):
        """Store keys and values (b, num_kv_heads, num_keys, head_dim), and return them."""
        self.lent = keys, values
        return queries, keys, values

    def mask(self, call: Call, hidden):
        """Store the mask (b, 1, num_tokens, num_keys), and return it."""
        self.hidden = (hidden,)
        return self.hidden


@dataclass(frozen=True, eq=False)
class BorrowedKeys(Part):
    """Use the keys and values of an earlier layer instead of making any: steps 2 and 4.

    It needs no W_key, no W_value and no cache. The earlier layer runs first, with lender among its
    parts.

    Source: the last 20 of 35 layers of Gemma 4 E2B (2026); "Reducing Transformer Key-Value Cache
    Size with Cross-Layer Attention" (2024).
    """

    lender: Lender
    order = 3  # after norm and Rope, which the borrowed keys have had already

    def learn(self, mha):  # noqa: D102
        mha.W_key = mha.W_value = None
        if hasattr(mha, "key_norm"):
            mha.key_norm = nn.Identity()

    def project(self, call: Call):
        """Make queries only."""
        check_lent(self.lender.lent, call.x)
        keys, values = (t.transpose(1, 2).flatten(2) for t in self.lender.lent)
        return call.mha.W_query(call.x), keys, values

    def transpose(self, call: Call, queries, keys, values):
        """Return the borrowed keys and values (b, num_kv_heads, num_keys, head_dim)."""
        return queries, *self.lender.lent


@dataclass(frozen=True, eq=False)
class BorrowedChoice(Part):
    """Use the mask that an earlier layer's indexer chose, instead of a second indexer: step 6.

    Source: 57 of 78 layers of GLM-5.2 (2026), as transformers' GlmMoeDsaAttention.
    """

    lender: Lender

    def mask(self, call: Call, hidden):
        """Return the earlier layer's mask, (b, 1, num_tokens, num_keys)."""
        check_lent(self.lender.hidden, call.x)
        return self.lender.hidden


def check_lent(lent: tuple[torch.Tensor, ...], x: torch.Tensor) -> None:
    """Raise unless an earlier layer stored tensors (b, ...) for as many sequences as x has."""
    if not lent or len(lent[0]) != len(x):
        raise ValueError(
            f"x has b = {len(x)} sequences, and keys of {len(lent[0]) if lent else 0} were lent: "
            f"run the earlier layer on the same sequences first"
        )
