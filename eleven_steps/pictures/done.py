"""A picture of what is done: a box for each exercise, filled and ticked when it is done."""

from collections.abc import Collection, Mapping, Sequence

from eleven_steps.pictures.svg import INK, LINE, Picture, text

PITCH, BAND = 68, 126  # pixels from column to column, and from a line of columns to the next
WIDEST = 12  # columns side by side, as fit a notebook's output at 1280 px
DEEPEST = 3  # boxes in a column; a group of more is a row under the columns
LONGEST = 11  # boxes in a row; more go on in the next


def draw_progress(
    done: Collection[str], groups: Mapping[str, Sequence[str]], note: str = ""
) -> Picture:
    """Draw a box for each identifier, a column or a row for each group.

    Args:
        done: the identifiers that are done; one that no group has is ignored.
        groups: the identifiers by group, as {"scores": ["scores.1", "scores.2"]}. A box shows
            what follows the first dot.
        note: what else there is to say in words, after the picture's own.

    Raises:
        ValueError: there is no identifier at all.
    """
    every = [identifier for group in groups.values() for identifier in group]
    if not every:
        raise ValueError(f"groups are {dict(groups)}: one identifier or more are expected")
    columns = {name: group for name, group in groups.items() if len(group) <= DEEPEST}
    rows = {name: group for name, group in groups.items() if len(group) > DEEPEST}
    finished = [identifier for identifier in every if identifier in done]

    body = ""
    y = 66
    for place, (name, group) in enumerate(columns.items()):
        x, top = PITCH * (place % WIDEST), BAND * (place // WIDEST)
        body += text(name, x + 34, top + 46, "middle", "font-size:11px")
        for row, identifier in enumerate(group):
            body += box(identifier, identifier in done, x + 10, top + 58 + 30 * row)
        y = max(y, top + 66 + 30 * len(group))
    columns = dict(list(columns.items())[:WIDEST])  # those that stand side by side
    for name, group in rows.items():
        body += text(name, 34, y + 16, "middle", "font-size:11px")
        for place, identifier in enumerate(group):
            row, column = divmod(place, LONGEST)
            body += box(identifier, identifier in done, PITCH * column + 78, y + 30 * row)
        y += 34 + 30 * ((len(group) - 1) // LONGEST)
    said = f"Done: {', '.join(finished)}." if finished else "None is done yet."
    return Picture(
        body,
        # The title needs the room of four.
        PITCH * max(4, len(columns), *(min(len(g), LONGEST) + 1 for g in rows.values())),
        y,
        f"{len(finished)} of {len(every)} exercises are done",
        f"{said} {note}".rstrip(),
    )


def box(identifier: str, ready: bool, x: float, y: float) -> str:
    """Return one box with its top left corner at x, y."""
    number = identifier.partition(".")[2]
    return (
        f'<rect x="{x}" y="{y}" width="48" height="24" rx="4" fill-opacity="0.15" '
        f'style="fill:{INK if ready else "none"};stroke:{LINE}"/>'
    ) + text(f"{number} ✓" if ready else number, x + 24, y + 16, "middle")
