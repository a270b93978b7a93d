"""Grouped-query attention: neighbouring heads share keys and values (steps 2 and 4)."""

from dataclasses import dataclass

from torch import nn

from eleven_steps.beyond.variants.module import Call, Part


@dataclass(frozen=True)
class GroupedHeads(Part):
    """Let neighbouring heads share keys and values: steps 2 and 4.

    W_key and W_value make num_kv_heads heads only. num_kv_heads=1 is multi-query attention.

    Source: "Fast Transformer Decoding: One Write-Head is All You Need" (2019) for one head, "GQA:
    Training Generalized Multi-Query Transformer Models from Multi-Head Checkpoints" (2023).
    """

    num_kv_heads: int
    order = 4  # after the cache, so that it stores few heads

    def check(self, mha):  # noqa: D102
        check_divisor(mha, "num_kv_heads", self.num_kv_heads)

    def learn(self, mha):  # noqa: D102
        mha.num_kv_heads = self.num_kv_heads
        for name in ("W_key", "W_value"):
            if layer := getattr(mha, name):  # None if the layer borrows keys
                width, bias = self.num_kv_heads * mha.head_dim, layer.bias is not None
                setattr(mha, name, nn.Linear(mha.d_in, width, bias=bias))

    def transpose(self, call: Call, queries, keys, values):
        """Repeat key heads (b, num_kv_heads, num_keys, head_dim) in groups: 0, 0, 1, 1."""
        group = call.mha.num_heads // self.num_kv_heads
        keys = keys.repeat_interleave(group, dim=1)  # (b, num_heads, num_keys, head_dim)
        values = values.repeat_interleave(group, dim=1)  # (b, num_heads, num_keys, head_dim)
        return queries, keys, values


def check_divisor(mha, name: str, number: int) -> None:
    """Raise unless a number divides num_heads."""
    if mha.num_heads % number:
        raise ValueError(
            f"num_heads is {mha.num_heads} and {name} is {number}: a divisor is expected, so that "
            f"each serves equally many heads"
        )
