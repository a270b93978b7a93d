"""Scores as bars to drag: what the softmax makes of them, divided by little or by much."""

import math

import torch

from eleven_steps.pictures import Handled, draw_bars
from eleven_steps.sliders.drag import Drag


def explore_shares(scores: torch.Tensor, divisor: float = 1.0) -> Drag:
    """Drag one query's scores, or what they are divided by, and see who gets which weight.

    Args:
        scores: (num_tokens,), one for each key, from 2 to 5 of them.
        divisor: what they are divided by at first, from 0.5 to 16.

    Raises:
        ValueError: scores is not 1-D, or not finite, or there are too few or too many.
    """
    if scores.dim() != 1 or not scores.isfinite().all():
        raise ValueError(f"scores are {scores.tolist()}: a row of finite numbers is expected")
    # In sight are 0, all scores, and room to raise the largest.
    reach = math.floor(min(0.0, *scores.tolist())) - 1, math.ceil(max(0.0, *scores.tolist())) + 2
    _, before = weights_of(scores, divisor)

    def draw(values: list[list[float]]) -> Handled:
        *heights, (divided_by, _) = values
        now = torch.tensor([score for _, score in heights])
        return draw_bars(now, divided_by, *weights_of(now, divided_by), before, reach)

    heights = [[0.0, round(score, 2)] for score in scores.tolist()]
    return Drag(draw, [*heights, [float(divisor), 0.0]])


def weights_of(scores: torch.Tensor, divisor: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return scores (num_tokens,) divided, and the weights that the softmax makes of them."""
    scaled = scores / divisor
    return scaled, torch.softmax(scaled, dim=-1)
