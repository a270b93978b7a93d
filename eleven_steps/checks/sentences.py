"""The sentences of the checks, by name, as data/sentences.toml holds them."""

import tomllib
from pathlib import Path
from typing import Any, NamedTuple


def read_toml(name: str) -> dict[str, Any]:
    """Return what a TOML file of the folder data holds."""
    return tomllib.loads((Path(__file__).parent / "data" / name).read_text("utf-8"))


class Sentence(NamedTuple):
    """One thing that a check can say."""

    kind: str  # of the verdict it makes; "part" where it is no whole sentence
    text: str  # what stands in braces is filled in
    hint: str  # what to do about it


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
