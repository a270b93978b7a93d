"""The course as an nbgrader assignment: the same verdicts, in the same sentences, as the grader."""

import html
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import assignment
import grade
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from renew import COURSE, NOTEBOOKS

pytestmark = pytest.mark.nightly

# nbgrader brings a notebook server with it, so it stands beside the course (make assignment).
PYTHON = Path(os.environ.get("ELEVEN_STEPS_CLASS", f"{sys.prefix}-class"), "bin", "python")
NOTEBOOK = "05_scores.ipynb"
WRONG = {
    "scores.1": "def scores_of(queries, keys):\n    return keys @ queries.transpose(2, 3)\n\n",
    "scores.2": "score = 22\n",
}
needs_nbgrader = pytest.mark.skipif(
    not PYTHON.exists(), reason=f"{PYTHON} is not there: make assignment installs nbgrader"
)


def test_every_exercise_is_asked_once_and_has_a_solution():
    found = {}
    for name, notebook in assignment.with_exercises(COURSE.values()).items():
        for cell in assignment.source_version(notebook).cells:
            about = cell.metadata.get("nbgrader")
            if about and about["solution"]:
                identifier, answer, _ = assignment.asked(cell.source)
                assert identifier not in found, name
                found[identifier] = cell.source
                region = cell.source.partition(assignment.BEGIN)[2].partition(assignment.END)[0]
                names = compile(region, name, "exec").co_names
                assert answer in names, f"{identifier}: the solution does not say {answer}"
                assert "check" not in names
    assert list(found) == list(grade.course_exercises())


def test_what_a_solution_proves_becomes_the_answer():
    proof = "# why\nparts = 3, 4\nassert check('view.2', parts[0] + 1, record=False)"
    assert assignment.solved([proof], "place") == "# why\nparts = 3, 4\nplace = parts[0] + 1"
    named = "def f(x):\n    return x\n\n\nassert check('view.1', f, record=False)"
    assert assignment.solved([named], "f") == "def f(x):\n    return x"


def test_only_an_answer_with_a_name_is_asked_for():
    assert assignment.asked("x = 1\ncheck('view.2', x)") == ("view.2", "x", 2)
    for source in ("check('view.2')", "check('practice.shapes.1', x)", "check('view.2', 3)"):
        assert assignment.asked(source) is None


def test_no_output_and_no_solution_tag_is_left():
    cell = new_code_cell("1 + 1", execution_count=1)
    cell.outputs = [nbformat.v4.new_output("stream", text="2")]
    solution = new_code_cell("# all of it", metadata={"tags": ["solution"]})
    (left,) = assignment.source_version(new_notebook(cells=[cell, solution])).cells
    assert left.source == "1 + 1" and not left.outputs and left.execution_count is None


def nbgrader(folder, *words):
    """Run a command of nbgrader in a course; it must succeed."""
    code = f"import sys, assignment; sys.exit(assignment.nbgrader({str(folder)!r}, *{words!r}))"
    paths = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [PYTHON, "-c", code],
        env=os.environ | {"PYTHONPATH": paths, "JUPYTER_PLATFORM_DIRS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def hand_in(folder, student, notebook):
    """Put a notebook where nbgrader and the grader look for what students hand in."""
    place = folder / "submitted" / student / assignment.NAME
    place.mkdir(parents=True)
    nbformat.write(notebook, place / NOTEBOOK)


def with_mistakes(notebook):
    """Return the students' version filled in wrongly."""
    for cell in notebook.cells:
        about = assignment.asked(cell.source) if cell.cell_type == "code" else None
        if about and about[0] in WRONG:
            cell.source = WRONG[about[0]] + cell.source.splitlines()[-1]
    return notebook


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """Return an nbgrader course in which three students were graded, and given feedback."""
    folder = tmp_path_factory.mktemp("course")
    assignment.write(folder, [NOTEBOOKS / NOTEBOOK])
    nbgrader(folder, "generate_assignment", assignment.NAME)
    source, release = (
        nbformat.read(folder / version / assignment.NAME / NOTEBOOK, 4)
        for version in ("source", "release")
    )
    hand_in(folder, "ada", source)
    hand_in(folder, "blaise", release)
    hand_in(folder, "carl", with_mistakes(release))
    for command in ("autograde", "generate_feedback"):
        nbgrader(folder, command, assignment.NAME)
    return folder


@needs_nbgrader
def test_students_get_the_stub_and_no_solution(course):
    release = (course / "release" / assignment.NAME / NOTEBOOK).read_text("utf-8")
    assert "...  # yours" in release and "SOLUTION" not in release
    assert "queries @ keys.transpose(2, 3)" not in json.dumps(
        [c.source for c in nbformat.reads(release, 4).cells if "nbgrader" in c.metadata]
    )


def scores(course):
    """Return what nbgrader wrote down: points by student and test."""
    query = """
        select submitted_assignment.student_id, base_cell.name, grade.auto_score
        from grade join base_cell on base_cell.id = grade.cell_id
        join submitted_notebook on submitted_notebook.id = grade.notebook_id
        join submitted_assignment on submitted_assignment.id = submitted_notebook.assignment_id
    """
    with sqlite3.connect(course / "gradebook.db") as book:
        return {(student, name): points for student, name, points in book.execute(query)}


def sentences(course, student):
    """Return what the tests said in the graded notebook, by exercise; "" where they passed."""
    path = course / "autograded" / student / assignment.NAME / NOTEBOOK
    found = {}
    for cell in nbformat.read(path, 4).cells:
        about = cell.metadata.get("nbgrader", {})
        if about.get("grade"):
            errors = [each.evalue for each in cell.outputs if each.output_type == "error"]
            found[about["grade_id"].removesuffix("-test").replace("-", ".")] = "".join(errors)
    return found


@needs_nbgrader
def test_verdicts_and_sentences_are_those_of_the_grader(course, tmp_path):
    out = tmp_path / "results.json"
    assert grade.main([str(course / "submitted"), "--json", str(out), "--trusted"]) == 0
    results = json.loads(out.read_text())["results"]
    given = scores(course)
    assert len(results) == len(given) == 9
    for result in results:
        student, exercise = result["student"], result["exercise"]
        assert given[student, f"{exercise.replace('.', '-')}-test"] == float(result["passed"])
        said = sentences(course, student)[exercise]
        assert said == ("" if result["passed"] else result["message"])
    assert {result["student"] for result in results if result["passed"]} == {"ada"}


@needs_nbgrader
@pytest.mark.parametrize("student", ["blaise", "carl"])
def test_feedback_shows_the_sentences(course, student):
    page = course / "feedback" / student / assignment.NAME / NOTEBOOK.replace("ipynb", "html")
    shown = html.unescape(page.read_text("utf-8"))
    for sentence in sentences(course, student).values():
        assert sentence and sentence in shown
