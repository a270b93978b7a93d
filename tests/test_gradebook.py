"""Grades as Canvas and Moodle import them, written and read back."""

import csv
import json

import gradebook
import pytest

EXERCISES = {
    "scores.1": "05_scores",
    "scores.2": "05_scores",
    "mask.1": "06_mask",
    "your_class.1": "13_your_own_class",
}
STUDENTS = {  # what is handed in of them, by exercise: points, or None for nothing
    "ada": (1, 1, 1, 11),
    "blaise": (0, 1, None, 6),
    "=carl": (0, 0, None, None),
    "dora": (None, None, None, None),
    "Emmy_9": (1, 1, 1, 11),  # a download's name, on no roster
}


@pytest.fixture
def tables(tmp_path):
    """Return both tables as rows by column, read from results that were written."""
    results = [
        {"student": student, "exercise": name, "points": n or 0, "kind": kind}
        for student, points in STUDENTS.items()
        for name, n in zip(EXERCISES, points, strict=True)
        for kind in ["missing" if n is None else "value"]
    ]
    people = {"ada": {"login": "ada", "name": "Lovelace, Ada", "number": "71"}}
    people["Emmy_9"] = {"login": "", "name": "Emmy", "number": ""}
    path = tmp_path / "results.json"
    content = {"exercises": EXERCISES, "students": people, "results": results}
    path.write_text(json.dumps(content))
    out = {name: tmp_path / f"{name}.csv" for name in ("canvas", "moodle")}
    options = [part for name, file in out.items() for part in (f"--{name}", str(file))]
    gradebook.main([str(path), *options])
    return {
        name: list(csv.DictReader(file.read_text("utf-8").splitlines()))
        for name, file in out.items()
    }


def columns(*values):
    return dict(zip(dict.fromkeys(EXERCISES.values()), values, strict=True))


def test_moodle_gets_percentages_a_dash_for_what_is_missing_and_no_unknown_name(tables):
    rows = {row.pop("username"): row for row in tables["moodle"]}
    assert rows == {
        "ada": columns("100.0", "100.0", "100.0"),
        "blaise": columns("50.0", "-", "54.55"),
        "'=carl": columns("0.0", "-", "-"),
        "dora": columns("-", "-", "-"),
    }


def test_canvas_gets_points_and_what_is_possible(tables):
    possible, *rows = tables["canvas"]
    assert list(possible) == [*gradebook.CANVAS, "05_scores", "06_mask", "13_your_own_class"]
    assert possible["Student"] == "    Points Possible" and possible["05_scores"] == "2"
    assert possible["13_your_own_class"] == "11"
    about = [[row.pop(name) for name in gradebook.CANVAS] for row in rows]
    assert about[0] == ["Lovelace, Ada", "71", "", "ada", ""]
    assert about[2] == ["'=carl", "", "", "'=carl", ""] and about[4] == ["Emmy", "", "", "", ""]
    assert rows == [
        columns("2", "1", "11"),
        columns("1", "", "6"),
        columns("0", "", ""),
        columns("", "", ""),
        columns("2", "1", "11"),
    ]


def test_it_asks_where_to():
    with pytest.raises(SystemExit):
        gradebook.main(["results.json"])
