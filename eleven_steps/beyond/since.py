"""Models since the lecture: which step each changed, what its cache holds, a change's lines."""

import inspect
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eleven_steps.beyond.variants import Part, VariantAttention
from eleven_steps.beyond.variants.module import REPLACED
from helpers.examples import load_example
from helpers.trace import step_source


@dataclass(frozen=True)
class Published:
    """One published model: sizes in the course's letters, and its changes; 0 for not changed.

    num_layers counts layers with softmax attention; norm, alibi, sinks and gate are 0 or 1.
    """

    name: str
    source: str
    year: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    rope_base: int
    norm: int
    alibi: int
    cap: int
    window: int
    sinks: int
    gate: int
    latent_dim: int
    rope_dim: int

    @property
    def kept(self) -> int:
        """Numbers that a cache keeps of one token in one layer: keys and values, or a latent."""
        if self.latent_dim:
            return self.latent_dim + self.rope_dim
        return 2 * self.num_kv_heads * self.head_dim

    def steps(self) -> dict[int, str]:
        """Return what is changed at each step, in few words."""
        shared = self.num_heads // self.num_kv_heads
        rope = f"RoPE, base {self.rope_base:,}" * bool(self.rope_base)
        words = {
            2: f"latent of {self.latent_dim}" * bool(self.latent_dim)
            or f"{shared} heads share keys" * (shared > 1),
            4: ", ".join(filter(None, ["norm" * self.norm, rope])),
            5: "ALiBi" * self.alibi or f"cap at {self.cap}" * bool(self.cap),
            6: f"window of {self.window:,}" * bool(self.window),
            7: "sinks" * self.sinks,
            10: "gate" * self.gate,
        }
        return {step: text for step, text in words.items() if text}


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
