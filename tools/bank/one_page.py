"""Draw the course on one page: eleven steps with their lines and shapes, one head, five mistakes.

Usage: make sheet, or: python tools/bank/one_page.py [--to sheet]; A4.pdf, Letter.pdf, and A4.svg.
The lines are those of helpers/attention.py, the sentences those of the checks.
"""

import argparse
import inspect
import re
import textwrap
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from eleven_steps.checks.mistakes import MISTAKES
from helpers.attention import CausalAttention, MultiHeadAttention
from helpers.trace import STEPS

PAPERS = {"A4": (8.27, 11.69), "Letter": (8.5, 11.0)}  # inches
WIDTH, HEIGHT = 7.5, 10.2  # of what is drawn, on either
LINE, SMALL, LARGE = 0.21, 7.5, 10  # inches from line to line; points
CODE, SHAPE = 0.95, 5.0  # inches from the left
# Mistakes that are common in public code (21_in_the_wild) and in the questions people ask.
COMMON = ("view_straight", "scale_sqrt_d_out", "mask_inverted", "no_transpose_back", "no_scale")
MADE = re.compile(r"(b|queries|split|scores|future|masked|scaled|weights|context|out)\b.* = ")
LETTERS = (
    "b sequences of num_tokens tokens; d_in features of each token come in, and d_out go out; "
    "num_heads heads share them, head_dim = d_out / num_heads each. "
    "Keys and values go through steps 2 to 4 as the queries do."
)


def steps() -> list[tuple[str, str, str]]:
    """Return the lines of the eleven steps: the step's name before its first, code, shape."""
    rows, name = [], ""
    for line in inspect.getsource(MultiHeadAttention.forward).splitlines():
        code, _, shape = line.strip().partition("  # ")
        if heading := re.fullmatch(r"# (\d+ \w+)", code):
            name = heading[1]
        elif MADE.match(code):
            rows.append((name, code, shape))
            name = ""
    assert [row[0].partition(" ")[2] for row in rows if row[0]] == list(STEPS)
    return rows


def one_head() -> list[str]:
    lines = inspect.getsource(CausalAttention.forward).splitlines()
    at = next(place for place, line in enumerate(lines) if "check_input" in line)
    return [line.strip().partition("  # ")[0] for line in lines[at + 1 :]]


def draw(paper: str) -> Figure:
    wide, high = PAPERS[paper]
    figure = Figure(figsize=(wide, high))
    left, top = (wide - WIDTH) / 2, (high + HEIGHT) / 2

    def put(text: str, x: float = 0.0, code: bool = False, size: float = SMALL) -> None:
        if not text:
            return
        family = "DejaVu Sans Mono" if code else "DejaVu Sans"
        place = (left + x) / wide, top / high
        figure.text(*place, text, family=family, size=size, va="top", parse_math=False)

    def heading(text: str) -> None:
        nonlocal top
        top -= 0.6 * LINE
        put(text, size=LARGE)
        top -= 1.5 * LINE

    def prose(text: str, x: float = 0.0) -> None:
        nonlocal top
        for line in textwrap.wrap(text, 116 if not x else 112):
            put(line, x)
            top -= LINE

    put("Eleven Steps to Multi-Head Attention", size=14)
    top -= 2 * LINE
    prose(LETTERS)
    heading("The eleven steps, from x (b, num_tokens, d_in)")
    for name, code, shape in steps():
        put(name)
        put(code, CODE, code=True)
        put(shape, SHAPE, code=True)
        top -= 1.12 * LINE
    heading("One head in six lines")
    for line in one_head():
        put(line, code=True)
        top -= LINE
    heading("Five mistakes that people make again and again")
    for number, name in enumerate(COMMON, start=1):
        put(f"{number}")
        mistake = MISTAKES[name]
        prose(f"{mistake.sentence} {mistake.why}".replace("`", ""), 0.25)
        top -= 0.3 * LINE
    assert top > (high - HEIGHT) / 2, f"{paper}: it does not fit on one page"
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--to", type=Path, default=Path(__file__).parents[2] / "sheet", metavar="FOLDER"
    )
    to = parser.parse_args().to
    to.mkdir(parents=True, exist_ok=True)
    matplotlib.rcParams |= {"svg.hashsalt": "sheet", "pdf.fonttype": 42}
    for paper in PAPERS:
        draw(paper).savefig(to / f"{paper}.pdf", metadata={"CreationDate": None})
    draw("A4").savefig(to / "A4.svg", metadata={"Date": None})
    print(f"one page for {' and '.join(PAPERS)}: {to}")


if __name__ == "__main__":
    main()
