"""The course as an nbgrader assignment: what is asked, its solution, its test."""

import assignment
import grade
import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from renew import COURSE


def test_every_exercise_is_asked_once_and_has_a_solution():
    found = {}
    for name, notebook in assignment.with_exercises(COURSE.values()).items():
        for cell in assignment.source_version(notebook).cells:
            about = cell.metadata.get("nbgrader")
            if about and about["solution"]:
                identifier, answer, _ = assignment.asked(cell)
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
    asking = new_code_cell("x = 1\ncheck('view.2', x)")
    assert assignment.asked(asking) == ("view.2", "x", 2)
    for source in ("check('view.2')", "check('practice.shapes.1', x)", "check('view.2', 3)"):
        assert assignment.asked(new_code_cell(source)) is None
    assert assignment.asked(new_markdown_cell(asking.source)) is None


def test_no_output_and_no_solution_tag_is_left():
    cell = new_code_cell("1 + 1", execution_count=1)
    cell.outputs = [nbformat.v4.new_output("stream", text="2")]
    solution = new_code_cell("# all of it", metadata={"tags": ["solution"]})
    progress, left = assignment.source_version(new_notebook(cells=[cell, solution])).cells
    assert "ELEVEN_STEPS_PROGRESS" in progress.source
    assert left.source == "1 + 1" and not left.outputs and left.execution_count is None


def test_a_solution_ends_before_the_problems_below():
    cells = [
        new_code_cell("solved = 1", metadata={"tags": ["solution"]}),
        new_markdown_cell("## Fresh problems"),
        new_code_cell('problem = check(f"practice.shapes.{seed}")'),
        new_code_cell("problem.solution", metadata={"tags": ["solution"]}),
    ]
    assert assignment.solutions_of(cells) == ["solved = 1"]


def test_a_notebook_is_found_by_its_name_or_path():
    for name in ("05_scores", "05_scores.ipynb", str(COURSE["05_scores"])):
        assert assignment.path_of(name) == COURSE["05_scores"]
