"""Show numbers as a table: a cell computes them, and one line shows them.

show_table({"head_dim": [1, 4], "spread": [1.01, 1.99]}, digits=1)
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import torch

LEFT, RIGHT = "left", "right"
QUANTITY = re.compile(r"-?\d[\d.,]*( ?([KMGT]iB|bytes|ms|s|%))?")  # "48 MiB"


@dataclass(frozen=True)
class Table:
    """Hold the finished texts of a table, column by column, ready for a notebook to show."""

    header: tuple[str, ...]  # a name for each column
    columns: tuple[tuple[str, ...], ...]  # the texts of each, from top to bottom
    sides: tuple[str, ...]  # left or right, for each column

    @property
    def html(self) -> str:
        """The table as HTML, in the page's colours; where it is wider than the page it scrolls."""
        head = self._row("th", ' scope="col"', self.header)
        body = "".join(self._row("td", "", row) for row in zip(*self.columns, strict=True))
        table = f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"
        return f'<div style="overflow-x:auto">{table}</div>'

    def __str__(self) -> str:
        columns = [(name, *texts) for name, texts in zip(self.header, self.columns, strict=True)]
        widths = [max(map(len, column)) for column in columns]
        lines = []
        for row in zip(*columns, strict=True):
            cells = zip(row, widths, self.sides, strict=True)
            line = "  ".join(c.rjust(w) if side == RIGHT else c.ljust(w) for c, w, side in cells)
            lines.append(line.rstrip())
        return "\n".join(lines)

    def _row(self, tag: str, scope: str, cells: Iterable[str]) -> str:
        pairs = zip(self.sides, cells, strict=True)
        inner = (f'<{tag}{scope} style="text-align:{s}">{escape(c)}</{tag}>' for s, c in pairs)
        return f"<tr>{''.join(inner)}</tr>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self.html, "text/plain": str(self)}


def show_table(
    columns: Mapping[str, Iterable], digits: int = 2, share: Iterable[str] = ()
) -> Table:
    """Write columns of values as a table: numbers and "48 MiB" to the right, texts to the left.

    Args:
        columns: values by the name that stands above them; a tensor counts as its numbers.
        digits: behind the point, where numbers are not whole.
        share: names of columns with shares from 0 to 1, to be written in per cent.

    Raises:
        ValueError: there is no column, two differ in length, or share names none.
    """
    lists = {name: [_plain(value) for value in values] for name, values in columns.items()}
    share = set(share)
    if unknown := share - lists.keys():
        raise ValueError(f"there is no column {sorted(unknown)[0]!r}: they are {', '.join(lists)}")
    lengths = {name: len(values) for name, values in lists.items()}
    if len(set(lengths.values())) != 1:
        raise ValueError(
            f"columns are {lengths or 'none'}: one or more of equal length are expected"
        )
    texts = (
        tuple(_written(value, digits, name in share) for value in values)
        for name, values in lists.items()
    )
    sides = (RIGHT if all(map(_is_amount, values)) else LEFT for values in lists.values())
    return Table(tuple(lists), tuple(texts), tuple(sides))


def _plain(value: Any) -> Any:
    """A tensor of one number as that number, whatever else as it is."""
    return value.item() if isinstance(value, torch.Tensor) and value.dim() == 0 else value


def _is_amount(value: Any) -> bool:
    """Whether a value is a number, or a text of one with its unit."""
    return _is_number(value) or isinstance(value, str) and bool(QUANTITY.fullmatch(value))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _written(value: Any, digits: int, share: bool) -> str:
    if not _is_number(value):
        return str(value)
    if share:
        return f"{value:.0%}"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}f}"
