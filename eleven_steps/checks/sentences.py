"""Read the sentences of the checks, by name, from data/sentences.toml."""

import tomllib
from pathlib import Path
from typing import Any, NamedTuple


def read_toml(name: str) -> dict[str, Any]:
    """Return what a TOML file of the folder data holds."""
    return tomllib.loads((Path(__file__).parent / "data" / name).read_text("utf-8"))


class Sentence(NamedTuple):
    """Hold one sentence that a check can report."""

    kind: str  # kind of the verdict; "part" for a part of a sentence
    text: str  # names in braces are filled in
    hint: str  # what to do


def _sentence(kind: str, entry: str | list[str]) -> Sentence:
    text, hint = (entry, "") if type(entry) is str else entry
    return Sentence(kind, text, hint)


SENTENCES: dict[str, Sentence] = {
    name: _sentence(kind, entry)
    for kind, entries in read_toml("sentences.toml").items()
    for name, entry in entries.items()
}


def wording(name: str, /, **values: Any) -> str:
    """Return a sentence by its name, with values in its braces."""
    return SENTENCES[name].text.format(**values)
