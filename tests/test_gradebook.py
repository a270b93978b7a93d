"""Grades as Canvas and Moodle import them, written and read back."""

import csv
import json

import grade
import gradebook
import pytest

pytestmark = pytest.mark.nightly

EXERCISES = ["scores.1", "scores.2", "mask.1", "your_class.1"]
RIGHT = {"ada": {*EXERCISES}, "blaise": {"scores.2"}, "=carl": set()}


@pytest.fixture
def tables(tmp_path):
    """Return both tables as rows by column, read from results that were written."""
    results = [
        {"student": student, "exercise": name, "passed": name in right}
        for student, right in RIGHT.items()
        for name in EXERCISES
    ]
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"exercises": EXERCISES, "results": results}))
    out = {name: tmp_path / f"{name}.csv" for name in ("canvas", "moodle")}
    options = [part for name, file in out.items() for part in (f"--{name}", str(file))]
    gradebook.main([str(path), *options])
    return {
        name: list(csv.DictReader(file.read_text("utf-8").splitlines()))
        for name, file in out.items()
    }


POINTS = {
    "ada": {"05_scores": "2", "06_mask": "1", "13_your_own_class": "11"},
    "blaise": {"05_scores": "1", "06_mask": "0", "13_your_own_class": "0"},
    "'=carl": {"05_scores": "0", "06_mask": "0", "13_your_own_class": "0"},
}


def test_moodle_gets_a_row_a_student_and_a_column_a_notebook(tables):
    rows = {row.pop("username"): row for row in tables["moodle"]}
    assert rows == POINTS


def test_canvas_gets_what_is_possible_too(tables):
    possible, *rows = tables["canvas"]
    assert list(possible) == [*gradebook.CANVAS, "05_scores", "06_mask", "13_your_own_class"]
    assert possible["Student"] == "    Points Possible" and possible["05_scores"] == "2"
    assert possible["13_your_own_class"] == "11"
    for row in rows:
        assert row["SIS Login ID"] == row["Student"]
        about = {name: row.pop(name) for name in gradebook.CANVAS}
        assert row == POINTS[about["Student"]]


def test_every_exercise_of_the_course_has_its_notebook():
    places = gradebook.notebooks_of()
    assert set(grade.course_exercises()) <= set(places)
    assert places["scores.1"] == "05_scores" and places["by_hand.7"] == "15_by_hand"


def test_it_asks_where_to():
    with pytest.raises(SystemExit):
        gradebook.main(["results.json"])
