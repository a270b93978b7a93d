"""The course for otter-grader: the same verdicts, in the same sentences, as the grader."""

import json
import os
import subprocess
from pathlib import Path

import assignment_otter
import grade
import nbformat
import pytest
from renew import NOTEBOOKS, read
from test_assignment import NOTEBOOK, PYTHON, with_mistakes

pytestmark = pytest.mark.nightly

OTTER = PYTHON.with_name("otter")
needs_otter = pytest.mark.skipif(
    not OTTER.exists(), reason=f"{OTTER} is not there: make assignment-otter installs it"
)


def test_a_question_holds_the_stub_the_solution_and_our_check():
    cells = [cell.source for cell in assignment_otter.master(read(NOTEBOOKS / NOTEBOOK)).cells]
    assert cells[0].startswith("# ASSIGNMENT CONFIG") and "name: scores_3\npoints: 1" in "".join(
        cells
    )
    answer, test = (cells[cells.index(f"# BEGIN {part}") + 1] for part in ("SOLUTION", "TESTS"))
    stub, solution = answer.split("# BEGIN SOLUTION NO PROMPT")
    assert "return ...  # yours" in stub
    assert "keys.transpose(2, 3)\n" in solution and solution.endswith(
        'check("scores.1", scores_of)'
    )
    assert test.startswith("def test_scores_1(check, scores_of):")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return what otter and what the grader say of three students, by student and exercise."""
    folder = tmp_path_factory.mktemp("otter")
    nbformat.write(assignment_otter.master(read(NOTEBOOKS / NOTEBOOK)), folder / NOTEBOOK)
    otter(folder, "assign", NOTEBOOK, "dist")
    (whole,) = (folder / "dist" / "autograder").glob("*.zip")
    solved, release = (
        nbformat.read(folder / "dist" / version / NOTEBOOK, 4)
        for version in ("autograder", "student")
    )
    assert "queries @ keys.transpose(2, 3)" not in exercises_of(release)
    submitted = {
        "ada": solved,
        "blaise": release,
        "carl": with_mistakes(nbformat.from_dict(release)),
    }
    said = {}
    for student, notebook in submitted.items():
        place = folder / "submitted" / student
        place.mkdir(parents=True)
        nbformat.write(notebook, place / NOTEBOOK)
        otter(place, "run", NOTEBOOK, "-a", str(whole), "--no-logo")
        for test in json.loads((place / "results.json").read_text())["tests"][1:]:
            said[student, test["name"].replace("_", ".")] = test
    out = folder / "grader.json"
    assert grade.main([str(folder / "submitted"), "--json", str(out), "--trusted"]) == 0
    found = json.loads(out.read_text())["results"]
    return said, {(each["student"], each["exercise"]): each for each in found}


def otter(folder: Path, *words):
    own = {"ELEVEN_STEPS_PROGRESS": str(folder / "progress.json")}
    command = [OTTER, *words]
    done = subprocess.run(command, cwd=folder, env=os.environ | own, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def exercises_of(notebook):
    return "".join(
        c.source for c in notebook.cells if "otter_answer_cell" in c.metadata.get("tags", [])
    )


@needs_otter
def test_verdicts_and_sentences_are_those_of_the_grader(results):
    ours, graded = results
    assert len(ours) == 9 and set(ours) == set(graded)
    for key, result in graded.items():
        assert ours[key]["score"] == float(result["passed"]) and ours[key]["max_score"] == 1
        told = ours[key]["output"]
        assert ("All test cases passed!" in told) is result["passed"]
        assert result["passed"] or f"AssertionError: {result['message']}" in told
    assert {student for (student, _), result in graded.items() if result["passed"]} == {"ada"}
