"""The block diagram of multi-head attention, with places to name."""

from collections.abc import Mapping

from eleven_steps.pictures import svg

HEAD, GAP = 190, 24  # the width of a head, and what lies between two
HEADS = 2 * HEAD + GAP
BOX = 36  # the height of a box
KEY = HEADS + 60  # where the names begin, right of the heads
# The middle of each place, from the top down: two boxes that both heads share, the wires out of the
# attention of each head, the wires into it, and the boxes that make those.
PLACES = {"E": 66, "D": 136, "C": 188, "B": 282, "A": 338}
ATTENTION, INPUT, OUTPUT = 232, 408, 14


def draw_blocks(names: Mapping[str, str] | None = None) -> svg.Picture:
    """Draw multi-head attention as blocks, from X at the bottom to Y at the top.

    Args:
        names: what stands at the places A to E; a place without a name gets a question mark.
    """
    told = {place: (names or {}).get(place) for place in sorted(PLACES)}
    told = {place: name if isinstance(name, str) else "?" for place, name in told.items()}
    body = "".join(map(column, (0, 1)))
    for place in "DE":
        body += box(0, PLACES[place], HEADS)
    body += wire(HEADS / 2, PLACES["D"] - BOX / 2, PLACES["E"] + BOX / 2)
    body += wire(HEADS / 2, PLACES["E"] - BOX / 2, OUTPUT + 6)
    body += svg.text("Y", HEADS / 2, OUTPUT, "middle", "font-weight:700")
    body += svg.text("X", HEADS / 2, INPUT + 12, "middle", "font-weight:700")
    for place, y in PLACES.items():
        body += (
            f'<path d="M{HEADS} {y}H{KEY - 12}" stroke-dasharray="2 3" style="stroke:{svg.LINE}"/>'
        )
        body += badge(place, HEADS + 24, y) + svg.text(told[place], KEY, y + 4)
    width = KEY + svg.CHARACTER * max(max(map(len, told.values())), 30)
    title = "Every place is named"
    if "?" in told.values():
        title = "Two heads: which name belongs to which place?"
    return svg.picture(
        svg.Drawing(body, width, INPUT + 20),
        title,
        "From bottom to top: X goes to both heads. In each head three boxes (A) lead by three "
        "wires (B) into attention, and one wire (C) leads out. The wires of both heads meet in "
        "one box (D), then comes one more box (E), then Y. "
        + "; ".join(f"{place}: {name}" for place, name in told.items())
        + ".",
    )


def column(head: int) -> str:
    """Draw one head: three boxes, three wires, attention, and the wire that leaves it."""
    left, colour = head * (HEAD + GAP), svg.head_colour(head)
    middle, third = left + HEAD / 2, (HEAD - 2 * 14) / 3
    body = box(left, ATTENTION, HEAD, colour)
    body += svg.text(f"head {head}: attention", middle, ATTENTION + 4, "middle")
    for i in range(3):
        x = left + i * (third + 14)
        body += box(x, PLACES["A"], third, colour)
        body += wire(x + third / 2, PLACES["A"] - BOX / 2, ATTENTION + BOX / 2)
        start = PLACES["A"] + BOX / 2
        body += (
            f'<path d="M{HEADS / 2:g} {INPUT - 2}L{x + third / 2:.1f} {start + 2:g}" fill="none" '
            f'style="stroke:{svg.LINE}"/>'
        )
    return body + wire(middle, ATTENTION - BOX / 2, PLACES["D"] + BOX / 2)


def box(x: float, middle: float, width: float, colour: str | None = None) -> str:
    """Draw a box around a height, in a head's colour or in none."""
    fill = f'fill="{colour}" fill-opacity="{svg.TINT}"' if colour else 'fill="none"'
    return (
        f'<rect x="{x:.1f}" y="{middle - BOX / 2:g}" width="{width:.1f}" height="{BOX}" rx="5" '
        f'{fill} style="stroke:{svg.LINE}"/>'
    )


def wire(x: float, low: float, high: float) -> str:
    """Draw an arrow upwards."""
    return (
        f'<path d="M{x:.1f} {low:g}V{high + 2:g}m-4 6l4 -7l4 7" fill="none" stroke-width="1.5" '
        f'style="stroke:{svg.INK}"/>'
    )


def badge(place: str, x: float, y: float) -> str:
    """Write a place's letter in a disc."""
    look = f"font:700 12px {svg.SANS};fill:{svg.GROUND}"
    return f'<circle cx="{x}" cy="{y}" r="10" style="fill:{svg.INK}"/>' + svg.text(
        place, x, y + 4, "middle", look
    )
