"""Charts as PNG, for what is no tensor: deterministic, with words beside them."""

import base64
import io
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape

import matplotlib.style
import torch
from matplotlib.figure import Figure

# Two of the colours of the heads in helpers.pictures; marker and label tell the lines apart too.
LINES = {
    "without the scale": {"color": "#d55e00", "marker": "s", "linestyle": "--"},
    "with the scale": {"color": "#0072b2", "marker": "o", "linestyle": "-"},
}


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
        png = base64.b64encode(self.png).decode()
        return {
            "text/html": f'<img alt="{escape(self.alt)}" src="data:image/png;base64,{png}">',
            "image/png": png,
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
        png = io.BytesIO()
        figure.savefig(png, format="png", dpi=100, metadata={"Software": None})
    first, last = min(scores), max(scores)
    facts = "; ".join(
        f"{what} {name}: {values[0]:.2f} to {values[-1]:.2f}"
        for what, lines in found.items()
        for name, values in lines.items()
    )
    return Chart(png.getvalue(), f"{title}. From head_dim {first} to {last}: {facts}.")


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
