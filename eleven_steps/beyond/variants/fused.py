"""The same changes on torch's fused attention."""

from collections.abc import Callable

import torch
from torch import nn

from eleven_steps.beyond.variants.choose import Indexer, TopBlocks
from eleven_steps.beyond.variants.look import Alibi, Chunks, Full, Padding, Window
from eleven_steps.beyond.variants.module import Call, VariantAttention, check_end, replacing
from eleven_steps.beyond.variants.project import GroupedHeads, OtherSequence
from eleven_steps.beyond.variants.share import BorrowedChoice
from eleven_steps.beyond.variants.weigh import Sinks
from eleven_steps.helpers.attention import check_input, record_nothing

NARROWING = (Window, Chunks, Padding, Indexer, TopBlocks, BorrowedChoice)
CHANGING = (*NARROWING, Full, OtherSequence, Alibi, Sinks)


class FusedVariantAttention(VariantAttention):
    """Do what VariantAttention does with scaled_dot_product_attention for steps 5 to 8.

    Few heads of keys are not repeated (enable_gqa), what is hidden becomes attn_mask, what ALiBi
    subtracts and what a sink scores become numbers in it. There is no such way for
    parts whose fused is False, such as Cap: with one of them, or with a record, the eleven steps
    are taken one by one.

    Args and errors as in VariantAttention.
    """

    def forward(
        self, x: torch.Tensor, record: Callable[..., None] = record_nothing
    ) -> torch.Tensor:
        """Take x (b, num_tokens, d_in) to out (b, num_tokens, d_out); errors as above."""
        if record is not record_nothing or not all(part.fused for part in self.parts):
            return super().forward(x, record)
        check_input(x, self.W_query, self.context_length)
        b, num_tokens, _ = x.shape
        start = sum(part.past for part in self.parts)
        call = Call(self, x, start + num_tokens)
        check_end(start, call.end, self.context_length)

        queries, keys, values = replacing("project", self)(call)
        queries = queries.unflatten(2, (self.num_heads, -1)).transpose(1, 2)
        keys = keys.unflatten(2, (self.num_kv_heads, -1)).transpose(1, 2)
        values = values.unflatten(2, (self.num_kv_heads, -1)).transpose(1, 2)
        queries, keys, values = call.change("transpose", queries, keys, values, but=GroupedHeads)
        context = self.attend(call, queries, keys, values)
        context = context.transpose(1, 2).reshape(b, num_tokens, self.d_out)
        (context,) = call.change("combine", context)
        return self.out_proj(context)  # (b, num_tokens, d_out)

    def attend(self, call: Call, queries, keys, values) -> torch.Tensor:
        """Return context (b, num_heads, num_tokens, head_dim) in one call of torch."""
        changed = any(map(self.part, CHANGING))
        causal = not changed and queries.shape[2] == keys.shape[2]
        mask = None if causal else self.attn_mask(call, queries, keys)
        if self.part(Sinks):  # a key whose score is the sink's, and whose value is nothing
            keys, values = (nn.functional.pad(t, (0, 0, 0, 1)) for t in (keys, values))
        if self.key_dim != self.head_dim:  # torch's kernel wants values as wide as keys
            wide = max(self.key_dim, self.head_dim)
            queries, keys, values = (
                nn.functional.pad(t, (0, wide - t.shape[-1])) for t in (queries, keys, values)
            )
        (sharper,) = call.change("scaled", 1.0)  # what is made of a scaled score of 1
        context = nn.functional.scaled_dot_product_attention(
            queries,
            keys,
            values,
            attn_mask=mask,
            dropout_p=self.dropout.p if self.dropout.training else 0.0,
            is_causal=causal,
            scale=sharper / self.key_dim**0.5,
            enable_gqa=self.part(GroupedHeads) is not None,
        )
        return context[..., : self.head_dim]

    def attn_mask(self, call: Call, queries, keys) -> torch.Tensor | None:
        """Return what torch is to hide, True where a key may be seen, or to add to scaled scores.

        (..., num_tokens, num_keys), or None where nothing is hidden: a single query at the end of
        its keys sees them all. New queries need a mask of their own, since is_causal lays the
        triangle at the top left.
        """
        num_tokens, num_keys = queries.shape[2], keys.shape[2]
        (hidden,) = call.change("mask", self.mask[call.end - num_tokens : call.end, : call.end])
        if not (self.part(Alibi) or self.part(Sinks)):
            all_seen = num_tokens == 1 or self.part(OtherSequence) or self.part(Full)
            return None if all_seen and not any(map(self.part, NARROWING)) else ~hidden
        scores = queries.new_zeros(1, self.num_heads, num_tokens, num_keys)
        (scores,) = call.change("scores", scores)
        (bias,) = call.change("scaled", scores / self.key_dim**0.5)
        bias = bias.masked_fill(hidden, -torch.inf)
        if not self.part(Sinks):
            return bias
        sinks = self.sinks.view(-1, 1, 1).expand(*bias.shape[:-1], 1)
        return torch.cat([bias, sinks], dim=-1)
