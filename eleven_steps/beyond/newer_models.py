"""Describe newer models: the steps each changed, its attention, its cache, the changed lines."""

import inspect
import textwrap
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, make_dataclass, replace

from eleven_steps.beyond import variants
from eleven_steps.beyond.variants import Part, VariantAttention
from eleven_steps.beyond.variants.module import REPLACED
from eleven_steps.helpers.examples import DATA
from eleven_steps.helpers.trace import step_source

STORED = tomllib.loads((DATA / "newer_models.toml").read_text("utf-8"))
Numbers = make_dataclass("Numbers", [(name, int, 0) for name in STORED["columns"]], frozen=True)


@dataclass(frozen=True, kw_only=True)
class Published(Numbers):
    """Describe one published model: its sizes and its changes, where 0 means unchanged.

    data/newer_models.toml explains each number. A model may have two kinds of layers: in_window
    chooses those with a window or chunks.
    """

    name: str
    source: str

    def kept_in(self, in_window: bool = False) -> int:
        """Return how many numbers one layer caches for each token, in a layer of either kind."""
        if self.latent_dim:
            return self.latent_dim + self.rope_dim + self.index_dim
        few, features = self.heads_in(in_window)
        return (1 if self.pool else 2) * few * features

    def heads_in(self, in_window: bool) -> tuple[int, int]:
        """Return num_kv_heads and head_dim in a layer of either kind."""
        if in_window and self.window_head_dim:
            return self.window_kv_heads, self.window_head_dim
        return self.num_kv_heads, self.head_dim

    def kept_of(self, num_tokens: int, rolling: bool = True) -> int:
        """Return how many numbers all layers cache for a text.

        Layers that borrow keys cache nothing, and those with a delta rule one table for each head.

        Args:
            rolling: whether layers with a window or chunks drop the tokens that these hide.
        """
        few, features = self.heads_in(True)
        total = self.delta_layers * few * features**2 - self.sharing * self.index_dim * num_tokens
        small = self.num_layers - self.window_layers - self.large_layers
        kinds = (True, self.window_layers, 0), (False, small, self.pool)
        for in_window, count, pool in (*kinds, (False, self.large_layers, self.large_pool)):
            own = count * (self.num_layers - self.borrowing) // self.num_layers
            seen = num_tokens
            if rolling and (in_window or self.pool):
                seen = min(self.window or self.chunk or num_tokens, num_tokens)
            total += own * self.kept_in(in_window) * seen
            if pool:
                index = self.index_dim if pool == self.pool else 0
                total += own * (num_tokens // pool) * (self.head_dim + index)
        return total

    def steps(self) -> dict[int, str]:
        """Return a short description of the change at each step."""
        few, ends = self.num_kv_heads, self.num_heads * self.head_dim
        facts = vars(self) | {"positions": self.positions(), "not_biases": not self.biases}
        facts["latents"] = f"{self.latent_dim}" + f" and {self.query_dim:,}" * bool(self.query_dim)
        facts["latent_queries"] = self.query_dim and not self.latent_dim
        facts["shared_keys"] = few < self.num_heads and f"{few} key head{'s' * (few > 1)}"
        facts |= {"ends": ends, "other_ends": ends != self.d_model, "sharpened": self.scaling == 2}
        said = {
            step: ", ".join(words.format(**facts) for fact, words in parts.items() if facts[fact])
            for step, parts in STORED["steps"].items()
        }
        return {int(step): text for step, text in said.items() if text}

    def positions(self) -> str:
        """Describe the model's RoPE in a few words."""
        end = "first" if self.rope_first else "last"
        which = f" on the {end} {self.rope_width} features" * bool(self.rope_width)
        which += f" for {self.rope_percent} % of the features" * bool(self.rope_percent)
        name = ("", "linear", "YaRN", "YaRN")[self.scaling]
        return f"RoPE{which}, base {self.rope_base:,}" + f", {name} {self.factor}" * bool(name)

    def parts(self, in_window: bool = False, lender: variants.Lender | None = None) -> list[Part]:
        """Return the parts of a layer of either kind.

        Args:
            lender: a part of the layer whose keys and values, or choice, this one borrows.
        """
        in_window |= self.window_layers == self.num_layers  # then all layers have a window
        if in_window and self.delta_layers:
            return [variants.Delta()]
        few, _ = self.heads_in(in_window)
        still, sizes = self.temperature and not in_window, (self.latent_dim, self.rope_dim)
        borrowed = variants.BorrowedChoice if self.sharing else variants.BorrowedKeys
        indexed = self.top_keys and not lender
        every = [  # pairs: whether the model has the part, and the part
            (self.latent_dim, variants.Latent(*sizes, self.key_dim or None)),
            (self.query_dim, variants.QueryLatent(self.query_dim)),
            (few < self.num_heads, variants.GroupedHeads(few)),
            (self.same_values and not (in_window and not self.pool), variants.KeysAsValues()),
            (self.norm, variants.Norm(queries=self.norm == 1)),
            (self.value_norm, variants.ValueNorm(as_keys=bool(self.pool))),
            (self.rope_base and not still, self.rope(in_window)),
            (still, variants.Temperature(floor=self.temperature)),
            (self.alibi, variants.Alibi()),
            (self.cap, variants.Cap(self.cap)),
            (self.window and (in_window or self.pool), variants.Window(self.window)),
            (self.chunk and in_window, variants.Chunks(self.chunk)),
            (indexed, indexed and self.indexer()),
            (self.sinks, variants.Sinks()),
            (self.unscaled, variants.Unscaled()),
            (self.differential, variants.Differential()),
            (self.gate, variants.Gate()),
            *((True, pool) for pool in (self.pools(in_window) if self.pool else [])),
            (lender is not None, borrowed(lender)),
        ]
        return [part for wanted, part in every if wanted]

    def of_large_pools(self) -> "Published":
        """Return the same model with large pools in all layers that have pools."""
        return replace(self, pool=self.large_pool, large_pool=0, large_layers=0, top_pools=0)

    def pools(self, in_window: bool) -> list[Part]:
        """Return the pools of DeepSeek-V4, with an indexer if pools are small."""
        small = self.top_pools > 0
        chosen = variants.TopPools(self.top_pools, self.index_heads, self.index_dim)
        pools = [variants.Pool(self.pool, overlap=small), *[chosen] * small] * (not in_window)
        ends = variants.GroupedOut(self.out_groups, self.out_rank)
        return [*pools, variants.RotatedValues(self.rope(in_window)), ends]

    def rope(self, in_window: bool = False) -> variants.Rope:
        """Return the RoPE part of a layer of either kind."""
        width, pairing = self.rope_width or None, variants.PAIRINGS[self.neighbours]
        if in_window and self.window_base:
            return variants.Rope(self.window_base, pairing, width, bool(self.rope_first))
        yarn = variants.YarnScaling(self.factor, self.original, whole=bool(self.whole))
        scaling = (
            variants.FirstPairs(self.rope_percent / 100) if self.rope_percent else None,
            variants.LinearScaling(self.factor),
            yarn,
            replace(yarn, sharpens=False),
        )[self.scaling]
        return variants.Rope(self.rope_base, pairing, width, bool(self.rope_first), scaling)

    def indexer(self) -> variants.TopKeys:
        """Return the part that chooses keys; RoPE, if there is any, rotates its first features."""
        pairing = variants.PAIRINGS[self.index_neighbours]
        rope = replace(self.rope(), pairing=pairing, first=True)
        return variants.TopKeys(self.top_keys, self.index_heads, self.index_dim, rope)

    def build(
        self, context_length: int, in_window: bool = False, lender: variants.Lender | None = None
    ) -> VariantAttention:
        """Return the untrained attention of one layer of either kind."""
        sizes = self.d_model, self.d_model, context_length, 0.0, self.num_heads, bool(self.biases)
        parts, (_, head_dim) = self.parts(in_window, lender), self.heads_in(in_window)
        return VariantAttention(*sizes, parts, head_dim=head_dim, out_bias=bool(self.biases))

    def shrunk(self, heads: int, features: int) -> "Published":
        """Return a smaller model: heads, and features of a head, divided by these factors."""
        by_heads = "num_heads", "num_kv_heads", "window_kv_heads", "index_heads", "out_groups"
        divisors = {name: heads for name in by_heads if getattr(self, name) > 1}
        by_features = "head_dim", "window_head_dim", "rope_width", "rope_dim", "key_dim"
        divisors |= dict.fromkeys([*by_features, "index_dim"], features)
        by_both = "d_model", "latent_dim", "query_dim", "out_rank"
        divisors |= dict.fromkeys(by_both, heads * features)
        for name, divisor in divisors.items():
            if getattr(self, name) % divisor:
                raise ValueError(f"{self.name}: {name} is no multiple of {divisor}")
        return replace(self, **{name: getattr(self, name) // n for name, n in divisors.items()})


def load_newer_models() -> list[Published]:
    """Return the models of data/newer_models.toml, oldest first."""
    return [Published(name=name, **model) for name, model in STORED["models"].items()]


def table_of_steps(models: Sequence[Published]) -> str:
    """Return a Markdown table: a row for each model, a column for each step that one changed."""
    steps = sorted({step for model in models for step in model.steps()})
    lines = [["model", "year", *(f"step {step}" for step in steps), "source"]]
    lines.append(["---"] * len(lines[0]))
    for model in models:
        changed = [model.steps().get(step, "") for step in steps]
        lines.append([model.name, str(model.year), *changed, model.source])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def show_change(step: str, kind: type[Part]) -> str:
    """Return the lines of a step, and how a part replaces (-, +) or extends them."""
    if not hasattr(kind, step):
        raise ValueError(f"{kind.__name__} does not change step {step!r}")
    own = step in REPLACED
    old = lines_of(getattr(VariantAttention, step)) if own else step_source(step).splitlines()
    old = [f"{'-' if own else ' '} {line.split('  # ')[0]}" for line in old]
    return "\n".join([*old, *(f"+ {line}" for line in lines_of(getattr(kind, step)))])


def lines_of(method: Callable) -> list[str]:
    """Return the lines of a method without its head, docstring, comments and argument checks."""
    source = textwrap.dedent(inspect.getsource(method)).partition('"""\n')[2]
    lines = textwrap.dedent(source).splitlines()
    kept = [line for line in lines if line.strip() and not line.startswith("check_")]
    return [line.split("  # ")[0] for line in kept]
