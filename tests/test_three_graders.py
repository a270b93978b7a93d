"""The grader, nbgrader and otter give the same points for all solved, half solved and broken."""

import html
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import assignment
import assignment_otter
import grade
import nbformat
import pytest
from renew import COURSE

pytestmark = pytest.mark.nightly

# They bring a notebook server with them, so they stand beside the course (make assignment).
PYTHON = Path(os.environ.get("ELEVEN_STEPS_CLASS", f"{sys.prefix}-class"), "bin", "python")
needs_class = pytest.mark.skipif(
    not PYTHON.exists(), reason=f"{PYTHON} is not there: make assignment installs it"
)
NOTEBOOKS = os.environ.get("ELEVEN_STEPS_GRADED", "").split()  # names; all where none is named
ASKING = {Path(name).stem for name in assignment.with_exercises(COURSE.values())}
PATHS = [path for name, path in COURSE.items() if name in (NOTEBOOKS or ASKING)]
SLIPS = "def broken(:", "{name} = 'a text'", "raise OSError('before the answer')"
UNMASKED = "scores.masked_fill(self.mask[:num_tokens, :num_tokens], -torch.inf)", "scores"


def answered(notebook, solutions, student):
    """Return a students' version filled in: all solved, every second, or with mistakes."""
    number = 0
    for cell in notebook.cells:
        about = assignment.asked(cell.source) if cell.cell_type == "code" else None
        if about is None:
            continue
        identifier, name, _ = about
        whole, call = solutions[identifier], cell.source.splitlines()[-1]
        if student == "broken" and identifier == "your_class.1":
            assert whole.count(UNMASKED[0]) == 1  # so five steps are right
            cell.source = whole.replace(*UNMASKED)
        elif student == "broken":
            cell.source = f"{SLIPS[number % 3].format(name=name)}\n{call}"
        elif student == "solved" or number % 2 == 0:
            cell.source = whole
        number += 1
    return notebook


@pytest.fixture(scope="module")
def solutions():
    """Return each exercise's cell with its solution in place of the stub."""
    found = {}
    for path in PATHS:
        for cell in assignment.source_version(nbformat.read(path, 4)).cells:
            about = assignment.asked(cell.source) if cell.cell_type == "code" else None
            if about and cell.metadata.nbgrader.grade_id.endswith("-answer"):
                found[about[0]] = cell.source
    return found


def run(folder, *words):
    """Run a command of the class's environment in a folder; it must succeed."""
    own = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "JUPYTER_PLATFORM_DIRS": "1"}
    beside = os.pathsep.join([str(PYTHON.parent), os.environ["PATH"]])
    command = [str(PYTHON), *map(str, words)]
    env = os.environ | own | {"PATH": beside}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def points(folder):
    """Return what the grader gives, by student and exercise, and what it says."""
    out = folder / "results.json"
    assert grade.main([str(folder / "submitted"), "--json", str(out), "--seconds", "300"]) == 0
    results = json.loads(out.read_text())["results"]
    return {(each["student"], each["exercise"]): each for each in results}


@pytest.fixture(scope="module")
def progress():
    """Return the instructor's own progress, before and after."""
    path = Path(grade.__file__).parents[2] / "my_notebooks" / "progress.json"
    before = path.read_bytes() if path.exists() else None
    yield
    assert (path.read_bytes() if path.exists() else None) == before


@pytest.fixture(scope="module")
def course(tmp_path_factory, solutions, progress):
    """Return an nbgrader course in which three students were graded, one with a file cut off."""
    folder, name = tmp_path_factory.mktemp("course"), "week"
    tool = Path(assignment.__file__)
    run(folder, tool, "--folder", folder, "--name", name, "--due", "2027-03-01", *PATHS)
    for student in ("solved", "half", "broken"):
        place = folder / "submitted" / student / name
        place.mkdir(parents=True)
        for path in PATHS:
            release = nbformat.read(folder / "release" / name / path.name, 4)
            assert "SOLUTION" not in "".join(cell.source for cell in release.cells)
            nbformat.write(answered(release, solutions, student), place / path.name)
    cut = folder / "submitted" / "cut" / name
    cut.mkdir(parents=True)
    (cut / PATHS[0].name).write_text("{")
    for command in ("autograde", "generate_feedback"):
        run(folder, "-m", "nbgrader", command, name)
    return folder


@needs_class
def test_the_grader_and_nbgrader_agree_on_every_exercise(course, solutions):
    query = """
        select submitted_assignment.student_id, base_cell.name, grade.auto_score
        from grade join base_cell on base_cell.id = grade.cell_id
        join submitted_notebook on submitted_notebook.id = grade.notebook_id
        join submitted_assignment on submitted_assignment.id = submitted_notebook.assignment_id
    """
    with sqlite3.connect(course / "gradebook.db") as book:
        theirs = {
            (student, name.removesuffix("-test").replace("-", ".")): score
            for student, name, score in book.execute(query)
        }
        (due,) = book.execute("select duedate from assignment").fetchone()
    assert due.startswith("2027-03-01")
    ours = {key: each for key, each in points(course).items() if key[0] != "cut"}
    assert not any(score for (student, _), score in theirs.items() if student == "cut")
    assert {key: each["points"] for key, each in ours.items()} == {
        key: score for key, score in theirs.items() if key[0] != "cut"
    }
    assert all(ours["solved", name]["passed"] for name in solutions)
    assert not any(each["passed"] for (student, _), each in ours.items() if student == "broken")
    if ("broken", "your_class.1") in ours:
        assert ours["broken", "your_class.1"]["points"] == 5


@needs_class
def test_feedback_shows_the_sentences(course, solutions):
    found = points(course)
    pages = (course / "feedback" / "broken").rglob("*.html")
    shown = "".join(html.unescape(page.read_text("utf-8")) for page in pages)
    for identifier in solutions:
        result = found["broken", identifier]
        told = result["message"]
        named = told.split(" raises ")[-1].split(":")[0] if result["kind"] == "error" else told
        assert named in shown, result


@pytest.fixture(scope="module")
def otter(tmp_path_factory, solutions, progress):
    """Return what otter gives three students, and the folder in which they are submitted."""
    folder, given = tmp_path_factory.mktemp("otter"), {}
    tool = Path(assignment_otter.__file__)
    run(folder, tool, "--folder", folder / "dist", *PATHS)  # it runs the solutions, which must pass
    for path in PATHS:
        dist = folder / "dist" / path.stem / "dist"
        (whole,) = (dist / "autograder").glob("*.zip")
        for student in ("solved", "half", "broken"):
            release = nbformat.read(dist / "student" / path.name, 4)
            place = folder / "submitted" / student / path.stem
            place.mkdir(parents=True)
            nbformat.write(answered(release, solutions, student), place / path.name)
            run(place, "-m", "otter", "run", path.name, "-a", whole, "--no-logo")
            for test in json.loads((place / "results.json").read_text())["tests"][1:]:
                given[student, test["name"].replace("_", ".")] = test
    return given, folder


@needs_class
def test_the_grader_and_otter_agree_on_every_exercise(otter, solutions):
    given, folder = otter
    ours = points(folder)
    names = {name.replace("_", "."): name for name in solutions}
    theirs = {(student, names[name]): test for (student, name), test in given.items()}
    assert {key: each["points"] for key, each in ours.items()} == {
        key: test["score"] for key, test in theirs.items()
    }
    for key, result in ours.items():
        if result["kind"] not in ("error", "right"):
            assert result["message"] in theirs[key]["output"], key
        if result["kind"] == "error":  # a cell that did not run is no answer that is open
            assert "raises" in theirs[key]["output"] and "not answered" not in result["message"]
