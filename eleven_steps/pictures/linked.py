"""Code and its map, part beside part: the lines of a step, and what stands there after them."""

import re
from collections.abc import Mapping, Sequence
from html import escape

from eleven_steps.pictures.code import BADGE, COLOURS, coloured, step_in
from eleven_steps.pictures.map import box, shape_of, shown_of, sizes_of, small
from eleven_steps.pictures.stored import choice
from eleven_steps.pictures.svg import SANS, Drawing, at, text, within
from eleven_steps.pictures.tensors import TracedStep

OPENED = '<span class="p">(</span>'  # a line that is too long may end there
BEGINS = re.compile(r" *# (\d+) \w+$")
WIDTH, NAME, SHAPE = 236, 64, 100  # of a card, of a tensor's name in it; where its shape stands
HOW = (
    "Point at a line or at a step of the map, or choose one: click it, or come here with Tab and "
    "use the arrow keys. What belongs together lights up. Solid frames: it comes from there. "
    "Dashed frames: it goes there."
)
LOW = 35.5  # the height of a tensor: the heads or tokens of one stand in one line


def page_of_source(
    code: str, steps: Sequence[TracedStep], told: Mapping[str, Sequence[str]]
) -> str:
    """Return a page with the lines of each step beside what the step makes.

    Args:
        code: a function whose steps begin with comments, "# 5 scores" for one.
        steps: those of a trace, in order.
        told: lines of words, by "line 9" or "step 2".
    """
    step_at, numbers = steps_of(code), [step.number for step in steps]
    num_heads = sizes_of({step.name: step for step in steps})["num_heads"]
    beside = [legend(num_heads), *(card(step, num_heads) for step in steps)]
    lines = list(enumerate(coloured(code), 1))
    rows = "".join(
        row(step, [(at, line) for at, line in lines if step_at[at] == step], card)
        for step, card in zip([0, *numbers], beside, strict=True)
    )
    every = "".join(
        f'<div data-told="{name}">{"".join(f"<p>{escape(line)}</p>" for line in lines)}</div>'
        for name, lines in told.items()
    )
    return (
        f'<div class="linked"><div class="highlight" role="radiogroup" style="{COLOURS}" '
        f'aria-label="The code and its map">{rows}</div>'
        f'<div class="told"><p class="help">{HOW}</p>{every}</div></div>'
    )


def steps_of(code: str) -> dict[int, int]:
    """Return the step that each line of code belongs to, lines counted from 1; 0 before step 1."""
    step, found = 0, {}
    for number, line in enumerate(code.splitlines(), 1):
        begins = BEGINS.match(line)
        step = int(begins[1]) if begins else step
        found[number] = step
    return found


def row(step: int, lines: Sequence[tuple[int, str]], beside: str) -> str:
    """Return the lines of a step with its number in the margin, and beside them its card."""
    written = ""
    for place, line in lines:
        number, _, line = step_in(line)
        if not line.strip():
            continue  # rows stand apart
        line = line.replace(OPENED, f"{OPENED}<wbr>")
        told = f"step {step}" if number else f"line {place}"
        badge = f'<span class="badge" style="{BADGE}">{number}</span>' if number else ""
        part = f'<label class="line part" data-told="{told}">{choice()}{badge}{line}</label>'
        written += part if step else f'<span class="line">{line}</span>'
    where = f' data-step="{step}"' if step else ""
    return f'<div class="row"><div class="code"{where}>{written}</div>{beside}</div>'


def card(step: TracedStep, num_heads: int) -> str:
    """Draw what a step makes: its shape, and its tensors as small shaded cells."""
    numbers = shape_of(step).split(" = ")[1]
    name = f"{step.number} {step.name}"
    drawn = text(name, 0, 13, style=f"font:700 13px {SANS}")
    drawn += text(numbers, SHAPE, 13, style=f"font:12px {SANS}")
    alone, height = len(step.tensors) == 1, 0.0
    room = WIDTH if alone else WIDTH / len(step.tensors)
    for place, called in enumerate(step.tensors):
        cells = small(shown_of(step, called, num_heads), room - (NAME if alone else 8), LOW)
        x, y = (NAME, 20) if alone else (place * room, 36)
        drawn += text(called, place * room, 31) + at(x, y, cells)
        height = max(height, y + cells.height + 2)
    words = f"{name}: {', '.join(step.tensors)} {shape_of(step)}"
    return (
        f'<label class="card part" data-step="{step.number}" data-told="step {step.number}">'
        f"{choice()}{within(Drawing(drawn, WIDTH, height), words, 11)}</label>"
    )


def legend(num_heads: int) -> str:
    """Name the heads' colours and say what a shade means."""
    pitch = min(58, WIDTH / num_heads)
    words = "a cell is one number, larger is stronger"
    drawn = text(words, 0, 13, style=f"font:11px {SANS}")
    for head in range(num_heads):
        name = f"head {head}" if num_heads <= 4 else str(head)
        drawn += at(head * pitch, 20, Drawing(box(head, 0, 0, 8 * len(name), 18), 0, 0))
        drawn += text(name, head * pitch + 4 * len(name), 33, "middle")
    words = "The map: a cell is one number, a colour is a head"
    return f'<div class="legend">{within(Drawing(drawn, WIDTH, 40), words, 11)}</div>'
