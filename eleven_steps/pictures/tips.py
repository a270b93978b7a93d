"""Planes of vectors whose tips can be dragged, with all that follows from where a tip is."""

from collections.abc import Mapping, Sequence

import torch

from eleven_steps.pictures import svg
from eleven_steps.pictures.grid import grid
from eleven_steps.pictures.handles import Handle, Handled
from eleven_steps.pictures.vectors import Arrow, Plane, shadow

CORNERS = (0.0, 0.0), (5.0, 5.0)  # of the plane of words
REACH = 3.0  # so far a word's tip goes along an axis: with its context it is still in the plane
AROUND = (-3.0, -2.0), (3.0, 2.0)  # of the plane of query and key
WORDS, KEYS = 44, 40  # pixels for 1 along an axis: on a phone a whole plane is in sight
COLUMN = 54
WIDTH = 480  # of the picture, whatever its title


def handle(plane: Plane, name: str, at: Sequence[float], low, high, says: str) -> Handle:
    """Return the handle at a tip; a picture's title stands above its drawing."""
    x, y = plane.place(0, 0)
    place = (x + 2, y + svg.TITLE_HEIGHT)
    return Handle(name, [round(each, 2) for each in at], low, high, place, (plane.unit,) * 2, says)


def draw_mix(
    words: Sequence[str],
    x: torch.Tensor,
    place: int,
    found: Mapping[str, torch.Tensor],
    axes: tuple[str, str],
) -> Handled:
    """Draw a word whose tip can be dragged, what it scores with each word, and what it becomes.

    Args:
        words: one for each token.
        x: (num_tokens, 2), the words' vectors, each number from 0 to 4.
        place: the token whose tip can be dragged.
        found: scores (num_tokens,), weights (num_tokens,), context (2,) and y (2,) of that token.
        axes: what the two features mean.

    Raises:
        ValueError: the tip is not within 0 and 3 along both axes.
    """
    word, tip, y = words[place], x[place].tolist(), found["y"].tolist()
    others = {name: x[i].tolist() for i, name in enumerate(words) if i != place}
    arrows = [Arrow(name if max(end) > 1 else "", end) for name, end in others.items()]
    arrows += [Arrow(word, tip, "dashed"), Arrow("", y, start=tip)]
    arrows += [Arrow("in context", y, "strong")]
    plane = Plane(CORNERS, WORDS)
    weights = found["weights"].tolist()
    rows = torch.stack([found["scores"], found["weights"]], dim=1).tolist()
    table = grid(
        rows,
        shades=[[0, share] for share in weights],
        row_labels=words,
        column_labels=["score", "weight"],
        cell=(COLUMN, svg.CELL_HEIGHT),
    )
    lines = [f"context    {pair(found['context'])}", f"{word:10} {pair(x[place])}"]
    lines += [f"in context {pair(found['y'])}"]
    most = max(weights)
    giver = words[weights.index(most)] if most - min(weights) > 0.005 else "every word"
    title = f"{word} takes {most:.2f} from {giver}"
    drawn = svg.beside(
        [plane.drawing(arrows, axes, ringed=True), svg.below([table, written(lines)])], WIDTH
    )
    shares = ", ".join(f"{name} {share:.2f}" for name, share in zip(words, weights, strict=True))
    told = f"{word} {pair(x[place])}, in context {pair(found['y'])}. Weights: {shares}."
    says = ", ".join(f"{axis} {number:.2f}" for axis, number in zip(axes, tip, strict=True))
    held = handle(plane, f"tip of {word}", tip, (0.0, 0.0), (REACH, REACH), f"{says}. {title}")
    return Handled(svg.picture(drawn, title, told).padded(WIDTH), (held,))


def draw_key(query: torch.Tensor, key: torch.Tensor, found: Mapping[str, float]) -> Handled:
    """Draw a query, and a key whose tip can be dragged, with three ways to their dot product.

    Args:
        query, key: (2,), each number of them in sight.
        found: dot, length of query, length of key, angle between them in degrees, and shadow, the
            length of the key's shadow on the query, below 0 where it points away from it.

    Raises:
        ValueError: the key is not within -3 and 3 to the right, -2 and 2 up.
    """
    plane, tip = Plane(AROUND, KEYS), key.tolist()
    arrows = [Arrow("query", query.tolist(), "strong"), Arrow("key", tip, "strong")]
    long, angle = found["length of key"], found["angle"]
    products = " + ".join(f"{a:.2f} x {b:.2f}" for a, b in zip(query.tolist(), tip, strict=True))
    dot, first = clean(found["dot"]), f"{found['length of query']:.2f}"
    turned = f"{first} x {long:.2f} x cos({angle:.1f}) = {dot}"
    lines = [
        f"feature by feature  {products} = {dot}",
        f"length and shadow   {first} x {clean(found['shadow'])} = {dot}",
        f"lengths and angle   {turned if long else 'without length there is no angle'}",
    ]
    under = shadow(query.tolist(), tip, plane.place) if long else ""
    title = f"query . key = {dot}"
    drawn = svg.below(
        [plane.drawing(arrows, ("feature 0", "feature 1"), under, ringed=True), written(lines)]
    )
    where = f"key ({tip[0]:.2f}, {tip[1]:.2f})"
    told = f"query {pair(query)}, {where}" + (f", {angle:.0f} degrees apart." if long else ".")
    held = handle(plane, "tip of the key", tip, *AROUND, f"{where[4:]}. {title}")
    return Handled(svg.picture(drawn, title, told).padded(WIDTH), (held,))


def written(lines: Sequence[str]) -> svg.Drawing:
    """Write lines of equal height, their spaces kept."""
    body = "".join(
        svg.text(line.replace(" ", "\N{NO-BREAK SPACE}"), 0, 14 + 18 * i)
        for i, line in enumerate(lines)
    )
    return svg.Drawing(body, svg.CHARACTER * max(map(len, lines)), 18 * len(lines))


def pair(vector: torch.Tensor) -> str:
    """Write a vector (2,) as a pair."""
    first, second = map(clean, vector.tolist())
    return f"({first}, {second})"


def clean(value: float) -> str:
    """Write a number with two decimals, 0 without a sign."""
    return f"{round(value, 2) + 0.0:.2f}"
