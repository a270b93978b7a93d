"""The stage, without a browser: what is handed over to it."""

import json

import torch

from eleven_steps.checks import progress
from eleven_steps.sliders.lesson import run
from eleven_steps.sliders.stage import SIZES, explore_stage, module_of, sizes_of, unpacked
from helpers.examples import load_example, load_whiteboard
from helpers.trace import STEPS, trace


def test_its_default_state_is_the_whiteboard():
    stage = explore_stage()
    scene = stage.data["scenes"]["whiteboard"]
    x = unpacked(scene["x"]).view(1, 6, 6)[:, :3]
    assert torch.equal(x, load_whiteboard())
    mha = module_of(scene, 6, 2)
    steps, (_, course) = trace(mha, x), run()
    for step in steps:
        for name, tensor in step.tensors.items():
            assert torch.equal(tensor, course[step.name][name])
    published = load_example("whiteboard")["out"]
    assert torch.allclose(steps[-1].tensors["out"].view_as(published), published, atol=1e-4)


def test_only_legal_sizes_are_offered():
    scene = explore_stage().data["scenes"]["whiteboard"]
    sizes = sizes_of(scene)
    assert len(sizes) == 6 * sum(map(len, SIZES.values()))
    assert all(d_out % num_heads == 0 for d_out, num_heads, _ in sizes)


def test_all_steps_have_code_and_letters():
    steps = explore_stage().data["steps"]
    assert [step["name"] for step in steps] == list(STEPS)
    assert all(1 <= len(step["code"].splitlines()) <= 4 for step in steps)
    assert not any("#" in step["code"] for step in steps)


def test_what_is_done_is_ticked_and_not_stored(tmp_path, monkeypatch):
    path = tmp_path / "progress.json"
    monkeypatch.setenv(progress.VARIABLE, str(path))
    for done, ticks in ((["mask.2", "mask.3"], []), (["mask.1"], ["mask"])):
        path.write_text(json.dumps({"course": progress.COURSE, "done": done}))
        stage = explore_stage("mask", done=progress.steps_done())
        assert stage.data["done"] == ticks and repr(stage) == repr(explore_stage("mask"))
    path.write_text("{")
    assert progress.steps_done() == set(), "a broken file is no reason for an error"
