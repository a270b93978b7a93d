"""A box for each exercise, filled once it is done."""

from collections.abc import Collection, Mapping, Sequence

from eleven_steps.pictures import svg

PITCH, BAND = 68, 126  # pixels from column to column, and from a line of columns to the next
WIDEST = 12  # columns side by side, as fit a notebook's output at 1280 px
DEEPEST = 3  # boxes in a column; a group of more is a row under the columns
LONGEST = 11  # boxes in a row; more go on in the next


def draw_progress(
    done: Collection[str],
    groups: Mapping[str, Sequence[str]],
    evening: Collection[str] = (),
    note: str = "",
) -> svg.Picture:
    """Draw a box for each identifier, a column or a row for each group.

    Args:
        done: the identifiers that are done; one that no group has is ignored.
        groups: the identifiers by group, as {"scores": ["scores.1", "scores.2"]}. A box shows
            what follows the first dot.
        evening: those that belong to the evening: counted apart, with a thick edge.
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
        body += svg.text(name, x + 34, top + 46, "middle", "font-size:11px")
        for row, identifier in enumerate(group):
            body += box(identifier, done, evening, x + 10, top + 58 + 30 * row)
        y = max(y, top + 66 + 30 * len(group))
    columns = dict(list(columns.items())[:WIDEST])  # those that stand side by side
    for name, group in rows.items():
        body += svg.text(name, 34, y + 16, "middle", "font-size:11px")
        for place, identifier in enumerate(group):
            row, column = divmod(place, LONGEST)
            body += box(identifier, done, evening, PITCH * column + 78, y + 30 * row)
        y += 34 + 30 * ((len(group) - 1) // LONGEST)
    if evening:
        body += svg.text("A thick edge: an exercise of the evening.", 0, y + 14)
        y += 24
    said = f"Done: {', '.join(finished)}." if finished else "None is done yet."
    return svg.Picture(
        body,
        # The title needs the room of four.
        PITCH * max(4, len(columns), *(min(len(g), LONGEST) + 1 for g in rows.values())),
        y,
        counted(finished, every, evening),
        f"{said} {note}".rstrip(),
    )


def counted(finished: Sequence[str], every: Sequence[str], evening: Collection[str]) -> str:
    """Say how many are done, the evening's apart."""
    if not evening:
        return f"{len(finished)} of {len(every)} exercises are done"
    first = sum(identifier in evening for identifier in finished)
    return (
        f"Done: {first} of the evening's {len(evening)} exercises, "
        f"{len(finished) - first} of {len(every) - len(evening)} beyond it"
    )


def box(
    identifier: str, done: Collection[str], evening: Collection[str], x: float, y: float
) -> str:
    """Return one box with its top left corner at x, y."""
    number, ready = identifier.partition(".")[2], identifier in done
    edge = f"{svg.INK};stroke-width:2" if identifier in evening else svg.LINE
    return (
        f'<rect x="{x}" y="{y}" width="48" height="24" rx="4" fill-opacity="0.15" '
        f'style="fill:{svg.INK if ready else "none"};stroke:{edge}"/>'
    ) + svg.text(f"{number} ✓" if ready else number, x + 24, y + 16, "middle")
