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

DTYPES = {"float32": torch.float32, "float64": torch.float64, "int64": torch.int64}
FIELDS = {"value", "shape", "meaning", "source"}
OPTIONAL = {"dtype", "rows"}
TEXTS = {"about", "meaning", "source"}


@dataclass(frozen=True)
class Example:
    """One file of data/: its tensors, and for each its meaning, its source and its rows' names.

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
    """Return the whiteboard's x (1, 3, 6): b = 1, num_tokens = 3, d_in = 6.

    Raises and source: as load_example("whiteboard"), tensor W.
    """
    return load_example("whiteboard")["W"][None]


def load_second() -> torch.Tensor:
    """Return the second example's x (2, 7, 5): b = 2, num_tokens = 7, d_in = 5.

    With d_out = 12 and num_heads = 3, so head_dim = 4, no two of its sizes are equal.

    Raises and source: as load_example("second"), tensor x.
    """
    return load_example("second")["x"]


def load_example(name: str) -> Example:
    """Load data/name.json, its tensors as float32 unless an entry names another dtype.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is not JSON, or an entry lacks a field or has an unknown one, is
            ragged, holds something other than finite numbers, or has another shape than it
            declares; the error names the file and the entry.
    """
    path = DATA / f"{name}.json"
    if not path.is_file():
        known = listed(sorted(file.stem for file in DATA.glob("*.json")))
        raise FileNotFoundError(f"there is no {path}: the examples in {DATA} are {known or 'none'}")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    check_fields(content, {"about", "tensors"}, set(), str(path))
    if not isinstance(content["tensors"], dict):
        raise ValueError(f"{path}: tensors is {content['tensors']!r:.60}: an object is expected")
    tensors, meanings, sources, rows = {}, {}, {}, {}
    for key, entry in content["tensors"].items():
        where = f"{path}, entry {key!r}"
        check_fields(entry, FIELDS, OPTIONAL, where)
        tensors[key] = read_tensor(entry, where)
        meanings[key], sources[key] = entry["meaning"], entry["source"]
        if "rows" in entry:
            rows[key] = read_rows(entry["rows"], tensors[key], where)
    return Example(name, content["about"], tensors, meanings, sources, rows)


def read_tensor(entry: dict, where: str) -> torch.Tensor:
    """Return entry's value as a tensor of its dtype, checked against its declared shape."""
    value, dtype = entry["value"], entry.get("dtype", "float32")
    if dtype not in list(DTYPES):
        raise ValueError(f"{where}: dtype is {dtype!r}: one of {listed(DTYPES)} is expected")
    shape = measured_shape(value, DTYPES[dtype], where)
    if shape != entry["shape"]:
        raise ValueError(f"{where}: the value has shape {shape}, but {entry['shape']} is declared")
    return torch.tensor(value, dtype=DTYPES[dtype])


def measured_shape(value: object, dtype: torch.dtype, where: str) -> list[int]:
    """Return the shape of a nested list; raise where it is ragged or holds no number of dtype."""
    if not isinstance(value, list):
        floating = dtype.is_floating_point
        numbers = (int, float) if floating else (int,)
        largest = (torch.finfo if floating else torch.iinfo)(dtype).max
        if type(value) not in numbers or not abs(value) <= largest:
            raise ValueError(f"{where}: the value holds {value!r}: a finite {dtype} is expected")
        return []
    shapes = [measured_shape(item, dtype, where) for item in value]
    if any(shape != shapes[0] for shape in shapes):
        raise ValueError(f"{where}: the value is ragged: its parts have shapes {listed(shapes)}")
    return [len(value), *(shapes[0] if shapes else [])]


def read_rows(rows: object, tensor: torch.Tensor, where: str) -> tuple[str, ...]:
    """Return the names of tensor's (rows, ...) rows; raise unless there is one text per row."""
    texts = isinstance(rows, list) and all(isinstance(row, str) for row in rows)
    if not texts or list(tensor.shape[:1]) != [len(rows)]:
        raise ValueError(
            f"{where}: rows is {rows!r}, but the value has shape {list(tensor.shape)}: "
            f"one text for each row is expected"
        )
    return tuple(rows)


def check_fields(content: object, required: set[str], optional: set[str], where: str) -> None:
    """Raise unless content is a JSON object with every required field and no unknown one."""
    if not isinstance(content, dict):
        raise ValueError(f"{where} is a {type(content).__name__}: a JSON object is expected")
    if missing := required - content.keys():
        raise ValueError(f"{where} has no {listed(sorted(missing))}, which must be there")
    if unknown := content.keys() - required - optional:
        expected = listed(sorted(required | optional))
        raise ValueError(f"{where} has {listed(sorted(unknown))}: only {expected} are expected")
    for field in content.keys() & TEXTS:
        if not isinstance(content[field], str) or not content[field]:
            raise ValueError(f"{where}: {field} is {content[field]!r}: a text is expected")


def listed(names: Iterable) -> str:
    """Join names with commas."""
    return ", ".join(map(str, names))
