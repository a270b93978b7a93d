"""The grader, nbgrader and otter give the same points for all solved, half solved and broken."""

import html
import json
import os
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import assignment
import grade
import nbformat
import pytest
from renew import COURSE

# They bring a notebook server with them, so they stand beside the course (make assignment).
PYTHON = Path(os.environ.get("ELEVEN_STEPS_CLASS", f"{sys.prefix}-class"), "bin", "python")
absent = pytest.mark.skipif(not PYTHON.exists(), reason=f"{PYTHON}: make assignment installs it")
pytestmark = [pytest.mark.nightly, absent]

# One of each kind of exercise, since the three take a minute for each; or "all", or those named.
KINDS = "07_softmax 12_the_class 13_your_own_class 15_by_hand 20_machines_1"
NOTEBOOKS = os.environ.get("ELEVEN_STEPS_GRADED", KINDS).split()
NOTEBOOKS = COURSE if NOTEBOOKS == ["all"] else NOTEBOOKS
PATHS = list(assignment.with_exercises(map(assignment.path_of, NOTEBOOKS)))
STUDENTS = "solved", "half", "broken"
SLIPS = "def broken(:", "{name} = 'a text'", "raise OSError('before the answer')"
UNMASKED = "scores.masked_fill(self.mask[:num_tokens, :num_tokens], -torch.inf)", "scores"
WEEK = "week"
# Their names hold something before their cell runs: where that raises, the others judge it.
HELD = {"by_hand.3", "by_hand.4", "by_hand.6", "by_hand.7", "many.3"}
# What the command `otter run` does, for one notebook after the other.
OTTER = """
import json, os, sys, otter.run

for folder, notebook, archive in json.load(sys.stdin):
    os.chdir(folder)
    otter.run.main(notebook, autograder=archive, no_logo=True)
"""
QUERY = """
    select submitted_assignment.student_id, base_cell.name, grade.auto_score
    from grade join base_cell on base_cell.id = grade.cell_id
    join submitted_notebook on submitted_notebook.id = grade.notebook_id
    join submitted_assignment on submitted_assignment.id = submitted_notebook.assignment_id
"""


def answered(notebook, solutions, student):
    """Return a students' version filled in: all solved, every second, or with mistakes."""
    notebook, number = nbformat.from_dict(notebook), 0
    for cell in notebook.cells:
        about = assignment.asked(cell)
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


def hand_in(release, solutions, place):
    """Write what each student makes of a released notebook; yield the folders it went to."""
    notebook = nbformat.read(release, 4)
    assert "SOLUTION" not in "".join(cell.source for cell in notebook.cells)
    for student in STUDENTS:
        folder = place / student / WEEK
        folder.mkdir(parents=True, exist_ok=True)
        nbformat.write(answered(notebook, solutions, student), folder / release.name)
        yield folder


@pytest.fixture(scope="module")
def solutions():
    """Return each exercise's cell with its solution in place of the stub."""
    found = {}
    for notebook in assignment.with_exercises(PATHS).values():
        for cell in assignment.source_version(notebook).cells:
            about = assignment.asked(cell)
            if about and cell.metadata.nbgrader.grade_id.endswith("-answer"):
                found[about[0]] = cell.source
    return found


def run(folder, *words, told=""):
    """Run a command of the class's environment in a folder; it must succeed."""
    own = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "JUPYTER_PLATFORM_DIRS": "1"}
    beside = os.pathsep.join([str(PYTHON.parent), os.environ["PATH"]])
    command, env = [str(PYTHON), *map(str, words)], os.environ | own | {"PATH": beside}
    done = subprocess.run(command, cwd=folder, env=env, input=told, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def by_ours(folder):
    """Grade an nbgrader course with the grader; return the results by student and exercise."""
    out = folder / "results.json"
    assert grade.main([str(folder / "submitted"), "--json", str(out), "--seconds", "300"]) == 0
    results = json.loads(out.read_text())["results"]
    return {(each["student"], each["exercise"]): each for each in results}


def by_nbgrader(folder):
    """Let nbgrader grade its course; return the points by student and exercise."""
    for command in ("autograde", "generate_feedback"):
        run(folder, "-m", "nbgrader", command, WEEK)
    with sqlite3.connect(folder / "gradebook.db") as book:
        (due,) = book.execute("select duedate from assignment").fetchone()
        assert due.startswith("2027-03-01")
        return {
            (student, name.removesuffix("-test").replace("-", ".")): score
            for student, name, score in book.execute(QUERY)
        }


def by_otter(folder, solutions):
    """Let otter make and grade its own assignments; return its tests by student and exercise."""
    run(folder, assignment.__file__, "--otter", "--folder", folder, *PATHS)
    names, jobs, found = {name.replace(".", "_"): name for name in solutions}, [], {}
    for path in PATHS:
        (archive,) = (folder / path.stem / "dist" / "autograder").glob("*.zip")
        release = folder / path.stem / "dist" / "student" / path.name
        for place in hand_in(release, solutions, folder / path.stem):
            jobs.append([str(place), path.name, str(archive)])
    run(folder, "-c", OTTER, told=json.dumps(jobs))
    for place, _, _ in jobs:
        for test in json.loads(Path(place, "results.json").read_text())["tests"][1:]:
            found[Path(place).parent.name, names[test["name"]]] = test
    return found


@pytest.fixture(scope="module")
def graded(tmp_path_factory, solutions):
    """Return what each of the three says, and nbgrader's course, with one student's file cut off.

    Neither solving nor grading touches the progress of whoever does it.
    """
    mine = Path(grade.__file__).parents[2] / "my_notebooks" / "progress.json"
    before = mine.read_bytes() if mine.exists() else None
    folder, other = tmp_path_factory.mktemp("course"), tmp_path_factory.mktemp("otter")
    tool = Path(assignment.__file__)
    run(folder, tool, "--folder", folder, "--name", WEEK, "--due", "2027-03-01", *PATHS)
    for path in PATHS:
        list(hand_in(folder / "release" / WEEK / path.name, solutions, folder / "submitted"))
    cut = folder / "submitted" / "cut" / WEEK
    cut.mkdir(parents=True)
    (cut / PATHS[0].name).write_text("{")
    with ThreadPoolExecutor() as pool:  # each waits for processes of its own
        jobs = (by_ours, folder), (by_nbgrader, folder), (by_otter, other, solutions)
        said = [each.result() for each in [pool.submit(*job) for job in jobs]]
    assert (mine.read_bytes() if mine.exists() else None) == before
    return *said, folder


def test_all_solved_is_right_and_all_broken_wrong(graded, solutions):
    ours, *_ = graded
    assert all(ours["solved", name]["passed"] for name in solutions)
    assert not any(each["passed"] for (student, _), each in ours.items() if student == "broken")
    if "your_class.1" in solutions:
        assert ours["broken", "your_class.1"]["points"] == 5
    for each in ours.values():  # a cell that did not run is no answer that is open
        assert each["kind"] != "error" or "not answered" not in each["message"]


def test_the_three_agree_on_every_exercise(graded, solutions):
    ours, nbgraders, otters, _ = graded
    every = {(student, name) for student in STUDENTS for name in solutions}
    points = {key: ours[key]["points"] for key in every}
    assert points == {key: nbgraders.get(key) for key in every}
    assert points == {key: otters[key]["score"] for key in every if key in otters}
    assert not any(score for (student, _), score in nbgraders.items() if student == "cut")


def test_each_tells_the_student_the_sentence(graded, solutions):
    ours, _, otters, folder = graded
    pages = (folder / "feedback" / "broken").rglob("*.html")
    shown = "".join(html.unescape(page.read_text("utf-8")) for page in pages)
    for identifier in solutions:
        said = ours["broken", identifier]
        if identifier in HELD:
            continue
        told = said["message"]
        # Each runs the cell in a world of its own, so of an error only its kind is the same.
        named = told.split(" raises ")[-1].split(":")[0] if said["kind"] == "error" else told
        assert named in shown and named in otters["broken", identifier]["output"], said
