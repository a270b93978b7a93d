"""VariantAttention: the eleven steps, with a place in each where a part may change it."""

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import ClassVar

import torch

from eleven_steps.helpers.attention import (
    MultiHeadAttention,
    check_input,
    check_sizes,
    record_nothing,
)

REPLACED = ("project", "softmax")


class Part:
    """Change one step, or a few: a part has a method for each, named after the step.

    project and softmax (REPLACED) replace their step. transpose, scores, mask, scaled (step 7,
    before the softmax), context and combine add to theirs. Learned layers of a part belong to the
    module, so that parts hold numbers only. TypeError and ValueError, raised as the module is built
    or called, say which number of a part does not fit.
    """

    order: ClassVar[int] = 0  # parts act in the order of these numbers within a step
    past: ClassVar[int] = 0  # tokens that came before x
    needs: ClassVar[str] = ""  # names of parts, one of which the part needs as well
    excludes: ClassVar[str] = ""  # names of parts that it cannot be combined with
    reason: ClassVar[str] = ""  # what it does, as an error about needs and excludes says

    def check(self, mha: "VariantAttention") -> None:
        """Raise if the part does not fit the module."""

    def learn(self, mha: "VariantAttention") -> None:
        """Add the layers that the part needs to the module."""


@dataclass(frozen=True)
class Call:
    """Hold what parts need to know about one call of forward."""

    mha: "VariantAttention"
    x: torch.Tensor
    end: int  # the number of tokens so far, those of x included
    notes: dict = field(default_factory=dict)  # what a part stores for a later step

    def change(self, step: str, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Let each part change the tensors of a step, in order, and return them."""
        for part in self.mha.parts:
            if hasattr(part, step):
                tensors = getattr(part, step)(self, *tensors)
        return tensors


class VariantAttention(MultiHeadAttention):
    """Compute MultiHeadAttention's eleven steps, some of them changed by parts.

    Without parts it equals MultiHeadAttention, number for number. Parts may add weights.

    Args:
        d_in, d_out, context_length, dropout, num_heads, qkv_bias: as in MultiHeadAttention.
        parts: the changes, in any order, one of a kind.
        head_dim: features of each head, d_out / num_heads unless given. d_out need then be no
            multiple of num_heads: out_proj leads from num_heads * head_dim features to d_out.
        out_bias: whether out_proj adds a bias.

    Attributes:
        d_out: features of all heads together, num_heads * head_dim; out_proj.out_features come out.

    Raises:
        TypeError, ValueError: as MultiHeadAttention; or a part is no Part, comes twice, replaces a
            step that a second part replaces, or does not fit the sizes or the other parts.
    """

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
        parts: Iterable[Part] = (),
        head_dim: int | None = None,
        out_bias: bool = True,
    ):
        check_sizes(d_out=d_out, num_heads=num_heads)
        if head_dim is not None:
            check_sizes(head_dim=head_dim)
        heads = d_out if head_dim is None else num_heads * head_dim
        super().__init__(d_in, heads, context_length, dropout, num_heads, qkv_bias)
        if heads != d_out or not out_bias:
            self.out_proj = torch.nn.Linear(heads, d_out, bias=out_bias)
        self.num_kv_heads = num_heads  # heads of keys and values
        self.key_dim = self.head_dim  # features of a query and of a key
        self.parts = in_order(parts)
        for part in self.parts:
            part.check(self)
            part.learn(self)

    def plus(self, *parts: Part) -> "VariantAttention":
        """Return a module with more parts that shares all weights, for one sequence or call.

        Raises:
            ValueError: a part has weights of its own, or does not fit.
        """
        for part in parts:
            if isinstance(part, Part) and type(part).learn is not Part.learn:
                raise ValueError(f"{part} has weights of its own: build the module with it")
        twin = copy.copy(self)
        twin.parts = in_order([*self.parts, *parts])
        for part in twin.parts:
            part.check(twin)
        return twin

    def part(self, kind: type[Part]) -> Part | None:
        """Return the part of a kind, or None."""
        return next((part for part in self.parts if isinstance(part, kind)), None)

    def forward(
        self, x: torch.Tensor, record: Callable[..., None] = record_nothing
    ) -> torch.Tensor:
        """Take x (b, num_tokens, d_in) through the eleven steps to out (b, num_tokens, d_out).

        num_keys, the tokens that keys come from, is num_tokens unless a part brings others. Args
        and errors as in MultiHeadAttention.
        """
        # 1 shape
        check_input(x, self.W_query, self.context_length)
        b, num_tokens, _ = x.shape  # (b, num_tokens, d_in)
        start = sum(part.past for part in self.parts)
        end = start + num_tokens
        check_end(start, end, self.context_length)
        call = Call(self, x, end)
        record("shape", x=x)

        # 2 project
        queries, keys, values = replacing("project", self)(call)
        record("project", queries=queries, keys=keys, values=values)

        # 3 view
        queries = queries.view(b, num_tokens, self.num_heads, self.key_dim)
        keys = keys.view(b, keys.shape[1], self.num_kv_heads, self.key_dim)
        values = values.view(b, values.shape[1], self.num_kv_heads, self.head_dim)
        record("view", queries=queries, keys=keys, values=values)

        # 4 transpose
        queries = queries.transpose(1, 2)  # (b, num_heads, num_tokens, key_dim)
        keys = keys.transpose(1, 2)  # (b, num_kv_heads, num_keys, key_dim)
        values = values.transpose(1, 2)  # (b, num_kv_heads, num_keys, head_dim)
        queries, keys, values = call.change("transpose", queries, keys, values)
        record("transpose", queries=queries, keys=keys, values=values)

        # 5 scores
        scores = queries @ keys.transpose(2, 3)  # (b, num_heads, num_tokens, num_keys)
        (scores,) = call.change("scores", scores)
        record("scores", scores=scores)

        # 6 mask
        hidden = self.mask[start:end, :end]  # (num_tokens, num_keys)
        (hidden,) = call.change("mask", hidden)
        masked = scores.masked_fill_(hidden, -torch.inf)  # (b, num_heads, num_tokens, num_keys)
        record("mask", masked=masked)

        # 7 softmax
        scaled = masked.div_(self.key_dim**0.5)  # (b, num_heads, num_tokens, num_keys)
        (scaled,) = call.change("scaled", scaled)
        weights = replacing("softmax", self)(call, scaled)
        weights = self.dropout(weights)  # (b, num_heads, num_tokens, num_keys)
        record("softmax", weights=weights)

        # 8 context
        context = weights @ values  # (b, num_heads, num_tokens, head_dim)
        (context,) = call.change("context", context)
        record("context", context=context)

        # 9 reformat
        context = context.transpose(1, 2)  # (b, num_tokens, num_heads, head_dim)
        record("reformat", context=context)

        # 10 combine
        context = context.contiguous().view(b, num_tokens, self.d_out)  # (b, num_tokens, d_out)
        (context,) = call.change("combine", context)
        record("combine", context=context)

        # 11 out_proj
        out = self.out_proj(context)  # (b, num_tokens, d_out)
        record("out_proj", out=out)
        return out

    def project(self, call: Call) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Project x to queries, keys and values, (b, num_tokens, features) each."""
        return self.W_query(call.x), self.W_key(call.x), self.W_value(call.x)

    def softmax(self, call: Call, scaled: torch.Tensor) -> torch.Tensor:
        """Turn scores (b, num_heads, num_tokens, num_keys) into weights."""
        return torch.softmax(scaled, dim=-1)

    def extra_repr(self) -> str:
        """Return the parts, for the text of the module."""
        return f"parts={self.parts}"


def replacing(step: str, mha: VariantAttention) -> Callable:
    """Return the method that computes a step: of the part that replaces it, or of the module."""
    owner = next((part for part in mha.parts if hasattr(part, step)), mha)
    return getattr(owner, step)


def in_order(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Return parts in the order in which they act; raise if they cannot be combined."""
    parts, owners = tuple(parts), {}
    for part in parts:
        if not isinstance(part, Part):
            raise TypeError(
                f"parts hold {part!r} ({type(part).__name__}): parts such as Rope() are expected"
            )
        steps = [f"replaces step {step}" for step in REPLACED if hasattr(part, step)]
        for what in [f"is a {type(part).__name__}", *steps]:
            if what in owners:
                raise ValueError(f"{owners[what]} and {part}: one part that {what} is expected")
            owners[what] = part
    for part in parts:
        check_part(part, [type(other) for other in parts if other is not part])
    return tuple(sorted(parts, key=lambda part: part.order))


def check_part(part: Part, others: Iterable[type[Part]]) -> None:
    """Raise unless a part's sizes are positive and it can be combined with the other kinds."""
    name = type(part).__name__
    counts = {
        f"{name}.{field.name}": getattr(part, field.name)
        for field in getattr(part, "__dataclass_fields__", {}).values()
        if field.type in (int, int | None) and getattr(part, field.name) != field.default
    }
    check_sizes(**counts)
    given = {base.__name__: kind.__name__ for kind in others for base in kind.__mro__}
    needs = part.needs.split()
    if needs and not given.keys() & set(needs):
        raise ValueError(f"{name} {part.reason}, so it needs {' or '.join(needs)}")
    for kind in filter(given.get, part.excludes.split()):
        raise ValueError(f"{name} {part.reason}, so it cannot be combined with {given[kind]}")


def check_end(start: int, end: int, context_length: int) -> None:
    """Raise unless the tokens seen so far fit into context_length."""
    if end > context_length:
        raise ValueError(
            f"the cache holds {start} tokens and x brings {end - start}, but context_length is "
            f"{context_length}: start a new cache or build the module longer"
        )
