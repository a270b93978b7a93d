"""What draw_follow claims, against the forward pass itself: one number at a time is moved."""

import xml.etree.ElementTree as ET

import pytest
import torch
from sizes import TELLING, build

from eleven_steps.pictures import draw_follow, reach
from eleven_steps.pictures.reach import find
from eleven_steps.pictures.storage import place
from helpers.trace import STEPS, trace

SIZES = [(2, 3, 3, 4, 2), (1, 3, 6, 6, 2), (1, 1, 2, 4, 2), (1, 4, 3, 3, 1), (1, 2, 1, 3, 3)]


@pytest.fixture(autouse=True)
def one_thread():
    """Tiny tensors are slower on several threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def run(mha, x, key=None, index=()):
    """Return every tensor of a forward pass, in which one number may be moved as it comes about."""
    tensors = {}

    def record(step, **live):
        for name, tensor in live.items():
            if key == f"{step}.{name}":
                tensor[index] += 0.5
            tensors[f"{step}.{name}"] = tensor.clone()

    with torch.no_grad():
        mha(x.clone(), record=record)
    return tensors


def flat(tensors):
    return torch.cat([tensor.flatten() for tensor in tensors.values()])


def every_number(tensors):
    return [
        (key, tuple(index))
        for key, tensor in tensors.items()
        for index in torch.ones(tensor.shape).nonzero().tolist()
    ]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_reach_is_all_that_changes_with_a_number_and_all_that_changes_it(sizes):
    mha, x = build(sizes, torch.float64)
    steps, before = trace(mha, x), run(mha, x)
    numbers = every_number(before)
    touches = torch.stack([flat(before) != flat(run(mha, x, *moved)) for moved in numbers])
    touches.fill_diagonal_(True)  # a masked score stays -inf, but it is the number followed
    for i, (key, index) in enumerate(numbers):
        claimed = flat(reach(steps, key, index))
        assert torch.equal(claimed, touches[i] | touches[:, i]), (key, index)


def test_reach_works_where_gradients_are_off():
    mha, x = build(TELLING)
    with torch.inference_mode(), torch.no_grad():
        cells = reach(trace(mha, x), "x", (1, 6, 0))
    assert cells["project.queries"].sum() == 12 and cells["out_proj.out"].sum() == 12


def test_a_name_is_found_where_it_is_clear():
    steps = trace(*build(TELLING))
    assert find(steps, "scores", (0, 1, 2, 3)) == ("scores.scores", (0, 1, 2, 3))
    assert find(steps, "keys", (0, 1, 2)) == ("project.keys", (0, 1, 2))
    assert find(steps, "view.keys", [0, 1, 2, 3]) == ("view.keys", (0, 1, 2, 3))


@pytest.mark.parametrize(
    ("name", "index", "steps", "says"),
    [
        ("keys", (0, 0, 0, 0), (), "2 tensors: expected one of view.keys, transpose.keys"),
        ("keys", (0, 0), (), "3 tensors: expected one of project.keys, view.keys"),
        ("score", (0, 0, 0, 0), (), "0 tensors: expected one of shape.x, project.queries"),
        ("x", (0, 7, 0), (), r"\(0, 7, 0\) is not in shape.x, .* \(b, num_tokens, d_in\) = \(2, 7"),
        ("x", (0, 0, -1), (), r"\(0, 0, -1\) is not in shape.x"),
        ("x", (0, 0), (), r"\(0, 0\) is not in shape.x"),
        ("x", (0, 0, 0), ("views",), "no step is called 'views': expected shape, project"),
    ],
)
def test_what_cannot_be_followed_is_said(name, index, steps, says):
    with pytest.raises(ValueError, match=says):
        draw_follow(trace(*build(TELLING)), name, index, steps)


def test_a_block_too_large_for_cells_is_refused():
    with pytest.raises(ValueError, match="too large to draw cell by cell"):
        draw_follow(trace(*build((1, 2, 70, 70, 1))), "x", (0, 0, 0))
    with pytest.raises(ValueError, match="numbers are expected, at most 20000"):
        draw_follow(trace(*build((1, 101, 1, 2, 2))), "x", (0, 0, 0))
    with torch.device("meta"):
        steps = trace(*build((1, 3, 6, 6, 2)))
    with pytest.raises(ValueError, match="x at step shape has shape .*: numbers are expected"):
        draw_follow(steps, "x", (0, 0, 0))


@pytest.mark.parametrize("key", ["project.values", "view.values", "transpose.values"])
def test_the_one_cell_is_told_with_its_index_and_its_place_in_storage(key):
    mha, x = build((1, 3, 6, 6, 2))
    steps = trace(mha, x)
    tensors = {step.name: step.tensors for step in steps}
    index = {"project": (0, 2, 4), "view": (0, 2, 1, 1), "transpose": (0, 1, 2, 1)}
    picture = draw_follow(steps, key, index[key.partition(".")[0]])
    for step, where in index.items():
        value = tensors[step]["values"]
        assert value[where] == tensors["project"]["values"][0, 2, 4]
        assert value.untyped_storage().nbytes() == value.element_size() * value.numel()
        told = f"{where}, place {place(value, where)}"
        assert f"{step}: values {told}" in picture.description and told in picture.body


@pytest.mark.parametrize("steps", [(), ("scores", "mask"), STEPS], ids=len)
def test_only_what_is_reached_is_written(steps):
    """In a trace of numbers that are all different, a number tells the cell it comes from."""
    traced = trace(*build((2, 3, 6, 6, 2)))
    cells = reach(traced, "scores", (1, 1, 2, 0))
    for step in traced:
        for tensor in step.tensors.values():
            tensor.copy_(torch.arange(tensor.numel()).view(tensor.shape) + 100)
    drawn = texts(draw_follow(traced, "scores", (1, 1, 2, 0), steps))
    kept = [
        f"{value:.0f}"
        for step in traced
        if step.name in (steps or STEPS)
        for name, tensor in step.tensors.items()
        for value in tensor[cells[f"{step.name}.{name}"]].tolist()
    ]
    assert sorted(t for t in drawn if t.isdigit() and int(t) >= 100) == sorted(kept)


def test_the_title_counts_and_says_where_a_number_ends():
    steps = trace(*build((1, 3, 6, 6, 2)))
    assert draw_follow(steps, "x", (0, 1, 0)).title.endswith("touches 12 numbers of out")
    assert draw_follow(steps, "out", (0, 1, 0)).title.endswith("comes from 12 numbers of x")
    future = draw_follow(steps, "masked", (0, 0, 0, 2)).title
    assert future.endswith("= -\N{INFINITY} comes from no number of x and ends at step mask")
    assert draw_follow(steps, "scores", (0, 0, 0, 0)).title.endswith("ends at step mask")


def texts(picture):
    root = ET.fromstring(picture.svg)
    return [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
