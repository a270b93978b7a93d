"""Softmax as a lever: a row of scores as bars, taken through its moments, any of them to move."""

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
        data: what the page gets: rows of scores, None where they are masked, words, the divisor.
        still: the scores, as they are before a softmax makes weights of them.
    """

    _esm = script("listen", "stage_numbers", "lever", "lever_alone")
    _css = style("look", "lever")
    data = traitlets.Dict().tag(sync=True)

    def __init__(self, scores: torch.Tensor, words: Sequence[str], divisor: float):
        names = list(words) if len(scores) > 1 else ()
        title = f"Scores, to be divided by {divisor:.2f}: which weights will they become?"
        self.still = draw_matrices({"scores": scores}, title, names, words)
        rows = [[v if v > -torch.inf else None for v in row] for row in scores.tolist()]
        data = {"rows": rows, "words": list(words), "divisor": float(divisor)}
        super().__init__(data=data | {"colour": HEAD_COLOURS[0]})

    def states(self) -> tuple[str, str, str]:
        """Return what there is to move, and all that it begins with."""
        return "to drag: each score, and the divisor", "all it shows", json.dumps(self.data)


def explore_lever(
    scores: torch.Tensor, words: Sequence[str] | None = None, divisor: float = 1.0
) -> Lever:
    """Take hold of a row of scores, or of what divides them, and see its weights follow.

    Args:
        scores: (num_tokens,), those of one query, or (num_tokens, num_tokens), a head's, a row a
            query, -inf where a score is masked; at most 8 tokens.
        words: one for each token, numbers if there are none.
        divisor: what scores are divided by, sqrt(head_dim) of the head.

    Raises:
        ValueError: scores have another shape, are NaN or inf or a row is all -inf, words do not
            fit them, or the divisor is not from 0.5 to 16.
    """
    rows = scores if scores.dim() == 2 else scores[None]
    tokens = rows.shape[-1]
    words = list(words) if words is not None else [str(i) for i in range(tokens)]
    square = rows.dim() == 2 and len(rows) in (1, tokens) and 0 < tokens <= MOST
    if not square or len(words) != tokens:
        raise ValueError(
            f"scores have shape {tuple(scores.shape)} and there are {len(words)} words: expected "
            f"a row of 1 to {MOST} scores, or as many rows as columns, and a word for each column"
        )
    if rows.isnan().any() or (rows == torch.inf).any() or (rows.amax(dim=-1) == -torch.inf).any():
        raise ValueError("a row of scores is to have finite numbers, and -inf where it is masked")
    if not 0.5 <= divisor <= 16:
        raise ValueError(f"the divisor is {divisor}: expected a number from 0.5 to 16")
    return Lever(rows.float(), words, divisor)
