"""Charts, for what is no tensor: drawn by matplotlib as SVG, in the page's own colours."""

import io
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import matplotlib.style
import torch
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from eleven_steps.pictures.svg import (
    HEAD_COLOURS,
    INK,
    LINE,
    NEUTRAL,
    SANS,
    Drawing,
    Picture,
    hue,
    picture,
)

WIDTH, HEIGHT = 780, 300  # pixels

# Teal and pink, neither a head's colour, both clear on a light and on a dark ground; marker and
# label tell the lines apart too.
FIRST, SECOND = "#c2508f", "#0f8a8c"
LINES = {
    "without the scale": {"color": FIRST, "marker": "s", "linestyle": "--"},
    "with the scale": {"color": SECOND, "marker": "o", "linestyle": "-"},
}
SQUARE = {"facecolor": f"{SECOND}44", "edgecolor": SECOND, "linewidth": 1.5}

# matplotlib knows no variables: these stand for them until the SVG is written.
STAND_INS = {"#010203": INK, "#040506": LINE}
LOOKS = {
    "svg.fonttype": "none",  # texts stay texts
    "svg.hashsalt": "eleven steps",
    "font.size": 12,
    "axes.titlesize": 12,
    "axes.titlelocation": "left",  # as in the pictures of tensors, and without a box around it
    **dict.fromkeys(("axes.spines.top", "axes.spines.right"), False),
    "legend.frameon": False,
    "savefig.transparent": True,
    **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.labelcolor"), "#010203"),
    "ytick.labelcolor": "#010203",
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color", "grid.color"), "#040506"),
}


@contextmanager
def chart() -> Iterator[Figure]:
    """Give an empty figure that takes the page's colours once it is finished."""
    with matplotlib.style.context("default"), matplotlib.rc_context(LOOKS):
        yield Figure(figsize=(WIDTH / 72, HEIGHT / 72), layout="constrained")


def saved(figure: Figure) -> Drawing:
    """Return a figure as SVG, the same for the same figure, while its chart() is still open."""
    written = io.StringIO()
    figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    svg = written.getvalue()
    body = svg[svg.index("<g id=") : svg.rindex("</svg>")].replace("xlink:href", "href")
    body = re.sub(r' clip-path="[^"]*"|<clipPath.*?</clipPath>', "", body, flags=re.DOTALL)
    used = set(re.findall(r"(?:url\(#|href=\"#)([^)\"]+)", body))
    body = re.sub(r' id="([^"]+)"', lambda name: name[0] if name[1] in used else "", body)
    body = re.sub(r"<!--.*?-->|\n *", "", body)
    body = re.sub(r"font: ([\d.]+)px [^;\"]*", rf"font:\1px {SANS}", body).replace(": ", ":")
    body = re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", body)
    for stand_in, variable in STAND_INS.items():
        body = body.replace(stand_in, variable)
    return Drawing(body, WIDTH, HEIGHT)


def draw_saturation(scores: Mapping[int, torch.Tensor], title: str) -> Picture:
    """Draw how evenly the softmax spreads its weights, and how steep it is, against head_dim.

    Args:
        scores: for each head_dim, in rising order, its scores (rows, keys), not scaled yet.

    Returns:
        Two charts side by side, each with and without the division by sqrt(head_dim): the entropy
        of a row of weights in bits, and the slope of a weight in its own score, weight times
        (1 - weight). Both are means over all that scores hold.

    Source: "Attention Is All You Need" (2017), section 3.2.1, on why the scores are scaled.
    """
    weights = {
        "without the scale": [torch.softmax(s, dim=-1) for s in scores.values()],
        "with the scale": [torch.softmax(s / d**0.5, dim=-1) for d, s in scores.items()],
    }
    measures = {
        "entropy of the weights (bits)": lambda w: -torch.special.xlogy(w, w).sum(-1) / math.log(2),
        "gradient of a weight": lambda w: w * (1 - w),
    }
    found = {
        what: {name: [measure(w).mean().item() for w in rows] for name, rows in weights.items()}
        for what, measure in measures.items()
    }
    with chart() as figure:
        for axes, (what, lines) in zip(figure.subplots(1, 2), found.items(), strict=True):
            for name, values in lines.items():
                axes.plot(list(scores), values, label=name, **LINES[name])
            axes.set(title=what, xlabel="head_dim", ylim=0)
            axes.set_xscale("log", base=2)
            axes.set_xticks(list(scores), list(scores))
            axes.grid(alpha=0.3)
            axes.legend()
        drawing = saved(figure)
    first, last = min(scores), max(scores)
    facts = "; ".join(
        f"{what} {name}: {values[0]:.2f} to {values[-1]:.2f}"
        for what, lines in found.items()
        for name, values in lines.items()
    )
    return picture(drawing, title, f"From head_dim {first} to {last}: {facts}.")


def draw_squares(
    amounts: Mapping[str, int], title: str, write: Callable[[int], str] = "{:,}".format
) -> Picture:
    """Draw amounts to scale: each a square whose area is its amount.

    Args:
        amounts: what each square stands for, and how much of it there is.
        write: how an amount is written.

    Raises:
        ValueError: amounts is empty, or one of them is not positive.
    """
    if not amounts or min(amounts.values()) <= 0:
        raise ValueError(f"amounts are {dict(amounts)}: one or more positive ones are expected")
    largest = max(amounts.values()) ** 0.5
    label, gap = 0.36 * largest, 0.08 * largest  # the room that two lines of text take
    with chart() as figure:
        axes = figure.subplots()
        x = 0.0
        for name, amount in amounts.items():
            side = amount**0.5
            room = max(side, label)
            axes.add_patch(Rectangle((x + (room - side) / 2, 0), side, side, **SQUARE))
            words = f"{name}\n{write(amount)}"
            axes.text(x + room / 2, -gap / 2, words, ha="center", va="top", fontsize=11)
            x += room + gap
        axes.set(xlim=(-gap, x), ylim=(-label / 2, largest + gap), aspect="equal")
        axes.axis("off")
        drawing = saved(figure)
    facts = "; ".join(f"{name}: {write(amount)}" for name, amount in amounts.items())
    return picture(drawing, title, f"Squares to scale: {facts}.")


def draw_growth(
    num_tokens: Sequence[int], lines: Mapping[str, Sequence[float]], what: str, title: str
) -> Picture:
    """Draw how two amounts grow with num_tokens, on plain scales that start at zero.

    Args:
        num_tokens: numbers of tokens, in rising order.
        lines: two names, each with one amount for each number of tokens.
        what: what the amounts are, and in which unit.
    """
    with chart() as figure:
        axes = figure.subplots()
        for (name, amounts), look in zip(lines.items(), LINES.values(), strict=True):
            axes.plot(num_tokens, amounts, label=name, **look)
        axes.set(xlabel="num_tokens", ylabel=what, xlim=0, ylim=0, xticks=num_tokens)
        axes.grid(alpha=0.3)
        axes.legend()
        drawing = saved(figure)
    facts = "; ".join(
        f"{name} {amounts[0]:.3g} to {amounts[-1]:.3g}" for name, amounts in lines.items()
    )
    words = f"From {num_tokens[0]} to {num_tokens[-1]} tokens, {what}: {facts}."
    return picture(drawing, title, words)


def draw_learning(
    steps: Sequence[int],
    loss: Sequence[float],
    prefix: Sequence[float],
    head: tuple[int, int],
    title: str,
) -> Picture:
    """Draw how a loss falls while a head forms, one chart beside the other.

    Args:
        steps: steps of training, in rising order.
        loss: the loss after each, in nats.
        prefix: the head's prefix matching score after each, from 0 to 1.
        head: the head's layer and number, for its name and its colour.
    """
    named = "prefix matching of layer {}, head {}".format(*head)
    lines = {"loss on names that come back (nats)": loss, named: prefix}
    colours = NEUTRAL, HEAD_COLOURS[hue(head[1], head[0])]
    with chart() as figure:
        looks = zip(figure.subplots(1, 2), lines.items(), colours, strict=True)
        for axes, (what, amounts), colour in looks:
            axes.plot(steps, amounts, color=colour, marker="o", linewidth=3)
            axes.set(title=what, xlabel="steps of training", xlim=0, ylim=0)
            axes.grid(alpha=0.3)
        axes.set(ylim=(0, 1))
        drawing = saved(figure)
    facts = "; ".join(
        f"{what}: " + ", ".join(f"{amount:.2f}" for amount in amounts)
        for what, amounts in lines.items()
    )
    return picture(drawing, title, f"After {', '.join(map(str, steps))} steps, {facts}.")


def draw_dots(rows: Mapping[str, Sequence[float]], what: str, title: str) -> Picture:
    """Draw a row of dots for each question, one dot for each model, on a scale from 0 to 1.

    Args:
        rows: for each question the share that each model reaches, the models in one order.
        what: what the shares are of.

    Raises:
        ValueError: there are no rows, a row has no shares or more than another, or a share is not
            from 0 to 1.
    """
    rows = {name: [float(share) for share in shares] for name, shares in rows.items()}
    lengths = {len(shares) for shares in rows.values()}
    if len(lengths) != 1 or 0 in lengths:
        raise ValueError(f"rows have {sorted(lengths)} shares: one number, not 0, is expected")
    if not all(0 <= share <= 1 for shares in rows.values() for share in shares):
        raise ValueError("rows hold a share that is not from 0 to 1")
    (models,) = lengths
    with chart() as figure:
        axes = figure.subplots()
        for place, shares in enumerate(rows.values()):
            # Models lie one above the other, so that equal shares stay apart.
            heights = [place + 0.5 * (i + 0.5) / models - 0.25 for i in range(models)]
            axes.plot(shares, heights, "o", color=SECOND, markersize=5, alpha=0.8)
        axes.set(xlim=(-0.03, 1.03), ylim=(len(rows) - 0.4, -0.6), xlabel=what)
        axes.set_yticks(range(len(rows)), list(rows))
        axes.grid(alpha=0.3, axis="x")
        drawing = saved(figure)
    facts = "; ".join(
        f"{name}: " + ", ".join(f"{share:.2f}" for share in shares) for name, shares in rows.items()
    )
    return picture(drawing, title, f"{what}, one dot for each of {models} models. {facts}.")
