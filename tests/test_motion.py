"""Motion ends where the step says: moved, covered, shared out or added up; storage where it is
copied, and nowhere else."""

import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
import torch

from eleven_steps import sliders
from eleven_steps.pictures import Shown, draw_cover, draw_motion, draw_shares, draw_sum, storage
from eleven_steps.pictures.changes import WIDE
from eleven_steps.pictures.moving import NARROW, ROOM, TOP
from eleven_steps.pictures.svg import CELL_HEIGHT, CELL_WIDTH, GAP, number
from eleven_steps.sliders.lesson import at_steps, run
from eleven_steps.sliders.motion import MAKING, MOVING

SIZES = [(6, 2), (6, 1), (6, 6), (12, 3)]
every_room = pytest.mark.parametrize("room", [ROOM, NARROW])
PHONE = 268  # pixels for a picture that answers, in JupyterLab on a phone of 390
SVG = "{http://www.w3.org/2000/svg}"


def groups_of(motion, kind):
    return [g for g in ET.fromstring(motion.picture.svg).iter() if g.get("class") == kind]


def placed(motion):
    """Return (number, x, y) of every cell that stays."""
    inside = [f"{SVG}path", f"{SVG}path", f"{SVG}text"]
    groups = [g for g in ET.fromstring(motion.picture.svg).iter() if g.get("transform")]
    return [(g[2].text, *shift(g)) for g in groups if [each.tag for each in g] == inside]


def shift(group):
    return tuple(map(float, re.findall(r"-?[\d.]+", group.get("transform"))))


def cells(motion):
    """Return (number, x, y) of every cell that moves, before and after."""
    before, after = [], []
    groups = groups_of(motion, "moves")
    for group, (dx, dy) in zip(groups, motion.ways, strict=True):
        x, y = shift(group.find(f"{SVG}g"))
        text = group.find(f".//{SVG}text").text
        before.append((text, x, y))
        after.append((text, x + dx, y + dy))
    return before, after


def read(placed, shape):
    """Read numbers as an eye does: line by line of grids, grid by grid, row by row."""
    every, (high, wide) = sorted({y for _, _, y in placed}), shape[-2:]
    in_order = sorted(placed, key=lambda one: one[1])
    rows = [[text for text, _, at in in_order if at == y] for y in every]
    found = []
    for line in (rows[i : i + high] for i in range(0, len(rows), high)):
        grids = len(line[0]) // wide
        found += [row[g * wide : (g + 1) * wide] for g in range(grids) for row in line]
    return found


@every_room
@pytest.mark.parametrize("step", MOVING)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_cells_begin_and_end_as_the_tensors_do(step, size, room):
    before, after = at_steps(run(*size), *MOVING[step])
    numbers = iter(range(100, 1000))
    values = torch.tensor([float(next(numbers)) for _ in range(before.tensor.numel())])
    laid = torch.empty_strided(before.tensor.shape, before.tensor.stride())
    storage(laid).copy_(values)
    moved = {
        "view": lambda t: t.view(after.tensor.shape),
        "transpose": lambda t: t.transpose(1, 2),
        "reformat": lambda t: t.transpose(1, 2),
        "combine": lambda t: t.contiguous().view(after.tensor.shape),
    }[step](laid)
    assert moved.stride() == after.tensor.stride()
    motion = draw_motion(
        step,
        Shown(laid, "before", before.letters, before.num_heads),
        Shown(moved, "after", after.letters, after.num_heads),
        room,
    )
    old, new = cells(motion)
    count = laid.numel()
    for placed, tensor in ((old, laid), (new, moved)):
        expected = [[f"{v:.0f}" for v in row] for row in tensor.flatten(0, -2).tolist()]
        assert read(placed[:count], tensor.shape) == expected
        strip = sorted(placed[count:], key=lambda one: (one[2], one[1]))
        assert [text for text, _, _ in strip] == [f"{v:.0f}" for v in storage(tensor).tolist()]
    copied = not torch.equal(storage(laid), storage(moved))
    assert (old[count:] != new[count:]) is copied
    assert ("copied" in motion.picture.title) is copied
    assert copied is (step == "combine" and size[1] > 1)


@every_room
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_the_mask_covers_the_scores_of_the_future_and_no_others(size, room):
    scores, masked = at_steps(run(*size), "scores.scores", "mask.masked")
    motion = draw_cover(scores, masked, room)
    _, fallen = cells(motion)
    stay = placed(motion)
    assert [text for text, _, _ in stay] == [number(v) for v in scores.tensor.flatten().tolist()]
    end = {(x, y): text for text, x, y in [*stay, *fallen]}
    assert len(end) == len(stay)
    assert list(end.values()) == [number(v) for v in masked.tensor.flatten().tolist()]


@every_room
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_bars_end_as_long_as_their_weights(size, room):
    masked, weights = at_steps(run(*size), "mask.masked", "softmax.weights")
    motion = draw_shares(masked, weights, room)
    expected = weights.tensor[weights.tensor > 0]
    assert len(groups_of(motion, "moves")) == len(motion.ways) == len(expected)
    assert [(dx, dy) for dx, dy, _ in motion.ways] == [(0, 0)] * len(expected)
    lengths = torch.tensor([wider for _, _, wider in motion.ways])  # of a bar one pixel long
    cell = WIDE if room == ROOM else lengths[0]  # the first weight is 1
    torch.testing.assert_close(lengths / cell, expected, atol=1e-4, rtol=0)
    for kind, shown in (("before", masked), ("after", weights)):
        written = [g.find(f"{SVG}text").text for g in groups_of(motion, kind)[1:]]  # no heading
        assert written == [number(v) for v in shown.tensor.flatten().tolist()]


@every_room
@pytest.mark.parametrize("head, query", [(0, 1), (1, 2), (0, 0)])
def test_weighted_rows_add_up_to_the_row_of_the_context(head, query, room):
    names = ("softmax.weights", "transpose.values", "context.context")
    weights, values, context = at_steps(run(), *names)
    motion = draw_sum(weights, values, context, head, query, room)
    old, new = cells(motion)
    row, rows = weights.tensor[0, head, query].tolist(), values.tensor[0, head].tolist()
    weighted = [number(row[i] * value) for i, each in enumerate(rows) for value in each]
    assert [text for text, _, _ in old] == [text for text, _, _ in placed(motion)] == weighted
    assert room == ROOM or max(x for _, x, _ in old) + CELL_WIDTH <= room
    assert len({y for _, _, y in new}) == 1 and len({x for _, x, _ in new}) == len(rows[0])
    sums = [g.find(f"{SVG}text").text for g in groups_of(motion, "arriving")]
    so_far = [
        number(sum(row[i] * rows[i][j] for i in range(k + 1)))
        for k in range(len(row))
        for j in range(len(rows[0]))
    ]
    assert sums == so_far
    assert sums[-3:] == [number(v) for v in context.tensor[0, head, query].tolist()]


@pytest.mark.parametrize("step", ["combine", *MAKING])
def test_what_is_stored_is_the_beginning_and_a_hash_over_all_ways(step):
    move = sliders.explore_motion(step)
    bundle = move._repr_mimebundle_()
    assert bundle["image/svg+xml"] == move.motion.picture.svg
    assert repr(sliders.explore_motion(step)) == bundle["text/plain"]
    move.ways = [(1.0, 0.0), *move.ways[1:]]
    assert repr(move) != bundle["text/plain"]


@pytest.mark.parametrize("step", [*MOVING, *MAKING])
def test_a_phone_gets_a_drawing_that_fits(step):
    move = sliders.explore_motion(step)
    assert len(move.narrow.ways) == len(move.motion.ways)
    lefts = re.findall(r"translate\(([\d.]+) ", move.narrow.picture.svg)
    right = max(map(float, lefts)) + CELL_WIDTH
    assert right * 11 / 12 <= PHONE  # as small as its texts may get
    assert move.on_phones == {"svg": move.narrow.picture.svg, "ways": move.narrow.ways}


@pytest.mark.parametrize("step", MOVING)
def test_lines_of_grids_and_of_storage_stand_apart_on_a_phone(step):
    for placed in cells(sliders.explore_motion(step).narrow):
        heights = sorted({y for _, _, y in placed[:18]}), sorted({y for _, _, y in placed[18:]})
        for lines in heights:
            ways = {low - high for high, low in pairwise(lines)} - {CELL_HEIGHT}
            assert all(way >= CELL_HEIGHT + 2 * TOP + GAP for way in ways)  # labels, and a gap


def test_the_stored_words_say_what_moves():
    said = {step: repr(sliders.explore_motion(step)).splitlines()[1] for step in [*MOVING, *MAKING]}
    assert said["softmax"] == "12 bars grow"
    assert said["mask"] == "6 of 6 cells move"


def test_what_does_not_move_is_named():
    with pytest.raises(ValueError, match="scores is not shown as motion: expected one of view"):
        sliders.explore_motion("scores")
    two = Shown(torch.zeros(2, 3, 4), "x", "b num_tokens d_in")
    with pytest.raises(ValueError, match="step view of b = 2: expected one sequence"):
        draw_motion("view", two, two)
    many = Shown(torch.zeros(2, 2, 3, 3), "scores", "b num_heads num_tokens num_tokens")
    for draw in (draw_cover, draw_shares, lambda *each: draw_sum(*each, many, 0, 0)):
        with pytest.raises(ValueError, match="b is 2: expected one sequence"):
            draw(many, many)
