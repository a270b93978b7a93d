"""Motion ends where the step says, and storage moves where it is copied, and nowhere else."""

import re
import xml.etree.ElementTree as ET

import pytest
import torch

from helpers import sliders
from helpers.pictures import Shown, draw_motion, storage
from helpers.sliders.lesson import at_steps, run
from helpers.sliders.motion import MOVING

SIZES = [(6, 2), (6, 1), (6, 6), (12, 3)]
SVG = "{http://www.w3.org/2000/svg}"


def cells(motion):
    """Return (number, x, y) of every cell, before and after."""
    before, after = [], []
    groups = [g for g in ET.fromstring(motion.picture.svg).iter() if g.get("class") == "moves"]
    for group, (dx, dy) in zip(groups, motion.ways, strict=True):
        shift = group.find(f"{SVG}g").get("transform")
        x, y = map(float, re.findall(r"-?[\d.]+", shift))
        text = group.find(f".//{SVG}text").text
        before.append((text, x, y))
        after.append((text, x + dx, y + dy))
    return before, after


def read(placed, shape):
    """Read numbers as an eye does: grid by grid, row by row."""
    rows = sorted({y for _, _, y in placed})
    assert len(rows) == shape[-2]
    in_order = sorted(placed, key=lambda one: one[1])
    lines = [[text for text, _, at in in_order if at == y] for y in rows]
    grids = len(lines[0]) // shape[-1]
    width = shape[-1]
    return [line[g * width : (g + 1) * width] for g in range(grids) for line in lines]


@pytest.mark.parametrize("step", MOVING)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_cells_begin_and_end_as_the_tensors_do(step, size):
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


def test_what_is_stored_is_the_beginning_and_a_hash_over_all_ways():
    move = sliders.explore_motion("combine")
    bundle = move._repr_mimebundle_()
    assert bundle["image/svg+xml"] == move.motion.picture.svg
    assert repr(sliders.explore_motion("combine")) == bundle["text/plain"]
    move.ways = [(1.0, 0.0), *move.ways[1:]]
    assert repr(move) != bundle["text/plain"]


def test_what_does_not_move_is_named():
    with pytest.raises(ValueError, match="scores moves no number: expected one of view, transpose"):
        sliders.explore_motion("scores")
    two = Shown(torch.zeros(2, 3, 4), "x", "b num_tokens d_in")
    with pytest.raises(ValueError, match="step view of b = 2: expected one sequence"):
        draw_motion("view", two, two)
