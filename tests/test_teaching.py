"""docs/teaching.md tells the truth: its exercises, its plan, and every command, word for word."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from unittest import mock

import install
import nbformat
import pytest
import results
from assignment import asked
from renew import COURSE

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "teaching.md").read_text("utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
ANSWERS = {  # what a student hands in: the first is wrong, and the third is left open
    "scores.1": "lambda queries, keys: keys @ queries.transpose(2, 3)",
    "scores.2": "43",
}
TRIED = [block for block in BLOCKS if "docker" not in block]  # there is no engine here


def test_what_a_student_can_do_is_shown_by_an_exercise_of_that_notebook():
    rows = re.findall(r"^\| \[(\w+)\]\(\S+\) \| .+ \| (`.+`) \|$", TEXT, re.MULTILINE)
    shown = {name: re.findall(r"`([\w.]+)`", exercises) for name, exercises in rows}
    places = results.course_exercises()
    assert all(places[each] == name for name, exercises in shown.items() for each in exercises)
    assert set(shown) == set(places.values())
    after = TEXT.partition("| after |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| \[(\w+)\]", after, re.MULTILINE) == list(COURSE)


@pytest.mark.parametrize("weeks", ["six", "twelve"])
def test_a_plan_has_each_of_its_notebooks_once(weeks):
    table = TEXT.partition(f"| {weeks} weeks |")[2].partition("\n\n")[0]
    named = re.findall(r"\b\d\d_\w+", table)
    assert len(named) == len(set(named)) and set(named) <= set(COURSE)
    steps = {name for name in COURSE if "01" <= name[:2] <= "13"}
    assert steps <= set(named) and (weeks == "six" or set(named) == set(COURSE))
    asking = set(results.course_exercises().values())
    assert all(asking & set(re.findall(r"\b\d\d_\w+", row)) for row in table.splitlines()[2:])


def hand_in(released, folder):
    """Answer a notebook as a student does, and put it into a folder."""
    notebook = nbformat.read(released, 4)
    for cell in notebook.cells:
        identifier, name, line = asked(cell) or ("", "", 0)
        if identifier in ANSWERS:
            lines = cell.source.splitlines()
            lines.insert(line - 1, f"{name} = {ANSWERS[identifier]}")
            cell.source = "\n".join(lines)
    folder.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, folder / released.name)


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """Return a copy of the course as it is cloned, with the environments that make would make."""
    place = tmp_path_factory.mktemp("course") / "course"
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in filter(None, files.stdout.decode().split("\0")):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, place / name)
    for path in (place / "notebooks" / "beyond").glob("*.ipynb"):  # two sites are made of them
        if path.stem != "15_by_hand":
            notebook = json.loads(path.read_text("utf-8"))
            path.write_text(json.dumps(notebook | {"cells": notebook["cells"][:1]}), "utf-8")
    environment = Path(os.environ.get("ELEVEN_STEPS_CLASS", f"{sys.prefix}-class"))
    for name, made in (".venv", Path(sys.prefix)), (".venv-class", environment):
        if not (made / "bin" / "python").exists():
            pytest.skip(f"{made} is not there: make assignment makes it")
        (place / name).mkdir()
        for part in made.iterdir():
            (place / name / part.name).symlink_to(part)
        # So that make installs nothing: no word of where the environment was made, and the stamps.
        for written in "pyvenv.cfg", "installed", "installed-dev":
            (place / name / written).unlink(missing_ok=True)
        about = (made / "pyvenv.cfg").read_text("utf-8").partition("command = ")[0]
        (place / name / "pyvenv.cfg").write_text(about)
        with mock.patch.object(install, "ROOT", place):
            for which in "", "-dev":
                wanted = install.fingerprint(place / f"requirements{which}.txt")
                (place / name / f"installed{which}").write_text(wanted)
    hand_in(COURSE["05_scores"], place / "handed_in" / "ada")
    (place / "logins.csv").write_text("login,name,id\nada,Ada Lovelace,71\nblaise,Blaise Pascal,\n")
    return place


def shell(course, commands, *before):
    """Run commands in a fresh shell, in the course's folder; return what they print."""
    kept = {name: os.environ[name] for name in ("HOME", "PATH", "TERM") if name in os.environ}
    own = {"PYTHONPATH": str(course), "JUPYTER_PLATFORM_DIRS": "1", "OMP_NUM_THREADS": "1"}
    command = [*before, "bash", "-euo", "pipefail", "-c", commands]
    done = subprocess.run(command, cwd=course, env=kept | own, capture_output=True, text=True)
    assert done.returncode == 0, f"{commands}\n{done.stdout}{done.stderr}"
    return done.stdout


def table(path, key):
    """Read a table as its rows, by one column."""
    rows = csv.DictReader(path.read_text("utf-8").splitlines())
    return {row[key]: row for row in rows}


@pytest.mark.nightly
def test_every_command_works_and_three_graders_give_the_same_points(course):
    assert len(TRIED) >= 8
    for block in TRIED:
        if "nbgrader autograde" in block:
            released = course / "assignment" / "release" / "week2" / "05_scores.ipynb"
            hand_in(released, course / "assignment" / "submitted" / "ada" / "week2")
        if "otter run" in block:
            student = course / "assignment_otter/05_scores/dist/student/05_scores.ipynb"
            hand_in(student, course / "handed_in" / "ada")
        if "--no-index" in block:  # where there is no network but the loopback
            (course / ".venv").rename(course / "made")
            quiet = ["unshare", "--map-root-user", "--net"]
            able = not subprocess.run([*quiet, "true"], capture_output=True).returncode
            said = shell(course, block, *quiet * able)
            assert said.split()[-1].count(".") == 2  # JupyterLab's version
            continue
        shell(course, block)
    assert (course / "canvas.csv").read_text("utf-8").count("\n") == 4
    ours = table(course / "canvas.csv", "SIS Login ID")["ada"]["05_scores"]
    nbgraders = table(course / "assignment" / "grades.csv", "student_id")["ada"]["score"]
    otters = json.loads((course / "results.json").read_text("utf-8"))["tests"]
    assert float(ours) == float(nbgraders) == sum(each.get("score", 0) for each in otters) == 1
    assert list((course / "assignment" / "feedback" / "ada" / "week2").glob("*.html"))
    site = (course / "site-students" / "05_scores.html").read_text("utf-8")
    assert "# Solution" in (course / "site" / "05_scores.html").read_text("utf-8")
    assert "# Solution" not in site and "keys.transpose(2, 3)\n\n\nassert" not in site
    assert not (course / "my_notebooks" / "progress.json").exists()
