"""What the checks say, by name: SENTENCES, as sentences.toml holds them."""

import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from eleven_steps.helpers.trace import STEPS


def read_toml(name: str) -> dict[str, Any]:
    """Return what a TOML file of this folder holds."""
    return tomllib.loads((Path(__file__).parent / name).read_text("utf-8"))


class Sentence(NamedTuple):
    """One thing that a check can say."""

    step: int | None  # that it is about, 1 to 11; None where none is told
    text: str  # what stands in braces is filled in
    kind: str  # of the outcome it makes
    claim: str  # for whoever decides by it; "" for most


# What check_attention is told besides a class, as it is written in Python, and in a shell.
OPTIONS = {"variant": 'variant="{}"', "full": "causal=False", "between": ", "}
OPTIONS |= {"to_layers": "`layers`", "to_call": "`call`"}
OPTIONS["to_build"] = "`lambda d_out, num_heads: ...`"
IN_SHELL = {"variant": "--variant {}", "full": "--full", "between": " "}
IN_SHELL |= {"to_layers": "`--layers LAYER=NAME ...`", "to_call": "`--call CODE`"}
IN_SHELL["to_build"] = "`def build(d_out, num_heads): ...` in a file"


def wording(name: str, /, **values: Any) -> str:
    """Return a sentence by its name, with values and OPTIONS in its braces."""
    return SENTENCES[name].text.format(**{**OPTIONS, **values})


SENTENCES: dict[str, Sentence] = {
    name: Sentence(None if step == "any" else STEPS.index(step) + 1, text, kind, claim)
    for step, kinds in read_toml("sentences.toml").items()
    for header, sentences in kinds.items()
    for kind, _, claim in [header.partition(", ")]
    for name, text in sentences.items()
}
