"""Write the course on one page to print: eleven steps, one head, and five mistakes.

Usage: make sheet, or: python tools/bank/one_page.py [--to sheet]

It writes sheet.html, which a browser prints on one page of A4 or Letter. The lines of code come
from helpers/attention.py, and the sentences about mistakes from the checks.
"""

import argparse
import inspect
import re
from pathlib import Path

from bank import explained
from formats import written

from helpers.attention import CausalAttention, MultiHeadAttention

# Mistakes that are common in public code (21_in_the_wild) and in the questions people ask.
COMMON = ("view_straight", "scale_sqrt_d_out", "mask_inverted", "no_transpose_back", "no_scale")
ASSIGNMENT = re.compile(r"(b|queries|split|scores|future|masked|scaled|weights|context|out)\b.* = ")


def lines_of_steps() -> list[tuple[str, str, str]]:
    """Return the lines of the eleven steps: code, shape, and the step's name before its first."""
    rows, name = [], ""
    for line in inspect.getsource(MultiHeadAttention.forward).splitlines():
        code, _, shape = line.strip().partition("  # ")
        if heading := re.fullmatch(r"# (\d+ \w+)", code):
            name = heading[1]
        elif ASSIGNMENT.match(code):
            rows.append((name, code, shape))
            name = ""
    return rows


def lines_of_one_head() -> list[str]:
    lines = inspect.getsource(CausalAttention.forward).splitlines()
    at = next(place for place, line in enumerate(lines) if "check_input" in line)
    return [line.strip().partition("  # ")[0] for line in lines[at + 1 :]]


def page() -> str:
    mistakes = [explained(name) for name in COMMON]
    return written("sheet", rows=lines_of_steps(), head=lines_of_one_head(), mistakes=mistakes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--to", type=Path, default=Path(__file__).parents[2] / "sheet", metavar="FOLDER"
    )
    to = parser.parse_args().to
    to.mkdir(parents=True, exist_ok=True)
    (to / "sheet.html").write_text(page(), encoding="utf-8")
    print(to / "sheet.html")


if __name__ == "__main__":
    main()
