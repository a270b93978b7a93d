"""Keys and values that serve twice: as each other, or in a later layer. Steps 2 and 4."""

from dataclasses import dataclass, field

import torch
from torch import nn

from eleven_steps.beyond.variants.module import Call, Part
from eleven_steps.beyond.variants.turn import Rope


@dataclass(frozen=True)
class KeysAsValues(Part):
    """Take what W_key makes for the values too, and save W_value: step 2.

    Source: Gemma 4 (2026), layers without a window of the larger models.
    """

    turn = 5  # after groups, which make a W_value of their own

    def learn(self, mha):  # noqa: D102
        mha.W_value = None

    def project(self, call: Call):
        """Make queries and keys, and let the keys be values."""
        (queries,) = call.change("project_queries", call.mha.W_query(call.x))
        keys = call.mha.W_key(call.x)
        return queries, keys, keys


@dataclass(frozen=True)
class TurnedBack(Part):
    """Turn values as Rope turns keys, and what was mixed of them back: steps 4 and 8.

    A key that is its own value has been turned. Turned back by the position of the query, each
    value in the mix stands turned by its distance.

    Source: DeepSeek-V4 (2026), as transformers' DeepseekV4Attention.
    """

    rope: Rope
    turn = 2

    def transpose(self, call: Call, queries, keys, values):
        """Turn values (b, num_heads, num_keys, head_dim) to their positions."""
        return queries, keys, self.rope.turned(values, call.end)

    def context(self, call: Call, context):
        """Turn context (b, num_heads, num_tokens, head_dim) back by each query's position."""
        positions = torch.arange(call.end - call.x.shape[1], call.end, device=context.device)
        return (self.rope.turned_to(context, -positions),)


@dataclass(eq=False)
class Lends(Part):
    """Keep what the last call made for a later layer: steps 4 and 6."""

    # Keys and values, (b, num_kv_heads, num_keys, head_dim) each.
    lent: tuple[torch.Tensor, ...] = field(default=(), init=False, repr=False)
    # What step 6 hid, (b, 1, num_tokens, num_keys).
    hidden: tuple[torch.Tensor, ...] = field(default=(), init=False, repr=False)
    turn = 4  # turned, and those of a cache among them; after an indexer has chosen

    def transpose(self, call: Call, queries, keys, values):
        """Look at the keys and values (b, num_kv_heads, num_keys, head_dim) that go by."""
        self.lent = keys, values
        return queries, keys, values

    def mask(self, call: Call, hidden):
        """Look at the mask (b, 1, num_tokens, num_keys) that goes by."""
        self.hidden = (hidden,)
        return self.hidden


@dataclass(frozen=True, eq=False)
class BorrowedKeys(Part):
    """Ask the keys and values of an earlier layer, and have none of one's own: steps 2 and 4.

    It needs no W_key, no W_value and no cache. The earlier layer runs first, with lender among its
    parts.

    Raises:
        ValueError: the lender has not run, or not on as many sequences.

    Source: the last 20 of 35 layers of Gemma 4 E2B (2026); "Reducing Transformer Key-Value Cache
    Size with Cross-Layer Attention" (2024).
    """

    lender: Lends
    turn = 3  # what a norm and Rope did to these keys is put aside: they have had both

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
        """Take keys and values (b, num_kv_heads, num_keys, head_dim) as they were lent."""
        return queries, *self.lender.lent


@dataclass(frozen=True, eq=False)
class BorrowedChoice(Part):
    """Hide what an earlier layer's indexer left out, and have none of one's own: step 6.

    Raises:
        ValueError: as BorrowedKeys.

    Source: 57 of 78 layers of GLM-5.2 (2026), as transformers' GlmMoeDsaAttention.
    """

    lender: Lends

    def mask(self, call: Call, hidden):
        """Take the earlier layer's mask, (b, 1, num_tokens, num_keys)."""
        check_lent(self.lender.hidden, call.x)
        return self.lender.hidden


def check_lent(lent: tuple[torch.Tensor, ...], x: torch.Tensor) -> None:
    """Raise unless something (b, ...) was lent, for as many sequences as x (b, ...) has."""
    if not lent or len(lent[0]) != len(x):
        raise ValueError(
            f"x has b = {len(x)} sequences, and keys of {len(lent[0]) if lent else 0} were lent: "
            f"run the earlier layer on the same sequences first"
        )
