"""Charts as PNG, for what is no tensor: deterministic, with words beside them."""

import base64
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import matplotlib.style
import torch
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from helpers.pictures.stored import image

# Two colours of the heads; marker and label tell the lines apart too.
LINES = {
    "without the scale": {"color": "#cd2229", "marker": "s", "linestyle": "--"},
    "with the scale": {"color": "#1c55ce", "marker": "o", "linestyle": "-"},
}
SQUARE = {"facecolor": "#1c55ce44", "edgecolor": "#1c55ce", "linewidth": 1.5}


@dataclass(frozen=True)
class Chart:
    """Hold a chart's PNG and its finding in words, ready for a notebook to show.

    Args:
        png: the picture.
        alt: what there is to see, in words and numbers, for whoever cannot see the picture.
    """

    png: bytes
    alt: str

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return {
            "text/html": image(self.png, "png", self.alt),
            "image/png": base64.b64encode(self.png).decode(),
            "text/plain": self.alt,
        }


def draw_saturation(scores: Mapping[int, torch.Tensor], title: str) -> Chart:
    """Draw how evenly the softmax spreads its weights, and how steep it is, against head_dim.

    Args:
        scores: for each head_dim, in rising order, its scores (rows, keys), not scaled yet.
        title: what there is to see, in a sentence.

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
    found = {
        "entropy of the weights (bits)": measured(entropy, weights),
        "gradient of a weight": measured(slope, weights),
    }
    with matplotlib.style.context("default"):
        figure = Figure(figsize=(9, 3.7), layout="constrained")
        for axes, (what, lines) in zip(figure.subplots(1, 2), found.items(), strict=True):
            for name, values in lines.items():
                axes.plot(list(scores), values, label=name, **LINES[name])
            axes.set(title=what, xlabel="head_dim", ylim=0)
            axes.set_xscale("log", base=2)
            axes.set_xticks(list(scores), list(scores))
            axes.grid(alpha=0.3)
            axes.legend()
        figure.suptitle(title, fontweight="bold")
        png = saved(figure)
    first, last = min(scores), max(scores)
    facts = "; ".join(
        f"{what} {name}: {values[0]:.2f} to {values[-1]:.2f}"
        for what, lines in found.items()
        for name, values in lines.items()
    )
    return Chart(png, f"{title}. From head_dim {first} to {last}: {facts}.")


def draw_squares(
    amounts: Mapping[str, int], title: str, write: Callable[[int], str] = "{:,}".format
) -> Chart:
    """Draw amounts to scale: each a square whose area is its amount.

    Args:
        amounts: what each square stands for, and how much of it there is.
        title: what there is to see, in a sentence.
        write: how an amount is written.

    Raises:
        ValueError: amounts is empty, or one of them is not positive.
    """
    if not amounts or min(amounts.values()) <= 0:
        raise ValueError(f"amounts are {dict(amounts)}: one or more positive ones are expected")
    largest = max(amounts.values()) ** 0.5
    label, gap = 0.36 * largest, 0.08 * largest  # the room that two lines of text take
    with matplotlib.style.context("default"):
        figure = Figure(figsize=(9, 3.7), layout="constrained")
        axes = figure.subplots()
        x = 0.0
        for name, amount in amounts.items():
            side = amount**0.5
            room = max(side, label)
            axes.add_patch(Rectangle((x + (room - side) / 2, 0), side, side, **SQUARE))
            words = f"{name}\n{write(amount)}"
            axes.text(x + room / 2, -gap / 2, words, ha="center", va="top", fontsize=9)
            x += room + gap
        axes.set(xlim=(-gap, x), ylim=(-label / 2, largest + gap), aspect="equal")
        axes.axis("off")
        figure.suptitle(title, fontweight="bold")
        png = saved(figure)
    facts = "; ".join(f"{name}: {write(amount)}" for name, amount in amounts.items())
    return Chart(png, f"{title}. Squares to scale: {facts}.")


def draw_growth(
    num_tokens: Sequence[int], lines: Mapping[str, Sequence[float]], what: str, title: str
) -> Chart:
    """Draw how two amounts grow with num_tokens, on plain scales that start at zero.

    Args:
        num_tokens: numbers of tokens, in rising order.
        lines: two names, each with one amount for each number of tokens.
        what: what the amounts are, and in which unit.
        title: what there is to see, in a sentence.

    Raises:
        ValueError: lines are not two.
    """
    with matplotlib.style.context("default"):
        figure = Figure(figsize=(9, 3.7), layout="constrained")
        axes = figure.subplots()
        for (name, amounts), look in zip(lines.items(), LINES.values(), strict=True):
            axes.plot(num_tokens, amounts, label=name, **look)
        axes.set(xlabel="num_tokens", ylabel=what, xlim=0, ylim=0, xticks=num_tokens)
        axes.grid(alpha=0.3)
        axes.legend()
        figure.suptitle(title, fontweight="bold")
        png = saved(figure)
    facts = "; ".join(
        f"{name} {amounts[0]:.3g} to {amounts[-1]:.3g}" for name, amounts in lines.items()
    )
    words = f"{title}. From {num_tokens[0]} to {num_tokens[-1]} tokens, {what}: {facts}."
    return Chart(png, words)


def draw_learning(
    steps: Sequence[int], loss: Sequence[float], prefix: Sequence[float], title: str
) -> Chart:
    """Draw how a loss falls while a head forms, one chart beside the other.

    Args:
        steps: steps of training, in rising order.
        loss: the loss after each, in nats.
        prefix: the head's prefix matching score after each, from 0 to 1.
        title: what there is to see, in a sentence.
    """
    lines = {"loss on names that come back (nats)": loss, "prefix matching of the head": prefix}
    with matplotlib.style.context("default"):
        figure = Figure(figsize=(9, 3.7), layout="constrained")
        looks = zip(figure.subplots(1, 2), lines.items(), LINES.values(), strict=True)
        for axes, (what, amounts), look in looks:
            axes.plot(steps, amounts, **look)
            axes.set(title=what, xlabel="steps of training", xlim=0, ylim=0)
            axes.grid(alpha=0.3)
        axes.set(ylim=(0, 1))
        figure.suptitle(title, fontweight="bold")
        png = saved(figure)
    facts = "; ".join(
        f"{what}: " + ", ".join(f"{amount:.2f}" for amount in amounts)
        for what, amounts in lines.items()
    )
    return Chart(png, f"{title}. After {', '.join(map(str, steps))} steps, {facts}.")


def saved(figure: Figure) -> bytes:
    """Return a figure as PNG, the same bytes for the same figure."""
    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=100, metadata={"Software": None})
    return png.getvalue()


def measured(
    measure: Callable[[torch.Tensor], torch.Tensor], weights: Mapping[str, list[torch.Tensor]]
) -> dict[str, list[float]]:
    """Return the mean of a measure for every tensor of weights, under the same names."""
    return {name: [measure(w).mean().item() for w in each] for name, each in weights.items()}


def entropy(weights: torch.Tensor) -> torch.Tensor:
    """Return the entropy of each row in bits: 0 if one weight has all, log2(keys) if all equal."""
    return -torch.special.xlogy(weights, weights).sum(dim=-1) / math.log(2)


def slope(weights: torch.Tensor) -> torch.Tensor:
    """Return the derivative of each softmax weight in its own score."""
    return weights * (1 - weights)
