"""Tables over the words of a sentence: queries are rows, keys are columns."""

import math
from collections.abc import Sequence

import torch

from eleven_steps.pictures import svg
from eleven_steps.pictures.grid import grid
from eleven_steps.pictures.vectors import cell_for

CELL, SMALL = (24.0, 18.0), (16.0, 16.0)
WRITTEN = 5  # per cent: smaller weights leave their cell empty
MOST_WORDS = 24
MOST_WRITTEN = 12  # words of a table whose numbers are written in full


def draw_weights(
    weights: torch.Tensor, words: Sequence[str], head: int, layer: int | None = None
) -> svg.Picture:
    """Draw the weights of one head in per cent, a row for each word that looks.

    Args:
        weights: (num_tokens, num_tokens), shares from 0 to 1, rows are queries.
        head, layer: their numbers, for the head's colour; no layer where there is only one.

    Raises:
        ValueError: weights and words do not fit, or there are more than 24 words.
    """
    check_words(weights, words)
    key = int(weights[-1].argmax())
    where = "itself" if key == len(words) - 1 else f'"{words[key]}", word {key}'
    found = f'The last word, "{words[-1]}", looks most at {where}: {weights[-1, key]:.2f}'
    rows = ", ".join(
        f"{word} at {words[int(row.argmax())]} {row.max():.2f}"
        for word, row in zip(words, weights, strict=True)
    )
    return svg.picture(
        pattern(weights, words, svg.hue(head, layer), CELL, written=True),
        found,
        f"Weights in per cent, (num_tokens, num_tokens) = {tuple(weights.shape)}; each word looks "
        f"most: {rows}.",
    )


def draw_words(
    table: torch.Tensor, words: Sequence[str], title: str, head: int | None = None
) -> svg.Picture:
    """Draw scores, masked scores or weights with words at rows and columns, the last row's
    largest number framed.

    Args:
        table: (num_tokens, num_tokens), rows are queries; -inf is what the mask hides. The colour
            is the stronger the larger the number: of shares as they are, of other numbers by the
            largest.
        head: the head's number, for its colour; None for no head.

    Raises:
        ValueError: table and words do not fit, or there are more than 12 words.
    """
    check_words(table, words, MOST_WRITTEN)
    rows = table.tolist()
    open_numbers = [value for row in rows for value in row if not math.isinf(value)]
    largest = max(1.0, *open_numbers)
    best = [row.index(max(row)) for row in rows]
    drawn = grid(
        rows,
        [[head] * len(words)] * len(words),
        [[max(value, 0.0) / largest for value in row] for row in rows],
        marked=[(len(words) - 1, best[-1])],
        row_labels=words,
        column_labels=words,
        cell=cell_for(words),
    )
    found = ", ".join(
        f"{word} at {words[j]} {row[j]:.2f}" for word, row, j in zip(words, rows, best, strict=True)
    )
    shape = f"(num_tokens, num_tokens) = {tuple(table.shape)}"
    return svg.picture(drawn, title, f"{shape}. The largest of each row: {found}.")


def draw_patterns(
    layers: Sequence[torch.Tensor], words: Sequence[str], notes: Sequence[Sequence[str]], title: str
) -> svg.Picture:
    """Draw the weights of every head of every layer as shades, the darker the larger.

    Args:
        layers: for each layer, weights (num_heads, num_tokens, num_tokens).
        notes: for each layer, for each head, a line to stand below its name.

    Raises:
        ValueError: weights and words do not fit, or there are more than 24 words.
    """
    lines = []
    for number, (heads, said) in enumerate(zip(layers, notes, strict=True)):
        parts = []
        for head, (weights, note) in enumerate(zip(heads, said, strict=True)):
            check_words(weights, words)
            drawn = svg.labelled(
                note, pattern(weights, words, svg.hue(head, number), SMALL, written=False)
            )
            parts.append(svg.labelled(f"layer {number}, head {head}", drawn))
        lines.append(svg.beside(parts, math.inf))  # a line for each layer
    facts = "; ".join(
        f"layer {i}, head {j}: {note}"
        for i, said in enumerate(notes)
        for j, note in enumerate(said)
    )
    return svg.picture(svg.below(lines), title, f"The words: {' '.join(words)}. {facts}.")


def pattern(
    weights: torch.Tensor, words: Sequence[str], head: int, cell: tuple[float, float], written: bool
) -> svg.Drawing:
    """Draw weights (num_tokens, num_tokens) with a word at each row and each column."""
    per_cent = (100 * weights).round().int().tolist()
    kept = [
        [j <= i and (share >= WRITTEN) for j, share in enumerate(row)]
        for i, row in enumerate(per_cent)
    ]
    drawn = grid(
        per_cent,
        [[head] * len(words)] * len(words),
        weights.tolist(),
        row_labels=words,
        cell=cell,
        written=written,
        kept=kept,
    )
    longest = svg.CHARACTER * max(map(len, words))
    left, top = longest + 6, longest + 4
    turned = "".join(
        f'<g transform="translate({left + (j + 0.5) * cell[0] + 4:g} {top - 4:g}) rotate(-90)">'
        f"{svg.text(word, 0, 0)}</g>"
        for j, word in enumerate(words)
    )
    return svg.Drawing(turned + svg.at(0, top, drawn), drawn.width + svg.GAP, top + drawn.height)


def check_words(weights: torch.Tensor, words: Sequence[str], most: int = MOST_WORDS) -> None:
    """Raise ValueError unless weights are (words, words), and these are not too many."""
    if tuple(weights.shape) != (len(words), len(words)):
        raise ValueError(
            f"weights have shape {tuple(weights.shape)}, but there are {len(words)} words: "
            f"a row and a column for each is expected"
        )
    if len(words) > most:
        raise ValueError(f"there are {len(words)} words: at most {most} can be drawn")
