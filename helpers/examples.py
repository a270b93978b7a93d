"""Load the worked examples and published tensors of the course from data/*.json.

    load_whiteboard()                    x (1, 3, 6), the tensor every notebook starts from
    load_second()                        x (2, 7, 5), for d_out = 12 in 3 heads: all sizes differ
    load_example("whiteboard")["out"]    one tensor of one example

What an example holds stands in its file, with meanings and sources.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch

# In an installed package data stands inside it, in a checkout beside it.
HERE = Path(__file__).resolve().parent
DATA = HERE / "data" if (HERE / "data").is_dir() else HERE.parent / "data"


@dataclass(frozen=True)
class Example:
    """Hold one file of data/: its tensors, with their meanings, sources and names of rows.

    example["W"] is example.tensors["W"]; rows holds only tensors whose rows have names.
    """

    name: str
    about: str
    tensors: dict[str, torch.Tensor]
    meanings: dict[str, str]
    sources: dict[str, str]
    rows: dict[str, tuple[str, ...]]

    def __getitem__(self, key: str) -> torch.Tensor:
        """Return the tensor called key; KeyError names those that exist."""
        if key not in self.tensors:
            raise KeyError(f"example {self.name!r} has no {key!r}: it has {listed(self.tensors)}")
        return self.tensors[key]


def load_whiteboard() -> torch.Tensor:
    """Load the whiteboard's x (1, 3, 6): b = 1, num_tokens = 3, d_in = 6."""
    return load_example("whiteboard")["W"][None]


def load_second() -> torch.Tensor:
    """Load the second example's x (2, 7, 5): b = 2, num_tokens = 7, d_in = 5.

    With d_out = 12 and num_heads = 3, so head_dim = 4, no two of its sizes are equal.
    """
    return load_example("second")["x"]


def load_example(name: str) -> Example:
    """Load data/name.json, its tensors as float32 unless an entry names another dtype."""
    path = DATA / f"{name}.json"
    if not path.is_file():
        known = listed(sorted(file.stem for file in DATA.glob("*.json")))
        raise FileNotFoundError(f"there is no {path}: the examples in {DATA} are {known or 'none'}")
    content = json.loads(path.read_text(encoding="utf-8"))
    entries = content["tensors"]
    return Example(
        name,
        content["about"],
        {
            key: torch.tensor(entry["value"], dtype=getattr(torch, entry.get("dtype", "float32")))
            for key, entry in entries.items()
        },
        {key: entry["meaning"] for key, entry in entries.items()},
        {key: entry["source"] for key, entry in entries.items()},
        {key: tuple(entry["rows"]) for key, entry in entries.items() if "rows" in entry},
    )


def listed(names: Iterable) -> str:
    """Join names with commas."""
    return ", ".join(map(str, names))
