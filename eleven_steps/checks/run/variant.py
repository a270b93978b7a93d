"""What a class with a change since the lecture gets besides, and Variant, which holds its changes.

A learner's class knows no parts: it gets whole numbers and tensors, after those of the lecture's
class and by name. All else is as check_attention says.

- gqa: built with num_kv_heads, which neighbouring heads share; W_key and W_value are narrower.
  In gqa:1 all heads share one.
- norm: layers query_norm and key_norm, weights (head_dim,); 1e-6 is added under the root. In
  norm:1 all heads of a token are normed as one, weights as many as they have features together.
  In norm:0 the norms have no weights, and in norm:2 each is torch's LayerNorm, 1e-5.
- vnorm: values are normed as well, each head by itself and without weights.
- rope: feature p turns with p + head_dim / 2, at base 10,000; rope:500000 at another base, and in
  rope:10000:0.25 the first quarter of a head's features turns, p with p + head_dim / 8.
- alibi: built with slopes (num_heads,); slope * distance is taken from the scaled scores.
- cap: built with limit, of the scaled scores.
- full: nothing is hidden, as in an encoder.
- window: built with window, the tokens seen, the token itself counted.
- padding: forward(x, is_padding), (b, num_tokens), True for filling. What comes out at filling is
  not compared, and must be finite. Beside other it says which of the other's tokens are filling.
- topk: built with top_keys, index_heads, index_dim; layers W_index_query, W_index_key and
  W_index_weight without biases, and index_norm, a LayerNorm (1e-6). A key is rated by the sum over
  index_heads of weight times relu(query times key); of the keys that it may see, a query sees the
  best top_keys.
- other: forward(x, other), (b, num_keys, d_in): keys and values come from it, nothing is hidden.
- sinks: a parameter sinks (num_heads,), scores beside the scaled ones.
- unscaled: the scores are divided by nothing, as in T5.
- gate: a layer W_gate, d_in to d_out; its sigmoid multiplies the combined context. In gate:1 it
  makes one number for each head.
- latent: built with latent_dim and rope_dim; layers W_down, d_in to latent_dim + rope_dim, and
  latent_norm (1e-6). W_key and W_value read the normed latent. W_query makes head_dim + rope_dim
  features a head; the last rope_dim of them, and the last of W_down, which all heads share, turn as
  in rope.
- cache: rope, and forward(x, past=None), which returns (out, past). The first call gets x alone,
  each other the past that came of the one before of the same text, whatever it is.
- linear: built with decays (num_heads,); a layer context_norm, an RMSNorm (1e-6) of the combined
  context. Queries, keys and values go through SiLU; a weight is query times key times
  exp(-decay * distance), without softmax. No dropout is asked for: a table has no weights.

Several changes are joined by commas, in any order, "gqa,rope": the constructor gets what each of
them asks for, and forward gets x, other, is_padding and past, in this order.
"""

from dataclasses import dataclass
from functools import cached_property

# What the constructor of each gets besides, by name.
CHANGES = "gqa norm vnorm rope alibi cap full window padding topk other sinks unscaled gate latent "
VARIANTS: dict[str, tuple[str, ...]] = dict.fromkeys((*CHANGES.split(), "cache", "linear"), ())
VARIANTS |= {"gqa": ("num_kv_heads",), "alibi": ("slopes",), "cap": ("limit",)}
VARIANTS |= {"window": ("window",), "topk": ("top_keys", "index_heads", "index_dim")}
VARIANTS |= {"latent": ("latent_dim", "rope_dim"), "linear": ("decays",)}
BRINGS = {"cache": "rope"}
APART = (  # which do not go together, and why
    ("gqa", "latent", "a latent makes keys for every head"),
    ("other", "latent", "both say what keys and values are made from"),
    ("other", "full", "of another sequence nothing is hidden anyway"),
    ("other", "rope alibi window topk cache", "tokens of two sequences share no positions"),
    ("full", "window topk", "one hides nothing, and the other hides most"),
    ("full", "cache", "what is kept was made before what comes later was there"),
    ("linear", "full window topk other", "it sums up what was read so far, and all of it"),
    ("linear", "alibi cap sinks unscaled", "it has no softmax for them to act on"),
    ("unscaled", "alibi cap", "they act on scores that are scaled"),
    ("padding", "cache", "it is not agreed whether is_padding comes whole or in pieces"),
)
ADDED = {  # layers and parameters, by changes
    "norm": ("query_norm", "key_norm"),
    "topk": ("W_index_query", "W_index_key", "W_index_weight", "index_norm"),
    "sinks": ("sinks",),
    "gate": ("W_gate",),
    "latent": ("W_down", "latent_norm"),
    "linear": ("context_norm",),
}


@dataclass(frozen=True)
class Variant:
    """The changes since the lecture that a class has; without any it is the lecture's.

    A change is in a variant where it was told; its changes are those that they bring as well.
    """

    given: tuple[str, ...] = ()  # in the order of VARIANTS, with their numbers: "rope:500000"

    @classmethod
    def of(cls, text: str) -> "Variant":
        """Read what check_attention is told: "gqa,rope:500000".

        Raises:
            ValueError: there is no such change, or two of them do not go together.
        """
        named = {_name(change): change for change in text.split(",") if change.strip()}
        if unknown := sorted(named.keys() - VARIANTS.keys()):
            every = f"one of {', '.join(VARIANTS)} is expected, or several joined by commas"
            raise ValueError(f"variant is {unknown[0]!r}: {every}")
        variant = cls(tuple(named[name].strip() for name in VARIANTS if name in named))
        for one, others, reason in APART:
            beside = {*variant.changes}.intersection(others.split())
            if one in variant.changes and beside:
                raise ValueError(f"{one} and {min(beside)} do not go together: {reason}")
        for name in named:
            numbers = variant.numbers(name)
            base, share = (*numbers, 1.0, 1.0)[:2]
            of_one = {"gqa": (1,), "norm": (0, 1, 2), "gate": (1,)}.get(name, ())
            only = not numbers or len(numbers) == 1 and base in of_one
            if not only and (name != "rope" or base <= 0 or not 0 < share <= 1):
                rule = "rope takes numbers, a base and a share of 1, gqa, norm, gate 1, norm 0, 2"
                raise ValueError(f"{named[name]!r}: {rule}")
        brought = set() if variant.numbers("rope") else {BRINGS.get(name) for name in named}
        return cls(tuple(change for change in variant.given if change not in brought))

    def __str__(self) -> str:
        return ",".join(self.given)

    def __bool__(self) -> bool:
        return bool(self.given)

    def __contains__(self, change: str) -> bool:
        return change in self.names

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The changes that were told, without their numbers."""
        return tuple(map(_name, self.given))

    @cached_property
    def changes(self) -> tuple[str, ...]:
        """The changes that were told and those that they bring, in the order of VARIANTS."""
        every = {*self.names, *(BRINGS.get(name) for name in self.names)}
        return tuple(name for name in VARIANTS if name in every)

    def numbers(self, change: str) -> tuple[float, ...]:
        """The numbers that a change is told: of rope, the base and the share that turns."""
        told = next((each for each in self.given if _name(each) == change), "")
        return tuple(map(float, told.split(":")[1:]))

    @property
    def rope(self) -> tuple[float, float]:
        """The base at which positions turn, and the share of a head's features."""
        given = self.numbers("rope")
        return (*given, *(1e4, 1.0)[len(given) :])

    @property
    def layers(self) -> tuple[str, ...]:
        """The layers and parameters that it adds."""
        has = (name for name in self.names if self.numbers(name) != (0.0,))
        return tuple(layer for name in has for layer in ADDED.get(name, ()))

    @property
    def sizes(self) -> tuple[str, ...]:
        """The names of what a constructor gets besides."""
        return tuple(size for change in self.changes for size in VARIANTS[change])

    def beside(self, *changes: str) -> "Variant | None":
        """It with more changes; None where they do not go together."""
        try:
            return Variant.of(",".join((*self.given, *changes)))
        except ValueError:
            return None

    def but(self, **other: str) -> "Variant":
        """It with other changes in place of some, or with none where that is empty."""
        return Variant.of(",".join(other.get(_name(change), change) for change in self.given))


LECTURE = Variant()


def _name(change: str) -> str:
    return change.partition(":")[0].strip()
