"""Attention over several processes: who holds which head, and what travels."""

import re
from collections.abc import Sequence

from eleven_steps.pictures import svg

CELL, LONGEST = 14, 168  # pixels of a feature, and the longest side of a matrix
TIP = f'<path d="M0 0l-9 -5v10z" style="fill:{svg.INK}"/>'


def draw_heads_over_processes(num_heads: int, head_dim: int, num_processes: int) -> svg.Picture:
    """Draw for each process its rows of W_query, W_key, W_value and its columns of out_proj.

    Args:
        num_heads, head_dim: heads in all, and features of a head; at most 24 heads.
        num_processes: how many share them; ValueError unless it divides num_heads.
    """
    if num_heads % num_processes or num_heads > 24:
        raise ValueError(
            f"num_heads is {num_heads} and num_processes is {num_processes}: at most 24 heads, "
            f"a multiple of num_processes, are expected"
        )
    per_process = num_heads // num_processes
    firsts = range(0, num_heads, per_process)
    shares = [range(first, first + per_process) for first in firsts]
    side = min(LONGEST, CELL * num_heads * head_dim)
    lines = [draw_process(place, heads, num_heads, side) for place, heads in enumerate(shares)]
    drawn = svg.below(lines, gap=22)
    joined = fixed(svg.beside([drawn, draw_sum(lines, drawn.height, 22)], max_width=2000, gap=4))
    who = "; ".join(f"process {place} {named(heads)}" for place, heads in enumerate(shares))
    return svg.picture(
        joined,
        f"{num_processes} processes share {num_heads} heads: only step 11's sum travels",
        f"Every process has all of x. It holds the rows of W_query, W_key and W_value and the "
        f"columns of out_proj that belong to its heads, {head_dim} features each: {who}. Each "
        f"makes a part of out, as large as out; one all-reduce adds the parts up.",
    )


def fixed(drawing: svg.Drawing) -> svg.Drawing:
    """Keep parts where arrows find them: in a narrow place a picture is scrolled, not laid anew."""
    body = re.sub(r' data-(lay|size)="[^"]*"', "", drawing.body)
    return svg.Drawing(body, drawing.width, drawing.height)


def named(heads: Sequence[int]) -> str:
    """Name heads: "head 0", "heads 0 and 1" or "heads 0 to 3"."""
    if len(heads) == 1:
        return f"head {heads[0]}"
    return f"heads {heads[0]} {'and' if len(heads) == 2 else 'to'} {heads[-1]}"


def draw_process(place: int, heads: Sequence[int], num_heads: int, side: float) -> svg.Drawing:
    """Draw what one process holds, in the order in which it is used."""
    narrow = 40.0
    rows = [
        svg.labelled(name, bands(heads, num_heads, 56, side, rows=True))
        for name in ("W_query", "W_key", "W_value")
    ]
    wide = max(side, narrow)
    context = svg.labelled("context", bands(heads, num_heads, wide, narrow, rows=False))
    columns = svg.labelled("out_proj", bands(heads, num_heads, wide, side, rows=False))
    arrow = svg.Drawing(arrow_path(22, 18 + narrow / 2), 22, 18 + narrow)  # 18: the names' line
    line = svg.beside([*rows, arrow, context, arrow, columns], max_width=2000, gap=10)
    return svg.labelled(f"process {place}: {named(heads)}", line)


def bands(
    heads: Sequence[int], num_heads: int, width: float, height: float, rows: bool
) -> svg.Drawing:
    """Draw a matrix cut into one band for each head; those that are not here stay empty.

    Args:
        heads: what is here.
        rows: whether a head has rows of the matrix; else it has columns.
    """
    band, body = (height if rows else width) / num_heads, ""
    for head in range(num_heads):
        x, y = (0, head * band) if rows else (head * band, 0)
        wide, high = (width, band) if rows else (band, height)
        look, name = f'fill="none" stroke-dasharray="2 3" style="stroke:{svg.LINE}"', ""
        if head in heads:
            colour = svg.head_colour(head)
            look = f'fill="{colour}" fill-opacity="{svg.TINT}" stroke="{colour}"'
            name = svg.text(str(head), x + wide / 2, y + high / 2 + 4, "middle")
        body += f'<rect x="{x:g}" y="{y:g}" width="{wide:g}" height="{high:g}" {look}/>{name}'
    return svg.Drawing(body, width, height)


def draw_sum(lines: Sequence[svg.Drawing], height: float, gap: float) -> svg.Drawing:
    """Draw an arrow from each process to the sum, and one from the sum to out."""
    body, y, bar = "", 0.0, 74
    for line in lines:
        body += svg.at(0, y + line.height / 2, svg.Drawing(arrow_path(bar - 12, 0), 0, 0))
        y += line.height + gap
    body += (
        f'<rect x="{bar - 10}" y="20" width="20" height="{height - 20:g}" rx="4" fill="none" '
        f'stroke-width="2" style="stroke:{svg.INK}"/>'
    )
    body += svg.text("all-reduce", bar, 12, "middle")
    body += svg.text("parts", 8, lines[0].height / 2 - 8) + svg.text(
        "of out", 4, lines[0].height / 2 + 16
    )
    body += svg.text("+", bar, height / 2 + 5, "middle", style="font-size:18px")
    body += svg.at(bar + 12, height / 2, svg.Drawing(arrow_path(26, 0), 0, 0))
    body += svg.text("out,", bar + 44, height / 2 - 4) + svg.text(
        "everywhere", bar + 44, height / 2 + 12
    )
    return svg.Drawing(body, bar + 44 + svg.CHARACTER * len("everywhere"), height)


def arrow_path(length: float, y: float) -> str:
    """Draw an arrow to the right."""
    line = f'<path d="M0 {y:g}h{length - 8:g}" stroke-width="2" style="stroke:{svg.INK}"/>'
    return line + f'<g transform="translate({length:g} {y:g})">{TIP}</g>'


def draw_ring(num_tokens: int, num_processes: int) -> svg.Picture:
    """Draw whose keys and values each process has at each turn of the ring.

    Args:
        num_tokens: process 0 has the first ones; ValueError unless num_processes divides them.
        num_processes: at most 8.
    """
    if num_tokens % num_processes or num_processes > 8:
        raise ValueError(
            f"num_tokens is {num_tokens} and num_processes is {num_processes}: at most 8 "
            f"processes, and a multiple of them in tokens, are expected"
        )
    per_process, width, height, left = num_tokens // num_processes, 92, 30, 66
    body = ""
    for place in range(num_processes):
        body += svg.text(f"process {place}", left + (place + 0.5) * width, 12, "middle")
        for turn in range(num_processes):
            source = (place - turn) % num_processes
            x, y = left + place * width + 4, 20 + turn * (height + 8)
            seen = source <= place
            look = (
                f'fill="{svg.head_colour(source)}" fill-opacity="{svg.TINT if seen else 0}" '
                f'stroke="{svg.head_colour(source)}"'
            ) + ("" if seen else ' stroke-dasharray="2 3"')
            body += f'<rect x="{x}" y="{y}" width="{width - 8}" height="{height}" {look}/>'
            first, last = source * per_process, source * per_process + per_process - 1
            what = f"{first} to {last}" if per_process > 1 else str(first)
            body += svg.text(what if seen else f"({what})", x + width / 2 - 4, y + 19, "middle")
    for turn in range(num_processes):
        body += svg.text(f"turn {turn}", left - 8, 39 + turn * (height + 8), "end")
    high = 20 + num_processes * (height + 8)
    drawing = svg.Drawing(body, left + num_processes * width, high)
    tokens = ", ".join(f"process {i} has tokens {i * per_process} on" for i in range(num_processes))
    return svg.picture(
        drawing,
        f"After {num_processes} turns every process has met all keys, one block at a time",
        f"Which tokens' keys and values stand where. Each process keeps its queries ({tokens}); "
        f"after each turn its block of keys and values goes to the next process, the last one's to "
        f"process 0. Blocks in brackets lie wholly in the future and add nothing.",
    )
