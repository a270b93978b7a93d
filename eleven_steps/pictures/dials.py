"""Pairs of features as dials: a query and a key, each turned by its own position."""

from collections.abc import Sequence

import torch

from eleven_steps.pictures import svg
from eleven_steps.pictures.vectors import Arrow, arrow_line, arrow_names

RADIUS, UNIT, ROOM = 96, 72, 56  # pixels: of a dial, of a length of 1, beside a dial
KEY = "#0f8a8c"  # of no head, and clear on light and on dark


def draw_dials(
    query: torch.Tensor, key: torch.Tensor, angles: Sequence[float], title: str
) -> svg.Picture:
    """Draw for each pair of features where a query and a key point, and what their product is.

    Args:
        query, key: (pairs, 2), turned already; no arrow may be longer than 1.3.
        angles: by how many radians a token each pair turns.
    """
    products = (query * key).sum(dim=-1).tolist()
    dials = [
        svg.labelled(
            f"pair {pair}: {angle:.2f} radians a token",
            svg.below([dial(query[pair], key[pair]), svg.line(f"product {product:.2f}")], gap=0),
        )
        for pair, (angle, product) in enumerate(zip(angles, products, strict=True))
    ]
    total = " + ".join(f"{product:.2f}" for product in products)
    score = svg.line(f"score: {total} = {sum(products):.2f}")
    told = f"Products of the pairs: {', '.join(f'{product:.2f}' for product in products)}."
    return svg.picture(svg.below([svg.beside(dials), score], gap=6), title, told)


def dial(query: torch.Tensor, key: torch.Tensor) -> svg.Drawing:
    """Draw query and key, (2,) each, as arrows in a circle, and the angle between them."""
    side = 2 * (RADIUS + ROOM)

    def place(x: float, y: float) -> tuple[float, float]:
        return side / 2 + x * UNIT, RADIUS + 18 - y * UNIT

    x, y = place(0, 0)
    arrows = [
        Arrow("query", query.tolist(), look="strong"),
        Arrow("key", key.tolist(), look="dashed", colour=KEY),
    ]
    ends = [place(*(0.4 * vector / vector.norm()).tolist()) for vector in (query, key)]
    turned = int(query[0] * key[1] - query[1] * key[0] < 0)
    body = (
        f'<circle cx="{x:g}" cy="{y:g}" r="{RADIUS}" fill="none" style="stroke:{svg.LINE}"/>'
        f'<path d="M{ends[0][0]:.1f} {ends[0][1]:.1f}A{0.4 * UNIT:g} {0.4 * UNIT:g} 0 0 {turned} '
        f'{ends[1][0]:.1f} {ends[1][1]:.1f}" fill="none" style="stroke:{svg.INK}"/>'
    )
    body += "".join(arrow_line(arrow, place) for arrow in arrows)
    return svg.Drawing(body + arrow_names(arrows, place), side, 2 * RADIUS + 36)
