"""Models since the lecture: which step each changed, its attention, its cache, a change's lines."""

import inspect
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from eleven_steps.beyond import variants
from eleven_steps.beyond.variants import Part, VariantAttention
from eleven_steps.beyond.variants.module import REPLACED
from helpers.examples import load_example
from helpers.trace import step_source


@dataclass(frozen=True)
class Published:
    """One published model: sizes in the course's letters, and its changes; 0 for not changed.

    num_layers counts layers with softmax attention, window_layers those of them with a window,
    which turn by window_base if it is given. d_model are the features of x and of out. Of a head
    turn rope_width features, all if 0, the first or the last. scaling is 1 for linear, 2 for YaRN.
    key_dim are the features of a head's keys that a latent makes, head_dim if 0. biases,
    rope_first, neighbours, whole, norm, alibi, sinks, gate and index_neighbours are 0 or 1.
    """

    name: str
    source: str
    year: int
    num_layers: int
    d_model: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    biases: int
    rope_base: int
    rope_width: int
    rope_first: int
    neighbours: int
    scaling: int
    factor: int
    original: int
    whole: int
    norm: int
    alibi: int
    cap: int
    window: int
    window_layers: int
    window_base: int
    sinks: int
    gate: int
    latent_dim: int
    rope_dim: int
    key_dim: int
    query_dim: int
    top_keys: int
    index_heads: int
    index_dim: int
    index_neighbours: int

    @property
    def kept(self) -> int:
        """Numbers that a cache keeps of one token in one layer: keys and values, or a latent."""
        if self.latent_dim:
            return self.latent_dim + self.rope_dim + self.index_dim
        return 2 * self.num_kv_heads * self.head_dim

    def kept_of(self, num_tokens: int) -> int:
        """Numbers that all layers keep of a text, if those with a window forget what it hides."""
        seen = min(self.window or num_tokens, num_tokens)
        layers = self.num_layers - self.window_layers
        return self.kept * (layers * num_tokens + self.window_layers * seen)

    def steps(self) -> dict[int, str]:
        """Return what is changed at each step, in few words."""
        few, heads = self.num_kv_heads, self.num_heads * self.head_dim
        ends = f"from {heads:,} to {self.d_model:,}" * (heads != self.d_model)
        words = {
            2: [
                "biases" * self.biases,
                f"latents of {self.latent_dim} and {self.query_dim:,}" * bool(self.latent_dim),
                f"{few} key head{'s' * (few > 1)} for {self.num_heads}" * (few < self.num_heads),
            ],
            4: ["norm" * self.norm, self.positions() * bool(self.rope_base)],
            5: ["ALiBi" * self.alibi, f"cap at {self.cap}" * bool(self.cap)],
            6: [
                f"window of {self.window:,}" * bool(self.window),
                f"the best {self.top_keys:,} keys" * bool(self.top_keys),
            ],
            7: ["sinks" * self.sinks, "YaRN's factor" * (self.scaling == 2)],
            10: ["gate" * self.gate],
            11: ["no bias" * (not self.biases), ends],
        }
        texts = {step: ", ".join(filter(None, parts)) for step, parts in words.items()}
        return {step: text for step, text in texts.items() if text}

    def positions(self) -> str:
        """Say how RoPE turns."""
        end = "first" if self.rope_first else "last"
        which = f" on the {end} {self.rope_width} features" * bool(self.rope_width)
        name = ("", "linear", "YaRN")[self.scaling]
        return f"RoPE{which}, base {self.rope_base:,}" + f", {name} {self.factor}" * bool(name)

    def parts(self, in_window: bool = False) -> list[Part]:
        """Return the parts of a layer, of one with a window or of one without."""
        in_window |= self.window_layers == self.num_layers  # there are no others
        return [
            *[variants.Latent(self.latent_dim, self.rope_dim, self.key_dim or None)]
            * bool(self.latent_dim),
            *[variants.QueryLatent(self.query_dim)] * bool(self.query_dim),
            *[variants.GroupedHeads(self.num_kv_heads)] * (self.num_kv_heads < self.num_heads),
            *[variants.Norm()] * self.norm,
            *[self.rope(in_window)] * bool(self.rope_base),
            *[variants.Alibi()] * self.alibi,
            *[variants.Cap(self.cap)] * bool(self.cap),
            *[variants.Window(self.window)] * in_window,
            *[self.indexer()] * bool(self.top_keys),
            *[variants.Sinks()] * self.sinks,
            *[variants.Gate()] * self.gate,
        ]

    def rope(self, in_window: bool = False) -> variants.Rope:
        """Return how queries and keys turn, in a layer with a window or in one without."""
        width, pairing = self.rope_width or None, variants.PAIRINGS[self.neighbours]
        if in_window and self.window_base:
            return variants.Rope(self.window_base, pairing, width, bool(self.rope_first))
        scaling = (
            None,
            variants.LinearScaling(self.factor),
            variants.YarnScaling(self.factor, self.original, whole=bool(self.whole)),
        )[self.scaling]
        return variants.Rope(self.rope_base, pairing, width, bool(self.rope_first), scaling)

    def indexer(self) -> variants.TopKeys:
        """Return what chooses keys; it turns the first features of its own."""
        pairing = variants.PAIRINGS[self.index_neighbours]
        rope = replace(self.rope(), pairing=pairing, first=True)
        return variants.TopKeys(self.top_keys, self.index_heads, self.index_dim, rope)

    def build(
        self,
        context_length: int,
        in_window: bool = False,
        cls: type[VariantAttention] = VariantAttention,
    ) -> VariantAttention:
        """Return the attention of one layer, untrained."""
        sizes = self.d_model, self.d_model, context_length, 0.0, self.num_heads, bool(self.biases)
        parts = self.parts(in_window)
        return cls(*sizes, parts, head_dim=self.head_dim, out_bias=bool(self.biases))

    def shrunk(self, heads: int, features: int) -> "Published":
        """Return the same model with so many times fewer heads, and features in each of them.

        Raises:
            ValueError: a size cannot be divided.
        """
        divisors = dict.fromkeys(["num_heads", "num_kv_heads", "index_heads"], heads)
        divisors |= dict.fromkeys(["head_dim", "rope_width", "rope_dim"], features)
        divisors |= dict.fromkeys(["key_dim", "index_dim"], features)
        divisors |= dict.fromkeys(["d_model", "latent_dim", "query_dim"], heads * features)
        for name, divisor in divisors.items():
            if getattr(self, name) % divisor:
                raise ValueError(f"{self.name}: {name} is no multiple of {divisor}")
        return replace(self, **{name: getattr(self, name) // n for name, n in divisors.items()})


def load_since() -> list[Published]:
    """Return the models of data/since.json, oldest first.

    Raises and sources: as load_example("since").
    """
    since = load_example("since")
    return [
        Published(
            since.meanings[key],
            since.sources[key],
            **dict(zip(since.rows[key], numbers.tolist(), strict=True)),
        )
        for key, numbers in since.tensors.items()
    ]


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
    """Return a step's lines without a part, and the part's: in their place (-, +), or after them.

    Raises:
        ValueError: there is no such step, or the part does not change it.
    """
    if not hasattr(kind, step):
        raise ValueError(f"{kind.__name__} does not change step {step!r}")
    own = step in REPLACED
    old = body_of(getattr(VariantAttention, step)) if own else step_source(step).splitlines()
    old = [f"{'-' if own else ' '} {line.split('  # ')[0]}" for line in old]
    return "\n".join([*old, *(f"+ {line}" for line in body_of(getattr(kind, step)))])


def body_of(method: Callable) -> list[str]:
    """Return a method's lines without its head, docstring, comments and checks of what came."""
    source = textwrap.dedent(inspect.getsource(method)).partition('"""\n')[2]
    lines = textwrap.dedent(source).splitlines()
    kept = [line for line in lines if line.strip() and not line.startswith("check_")]
    return [line.split("  # ")[0] for line in kept]
