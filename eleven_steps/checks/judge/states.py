"""How far scores have come on their way to weights."""

from dataclasses import dataclass

import torch

HIDDEN = -999.0  # a score below this counts as hidden


@dataclass(frozen=True)
class State:
    """How far scores have come on their way to weights.

    Args:
        scale: by which the right scores are multiplied in it, or in its logarithm.
        grown: whether exp has been taken.
        hidden: what is hidden: "none", "right" or "other".
        whole: whether its rows sum to 1.
    """

    scale: float
    grown: bool
    hidden: str
    whole: bool = False


def state_of(
    mine: torch.Tensor, scores: torch.Tensor, hides: torch.Tensor, near: float
) -> State | None:
    """Read a tensor beside the scores; all are (.., num_tokens, num_tokens), see State."""
    tolerance = max(near * 100, 1e-6)
    low = (mine < HIDDEN) & (scores > HIDDEN)
    if mine.isnan().any() or (mine == torch.inf).any():
        return None
    for grown in (False, True):
        if grown and (mine < -1e-12).any():
            return None
        gone = mine == 0 if grown else low
        seen = ~gone
        if not seen.any():
            return None
        numbers = torch.where(seen, mine.clamp(min=1e-300).log() if grown else mine, torch.nan)
        beside = torch.where(seen, scores, torch.nan)
        centred, wanted = (e - e.nanmean(-1, True) for e in (numbers, beside))
        centred, wanted = centred.nan_to_num(), wanted.nan_to_num()
        spread = (wanted * wanted).sum()
        if spread < 1e-12:
            return None
        factor = float((centred * wanted).sum() / spread)
        if abs(factor) < 1e-4:
            continue
        if (centred - factor * wanted).abs().max() > tolerance * (1 + centred.abs().max()):
            continue
        hidden = "other" if gone.any() else "none"
        hidden = "right" if torch.equal(gone, hides) else hidden
        sums = mine.sum(-1)
        whole = grown and bool((sums - 1).abs().max() < 1e-6 + tolerance)
        return State(factor, grown, hidden, whole)
    return None
