"""Numbers of one's own: a problem for each student, asked, told apart and judged."""

import assignment
import grade
import pytest
from own_numbers import FOUND, own
from renew import COURSE, read

from eleven_steps.checks import check, progress

OWN = ["by_hand.3", "by_hand.4", "by_hand.5"]


def answer(asks):
    return {name: matrix.tolist() for name, matrix in check(asks).solution.items()}


def test_a_seed_makes_an_exercise_of_the_sheet_another_one(tmp_path, monkeypatch):
    monkeypatch.setenv(progress.VARIABLE, str(tmp_path / "progress.json"))
    for name in OWN:
        given = {seed: check(f"{name}.{seed}").given for seed in (7, 8)}
        assert any(not given[7][each].equal(given[8][each]) for each in given[7])
        assert check(f"{name}.7", answer(f"{name}.7")).passed
        assert not check(f"{name}.8", answer(f"{name}.7")).passed
        assert not check(name, answer(f"{name}.7")).passed
    assert progress.read(progress.file()) == OWN
    for unknown in ("by_hand.1.7", "by_hand.3.-1", "by_hand.3.x", "by_hand.3." + "1" * 19):
        assert check(unknown).kind == "unknown"


def test_an_assignment_and_a_login_say_the_seed():
    every = grade.course_exercises()
    assert list(own("week6", "ada", every)) == OWN
    seeds = {own(name, who, every)["by_hand.3"] for name in "ab" for who in ("ada", "blaise")}
    assert len(seeds) == 4 and own("a", "ada", every)["by_hand.3"] in seeds


@pytest.fixture(scope="module")
def released():
    """Return the students' version of the notebook as nbgrader makes it, but for its checksums."""
    notebook = assignment.source_version(read(COURSE["15_by_hand"]), seeded=True)
    for cell in notebook.cells:
        region = cell.source.partition(assignment.BEGIN)[2].partition(assignment.END)[0]
        cell.source = cell.source.replace(f"{assignment.BEGIN}{region}{assignment.END}", "")
    return notebook


def test_a_notebook_says_whose_it_is_and_keeps_nothing_of_the_sheets_numbers(released):
    made = assignment.with_own(released, "week6", "ada", "Ada Lovelace (ada)")
    assert "Ada Lovelace (ada)" in made.cells[0].source
    code = "\n".join(cell.source for cell in made.cells if cell.cell_type == "code")
    for name, asks in own("week6", "ada", OWN).items():
        assert f'check("{name}"' not in code and code.count(f'check("{asks}"') == 3, name
        for part in check(asks).solution:
            assert f'    "{part}": ...,' in code
    assert FOUND not in code and 'check("by_hand.1", answer)' in code
    for left in ("Q2", "W_o2", "d = 64", "3 x 1", "sheet = {"):
        assert all(left not in cell.source for cell in made.cells), left
    names = [cell.metadata.nbgrader.grade_id for cell in made.cells if "nbgrader" in cell.metadata]
    assert names == [
        c.metadata.nbgrader.grade_id for c in released.cells if "nbgrader" in c.metadata
    ]


def test_without_own_numbers_nothing_changes():
    sheet = assignment.source_version(read(COURSE["15_by_hand"]))
    assert all(FOUND not in cell.source for cell in sheet.cells)
    scores = assignment.source_version(read(COURSE["05_scores"]), seeded=True)
    same = assignment.with_own(scores, "week2", "ada", "Ada")
    assert [c.source for c in same.cells] == [c.source for c in scores.cells]


@pytest.mark.parametrize("who, passes", [("ada", True), ("blaise", False)])
def test_nbgraders_test_judges_by_the_folder(released, tmp_path, monkeypatch, who, passes):
    (test,) = [
        cell.source
        for cell in released.cells
        if cell.metadata.get("nbgrader", {}).get("grade_id") == "by_hand-5-test"
    ]
    (tmp_path / who / "week6").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / who / "week6")
    names = {"answer": answer(own("week6", "ada", OWN)["by_hand.5"])}
    if passes:
        exec(test, names)
    else:
        with pytest.raises(AssertionError, match="not the numbers"):
            exec(test, names)
