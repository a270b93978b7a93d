"""Progress: forgets nothing, crashes on nothing, overwrites nothing that is not its own."""

import json
import os
import resource
import threading
from pathlib import Path
from unittest.mock import Mock

import pytest
import renew

from eleven_steps.checks import check, progress
from eleven_steps.checks.answers import EXERCISES
from eleven_steps.checks.exercises import TASKS

RIGHT, WRONG = 43, 42  # answers to scores.2


@pytest.fixture
def path(tmp_path, monkeypatch):
    path = tmp_path / "deep" / "progress.json"
    monkeypatch.setenv(progress.VARIABLE, str(path))
    return path


def done(path):
    return json.loads(path.read_text("utf-8"))["done"]


def test_a_right_answer_is_remembered_and_never_forgotten(path):
    assert check("scores.2", WRONG).note == "" and not path.exists()
    assert check("scores.2", RIGHT).note == ""
    assert done(path) == ["scores.2"]
    for answer in (WRONG, ..., RIGHT):
        check("scores.2", answer)
    check("mask.2", 10)
    assert done(path) == ["scores.2", "mask.2"]
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_solution_proves_itself_without_a_trace(path):
    assert check("scores.2", RIGHT, record=False).passed
    assert not path.parent.exists()


def test_deleting_the_file_begins_anew_and_another_editions_exercise_is_kept(path):
    check("scores.2", RIGHT)
    path.unlink()
    assert "0 of" in progress.picture().title
    check("mask.2", 10)
    assert done(path) == ["mask.2"]
    progress.write(path, ["gone.7", *progress.read(path)])
    check("scores.2", RIGHT)
    assert done(path) == ["gone.7", "mask.2", "scores.2"]
    assert progress.picture().title.endswith(f"{len(EXERCISES) - 14} beyond it")


BROKEN = [b"", b"{", b"\xff\xfe\x00", b"null", b"[]", b'["scores.1"]', b"[" * 100_000]
BROKEN += [b'{"done": ["scores.1"]}', b'{"course": "another", "done": []}']
UNLIKE = {}, {"done": {"scores.1": 1}}, {"done": ["scores.1", 1]}
BROKEN += [json.dumps({"course": progress.COURSE} | done).encode() for done in UNLIKE]


@pytest.mark.parametrize("content", BROKEN, ids=range(len(BROKEN)))
def test_a_broken_or_foreign_file_is_set_aside(path, content):
    path.parent.mkdir()
    path.write_bytes(content)
    earlier = path.with_name("progress-set-aside-1.json")
    earlier.write_text("from before")
    assert "cannot be used, and was not changed" in progress.picture().description
    assert path.read_bytes() == content

    outcome = check("scores.2", RIGHT)
    assert outcome.passed
    assert "progress-set-aside-2.json" in outcome.note and str(path) in str(outcome)
    assert path.with_name("progress-set-aside-2.json").read_bytes() == content
    assert earlier.read_text() == "from before"
    assert done(path) == ["scores.2"]
    assert check("mask.2", 10).note == ""


def test_where_nothing_can_be_written_the_answer_is_still_right(path, monkeypatch):
    path.parent.write_text("a file where a folder should be")
    outcome = check("scores.2", RIGHT)
    assert outcome.passed and "could not be saved" in outcome.note
    assert "0 of" in progress.picture().title
    path.parent.unlink()
    check("mask.2", 10)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))  # as on a full disk
    try:
        outcome = check("scores.2", RIGHT)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert outcome.passed and f"could not be saved in {path}: File too large" in outcome.note
    assert done(path) == ["mask.2"]
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    read_only = OSError(30, "Read-only file system")
    monkeypatch.setattr("tempfile.mkstemp", Mock(side_effect=read_only))
    assert f"could not be saved in {path}: Read-only file" in check("scores.2", RIGHT).note


def test_two_notebooks_at_once_lose_nothing(path):
    names = list(TASKS)
    threads = [threading.Thread(target=progress.record, args=[name]) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done(path)) == sorted(names)


def test_the_picture_says_in_words_what_is_done(path):
    empty = progress.picture()
    beyond = len(EXERCISES) - len(progress.EVENING)
    done = "Done: {} of the evening's 14 exercises, {} of {} beyond it"
    assert empty.title == done.format(0, 0, beyond) and "✓" not in empty.svg
    assert empty == progress.picture() and empty.svg.count("stroke-width:2") == 14
    for name in ("scores.2", "shape.1"):
        progress.record(name)
    picture = progress.picture()
    assert picture.title == done.format(1, 1, beyond)
    assert picture.description == "Done: shape.1, scores.2."
    assert picture.svg.count("✓") == 2
    for name in EXERCISES:
        progress.record(name)
    assert progress.picture().svg.count("✓") == len(EXERCISES)


@pytest.mark.parametrize(
    ("writable", "there", "home", "place"),
    [
        (True, True, "home", renew.NOTEBOOKS.parent / "my_notebooks"),
        (False, True, "home", Path("home", ".eleven_steps")),  # a course that many share
        (False, False, "home", Path("home", ".eleven_steps")),
        (False, True, "~", Path(".eleven_steps")),  # no home: the working folder
    ],
)
def test_without_a_setting_it_lies_beside_the_copies_or_where_one_may_write(
    writable, there, home, place, monkeypatch
):
    monkeypatch.delenv(progress.VARIABLE)
    if not writable:
        monkeypatch.setattr(os, "access", lambda place, how: False)
        monkeypatch.setattr(Path, "exists", lambda place: there)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path.replace("~", home))
    assert progress.file() == place / "progress.json"


def test_a_setting_may_name_a_place_at_home_and_a_folder_without_locks(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def no_locks(handle, how):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(progress.VARIABLE, "~/deep/progress.json")
    assert check("scores.2", 43).note == ""
    assert done(tmp_path / "deep" / "progress.json") == ["scores.2"]
