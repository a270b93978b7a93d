"""Tables of numbers: a cell computes the columns, and one line shows them.

show_table({"head_dim": [1, 4], "spread": [1.01, 1.99]}, digits=1)
"""

import re
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

import torch

QUANTITY = re.compile(r"-?\d[\d.,]*( ?([KMGT]iB|bytes|ms|s|%))?")  # "48 MiB"


class Table:
    """Hold the texts of a table row by row, the header first, ready for a notebook to show."""

    def __init__(self, rows: list[tuple[str, ...]], sides: list[str]):
        self.rows, self.sides = rows, sides  # "left" or "right" for each column

    def _repr_html_(self) -> str:
        rows = []
        for row in self.rows:
            tag, end = ("td", "td") if rows else ('th scope="col"', "th")
            cells = zip(self.sides, row, strict=True)
            inner = (f'<{tag} style="text-align:{s}">{escape(text)}</{end}>' for s, text in cells)
            rows.append(f"<tr>{''.join(inner)}</tr>")
        table = f"<table><thead>{rows[0]}</thead><tbody>{''.join(rows[1:])}</tbody></table>"
        return f'<div style="overflow-x:auto">{table}</div>'  # where it is wider than the page

    def __repr__(self) -> str:
        widths = [max(map(len, column)) for column in zip(*self.rows, strict=True)]
        lines = []
        for row in self.rows:
            cells = zip(row, widths, self.sides, strict=True)
            texts = (f"{text:{'>' if side == 'right' else '<'}{n}}" for text, n, side in cells)
            lines.append("  ".join(texts).rstrip())
        return "\n".join(lines)


def show_table(
    columns: Mapping[str, Iterable], digits: int = 2, share: Iterable[str] = ()
) -> Table:
    """Write columns of values as a table: numbers and "48 MiB" to the right, texts to the left.

    Args:
        columns: values by the name of their column, equally many in each.
        digits: decimals of the numbers that are not whole.
        share: names of columns with shares from 0 to 1, to be written in per cent.
    """
    texts = {
        name: [write_value(value, digits, name in share) for value in values]
        for name, values in columns.items()
    }
    sides = ["right" if all(map(QUANTITY.fullmatch, text)) else "left" for text in texts.values()]
    return Table([tuple(texts), *zip(*texts.values(), strict=True)], sides)


def write_value(value: Any, digits: int, is_share: bool) -> str:
    """Format one value: a number with commas between thousands, a share in per cent."""
    value = value.item() if isinstance(value, torch.Tensor) else value
    if not isinstance(value, int | float) or isinstance(value, bool):
        return str(value)
    if is_share:
        return f"{value:.0%}"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}f}"
