"""Tell from attention weights, read off a class's output, which step makes them wrong."""

import itertools
import math
from dataclasses import dataclass

import torch

from helpers.checks.looks import close


@dataclass(frozen=True)
class Finding:
    """What a probe saw: the first wrong step, one or two sentences, numbers to show if any.

    A strange finding fits none of the usual forms; the probe may know better.
    """

    step: int
    text: str
    theirs: torch.Tensor | None = None
    right: torch.Tensor | None = None
    caption: str = ""
    strange: bool = False


def judge_weights(
    read: torch.Tensor, scores: torch.Tensor, right: torch.Tensor, undone: bool = False
) -> Finding | None:
    """Name the first of steps 5 to 8 at which read differs from the right weights.

    Args:
        read: a class's weights, (b, num_heads, num_tokens, num_tokens).
        scores: the true scores, of the same shape.
        right: the true weights, of the same shape.
        undone: whether a mistake at step 8 has been undone in read.

    Returns:
        None where they agree. Step 2 where tokens have changed places.
    """
    if close(read, right):
        return None

    def finding(step: int, text: str, strange: bool = False) -> Finding:
        caption = "weights of the first head"
        return Finding(step, text, read[0, 0], right[0, 0], caption, strange)

    tokens = read.shape[-1]
    past = torch.ones(tokens, tokens, dtype=torch.bool).tril()
    if read.isnan().any():
        return _judge_nan(read, scores, finding)
    seen = read.abs() > 1e-5
    every = torch.ones_like(seen)
    if _fit(read, right, every) is not None:
        return finding(
            7,
            "The weights go through a softmax again. Look between the mask and the dropout: one "
            "softmax is right.",
        )
    lost = past & ~seen
    if not (seen & ~past).any() and (lost != lost[:1, :1]).any():
        return finding(
            7,
            "Some weights are 0 depending on the scores, though no mask hides them. Look at the "
            "softmax: every token that may be seen keeps a share.",
            strange=True,
        )
    factor = _fit(read, scores, seen & past)
    if factor is not None and (seen != past).any():
        return finding(6, _mask_text(seen & ~past, past & ~seen))
    if factor is not None:
        return _judge_scaled(read, scores, right, factor, past, finding)
    if _fit(read, scores, seen) is not None:
        return finding(6, _mask_text(seen & ~past, past & ~seen))
    if _fit(read.mT, scores, seen.mT & past) is not None and not (seen & past.tril(-1)).any():
        return _before(read.mT, scores, right) or finding(
            8,
            "The weights are transposed before they meet the values. Look at the context: it is "
            "`weights @ values`.",
        )
    if _fit(read, scores.mT, past.expand_as(read)) is not None:
        return finding(
            5,
            "Queries and keys have changed places in the scores. Look at the product: it is "
            "`queries @ keys.transpose(2, 3)`.",
        )
    for part in () if undone else (1.0, -1.0):
        left = read - part * torch.eye(tokens)
        if not close(left, right) and _before(left, scores, right) is None:
            continue
        return _before(left, scores, right) or finding(
            8,
            "Each token's own values are added to its context. Look at the context: it is "
            "`weights @ values` alone.",
        )
    if any(_fit(read.mT, scores.mT, each.mT) is not None for each in (seen & past, every)):
        return finding(
            7,
            "The softmax runs over the queries: the columns of the weights sum to 1, not the "
            "rows. Look at the softmax: `dim=-1`.",
        )
    together = read.sum(1)[..., past]
    if close(together, torch.ones_like(together)):
        return finding(
            7,
            "The weights of the heads sum to 1 together. Look at the softmax: it runs over the "
            "keys, `dim=-1`, for each head alone.",
        )
    return _judge_strange(read, scores, right, seen, past, finding)


def _before(read: torch.Tensor, scores: torch.Tensor, right: torch.Tensor) -> Finding | None:
    """What is plainly wrong at an earlier step, once a mistake at step 8 is undone."""
    earlier = None if (read < -1e-4).any() else judge_weights(read, scores, right, True)
    return earlier if earlier is not None and earlier.step < 8 and not earlier.strange else None


def _judge_scaled(read, scores, right, factor, past, finding) -> Finding:
    """The logarithms of the weights are factor times the scores, on and below the diagonal."""
    rows = read.sum(-1)
    if close(rows, torch.ones_like(rows)):
        return finding(7, _scale_text(factor, _fit(right, scores, past.expand_as(right))))
    if close(read, torch.softmax(factor * scores, dim=-1) * past, 2e-3):
        return finding(
            6,
            "The mask comes after the softmax, so the rows of the weights do not sum to 1. Look at "
            "the mask: set future scores to -inf before the softmax.",
        )
    return finding(
        7,
        f"The last row of the weights sums to {float(rows[0, 0, -1]):.3f}, not to 1. Look at the "
        f"softmax: it runs over the keys (`dim=-1`), and nothing scales the weights after it.",
    )


def _judge_strange(read, scores, right, seen, past, finding) -> Finding:
    """The weights are no softmax of the true scores over any of the usual axes."""
    tokens = read.shape[-1]
    for order in itertools.permutations(range(tokens)):
        moved = list(order)
        for name, other in (("keys", scores[..., moved]), ("queries", scores[..., moved, :])):
            if _fit(read, other, seen & past) is not None and not (seen & ~past).any():
                return finding(
                    2, f"The {name} of the tokens have changed places. Look at how they are made."
                )
    mixed_after = _solves(right.mT, read.mT)
    if mixed_after is not None or (mixed := _solves(right, read)) is not None:
        if mixed_after is None and _is_permutation(mixed):
            return finding(
                2, "The values of the tokens have changed places. Look at how they are made."
            )
        return finding(
            8,
            "The weights are right, but the values or the context of several tokens are mixed "
            "besides. Look at the context: it is `weights @ values` alone.",
        )
    rows = read.sum(-1)
    if not close(rows, torch.ones_like(rows)) and _fits_both_ways(read, scores, seen & past):
        return finding(
            7,
            "The weights follow the scores, but their rows do not sum to 1. Look at the softmax: "
            "it runs over the keys, `dim=-1`.",
        )
    leak, lost = seen & ~past, past & ~seen
    last = torch.zeros_like(seen)
    last[..., -1, :] = True  # no mask touches the last token, unless one levels its weights
    uneven = not close(read[..., -1, :], read[..., -1, :1].expand_as(read[..., -1, :]))
    untouched = seen[last].all() and uneven and leak.any()
    untouched &= not close(rows[..., -1], torch.ones_like(rows[..., -1]))
    if (read < -1e-4).any() or untouched and _fit(read, scores, last) is None:
        return finding(
            7,
            "The last token's weights, which no mask touches, are no softmax of its scores. Look "
            "at the softmax: `torch.softmax(scores / head_dim**0.5, dim=-1)`.",
            strange=True,
        )
    if not (seen & past).any() or (leak.any() and lost.any()):
        return finding(6, _mask_text(leak, lost))
    if _monotone(read, scores, past):
        if leak.any():
            return finding(6, _mask_text(leak, lost))
        return finding(
            7,
            f"The weights grow with the scores but are not their softmax; the last row sums to "
            f"{float(read[0, 0, -1].sum()):.3f}. Look at the softmax: "
            f"`torch.softmax(scores / head_dim**0.5, dim=-1)`.",
            strange=True,
        )
    if leak.any() and close(read, read[:, :, :1].expand_as(read)):
        return finding(7, "All tokens have the same weights. Look at the softmax and its axis.")
    return finding(
        5,
        "The weights do not follow the dot products of queries and keys. Look at the scores: "
        "`queries @ keys.transpose(2, 3)`, nothing else.",
        strange=True,
    )


def _judge_nan(read, scores, finding) -> Finding:
    rows = ~read.isnan().any(-1)
    if rows.any() and not _rows_follow(read, scores, rows):
        return finding(
            7,
            "Some weights are NaN and the others are no softmax over the keys. Look at the softmax:"
            " `dim=-1`.",
        )
    return finding(
        6,
        f"{int((~rows[0, 0]).sum())} of {read.shape[-1]} rows of the weights are NaN: -inf must "
        f"stand above the diagonal only, so that every token keeps at least itself. Look at the "
        f"mask.",
    )


def _rows_follow(read: torch.Tensor, scores: torch.Tensor, rows: torch.Tensor) -> bool:
    """Whether the rows that are numbers are the softmax of some of their scores."""
    for sequence, head, token in rows.nonzero():
        weights, row = read[sequence, head, token], scores[sequence, head, token]
        used = weights > 1e-6
        if abs(float(weights.sum()) - 1) > 1e-3:
            return False
        if used.sum() > 1:
            ratio = (weights[used].log().diff() / row[used].diff()).nan_to_num()
            if (ratio - ratio[0]).abs().max() > 1e-2 * (1 + ratio[0].abs()):
                return False
    return True


def _fit(read: torch.Tensor, scores: torch.Tensor, where: torch.Tensor) -> float | None:
    """Factor a for which log read is a * scores plus a constant for each row, where asked."""
    if (read[where] <= 0).any() or (where.sum(-1) - 1).clamp(min=0).sum() < where.shape[-1]:
        return None
    logs = torch.where(where, read.clamp(min=1e-9).log(), torch.nan)
    wanted = torch.where(where, scores, torch.nan)
    logs, wanted = logs - logs.nanmean(-1, True), wanted - wanted.nanmean(-1, True)
    logs, wanted = logs.nan_to_num(), wanted.nan_to_num()
    factor = float((logs * wanted).sum() / (wanted * wanted).sum())
    close_enough = (logs - factor * wanted).abs().max() < 3e-3 * (1 + abs(factor))
    return factor if close_enough and abs(factor) > 1e-3 else None


def _fits_both_ways(read: torch.Tensor, scores: torch.Tensor, where: torch.Tensor) -> bool:
    """Whether log read is a * scores plus a constant for each row and one for each column."""
    if (read[where] <= 0).any() or (where != torch.ones_like(where).tril()).any():
        return False
    heads, tokens = read.shape[0] * read.shape[1], read.shape[2]
    head, row, column = where.reshape(heads, tokens, tokens).nonzero().T
    constants = torch.zeros(len(head), 2, heads * tokens)
    constants[torch.arange(len(head)), 0, head * tokens + row] = 1
    constants[torch.arange(len(head)), 1, head * tokens + column] = 1
    unknowns = torch.cat([scores[where][:, None], constants.flatten(1)], dim=1)
    logs = read[where].log()[:, None]
    fitted = unknowns @ torch.linalg.lstsq(unknowns, logs, driver="gelsd").solution
    return close(fitted, logs, 1e-3)


def _solves(right: torch.Tensor, read: torch.Tensor) -> torch.Tensor | None:
    """The one matrix with right @ matrix = read in every head, if there is one."""
    flat = right.flatten(0, 2), read.flatten(0, 2)
    matrix = torch.linalg.lstsq(*flat).solution
    return matrix if close(flat[0] @ matrix, flat[1], 1e-3) else None


def _is_permutation(matrix: torch.Tensor) -> bool:
    rounded = matrix.round()
    ones = torch.ones(len(matrix))
    whole = close(matrix, rounded, 1e-2) and bool((rounded >= 0).all())
    return whole and close(rounded.sum(0), ones) and close(rounded.sum(1), ones)


def _monotone(read: torch.Tensor, scores: torch.Tensor, past: torch.Tensor) -> bool:
    """Whether within each row a higher score always has a higher weight."""
    weights = read[..., :, None] - read[..., None, :]
    order = scores[..., :, None] - scores[..., None, :]
    both = (past[:, :, None] & past[:, None, :]) & (order > 1e-3)
    return bool((weights[both] > -1e-6).all() and (weights[both] > 1e-6).any())


def _mask_text(leak: torch.Tensor, lost: torch.Tensor) -> str:
    heads = int(leak.any(-1).any(-1).any(0).sum())
    where = "" if heads in (0, leak.shape[1]) else f" in {heads} of {leak.shape[1]} heads"
    if not leak.any():
        return (
            "Tokens do not see all of their past and themselves. Look at the mask: -inf stands "
            "strictly above the diagonal, `triu(diagonal=1)`, and nowhere else."
        )
    text = f"Tokens see their future{where}: weights above the diagonal are not 0"
    if lost.any():
        text += ", and some of their past is hidden"
    return f"{text}. Look at the mask: -inf stands strictly above the diagonal, before the softmax."


def _scale_text(factor: float, right_factor: float) -> str:
    if abs(factor - 1) < 5e-3:
        return (
            "The scores are not scaled: divide them by the square root of head_dim. Look at the "
            "line before the softmax."
        )
    head_dim = round(right_factor**-2)
    return (
        f"The scores are divided by {1 / factor:.4g}; it should be the square root of head_dim "
        f"({head_dim}), {math.sqrt(head_dim):.4g}. Look at the line before the softmax."
    )
