"""The stage, without a browser: what is handed over to it."""

import json

from eleven_steps.checks import progress
from eleven_steps.sliders.stage import explore_stage


def test_what_is_done_is_ticked_and_not_stored(tmp_path, monkeypatch):
    path = tmp_path / "progress.json"
    monkeypatch.setenv(progress.VARIABLE, str(path))
    for done, ticks in ((["mask.2", "mask.3"], []), (["mask.1"], ["mask"])):
        path.write_text(json.dumps({"course": progress.COURSE, "done": done}))
        stage = explore_stage("mask", done=progress.steps_done())
        assert stage.data["done"] == ticks and repr(stage) == repr(explore_stage("mask"))
    path.write_text("{")
    assert progress.steps_done() == set(), "a broken file is no reason for an error"
