"""Softmax as a lever: a row of scores as bars that become weights, any of them to move."""

import json
from collections.abc import Sequence

import torch
import traitlets

from eleven_steps.pictures import HEAD_COLOURS, draw_matrices
from eleven_steps.sliders.live import Live, script, style

MOST = 8  # scores in a row, so that their words stay legible on a phone


class Lever(Live):
    """Show how a row of scores becomes weights; it needs no kernel once it stands.

    Attributes:
        data: what the page gets: the scores, their words, the divisor.
        still: the scores, as they are before a softmax makes weights of them.
    """

    _esm = script("parts", "listen", "stage_numbers", "lever")
    _css = style("look", "lever")
    data = traitlets.Dict().tag(sync=True)

    def __init__(self, scores: torch.Tensor, words: Sequence[str], divisor: float):
        title = f"Scores, to be divided by {divisor:.2f}: which weights will they become?"
        self.still = draw_matrices({"scores": scores[None]}, title, (), words)
        data = {"scores": scores.tolist(), "words": list(words), "divisor": float(divisor)}
        super().__init__(data=data | {"colour": HEAD_COLOURS[0]})

    def states(self) -> tuple[str, str, str]:
        """Return what there is to move, and all that it begins with."""
        return "to drag: each score, and the divisor", "all it shows", json.dumps(self.data)


def explore_lever(
    scores: torch.Tensor, words: Sequence[str] | None = None, divisor: float = 1.0
) -> Lever:
    """Take hold of a row of scores, or of what divides them, and see its weights follow.

    Args:
        scores: (num_tokens,), those of one query, for at most 8 tokens.
        words: one for each token, numbers if there are none.
        divisor: what scores are divided by, sqrt(head_dim) of the head.

    Raises:
        ValueError: scores have another shape or are not finite, words do not fit them, or the
            divisor is not from 0.5 to 16.
    """
    words = list(words) if words is not None else [str(i) for i in range(scores.numel())]
    if scores.dim() != 1 or not 0 < len(scores) <= MOST or len(words) != len(scores):
        raise ValueError(
            f"scores have shape {tuple(scores.shape)} and there are {len(words)} words: expected "
            f"a row of 1 to {MOST} scores, and a word for each"
        )
    if not scores.isfinite().all():
        raise ValueError("scores have to be finite numbers")
    if not 0.5 <= divisor <= 16:
        raise ValueError(f"the divisor is {divisor}: expected a number from 0.5 to 16")
    return Lever(scores.float(), words, divisor)
