"""What a touched number says is true: place, kin, arithmetic; a drag sends what changed."""

import base64
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import torch
from sizes import TELLING, build

from eleven_steps import sliders
from eleven_steps.pictures import draw_map, draw_numbers, reach_all, tell, written
from eleven_steps.sliders.touch import linears
from helpers.trace import STEPS, trace

SIZES = [(1, 3, 6, 6, 2), (1, 2, 4, 6, 3), (1, 4, 3, 4, 1)]
NUMBER = r"-?\d+\.?\d*"


def every(steps):
    """List (step, name, index, value) of every number, in order."""
    return [
        (step, name, tuple(index), tensor[tuple(index)].item())
        for step in steps
        for name, tensor in step.tensors.items()
        for index in torch.ones(tensor.shape).nonzero().tolist()
    ]


@pytest.fixture(params=SIZES, ids=str)
def block(request):
    mha, x = build(request.param)
    return mha, x, trace(mha, x)


def test_a_number_of_a_matrix_reaches_what_changes_with_it():
    touch = sliders.explore_numbers("shape", "W", "project")
    comes_from = reach_all(touch.trace())
    start = torch.cat([each.flatten() for step in touch.trace() for each in step.tensors.values()])
    for at in range(touch.x.numel(), touch.book["movable"], 5):
        value = start[at].item()
        touch.move(at, value + 0.25)
        now = torch.cat([t.flatten() for step in touch.trace() for t in step.tensors.values()])
        touch.move(at, value)
        assert torch.equal((now != start).nonzero(), comes_from[:, at].nonzero()), at
    assert touch.book["movable"] == 18 + 3 * 36


def test_every_number_is_named_where_it_stands(block):
    mha, _, steps = block
    for told, (step, name, index, _) in zip(tell(steps, linears(mha)), every(steps), strict=True):
        tensor = step.tensors[name]
        place = int(re.search(r"place (\d+) in storage", told.words)[1])
        flat = tensor.as_strided((tensor.untyped_storage().nbytes() // 4,), (1,), 0)
        assert told.words.startswith(f"{name}{list(index)} = ")
        assert f"at step {step.number}, " in told.words
        assert flat[place] == tensor[index]


def test_before_and_next_hold_the_same_number(block):
    mha, _, steps = block
    by_name = {step.name: step.tensors for step in steps}
    moves = 0
    for told, (_, name, _, value) in zip(tell(steps, linears(mha)), every(steps), strict=True):
        for said, where in re.findall(rf"{name}\[([\d, ]+)\] at ([a-z]\w+)", told.words):
            index = tuple(map(int, said.split(",")))
            assert by_name[where][name][index] == value
            moves += 1
    moved = sum(t.numel() for s in ("view", "transpose") for t in by_name[s].values())
    moved += sum(by_name[s]["context"].numel() for s in ("reformat", "combine"))
    assert moves == 2 * moved  # each move is told at both of its ends


def test_the_arithmetic_comes_out(block):
    mha, _, steps = block
    told_of = 0
    for told, (step, _, _, value) in zip(tell(steps, linears(mha)), every(steps), strict=True):
        line, _, result = told.made.rpartition(" = ")
        if step.name in ("project", "scores", "softmax", "context", "out_proj") and line:
            line = line.replace(" x ", "*").replace("exp(-\N{INFINITY})", "0").partition(" = ")[0]
            made = eval(line, {"exp": lambda power: float(np.exp(power))})
            assert made == pytest.approx(value, abs=0.06)  # its numbers are rounded
            told_of += 1
        elif step.name == "mask":
            assert told.made.endswith("\N{INFINITY}" if value == -torch.inf else f"{value:.2f}")
        else:
            assert not told.made or value == 0
    assert told_of


@pytest.mark.parametrize(
    "steps, products",
    [(("shape", "W", "project"), 3 * 18), (("combine", "weight", "out_proj"), 18)],
    ids=["queries, keys, values", "out"],
)
def test_the_pairs_of_a_dot_product_add_up_to_it(steps, products):
    touch = sliders.explore_numbers(*steps)
    flat = torch.cat([each.flatten() for step in touch.trace() for each in step.tensors.values()])
    bias, out = touch.mha.out_proj.bias.detach(), touch.book["starts"]["out_proj.out"]
    told_of = touch.book["pairs"]
    assert len(told_of) == products + 18 + 18  # and scores, context
    for made, those in told_of.items():
        total = sum(flat[left] * flat[right] for left, right in those)
        biased = int(made) >= out
        total = total + bias[(int(made) - out) % len(bias)] if biased else total
        assert total == pytest.approx(flat[int(made)].item(), abs=1e-6)
        line = touch.told[int(made)][1].rpartition(" = ")[0]
        assert len(line.split(" + ")) == len(those) + biased


def test_a_number_of_out_proj_reaches_what_changes_with_it():
    touch = sliders.explore_numbers("combine", "weight", "out_proj")
    steps, comes_from = touch.trace(), reach_all(touch.trace())
    first, weight = touch.book["starts"]["weight.out_proj.weight.T"], steps[-2]
    start = torch.cat([each.flatten() for step in steps for each in step.tensors.values()])
    matrix = weight.tensors["out_proj.weight.T"]
    for row, column in ((0, 0), (2, 4), (5, 5)):
        matrix[row, column] += 0.25
        now = torch.cat([t.flatten() for step in touch.trace() for t in step.tensors.values()])
        matrix[row, column] -= 0.25
        at = first + row * matrix.shape[1] + column
        assert torch.equal((now != start).nonzero(), comes_from[:, at].nonzero()), at


@pytest.mark.parametrize(
    "steps",
    [(), ("shape", "mask", "softmax"), ("combine", "weight", "out_proj")],
    ids=["map", "some", "out"],
)
def test_every_cell_can_be_found_in_the_drawing(steps):
    touch = sliders.explore_numbers(*steps)
    root = ET.fromstring(touch.svg)
    cells = {}
    for group in root.iter():
        if "data-tensor" not in group.attrib:
            continue
        first = touch.book["starts"][group.get("data-tensor")] + int(group.get("data-first"))
        boxes, texts = list(group[0]), [each.text for each in group[-1]]
        assert len(boxes) == len(texts)
        for k, (box, text) in enumerate(zip(boxes, texts, strict=True)):
            cells[first + k] = (text, box.get("fill-opacity"))
    shown = touch.trace()
    expected = dict(enumerate(written(shown)))
    if steps:
        kept = [i for i, (step, *_) in enumerate(every(shown)) if step.name in steps]
        expected = {i: expected[i] for i in kept}
    assert cells == expected


def test_a_drag_sends_what_changed_and_nothing_else(monkeypatch):
    touch, sent = sliders.explore_numbers(), []
    monkeypatch.setattr(touch, "send", sent.append)
    before = trace(touch.mha, touch.x)
    touch.answer(touch, {"at": 7, "value": 1.5, "turn": 3}, [])
    assert touch.x.view(-1)[7] == 1.5
    after = trace(touch.mha, touch.x)
    old, now = written(before), written(after)
    numbers = {i: now[i] for i in range(len(now)) if now[i] != old[i]}
    said = [(told.words, told.made) for told in tell(after, linears(touch.mha))]
    words = {i: said[i] for i in range(len(said)) if said[i] != touch.told[i]}
    assert sent == [{"turn": 3, "cells": numbers, "moved": True}, {"words": words}]
    # Token 1 moved: the numbers that change are its kin; shades are shares of the largest score.
    kin = set(reach_all(before)[:, 7].nonzero().flatten().tolist())
    assert {i for i in numbers if now[i][0] != old[i][0]} <= kin
    touch.answer(touch, {"at": 7, "value": touch.x.view(-1)[7].item(), "turn": 4}, [])
    assert sent[2:] == [{"turn": 4, "cells": {}, "moved": True}, {"words": {}}]
    touch.answer(touch, {"turn": 5}, [])  # as a page asks that is drawn anew
    assert sent[4:] == [{"turn": 5, "cells": numbers, "moved": True}, {"words": words}]


@pytest.mark.parametrize("steps", [(), ("shape", "W", "project")], ids=len)
def test_what_was_dragged_goes_back(monkeypatch, steps):
    touch, sent = sliders.explore_numbers(*steps), []
    monkeypatch.setattr(touch, "send", sent.append)
    first = written(touch.trace())
    last = touch.book["movable"] - 1
    for at in (3, last):
        touch.answer(touch, {"at": at, "value": 1.5, "turn": 1}, [])
    dragged = written(touch.trace())
    touch.answer(touch, {"back": True, "turn": 2}, [])
    assert written(touch.trace()) == first
    back = {i: each for i, each in enumerate(first) if each != dragged[i]}
    assert {3, last} <= set(back) | {0}
    assert sent[-2] == {"turn": 2, "cells": back, "moved": False}
    assert {i: tuple(touch.told[i]) for i in sent[-1]["words"]} == sent[-1]["words"]


def test_a_touched_picture_leaves_the_course_s_own_numbers_alone(monkeypatch):
    touch = sliders.explore_numbers("shape")
    monkeypatch.setattr(touch, "send", lambda answer: None)
    touch.answer(touch, {"at": 0, "value": 9.0, "turn": 1}, [])
    assert sliders.tokens()[0, 0, 0] == pytest.approx(0.43)
    assert sliders.explore_numbers("shape").x[0, 0, 0] == pytest.approx(0.43)


def test_what_is_stored_is_the_picture_and_a_hash_over_all_that_is_shown():
    touch = sliders.explore_numbers("shape", "project")
    bundle = touch._repr_mimebundle_()
    assert bundle["image/svg+xml"] == touch.still.svg == touch.svg
    assert bundle["text/html"].endswith("<p>Run the cell to move it.</p>")
    assert "306 numbers to touch" in bundle["text/plain"]
    assert repr(sliders.explore_numbers("shape", "project")) == bundle["text/plain"]
    touch.told = [*touch.told[:-1], ("other", "words")]
    assert repr(touch) != bundle["text/plain"]


def test_links_are_those_bits(monkeypatch):
    touch = sliders.explore_numbers("scores")
    bits = np.unpackbits(np.frombuffer(base64.b64decode(touch.book["links"]), np.uint8))
    n = touch.book["count"]
    steps = trace(*(sliders.run()[0], sliders.tokens()))
    assert np.array_equal(bits[: n * n].reshape(n, n), reach_all(steps).numpy())


def test_steps_are_drawn_as_named_and_wrong_ones_are_named():
    steps = trace(sliders.run()[0], sliders.tokens())
    assert draw_numbers(steps).words == draw_map(steps).words
    assert draw_numbers(steps, STEPS[3:5]).title == (
        "From transpose to scores: every number has its place"
    )
    with pytest.raises(ValueError, match="no step is called 'scale'"):
        draw_numbers(steps, ["scale"])
    with pytest.raises(ValueError, match="b is 2: one sequence is expected"):
        draw_numbers(trace(*build(TELLING)))
